"""Every page and every form: it keeps to its policy, shows the permitted what there is and a stranger nothing, not even
whether an id exists, and is live for all who may see the same."""

import ast
import asyncio
import inspect
import re
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.api.http import Request
from baton.api.schemas import input_schema
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.console import live, pages, shell  # noqa: F401  # every page declares itself
from baton.console.console import Console
from baton.console.live import LiveView
from baton.console.page import PAGES, ConsolePage
from baton.console.page_queries import PageQueries
from baton.console.rendering import PAGE_HEADERS
from baton.console.sessions import SECRET, form_token
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Call, Query
from baton.domain.registry import Operation
from tests.conftest import EXAMPLES
from tests.support.api.policy_service import PolicyService, open_policy_service
from tests.support.console.live_frames import open_stream
from tests.support.console.marked_names import WORD, MarkedApi
from tests.support.console.page_source import PageSource
from tests.support.service import Api
from tests.support.tables import for_each

ALL_PAGES = list(PAGES)
ONE_OF_EACH_KIND = list({frozenset(one.load.__code__ for one in page.regions.values()): page for page in PAGES}.values())
"""One page of those that are made by the same code."""
COMMANDS = [operation for operation in REGISTRY if operation.kind == "command"]
ONE_OF_EACH = list({operation.target: operation for operation in COMMANDS if operation.target}.values())
"""One command about each kind of thing: their forms look it up in the same way."""
READS = [path for (method, path) in PAGES.handlers if method == "GET"]
"""What pages hand out besides themselves: pictures and documents."""
SHOWING_NO_SAMPLE = {"/console/records", "/console/style", "/console/health", "/console/find"}
"""The pages that are about no thing on record."""
PASSING = re.compile('<time .*?</time>|(?<=data-mark=")[^"]*')
"""What a live page shows otherwise after a moment: times, and what a form is judged anew by."""
UNLIKE = re.compile('(?<=name="form_token" value=")[0-9a-f]+|(?<=name="_key" value=")[0-9a-f]+|(?<=<code>)[0-9a-f-]{36}')
"""What tells one rendering of a page from another: the tokens of its forms and the id of the request."""


class WatchedQuery(dict[str, str]):
    """The parameters of an address; notes which of them is read by which code, and on which page first."""

    places: dict[tuple[str, CodeType], str]
    path: str

    def get(self, name: str, default: Any = None) -> Any:
        self.places.setdefault((name, sys._getframe(1).f_code), self.path)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.places.setdefault((name, sys._getframe(1).f_code), self.path)
        return super().__getitem__(name)


@dataclass(frozen=True)
class ShownPages:
    """Every page as the permitted and as a stranger were shown it, by its path, and the page that reads a parameter at each
    place of the code."""

    permitted: dict[str, httpx.Response]
    stranger: dict[str, httpx.Response]
    reads: dict[tuple[str, CodeType], str]


@pytest.fixture(scope="module")
async def service(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PolicyService]:
    """One of everything, under names that are an attack on pages."""
    async with open_policy_service(module_database, tmp_path_factory.mktemp("outbox"), MarkedApi.of) as service:
        yield service


@pytest.fixture(scope="module")
async def shown_pages(service: PolicyService) -> ShownPages:
    """Every page, asked for once by each."""
    reads: dict[tuple[str, CodeType], str] = {}
    query_of = shell.query_of

    def watched_query_of(request: Request) -> WatchedQuery:
        query = WatchedQuery(query_of(request))
        query.places, query.path = reads, request.scope["path"]
        return query

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell, "query_of", watched_query_of)
        permitted = {page.path: await service.permitted.get(address(page.path, service.ids)) for page in ALL_PAGES}
    stranger = {page.path: await service.stranger.get(address(page.path, service.ids)) for page in ALL_PAGES}
    return ShownPages(permitted, stranger, reads)


def address(path: str, ids: dict[str, str]) -> str:
    """Return the address of a page about the things with these ids."""
    return path.format(**ids)


def unknown(service: PolicyService) -> dict[str, str]:
    """Return ids of which there is none, in place of those on record."""
    return {name: str(uuid4()) for name in service.ids}


def plain(html: str, ids: dict[str, str], path: str) -> str:
    """Return a page without the ids of its address and what is different each time."""
    for name in re.findall(r"{(\w+)}", path):
        html = html.replace(ids[name], name)
    return UNLIKE.sub("*", html)


def assert_orderly(answer: httpx.Response) -> None:
    """Assert that a page keeps to its policy, and that its parts can be told without seeing them."""
    for name, value in PAGE_HEADERS:
        assert answer.headers[name.decode()] == value.decode()
    source = PageSource.of(answer.text)
    assert [*source.faults(), *source.disorder()] == []
    assert source.all("title")[0].text.endswith("· Baton")


