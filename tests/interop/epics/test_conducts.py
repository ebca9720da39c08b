"""Conducts on an IOC of EPICS base with each adapter, also where the IOC is killed and started again meanwhile."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from baton.application.control import Control, Reading
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure
from baton.infrastructure.plugins import ActionRegistry
from tests.console.test_conduct import page_of
from tests.support.infrastructure.epics_servers import SoftIoc
from tests.support.waiting import until
from tests.support.workflows.conduct_service import open_conduct_service
from tests.support.workflows.conduct_stack import ConductStack, RecordingControl, open_conduct_stack
from tests.support.workflows.step_json import action, capture, captured_value, check, setpoint

CLOSING = [setpoint("ioc:shutter", "Closed")]


class FollowedControl(RecordingControl):
    """A control that reports when a signal is followed."""

    def __init__(self, control: Control) -> None:
        super().__init__(control)
        self.followed = asyncio.Event()

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        async for reading in super().subscribe(address):
            self.followed.set()
            yield reading


class Bench:
    """A stack on the IOC, and an action that lasts until the test lets it end."""

    def __init__(self, control: Control) -> None:
        self.control = FollowedControl(control)
        self.paused, self.resumed = asyncio.Event(), asyncio.Event()
        self.stack: ConductStack

    async def pause(self, control: Any, time: Any, params: Any) -> dict[str, Any]:
        self.paused.set()
        await self.resumed.wait()
        return {}

    async def conduct(self, *steps: Any) -> Any:
        """Conduct a recipe of these steps that closes the shutter at the end, and return the result."""
        procedure_id = await self.stack.register_from_recipe(steps, CLOSING)
        return await self.stack.conduct(ConductProcedure(wait=60), procedure_id)


@pytest.fixture
async def bench(
    database_url: str, temporal: EmbeddedTemporal, control: Control, library: str, soft_ioc: SoftIoc
) -> AsyncIterator[Bench]:
    bench = Bench(control)
    routes = [{"prefix": "ioc:", "substrate": "epics_pva" if library == "p4p" else "epics_ca"}]
    wired = {"control": bench.control, "actions": ActionRegistry({"pause": bench.pause}), "control_routes": routes}
    async with open_conduct_stack(database_url, temporal.address, **wired) as bench.stack:
        for record in ("ioc:x", "ioc:count", "ioc:mode", "ioc:motor:position"):
            soft_ioc.put(record, 0)
        soft_ioc.put("ioc:shutter", "Open")
        yield bench


async def test_a_recipe_of_setpoints_checks_and_captures(bench: Bench, observer: Control, soft_ioc: SoftIoc) -> None:
    conducting = asyncio.ensure_future(
        bench.conduct(
            setpoint("ioc:x", 12.5, verify=True),
            setpoint("ioc:mode", "Acquire", verify=True),
            setpoint("ioc:spectrum", [0.5, 1.5], verify=True),
            setpoint("ioc:sample", "Si 111"),
            check("ioc:mode", "Acquire"),
            check("ioc:sample", "Si 111"),
            check("ioc:x", 12.4, 0.2),
            capture("ioc:x", "place"),
            setpoint("ioc:motor", captured_value("place"), verify={"address": "ioc:motor:position", "tolerance": 0.01}),
            check("ioc:count", 3, timeout=60),
        )
    )
    await until(lambda: bench.control.followed.is_set() or conducting.done())
    for count in (1, 2, 3):
        soft_ioc.put("ioc:count", count)
    result = await conducting
    assert result["succeeded"], result
    place = result["captures"]["place"]
    assert (place["value"], place["unit"], result["deviations"]) == (12.5, "mm", [])
    held = {name: (await observer.read(f"ioc:{name}")).value for name in ("x", "mode", "spectrum", "sample", "shutter")}
    assert held == {"x": 12.5, "mode": "Acquire", "spectrum": [0.5, 1.5], "sample": "Si 111", "shutter": "Closed"}
    assert (await observer.read("ioc:motor:position")).value == 12.5


@pytest.mark.parametrize(
    ("steps", "error_class"),
    [
        ([setpoint("ioc:x", 60), check("ioc:x", 60)], "CheckFailedError"),
        ([setpoint("ioc:mode", "Error"), check("ioc:mode", "Error")], "CheckFailedError"),
        ([setpoint("ioc:count", 1), capture("ioc:unset", "nothing")], "CheckFailedError"),
        ([setpoint("ioc:x", 1), setpoint("ioc:x", 101)], "SetpointOutOfLimitsError"),
        ([setpoint("ioc:x", 1), setpoint("ioc:disabled", 2)], "ControlWriteRejectedError"),
        ([setpoint("ioc:x", 1), setpoint("ioc:protected", 2)], "ControlAccessDeniedError"),
        ([setpoint("ioc:x", 1), setpoint("ioc:mode", "Ajar")], "ControlValueCoercionError"),
    ],
)
async def test_alarms_limits_and_refusals_of_records_end_a_conduct(
    bench: Bench, observer: Control, steps: list[Any], error_class: str
) -> None:
    result = await bench.conduct(*steps)
    assert (result["failure"]["step_index"], result["failure"]["error_class"]) == (1, error_class)
    assert (await observer.read("ioc:shutter")).value == "Closed"


async def test_a_conduct_continues_on_the_ioc_that_is_back(bench: Bench, observer: Control, soft_ioc: SoftIoc) -> None:
    conducting = asyncio.ensure_future(
        bench.conduct(
            setpoint("ioc:x", 5), action("pause"), check("ioc:x", 0), setpoint("ioc:x", 6), check("ioc:mode", "Idle")
        )
    )
    await until(lambda: bench.paused.is_set() or conducting.done())
    soft_ioc.restart()
    bench.resumed.set()
    result = await conducting
    assert result["succeeded"], result
    assert [(await observer.read(name)).value for name in ("ioc:x", "ioc:shutter")] == [6, "Closed"]


async def test_a_check_that_loses_its_ioc_fails_and_the_closing_is_done_on_the_one_that_is_back(
    bench: Bench, observer: Control, soft_ioc: SoftIoc
) -> None:
    conducting = asyncio.ensure_future(bench.conduct(setpoint("ioc:x", 5), check("ioc:count", 1, timeout=100)))
    await until(lambda: bench.control.followed.is_set() or conducting.done())
    soft_ioc.restart()
    result = await conducting
    assert (result["failure"]["step_index"], result["failure"]["error_class"]) == (1, "ControlNotConnectedError")
    assert [(await observer.read(name)).value for name in ("ioc:x", "ioc:shutter")] == [0, "Closed"]


SIDE = 50
MAP = [
    step
    for row in range(SIDE)
    for step in (
        setpoint("ioc:count", row),
        *(
            one
            for x in range(SIDE)
            for one in (setpoint("ioc:x", x, unit="mm"), capture("ioc:hill", f"height_{row:02}{x:02}"))
        ),
    )
]


@pytest.mark.timeout(600)
async def test_a_map_of_fifty_by_fifty_grows_on_the_page_of_its_scan(
    database_url: str, temporal: EmbeddedTemporal, control: Control, library: str, soft_ioc: SoftIoc
) -> None:
    routes = [{"prefix": "ioc:", "substrate": "epics_pva" if library == "p4p" else "epics_ca"}]
    async with open_conduct_service(database_url, temporal.address, control=control, control_routes=routes) as service:
        procedure_id = await service.stack.register_from_recipe(MAP)
        await service.conduct(procedure_id)

        async def is_over() -> bool:
            view = (await service.operator.get(f"/procedures/{procedure_id}/conduct")).json()
            return bool(view["phase"] == "Ended")

        async def place_count() -> int:
            html = await page_of(service.operator, procedure_id)
            return sum(title.startswith("ioc:x") for title in titles_in(html))

        growing = await until(place_count)
        await until(is_over, within=400, longest_pause=0.5)
        points = (await service.operator.get(f"/procedures/{procedure_id}/points", thin=2000)).json()
        html = await page_of(service.operator, procedure_id)
    assert growing < SIDE * SIDE
    assert (points["shape"], points["grid"], points["x"], points["second"]) == (
        "grid",
        {"columns": SIDE, "rows": SIDE, "block": 2},
        "ioc:x",
        "ioc:count",
    )
    assert [(axis["name"], axis["unit"]) for axis in points["axes"]] == [("ioc:count", None), ("ioc:x", "mm")]
    assert max(titles_in(html), key=value_in) == "ioc:x 30, ioc:count 20: 1000 counts"


def value_in(title: str) -> float:
    """Return the value that a place of a map says, 0 where it is none."""
    found = re.search(r": ([0-9.e+-]+) counts", title)
    return 0.0 if found is None else float(found[1])


def titles_in(html: str) -> list[str]:
    """Return what the parts of the pictures of a page say."""
    return re.findall("<title>([^<]*)</title>", html)
