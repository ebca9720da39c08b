"""Signing in: at a provider by code, with a pasted token, and never for anybody but the person who began it."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
from structlog.testing import capture_logs

from baton.console.sessions import SESSION, SIGNING_IN
from baton.console.sign_in import LOST, REFUSED, UNREADABLE, PendingReturn, next_of
from tests.support.console.code_issuer import CLIENT, CodeIssuer, follow_to_provider, parameters_of
from tests.support.console.page_source import PageSource
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, dripping_answer
from tests.support.service import Api, running_api
from tests.support.tables import for_each

PERSON = str(uuid4())
ELSEWHERE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
HTTPS = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "baton.example.org"}


@pytest.fixture(scope="module")
async def service(module_database: str, issuer: CodeIssuer) -> AsyncIterator[Api]:
    """A service that requires tokens, behind a proxy of this machine."""
    provider = issuer.console_provider(subject_bindings=[{"subject": "mira-77", "actor_id": PERSON}])
    settings = {"identity_providers": [provider], "trusted_proxies": ["127.0.0.0/8"], "bootstrap_principal_id": PERSON}
    async with running_api(module_database, **settings) as api:
        yield api


@pytest.fixture
async def browser(service: Api, issuer: CodeIssuer) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without cookies; the provider is well-behaved again."""
    key = issuer.key
    issuer.reset()
    issuer.key, issuer.published = key, [key]
    async with httpx.AsyncClient(base_url=service.base_url, verify=False, timeout=30) as browser:
        yield browser


async def paste(browser: httpx.AsyncClient, token: str, **fields: str) -> httpx.Response:
    """Paste a token into the page, as a person does."""
    page = PageSource.of((await browser.get("/console/login")).text)
    return await browser.post("/console/login", data={"form_token": page.value("form_token"), "token": token, **fields})


def goes_on_to(answer: httpx.Response) -> str:
    """Return where a page leads by itself, which is what keeps cookies that no other site has sent along."""
    (refresh,) = [one for one in PageSource.of(answer.text).all("meta") if one.get("http-equiv") == "refresh"]
    return refresh.get("content").removeprefix("0;url=")


async def is_signed_in(browser: httpx.AsyncClient) -> bool:
    return (await browser.get("/console/records")).status_code == 200


async def test_a_page_leads_to_the_sign_in_and_the_sign_in_to_the_page(
    browser: httpx.AsyncClient, issuer: CodeIssuer
) -> None:
    led = await browser.get("/console/records?kind=a%20b")
    assert led.status_code == 303
    login = PageSource.of((await browser.get(led.headers["location"])).text)
    (link,) = [one for one in login.all("a") if one.text.startswith("Sign in at 127.0.0.1")]
    answer = await browser.get(await follow_to_provider(browser, link.get("href")))
    assert (answer.status_code, goes_on_to(answer)) == (200, "/console/records?kind=a%20b")
    page = await browser.get(goes_on_to(answer))
    assert page.status_code == 200
    assert "Sign out" in page.text
    (redeemed,) = issuer.grants.redeemed
    assert redeemed["resource"] == HTTP_AUDIENCE
    assert SIGNING_IN not in browser.cookies


async def test_the_way_to_the_provider_tells_it_no_secret(browser: httpx.AsyncClient, service: Api) -> None:
    leaving = await browser.get("/console/login?provider=0")
    asked = parameters_of(leaving.headers["location"])
    kept = PendingReturn.parse(browser.cookies[SIGNING_IN])
    assert kept is not None
    assert asked["redirect_uri"] == f"{service.base_url}/console/login"
    assert (asked["client_id"], asked["code_challenge"], asked["state"]) == (CLIENT, kept.challenge, kept.state)
    assert kept.verifier not in leaving.headers["location"]
    other = await browser.get("/console/login?provider=0")
    assert parameters_of(other.headers["location"])["state"] != asked["state"]


