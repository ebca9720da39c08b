"""Sessions: what a page sends is taken from a page of this session alone, and what a foreign page sends changes nothing."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

import httpx
import pytest

from baton.api.authentication import Authentication
from baton.api.http import Request
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.console.actions import safe_path
from baton.console.live import LiveView, LiveViews, ViewKey
from baton.console.page import PAGES, ConsolePage
from baton.console.rendering import redirect
from baton.console.sessions import SECRET, ConsoleSession, Cookies, Sessions, cookies_of, form_token, new_secret
from baton.domain.kernel import NIL
from tests.support.console.page_source import PageSource
from tests.support.service import Api
from tests.support.tables import for_each

OWN = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
NOBODY = Caller(NIL, NIL, uuid4())


@pytest.fixture
async def browser(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without cookies."""
    async with httpx.AsyncClient(base_url=api.base_url, verify=False, timeout=30) as browser:
        yield browser


async def token_of(browser: httpx.AsyncClient, path: str = "/console/do/define_zone") -> str:
    """Return the form token that a page holds."""
    return PageSource.of((await browser.get(path)).text).value("form_token")


async def last_position(api: Api) -> int:
    """Return the newest place of the log: what it moves by was done."""
    (newest,) = (await api.get("/events", order="desc", limit=1)).json()["items"] or [{"position": 0}]
    return int(newest["position"])


async def test_a_form_of_the_page_does_what_it_says(api: Api, browser: httpx.AsyncClient) -> None:
    before = await last_position(api)
    form = {"form_token": await token_of(browser), "name": "Hall"}
    answer = await browser.post("/console/do/define_zone", data=form, headers=OWN)
    assert answer.status_code == 303, answer.text
    page = await browser.get(answer.headers["location"])
    assert (page.status_code, "Define zone: done" in page.text) == (200, True)
    assert await last_position(api) > before


async def test_a_form_that_is_refused_for_the_state_of_a_thing_shows_the_way(api: Api, browser: httpx.AsyncClient) -> None:
    asset_id = await api.create("/assets", {"name": "Ring", "tier": "Unit", "facility_code": "facility"})
    form = {"form_token": await token_of(browser), "asset_id": asset_id}
    answer = await browser.post("/console/do/enter_asset_maintenance", data=form, headers=OWN)
    assert answer.status_code == 409
    ways = re.findall(r'href="/console/do/(\w+)\?asset_id=([^"]+)"', answer.text)
    assert ways[-2:] == [("activate_asset", asset_id), ("enter_asset_maintenance", asset_id)]