def things_of(html: str, service: PolicyService) -> set[str]:
    """Return the ids of samples that a page shows."""
    return {id for id in service.ids.values() if id in html}


@for_each("page", ALL_PAGES)
async def test_the_permitted_see_what_there_is_on_an_orderly_page(
    service: PolicyService, shown_pages: ShownPages, page: ConsolePage
) -> None:
    answer = shown_pages.permitted[page.path]
    assert answer.status_code == 200, f"{page.path}: {answer.text[-2000:]}"
    assert_orderly(answer)
    if page.path not in SHOWING_NO_SAMPLE:
        assert WORD in answer.text or things_of(answer.text, service), f"{page.path} shows nothing that is on record"
    for name in page.regions:
        assert f'id="region-{name}"' in answer.text


@for_each("page", ALL_PAGES)
async def test_a_stranger_sees_nothing_but_which_permission_it_takes(
    service: PolicyService, shown_pages: ShownPages, page: ConsolePage
) -> None:
    answer = shown_pages.stranger[page.path]
    assert answer.status_code in (200, 403), f"{page.path}: {answer.status_code}"
    assert_orderly(answer)
    assert WORD not in answer.text
    told = things_of(answer.text, service) - {service.ids[name] for name in page.placeholders}
    assert told == set(), f"{page.path} tells a stranger of {told}"
    needed = {one.command_name for one in page.asks if not one.open}
    assert not needed or any(name in answer.text for name in needed), f"{page.path} does not say what it takes"


@for_each("path", [path for path in (*(page.path for page in ALL_PAGES), *READS) if "{" in path])
async def test_a_stranger_cannot_tell_whether_an_id_exists(
    service: PolicyService, shown_pages: ShownPages, path: str
) -> None:
    nothing = unknown(service)
    existing = shown_pages.stranger.get(path) or await service.stranger.get(address(path, service.ids))
    missing = await service.stranger.get(address(path, nothing))
    assert missing.status_code == existing.status_code
    assert plain(missing.text, nothing, path) == plain(existing.text, service.ids, path)
    assert existing.status_code == 403 or path not in READS
    assert (await service.permitted.get(address(path, nothing))).status_code == 404


@for_each("path", READS)
async def test_what_a_page_hands_out_runs_nothing(service: PolicyService, path: str) -> None:
    answer = await service.permitted.get(address(path, service.ids))
    assert answer.status_code in (200, 404, 409, 422), answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await service.stranger.get(address(path, service.ids))).status_code == 403
    if not answer.headers["content-type"].startswith(("application/", "text/csv")):
        assert answer.headers["content-security-policy"]
        assert "<b onclick" not in answer.text


WHO_MAY = re.compile(r"Who may: .*?\.</p>")  # the names of those who may are for everybody who is signed in


def form_path(service: PolicyService, operation: Operation) -> str:
    """Return the path of the form of a command about things on record, without their ids."""
    names = [name for name in (operation.target, *operation.path_fields) if name and name in service.ids]
    return f"/console/do/{operation.name}" + "?" * bool(names) + "&".join(f"{name}={{{name}}}" for name in names)


@for_each("operation", COMMANDS)
async def test_every_form_keeps_to_its_policy(service: PolicyService, operation: Operation) -> None:
    answer = await service.permitted.get(address(form_path(service, operation), service.ids))
    assert answer.status_code == 200, answer.text
    assert_orderly(answer)


@pytest.mark.parametrize(
    "operations", [pytest.param(ONE_OF_EACH, id="one of each"), pytest.param(COMMANDS, id="all", marks=pytest.mark.soak)]
)
async def test_a_form_tells_a_stranger_nothing(service: PolicyService, operations: list[Operation]) -> None:
    @for_each("operation", operations)
    async def judge(operation: Operation) -> None:
        path, nothing = form_path(service, operation), unknown(service)
        existing, missing = [await service.stranger.get(address(path, ids)) for ids in (service.ids, nothing)]
        assert WORD not in WHO_MAY.sub("", existing.text)
        assert things_of(existing.text, service) <= {service.ids[name] for name in re.findall(r"{(\w+)}", path)}
        assert operation.open or operation.command_name in existing.text
        assert existing.status_code == missing.status_code
        assert plain(existing.text, service.ids, path) == plain(missing.text, nothing, path)

    await judge()


async def test_a_command_that_a_stranger_sends_is_refused_beside_its_form(service: PolicyService) -> None:
    page = PageSource.of((await service.stranger.get("/console/do/define_zone")).text)
    form = {"form_token": page.value("form_token"), "name": "Evil"}
    answer = await service.stranger.request("POST", "/console/do/define_zone", data=form)
    assert answer.status_code == 403
    assert "DefineZone" in answer.text
    assert_orderly(answer)
    assert (await service.permitted.get("/zones", name="Evil")).json()["items"] == []


