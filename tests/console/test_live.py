"""Live pages: what changes is pushed while somebody looks, to all who may see the same from one rendering, and trouble is
said and passes."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from baton.api.http import Request
from baton.api.streams import OpenStreams
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.console import pages  # noqa: F401  # every page declares itself, and what is on all of them
from baton.console.live import LONGEST_REST_SECONDS, SHORTEST_SECONDS, LiveReader, LiveView, LiveViews, ViewKey
from baton.console.page import ConsolePage
from baton.console.page_queries import HeldPermissions, PageQueries
from baton.domain.kernel import NIL
from baton.domain.supply.supply import ListSupplies
from tests.support.console.live_frames import open_stream
from tests.support.service import Api
from tests.support.waiting import until

PERMITTED = frozenset({"ListSupplies"})


async def test_a_page_is_brought_up_to_date_and_then_told_what_changes(api: Api) -> None:
    async with open_stream(api, "/console/supplies") as frames:
        first = await frames.next_region("rows")
        assert "Liquid nitrogen" not in first["html"]
        await api.create("/supplies", {"kind": "liquid_nitrogen", "name": "Liquid nitrogen", "facility_code": "facility"})
        changed = await frames.next_region("rows")
        assert "Liquid nitrogen" in changed["html"]
        assert changed["mark"] != first["mark"]
        assert "at" in await frames.next("pulse")


async def test_a_stream_is_refused_where_there_is_no_page(api: Api) -> None:
    answer = await api.client.get("/console/live", params={"at": "/console/nowhere"})
    assert answer.status_code == 404
    assert (await api.client.get("/console/live")).status_code == 404


async def test_a_thing_that_does_not_exist_is_said_in_its_region(api: Api) -> None:
    async with open_stream(api, f"/console/supplies/{uuid4()}") as frames:
        region = await frames.next_region("thing")
    assert "There is no supply" in region["html"] or "no supply" in region["html"].lower()


class CountedRendering:
    """Counts how often what is not rendered every second is, and fails while it is told to."""

    def __init__(self) -> None:
        self.count = self.personal = 0
        self.failing = False

    async def __call__(self, view: LiveView, names: frozenset[str], position: int) -> Mapping[str, str]:
        if view.key.person is not None:
            self.personal += 1
        elif "supplies" in names:
            self.count += 1
        if self.failing:
            raise ConnectionError("the database is away")
        return dict.fromkeys(names, f"<p>{self.count}</p>")


async def load_nothing(queries: PageQueries) -> dict[str, Any]:
    return {}


def watched_page() -> ConsolePage:
    page = ConsolePage("/console/watched", "Watched", "A page.")
    page.region("supplies", asks=[ListSupplies])(load_nothing)
    page.region("age", asks=[], every=1.0)(load_nothing)
    return page


def reader_of(views: LiveViews, page: ConsolePage, permitted: frozenset[str]) -> LiveReader:
    caller = Caller(uuid4(), NIL, uuid4())

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def make_views() -> list[LiveView]:
        shared = ViewKey(page.path, "/console/watched", HeldPermissions(permitted))
        keys = (shared, replace(shared, person=(caller.principal_id, frozenset())))
        return [LiveView(key, page, caller, {}, {}) for key in keys]

    return LiveReader(views, Request({"headers": []}, receive, {}, 1000), caller, make_views)


def test_what_has_changed_comes_first_and_nothing_waits_for_ever() -> None:
    page, now = watched_page(), 1000.0
    view = LiveView(
        ViewKey(page.path, "/console/watched", HeldPermissions(PERMITTED)), page, Caller(uuid4(), NIL, uuid4()), {}, {}
    )

    def due(seconds: float, *, urgent: bool) -> set[str]:
        return set(view.due(now + seconds, urgent)) & set(page.own_regions)

    view.rendered_at |= dict.fromkeys(page.regions, now)
    assert due(SHORTEST_SECONDS, urgent=False) == set()
    view.note_events(frozenset({"Supply"}))
    assert due(0.1, urgent=False) == set(), "it was rendered just now"
    assert due(1.0, urgent=False) == {"supplies", "age"}
    assert due(1.0, urgent=True) == {"supplies"}
    assert due(1.0 + LONGEST_REST_SECONDS, urgent=True) == {"supplies", "age"}


def test_what_is_personal_is_a_view_of_its_own() -> None:
    page, caller = watched_page(), Caller(uuid4(), NIL, uuid4())
    page.region("own", asks=[], personal=True)(load_nothing)
    shared = ViewKey(page.path, "/console/watched", HeldPermissions(PERMITTED))
    own = LiveView(replace(shared, person=(caller.principal_id, frozenset())), page, caller, {}, {})
    everybodys = LiveView(shared, page, caller, {}, {})
    assert "own" in own.regions
    assert own.regions.keys() | everybodys.regions.keys() == page.regions.keys()
    assert own.regions.keys().isdisjoint(everybodys.regions)


async def test_those_who_may_see_the_same_share_one_rendering(module_database: str) -> None:
    async with Runtime(Settings(database_url=module_database, app_env="test")) as runtime:
        await runtime.plant_seeds()
        rendering, page = CountedRendering(), watched_page()
        views = LiveViews(runtime.feed, runtime.listener, rendering, OpenStreams(100, 8))
        tabs = [reader_of(views, page, PERMITTED).frames() for _ in range(20)]
        others = [reader_of(views, page, frozenset()).frames()]
        try:
            async with asyncio.timeout(60):
                for tab in (*tabs, *others):
                    while b"event: region" not in await anext(tab):
                        pass
            assert 2 <= rendering.count < len(tabs), "those who may see the same share one"
            await until(lambda: rendering.personal >= len(tabs) + len(others))
            rendering.failing = True
            assert b"cannot be read" in await next_frame(tabs[0], b"event: trouble")
            rendering.failing = False
            assert b'"text":""' in await next_frame(tabs[0], b"event: trouble")
        finally:
            for tab in (*tabs, *others):
                await tab.aclose()


async def next_frame(tab: Any, wanted: bytes) -> bytes:
    """Return the next frame of this kind."""
    async with asyncio.timeout(60):
        while wanted not in (frame := await anext(tab)):
            pass
    return bytes(frame)