FOREIGN: dict[str, dict[str, Any]] = {
    "no token": {"data": {"name": "Evil"}},
    "an empty token": {"data": {"name": "Evil", "form_token": ""}},
    "an invented token": {"data": {"name": "Evil", "form_token": "0" * 64}},
    "a token of another browser": {"data": {"name": "Evil", "form_token": form_token(new_secret(), "")}},
    "a token in the address": {"params": {"form_token": "{own}"}, "data": {"name": "Evil"}},
    "a token of letters that no form holds": {"data": {"name": "Evil", "form_token": "ü"}},
    "the right token from a page of another site": {
        "data": {"name": "Evil", "form_token": "{own}"},
        "headers": {"Sec-Fetch-Site": "cross-site"},
    },
    "the right token from a page of another port": {
        "data": {"name": "Evil", "form_token": "{own}"},
        "headers": {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    },
    "the right token from another origin": {
        "data": {"name": "Evil", "form_token": "{own}"},
        "headers": {"Origin": "http://evil.example"},
    },
    "the right token from nowhere": {"data": {"name": "Evil", "form_token": "{own}"}, "headers": {"Origin": "null"}},
}


@for_each("attempt", FOREIGN)
async def test_a_form_that_no_page_of_the_session_sent_changes_nothing(
    api: Api, browser: httpx.AsyncClient, attempt: str
) -> None:
    own, before = await token_of(browser), await last_position(api)
    sent = {
        part: {name: value.replace("{own}", own) for name, value in values.items()}
        for part, values in FOREIGN[attempt].items()
    }
    answer = await browser.post("/console/do/define_zone", **sent)
    assert answer.status_code == 403
    assert await last_position(api) == before


async def test_every_request_of_a_page_is_checked(browser: httpx.AsyncClient) -> None:
    await browser.get("/console")
    paths = [path for method, path in PAGES.handlers if method != "GET"]
    for path in (*paths, "/console/logout", "/console/do/hold_everything", "/console/do/define_zone"):
        filled = "/".join(str(uuid4()) if part.startswith("{") else part for part in path.split("/"))
        for body in ({}, {"form_token": "0" * 64}):
            assert (await browser.post(filled, data=body)).status_code == 403, path


async def test_a_page_of_this_session_may_send_it_twice_in_any_tab(api: Api, browser: httpx.AsyncClient) -> None:
    tokens = {await token_of(browser, path) for path in ("/console", "/console/zones", "/console/do/define_zone")}
    assert len(tokens) == 1
    form = {"form_token": tokens.pop(), "name": "Twice", "_key": uuid4().hex}
    before = len((await api.get("/zones", name="Twice")).json()["items"])
    answers = [await browser.post("/console/do/define_zone", data=form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    position = parse_qs(urlsplit(answers[1].headers["location"]).query)["position"][0]
    assert len((await api.get("/zones", name="Twice", min_position=position)).json()["items"]) == before + 1


async def test_a_link_cannot_choose_the_key_that_makes_a_command_one(browser: httpx.AsyncClient) -> None:
    page = PageSource.of((await browser.get("/console/do/define_zone?_key=known&form_token=known&name=Hall")).text)
    assert page.value("_key") != "known"
    assert page.value("form_token") != "known"
    assert page.value("name") == "Hall"


async def test_a_link_cannot_make_a_page_say_something(browser: httpx.AsyncClient) -> None:
    token = await token_of(browser)
    session = ConsoleSession(NOBODY, frozenset(), token, Cookies({}, secure=False))
    other = ConsoleSession(NOBODY, frozenset(), form_token(new_secret(), ""), Cookies({}, secure=False))
    text = "The hutch is safe to enter"
    for said in (text, "", "x" * 32 + text, other.sign_message(text), session.sign_message(text) + "!"):
        assert text not in (await browser.get("/console/zones", params={"said": said})).text
    assert text in (await browser.get("/console/zones", params={"said": session.sign_message(text)})).text


async def test_a_link_from_elsewhere_opens_a_page_and_leaves_the_open_tabs_their_forms(browser: httpx.AsyncClient) -> None:
    token = await token_of(browser)
    kept = dict(browser.cookies)
    browser.cookies.clear()  # what is kept for own pages alone does not come along
    answer = await browser.get("/console/zones?q=a", headers=LINK)
    assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
    assert '<a href="/console/zones?q=a">' in answer.text
    browser.cookies.update(kept)
    assert await token_of(browser) == token


async def test_a_foreign_page_can_open_a_page_and_nothing_else(browser: httpx.AsyncClient) -> None:
    assert (await browser.get("/console/zones", headers=LINK)).status_code == 200
    for marks in (
        {**LINK, "Sec-Fetch-Dest": "iframe"},
        {**LINK, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {**LINK, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {**LINK, "Sec-Fetch-Dest": "object"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        for path in ("/console", "/console/zones", "/console/do/define_zone", "/console/live?at=/console", "/console/login"):
            assert (await browser.get(path, headers=marks)).status_code == 403, (marks, path)
    assert (await browser.get("/zones", headers=LINK)).status_code == 403


@for_each(
    "back",
    [
        "https://evil.example/",
        "//evil.example",
        "/console/\r\nSet-Cookie: a=b",
        "/console?a=b\nc",
        "/console\\evil",
        "/consoles",
        "/console/\u2028",
        "/docs",
    ],
)
async def test_a_form_leads_back_to_a_page_of_the_console_alone(browser: httpx.AsyncClient, back: str) -> None:
    assert safe_path(back) is None
    shown = await browser.get(f"/console/do/define_zone?back={quote(back)}")
    assert (shown.status_code, back in shown.text) == (200, False)
    form = {"form_token": await token_of(browser), "name": "Hall", "back": back}
    answer = await browser.post("/console/do/define_zone", data=form)
    assert (answer.status_code, answer.headers["location"][:15]) == (303, "/console/zones/")
    assert "evil" not in str(answer.headers)


async def test_nothing_is_signed_in_at_where_no_token_is_required(browser: httpx.AsyncClient) -> None:
    for answer in (await browser.get("/console/login?next=/console/runs"), await browser.post("/console/login")):
        assert (answer.status_code, answer.headers["location"]) == (303, "/console")
    assert "Sign out" not in (await browser.get("/console")).text


def test_an_address_that_leads_elsewhere_ends_no_header() -> None:
    (location, *_) = redirect("/console/ü\r\nSet-Cookie: a=b").headers
    assert location == (b"location", b"/console/%C3%BC%0D%0ASet-Cookie:%20a=b")


def test_a_cookie_holds_nothing_that_ends_it() -> None:
    cookies = Cookies({}, secure=False)
    for value in ("a;b", "a\r\nb", "a b", "a,b", 'a"b', "ü", "a\\b", "\0"):
        with pytest.raises(ValueError, match="cannot hold"):
            cookies.write("baton_session", value)


def test_the_first_cookie_of_a_name_counts_and_odd_ones_hide_none() -> None:
    headers = [(b"cookie", b'x={"a": 1}; a=1; a=2;; =3; b; c="4"'), (b"cookie", b"\xff=\xff; d=5; a=6")]
    found = cookies_of({"headers": headers})
    assert (found["a"], found["c"], found["d"], "b" in found) == ("1", '"4"', "5", False)


def test_a_secret_that_is_not_one_of_ours_is_replaced() -> None:
    for planted in ("", "short", "a" * 42, "a" * 44, "ü" * 43, "a" * 42 + ";"):
        secret, fresh = Cookies({SECRET: planted}, secure=False).secret()
        assert (secret != planted, len(fresh)) == (True, 1)
    assert Cookies({SECRET: "a" * 43}, secure=False).secret() == ("a" * 43, [])


@for_each(
    ("settings", "headers", "secure"),
    [
        ({}, {}, False),
        ({}, {b"x-forwarded-proto": b"https"}, False),
        ({"trusted_proxies": ["10.0.0.0/8"]}, {b"x-forwarded-proto": b"https"}, False),
        ({"trusted_proxies": ["127.0.0.0/8"]}, {b"x-forwarded-proto": b"https"}, True),
        ({"trusted_proxies": ["127.0.0.0/8"]}, {b"x-forwarded-proto": b"http"}, False),
        ({"public_base_url": "https://baton.example.org"}, {}, True),
        ({"public_base_url": "http://baton.example.org", "trusted_proxies": ["127.0.0.0/8"]}, {}, False),
    ],
)
def test_cookies_are_for_https_alone_where_the_browser_comes_by_https(
    settings: dict[str, Any], headers: dict[bytes, bytes], secure: bool
) -> None:
    chosen = Settings(database_url="postgresql://localhost/none", app_env="test", **settings)
    sessions: Any = Sessions(Authentication(chosen, None), None)  # type: ignore[arg-type]
    scope = {"headers": list(headers.items()), "client": ("127.0.0.1", 1), "scheme": "http"}
    cookies: Cookies = sessions.cookies(Request(scope, None, {}, 0))  # type: ignore[arg-type]
    name, written = cookies.write("baton_session", "a.b.c")
    assert (name, written.endswith(b"; Secure"), written.startswith(b"__Host-")) == (b"set-cookie", secure, secure)
    (_, removed) = cookies.remove("baton_session")
    assert removed.partition(b";")[0] == written.partition(b"=")[0] + b"="
    assert (b"Max-Age=0" in removed, removed.endswith(b"; Secure")) == (True, secure)


def test_the_token_of_forms_is_of_one_browser_and_one_person() -> None:
    secret = new_secret()
    tokens = {
        form_token(secret, ""),
        form_token(secret, "a.b.c"),
        form_token(new_secret(), ""),
        form_token(new_secret(), "a"),
    }
    assert len(tokens) == 4


async def test_a_shared_view_is_rendered_as_somebody_who_looks_at_it() -> None:
    views: Any = LiveViews(None, None, None, None)  # type: ignore[arg-type]
    views._task = asyncio.get_running_loop().create_future()
    page, permitted = ConsolePage("/console/x", "X", "X."), frozenset({"ListZones"})
    first, second = Caller(uuid4(), NIL, uuid4()), Caller(uuid4(), NIL, uuid4())
    tabs = [asyncio.Event(), asyncio.Event()]

    def view(caller: Caller) -> LiveView:
        return LiveView(ViewKey(page.path, page.path, permitted), page, caller, {}, {})

    shared = views.open(view(first), tabs[0])
    assert views.open(view(second), tabs[1]) is shared
    assert shared.caller is first
    views.close(shared, tabs[0])
    assert shared.caller is second
    views.close(shared, tabs[1])
    assert views._views == {}