def personal_queries() -> Iterator[str]:
    """Yield every query whose answer depends on who asks, beyond what they may do."""
    for operation in REGISTRY:
        answer = getattr(operation.input, "answer", None)
        if operation.kind == "query" and answer is not None:
            source = ast.parse(textwrap.dedent(inspect.getsource(answer)))
            if any(isinstance(node, ast.Attribute) and node.attr == "principal_id" for node in ast.walk(source)):
                yield operation.name


def test_a_region_that_asks_what_depends_on_who_asks_is_personal() -> None:
    personal = set(personal_queries())
    assert personal >= {"get_my_access", "get_proposal", "get_work", "list_permissions"}
    asked_by_a_part = {"rehearse"}  # Its conditions ask who is calling, in another function.
    assert personal | asked_by_a_part == {one.name for one in REGISTRY if getattr(one.input, "personal", False)}
    for page in ALL_PAGES:
        for region in page.regions.values():
            assert region.personal or personal.isdisjoint(one.name for one in region.asks), f"{page.path}, {region.name}"


SHARED: ContextVar[bool] = ContextVar("SHARED", default=False)
"""Whether what is rendered is shown to everybody who may see the same."""
ASKING: ContextVar[str | None] = ContextVar("ASKING", default=None)
ASKED_WHO: set[str] = set()
"""The queries of shared renderings that asked who is calling."""
OF_PERMISSIONS_ALONE = {"ListEvents"}
"""What asks who is calling to learn what they may do, and for nothing else."""


class WatchedCall(Call):
    """A call that notes which query asks who made it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "principal_id" and (query := ASKING.get()) is not None:
            ASKED_WHO.add(query)
        return super().__getattribute__(name)


def watch_shared_renderings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note each query of a shared rendering that asks who is calling."""
    call_of, answer, render = Caller.call, PageQueries._answer, Console.render_live

    async def render_watched(console: Console, view: LiveView, names: frozenset[str], position: int) -> Mapping[str, str]:
        SHARED.set(view.key.person is None)
        return await render(console, view, names, position)

    async def answer_watched(queries: PageQueries, request: Query, target_id: UUID | None) -> Any:
        ASKING.set(type(request).__name__ if SHARED.get() and not queries.recorded else None)
        return await answer(queries, request, target_id)

    monkeypatch.setattr(Console, "render_live", render_watched)
    monkeypatch.setattr(Caller, "call", lambda *given: WatchedCall(**vars(call_of(*given))))
    monkeypatch.setattr(PageQueries, "_answer", answer_watched)


async def first_frames(api: Api, path: str, count: int) -> dict[str, str]:
    """Return the first frame of each region of a page, as its live stream sends them."""
    found: dict[str, str] = {}
    async with open_stream(api, path) as frames:
        while len(found) < count:
            frame = await frames.next("region", unless="trouble")
            found[frame["id"]] = frame["html"]
    return found


def is_other(html: str, shown: str) -> bool:
    """Return whether a region is not the one that a page shows."""
    return PASSING.sub("*", html) not in PASSING.sub("*", shown)


LOOKS = 8