async def test_a_return_is_for_the_browser_that_began_and_for_one_time(
    browser: httpx.AsyncClient, service: Api, issuer: CodeIssuer
) -> None:
    back = await follow_to_provider(browser, "/console/login?provider=0")
    async with httpx.AsyncClient(base_url=service.base_url, verify=False) as victim:
        stolen = await victim.get(back, headers=ELSEWHERE)
        assert (stolen.status_code, LOST in stolen.text) == (403, True)
        await victim.get("/console/login?provider=0")
        swapped = await victim.get(back, headers=ELSEWHERE)
        assert (swapped.status_code, LOST in swapped.text) == (403, True)
        assert SIGNING_IN in victim.cookies  # a foreign page cannot end the sign-in of somebody
        assert not await is_signed_in(victim)
    assert issuer.grants.redeemed == []
    assert (await browser.get(back)).status_code == 200
    assert (await browser.get(back)).status_code == 403
    assert len(issuer.grants.redeemed) == 1


async def test_a_code_that_was_redeemed_elsewhere_signs_nobody_in(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    back = await follow_to_provider(browser, "/console/login?provider=0&next=/console/runs")
    issuer.grants.codes.clear()
    answer = await browser.get(back)
    assert (answer.status_code, REFUSED in answer.text) == (502, True)
    assert "/console/login?next=/console/runs" in [one.get("href") for one in PageSource.of(answer.text).all("a")]
    assert SIGNING_IN not in browser.cookies
    assert not await is_signed_in(browser)


async def test_what_a_provider_answers_instead_of_a_code_is_a_page(browser: httpx.AsyncClient) -> None:
    for answer in ("error=access_denied", "code=", "code=abc&iss=https://other.example.org"):
        leaving = await browser.get("/console/login?provider=0")
        state = parameters_of(leaving.headers["location"])["state"]
        refused = await browser.get(f"/console/login?state={state}&{answer}")
        assert (refused.status_code, REFUSED in refused.text) == (403, True)


async def test_a_provider_that_fails_signs_nobody_in(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

    async def status_of_return() -> int:
        back = await follow_to_provider(browser, "/console/login?provider=0")
        answer = await browser.get(back)
        assert REFUSED in answer.text
        assert not await is_signed_in(browser)
        return answer.status_code

    for instead in (
        PlainTextResponse("no JSON"),
        JSONResponse(["a list"]),
        JSONResponse({"access_token": 7}),
        JSONResponse({"token_type": "Bearer"}),
        JSONResponse({}, 500),
        RedirectResponse("http://169.254.0.1/"),
        PlainTextResponse("x" * 2_000_000),
    ):
        issuer.instead = instead
        assert await status_of_return() == 502
    issuer.instead = None
    back = await follow_to_provider(browser, "/console/login?provider=0")
    issuer.stop()
    try:
        answer = await browser.get(back)
    finally:
        issuer.start()
    assert (answer.status_code, REFUSED in answer.text) == (502, True)


async def test_a_provider_that_never_ends_is_not_waited_for(
    browser: httpx.AsyncClient, issuer: CodeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from baton.infrastructure.identity import ProviderClient

    monkeypatch.setattr(ProviderClient.__init__, "__defaults__", (ProviderClient()._timeouts, 0.2))
    back = await follow_to_provider(browser, "/console/login?provider=0")
    issuer.instead = dripping_answer()
    async with asyncio.timeout(60):
        assert (await browser.get(back)).status_code == 502


async def test_a_token_of_the_provider_that_is_for_others_is_refused(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    issuer.person = "nobody-bound"
    answer = await browser.get(await follow_to_provider(browser, "/console/login?provider=0"))
    assert answer.status_code == 401
    assert "stands for no actor" in answer.text
    assert SESSION not in browser.cookies


async def test_a_pasted_token_signs_in_and_stays_where_no_script_and_no_address_has_it(
    browser: httpx.AsyncClient, issuer: CodeIssuer
) -> None:
    token = issuer.token("mira-77")
    with capture_logs() as logs:
        answer = await paste(browser, f"  {token}\r\n", next="/console/runs?status=Held")
        assert (answer.status_code, goes_on_to(answer)) == (200, "/console/runs?status=Held")
        page = await browser.get("/console")
    assert page.status_code == 200
    signature = token.rsplit(".", 1)[1]
    assert all(signature not in text for text in (answer.text, page.text, str(logs), str(page.headers)))
    (kept,) = [one for one in answer.headers.get_list("set-cookie") if one.startswith(f"{SESSION}=")]
    assert kept.endswith("; Path=/console; HttpOnly; SameSite=Strict")


async def test_signing_in_changes_the_secret_of_the_forms(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    before = PageSource.of((await browser.get("/console/login")).text).value("form_token")
    planted = dict(browser.cookies)
    await paste(browser, issuer.token("mira-77"))
    assert not planted.items() & dict(browser.cookies).items()
    page = PageSource.of((await browser.get("/console")).text)
    assert page.value("form_token") != before


@for_each("token", ["", "no token", "x" * 8193, "x" * 100_000, "ü", "a;b", 'a"b', "a\r\nSet-Cookie: b=c", "a\tb", "a,b"])
async def test_what_is_no_token_is_said_to_be_none(browser: httpx.AsyncClient, token: str) -> None:
    answer = await paste(browser, token)
    assert answer.status_code in (401, 403)
    assert UNREADABLE in answer.text
    assert SESSION not in browser.cookies


async def test_a_token_for_another_surface_is_refused_with_the_reason(
    browser: httpx.AsyncClient, issuer: CodeIssuer
) -> None:
    answer = await paste(browser, issuer.token("mira-77", audience=MCP_AUDIENCE))
    assert answer.status_code == 401
    assert "not meant for this surface" in answer.text


async def test_a_long_token_is_kept_in_parts_of_which_a_short_one_leaves_none(
    browser: httpx.AsyncClient, issuer: CodeIssuer
) -> None:
    assert (await paste(browser, issuer.token("mira-77", groups="g" * 5500))).status_code == 200
    assert len([name for name in browser.cookies if name.startswith(SESSION)]) == 3
    assert await is_signed_in(browser)
    assert (await paste(browser, issuer.token("mira-77"))).status_code == 200
    assert [name for name in browser.cookies if name.startswith(SESSION)] == [SESSION]
    assert await is_signed_in(browser)


async def test_no_other_page_signs_somebody_in(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    token = issuer.token("mira-77")
    without = await browser.post("/console/login", data={"token": token})
    page = PageSource.of((await browser.get("/console/login")).text)
    right = {"token": token, "form_token": page.value("form_token")}
    wrong = await browser.post("/console/login", data={**right, "form_token": "0" * 64})
    foreign = await browser.post("/console/login", data=right, headers={"Sec-Fetch-Site": "cross-site"})
    neighbour = await browser.post("/console/login", data=right, headers={"Sec-Fetch-Site": "same-site"})
    assert [one.status_code for one in (without, wrong, foreign, neighbour)] == [403] * 4
    assert SESSION not in browser.cookies
    assert (await browser.post("/console/login", data=right, headers={"Sec-Fetch-Site": "same-origin"})).status_code == 200


async def test_an_expired_token_leads_to_the_sign_in_which_says_so(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    browser.cookies.set(SESSION, issuer.token("mira-77", exp=1_700_000_000), path="/console")
    led = await browser.get("/console/runs")
    assert led.headers["location"] == "/console/login?next=%2Fconsole%2Fruns&refused=expired"
    assert "The token has expired; get a new one." in (await browser.get(led.headers["location"])).text
    sent = await browser.post(
        "/console/do/define_zone", data={"name": "Hall"}, headers={"Referer": "http://x/console/zones"}
    )
    assert sent.headers["location"] == "/console/login?next=%2Fconsole&refused=expired"
    stream = await browser.get("/console/live?at=/console", headers={"Accept": "text/event-stream"})
    assert (stream.status_code, stream.content) == (401, b"")


async def test_signing_out_ends_it_and_takes_the_form_of_the_page(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    await paste(browser, issuer.token("mira-77"))
    page = PageSource.of((await browser.get("/console")).text)
    assert (await browser.post("/console/logout")).status_code == 403
    assert await is_signed_in(browser)
    left = await browser.post("/console/logout", data={"form_token": page.value("form_token")})
    assert (left.status_code, left.headers["location"]) == (303, "/console/login")
    assert not browser.cookies
    assert not await is_signed_in(browser)


async def test_a_link_of_another_site_is_followed_once_more_with_the_cookies(browser: httpx.AsyncClient) -> None:
    for address in (
        "/console/runs?status=Held",
        "/console/login?next=/console/runs",
        "/console/do/define_zone?name=%3Cb%3E",
    ):
        answer = await browser.get(address, headers=ELSEWHERE)
        assert (answer.status_code, goes_on_to(answer)) == (200, address)
        assert not browser.cookies  # cookies that were not sent along are not replaced


@for_each(
    "to",
    [
        "https://evil.example/console",
        "//evil.example/console",
        "/\\evil.example",
        "/console/\\evil.example",
        "/consolex",
        "/console/\r\nSet-Cookie: a=b",
        "/console/\n",
        "/console/ü",
        "/console/" + "a" * 5000,
        "javascript:alert(1)",
        "/other",
        "",
    ],
)
async def test_nobody_is_led_elsewhere(browser: httpx.AsyncClient, issuer: CodeIssuer, to: str) -> None:
    assert next_of({"next": to}) == "/console"
    assert goes_on_to(await paste(browser, issuer.token("mira-77"), next=to)) == "/console"
    back = await follow_to_provider(browser, f"/console/login?provider=0&next={quote(to)}")
    assert goes_on_to(await browser.get(back)) == "/console"
    page = PageSource.of((await browser.get(f"/console/login?next={quote(to)}")).text)
    assert page.value("next") == "/console"


@for_each(
    "kept",
    ["", "0", "0.a", "0.a.b", "x.a.b.c", "-1.a.b.c", "9.a.b.c", "\u00b2.a.b.c", f"{'9' * 5000}.a.b.c", '"', "0.b.b.c"],
)
async def test_a_sign_in_cookie_of_anything_is_no_failure(browser: httpx.AsyncClient, kept: str) -> None:
    headers = {"Cookie": f"{SIGNING_IN}={kept}".encode()}
    for query in ("state=a&code=b", "state=a", "state="):
        assert (await browser.get(f"/console/login?{query}", headers=headers)).status_code == 403


@for_each(
    "query",
    [
        "provider=%C2%B2",
        f"provider={'9' * 5000}",
        "provider=-1",
        "provider=7",
        "next=%FF",
        "state=%ff",
        "%00=%00",
        "refused=x",
        "a&&=&=",
    ],
)
async def test_any_query_of_the_sign_in_is_answered_with_a_page(browser: httpx.AsyncClient, query: str) -> None:
    answer = await browser.get(f"/console/login?{query}")
    assert answer.status_code in (200, 422)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "content-security-policy" in answer.headers


async def test_over_https_cookies_are_for_https_and_for_this_host_alone(service: Api, issuer: CodeIssuer) -> None:
    async with httpx.AsyncClient(base_url=service.base_url, verify=False, headers=HTTPS) as browser:
        login = await browser.get("/console/login")
        secret = login.headers["set-cookie"]
        assert secret.startswith("__Host-baton_form_secret=")
        assert secret.endswith("; Path=/; Max-Age=31536000; HttpOnly; SameSite=Strict; Secure")
        sent = {"Cookie": secret.partition(";")[0]}
        form = {"form_token": PageSource.of(login.text).value("form_token"), "token": issuer.token("mira-77")}
        kept = (await browser.post("/console/login", data=form, headers=sent)).headers.get_list("set-cookie")
        assert all(one.startswith("__Host-") and "; Path=/; " in one and one.endswith("; Secure") for one in kept)
        session = {"Cookie": next(one for one in kept if one.startswith(f"__Host-{SESSION}=")).partition(";")[0]}
        assert (await browser.get("/console", headers=session)).status_code == 200
        planted = {"Cookie": session["Cookie"].removeprefix("__Host-")}
        assert (await browser.get("/console", headers=planted)).status_code == 303
        leaving = await browser.get("/console/login?provider=0")
        assert parameters_of(leaving.headers["location"])["redirect_uri"] == "https://baton.example.org/console/login"


@for_each(
    "cookies",
    [
        b"\xff\xfe=\xff",
        b";;;===;",
        b"baton_session",
        b"baton_session=",
        b'baton_session="\\012\\777"',
        b"baton_session=a b\tc",
        b"baton_session=" + b"x" * 30_000,
        b"baton_session_2=a.b.c",
        b"baton_session=a.b.c; baton_form_secret=" + b"\xc3\xbc" * 43,
    ],
)
async def test_cookies_that_cannot_be_read_are_none(service: Api, cookies: bytes) -> None:
    async with httpx.AsyncClient(base_url=service.base_url, verify=False) as browser:
        for path in ("/console", "/console/login", "/console/live?at=/console"):
            assert (await browser.get(path, headers={"Cookie": cookies})).status_code in (200, 303)


async def test_a_neighbours_odd_cookie_hides_none_of_ours(service: Api, issuer: CodeIssuer) -> None:
    odd = f'settings={{"a": [1, 2]}}; {SESSION}={issuer.token("mira-77")}; {secrets.token_hex(4)}'
    async with httpx.AsyncClient(base_url=service.base_url, verify=False) as browser:
        assert (await browser.get("/console", headers={"Cookie": odd})).status_code == 200


async def test_what_a_signed_in_person_sends_comes_from_their_own_pages(
    browser: httpx.AsyncClient, service: Api, issuer: CodeIssuer
) -> None:
    await paste(browser, issuer.token("mira-77"))
    token = PageSource.of((await browser.get("/console/do/define_zone")).text).value("form_token")
    async with httpx.AsyncClient(base_url=service.base_url, verify=False) as same_person:
        await paste(same_person, issuer.token("mira-77"))
        other = PageSource.of((await same_person.get("/console")).text).value("form_token")
    right = {"name": "Hall", "form_token": token}
    attempts: list[tuple[dict[str, str], dict[str, str]]] = [
        ({"name": "Evil"}, {}),
        ({"name": "Evil", "form_token": other}, {}),
        ({**right, "name": "Evil"}, {"Sec-Fetch-Site": "same-site"}),
        ({**right, "name": "Evil"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),
        ({**right, "name": "Evil"}, {"Origin": "https://evil.example"}),
        ({**right, "name": "Evil"}, {"Origin": "null"}),
        ({**right, "name": "Evil"}, {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}),
    ]
    for form, marks in attempts:
        assert (await browser.post("/console/do/define_zone", data=form, headers=marks)).status_code == 403
    ours = {"Sec-Fetch-Site": "same-origin", "Origin": service.base_url}
    done = await browser.post("/console/do/define_zone", data=right, headers=ours)
    assert done.status_code == 303
    own = {"Authorization": f"Bearer {issuer.token('mira-77')}"}
    position = parameters_of(done.headers["location"])["position"]
    zones = await browser.get("/zones", headers=own, params={"min_position": position})
    assert {"Evil", "Hall"} & {zone["name"] for zone in zones.json()["items"]} == {"Hall"}


async def test_the_cookie_signs_nobody_in_but_at_the_console(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    await paste(browser, issuer.token("mira-77"))
    kept = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    for path in ("/me", "/zones", "/events/stream"):
        assert (await browser.get(path, headers={"Cookie": kept})).status_code == 401


async def test_a_live_page_ends_with_the_token(browser: httpx.AsyncClient, issuer: CodeIssuer) -> None:
    await paste(browser, issuer.token("mira-77", exp=int(time.time()) + 5))
    async with asyncio.timeout(60), browser.stream("GET", "/console/live", params={"at": "/console/zones"}) as answer:
        events = [line async for line in answer.aiter_lines() if line.startswith("event: ")]
    assert events[-1] == "event: signed-out"