@pytest.mark.parametrize(
    "chosen",
    [pytest.param(ONE_OF_EACH_KIND, id="one of each kind"), pytest.param(ALL_PAGES, id="all", marks=pytest.mark.soak)],
)
async def test_every_page_is_live_and_the_same_to_everybody_with_the_same_permissions(
    service: PolicyService, shown_pages: ShownPages, chosen: Sequence[ConsolePage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody who may see the same shares one rendering: it may hold nothing of the person it was made for."""
    watch_shared_renderings(monkeypatch)
    monkeypatch.setattr(live, "RENDER_TIME_SHARE", 1)
    at_once = asyncio.Semaphore(Settings.model_fields["max_streams_per_principal"].default // 2)

    async def look(page: ConsolePage) -> None:
        path, seen = address(page.path, service.ids), shown_pages.permitted[page.path].text
        async with at_once:
            shared = {region.element_id for region in page.regions.values() if not region.personal}
            for _ in range(LOOKS):  # what is told of the future changes by itself: both look again
                frames = await first_frames(service.twin, path, len(page.regions))
                if not any(is_other(frames[name], seen) for name in shared):
                    break
                seen = (await service.permitted.get(path)).text
                if not any(is_other(frames[name], seen) for name in shared):
                    break
        assert set(frames) == {region.element_id for region in page.regions.values()}
        for name, html in frames.items():
            assert name not in shared or not is_other(html, seen), f"{page.path} is another one in {name} to somebody else"
            assert list(PageSource.of(html).faults()) == []
            assert "form_token" not in html

    looks = await asyncio.gather(*(look(page) for page in chosen if page.regions), return_exceptions=True)
    assert not any(looks), [failure for failure in looks if failure is not None]
    assert not ASKED_WHO - OF_PERMISSIONS_ALONE


async def test_a_stranger_gets_no_stream_of_a_page_of_which_nothing_may_be_seen(service: PolicyService) -> None:
    for path, permission in (("/console/zones/{zone_id}", "GetZone"), ("/console/zones", "ListZones")):
        for ids in (service.ids, unknown(service)):
            refused = await service.stranger.client.get("/console/live", params={"at": address(path, ids)})
            assert refused.status_code == 403, refused.text
            assert (WORD in refused.text, permission in refused.text) == (False, True), refused.text


ODD_TEXTS = ("", "-1", "²", "9" * 5000, "1000000000", "1e400", "nan", "{", "[]", "\0", "\r\n", "é", "../..", "//[", "Held")
"""What nobody means by a parameter or a field."""
MOST_ALIKE = 8
"""How many parameters that one place of the code reads are tried: among the first filters of a list is one of each type."""
FURTHER = ["/console/live", "/console/{name}", "/console/static/{name}", "/console/do/{name}"]
texts = st.sampled_from(ODD_TEXTS) | st.text(st.characters(codec="utf-8"), max_size=20)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


async def assert_no_failure(api: Api, path: str, query: dict[str, str]) -> None:
    answer = await api.get(path, **query)
    assert answer.status_code < 500, f"{path} {query}: {answer.text[-1500:]}"


@pytest.mark.parametrize(
    ("most", "odd"),
    [
        pytest.param(MOST_ALIKE, ("²", "9" * 5000), id="of each kind"),
        pytest.param(None, ODD_TEXTS, id="all", marks=[pytest.mark.soak, pytest.mark.timeout(1200)]),
    ],
)
async def test_no_parameter_of_a_page_fails(
    service: PolicyService, shown_pages: ShownPages, most: int | None, odd: Sequence[str]
) -> None:
    """What each place of the code reads is something that nobody means, on a page that it is for."""
    places: dict[CodeType, list[tuple[str, str]]] = {}
    for (name, place), path in shown_pages.reads.items():
        places.setdefault(place, []).append((name, path))
    read = dict.fromkeys(one for names in places.values() for one in names[:most])
    assert {name for name, _ in read} >= {"at", "beamline", "channel", "cursor", "from", "kind", "order", "q", "version"}

    @for_each(("name", "path"), read)
    async def judge(name: str, path: str) -> None:
        for text in odd:
            await assert_no_failure(service.permitted, path, {name: text})

    await judge()


@settings(max_examples=EXAMPLES // 2)
@given(
    path=st.sampled_from([*(page.path for page in ALL_PAGES), *READS, *FURTHER]),
    odd=st.none() | texts,
    query=st.dictionaries(names, texts, max_size=2),
)
async def test_no_address_at_all_fails(service: PolicyService, path: str, odd: str | None, query: dict[str, str]) -> None:
    known = {**service.ids, "name": "define_zone"}
    ids = known if odd is None else dict.fromkeys(known, quote(odd, safe=""))
    at = {"at": "/console/nowhere" if odd is None else odd} if path == "/console/live" else {}
    await assert_no_failure(service.permitted, address(path, ids), {**query, **at})


@settings(max_examples=EXAMPLES // 2)
@given(operation=st.sampled_from(COMMANDS), data=st.data())
async def test_no_form_at_all_fails(service: PolicyService, operation: Operation, data: st.DataObject) -> None:
    """A form is filled in with anything, and its buttons for rows are pressed."""
    known = st.sampled_from(list(input_schema(operation)["properties"]) or ["name"])
    inner = st.sampled_from(("_count", "_show", "_flag", "0", "0.0", "99", "99999999")) | texts
    places = known | st.builds("{}.{}".format, known, inner)
    pressed = st.dictionaries(st.sampled_from(("_add", "_remove", "_show", "_check", "back", "_key")), places, max_size=1)
    typed = {**data.draw(st.dictionaries(places, texts, max_size=4)), **data.draw(pressed)}
    targets = {name: service.ids.get(name, "x") for name in (operation.target, *operation.path_fields) if name}
    path, secret = f"/console/do/{operation.name}", service.permitted.client.cookies[SECRET]
    await assert_no_failure(service.stranger, path, {**targets, **typed})
    sent = {**targets, **typed, "form_token": form_token(secret, "")}
    answer = await service.stranger.request("POST", path, data=sent)
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text[-1500:]
