"""Addresses find their control system by prefix, and what is read-only is not written."""

import sys
from typing import Any

import pytest

from baton.application.control import (
    ControlNotConnectedError,
    ControlWritesDisabledError,
    MalformedControlAddressError,
    NoAdapterForAddressError,
)
from baton.application.plant import ControlRoute, Substrate
from baton.application.settings import Settings
from baton.infrastructure.control.routes import (
    AdapterMissingError,
    RoutedControl,
    channel_access_client,
    configured_control,
    open_control,
)
from baton.infrastructure.control.simulator import Simulator

SIGNALS = ("bl7:det:x", "bl7:stage", "ring:current")


def routed_control(*routes: dict[str, Any], **options: Any) -> tuple[RoutedControl, dict[Substrate, Simulator]]:
    plants = {substrate: Simulator(dict.fromkeys(SIGNALS, substrate.value)) for substrate in Substrate}
    return RoutedControl([ControlRoute.model_validate(route) for route in routes], plants, **options), plants


async def test_the_longest_matching_prefix_wins_whatever_the_order() -> None:
    routes = [
        {"prefix": "bl7:", "substrate": "epics_ca"},
        {"prefix": "", "substrate": "in_memory"},
        {"prefix": "bl7:det:", "substrate": "epics_pva"},
    ]
    for ordered in (routes, routes[::-1]):
        control, _ = routed_control(*ordered)
        assert [(await control.read(signal)).value for signal in SIGNALS] == ["epics_pva", "epics_ca", "in_memory"]
        assert [(await anext(control.subscribe(signal))).value for signal in SIGNALS] == [
            "epics_pva",
            "epics_ca",
            "in_memory",
        ]


async def test_an_address_without_a_route_is_refused() -> None:
    control, _ = routed_control({"prefix": "bl7:", "substrate": "in_memory"})
    with pytest.raises(NoAdapterForAddressError, match="ring:current"):
        await control.read("ring:current")
    with pytest.raises(NoAdapterForAddressError, match="ring:current"):
        await control.write("ring:current", 1)
    with pytest.raises(NoAdapterForAddressError, match="ring:current"):
        control.subscribe("ring:current")


async def test_a_read_only_route_sends_nothing() -> None:
    control, plants = routed_control(
        {"prefix": "bl7:", "substrate": "in_memory"}, {"prefix": "bl7:det:", "substrate": "in_memory", "read_only": True}
    )
    with pytest.raises(ControlWritesDisabledError, match="bl7:det:"):
        await control.write("bl7:det:x", 5)
    await control.write("bl7:stage", 5)
    assert dict(plants[Substrate.IN_MEMORY].writes) == {"bl7:stage": 1}
    assert (await control.read("bl7:det:x")).value == "in_memory"


async def test_a_deployment_that_only_observes_sends_nothing_anywhere() -> None:
    control, plants = routed_control({"prefix": "bl7:", "substrate": "in_memory"}, writes_enabled=False)
    with pytest.raises(ControlWritesDisabledError, match="CONTROL_WRITES_ENABLED"):
        await control.write("bl7:stage", 5)
    assert not plants[Substrate.IN_MEMORY].writes
    unrouted = configured_control(Settings(simulated_signals={"bl7:stage": 4}, control_writes_enabled=False))
    with pytest.raises(ControlWritesDisabledError):
        await unrouted.write("bl7:stage", 5)
    assert (await unrouted.read("bl7:stage")).value == 4


async def test_closing_closes_every_control_system() -> None:
    class Closable(Simulator):
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    plants = {substrate: Closable() for substrate in Substrate}
    control = RoutedControl([ControlRoute(prefix="", substrate=Substrate.IN_MEMORY)], plants)
    await control.close()
    await control.close()
    assert {plant.closed for plant in plants.values()} == {2}


async def test_a_control_system_that_cannot_be_closed_leaves_no_other_open() -> None:
    closed: list[Substrate] = []

    class Closable(Simulator):
        def __init__(self, substrate: Substrate) -> None:
            super().__init__()
            self._substrate = substrate

        async def close(self) -> None:
            closed.append(self._substrate)
            raise ControlNotConnectedError(f"{self._substrate} is not there")

    control = RoutedControl([], {substrate: Closable(substrate) for substrate in Substrate})
    with pytest.raises(ControlNotConnectedError):
        await control.close()
    assert set(closed) == set(Substrate)


async def test_without_routes_every_signal_is_in_memory() -> None:
    control = configured_control(Settings(simulated_signals={"bl7:stage": 4}))
    assert (await control.read("bl7:stage")).value == 4
    with pytest.raises(ControlNotConnectedError):
        await control.read("bl7:shutter")


async def test_configured_routes_share_the_signals_in_memory() -> None:
    routes = [{"prefix": "bl7:", "substrate": "in_memory", "simulated": True}, {"prefix": "ring:", "substrate": "in_memory"}]
    settings = Settings(control_routes=routes, simulated_signals={"bl7:stage": True, "ring:current": "101.5"})
    control = configured_control(settings)
    assert (await control.read("bl7:stage")).value is True
    assert (await control.read("ring:current")).value == "101.5"


@pytest.mark.parametrize("substrate", ["epics_ca", "epics_pva", "tango", "ophyd"])
async def test_control_systems_are_opened_only_where_a_route_names_them(substrate: str) -> None:
    if library := {"epics_pva": "p4p", "tango": "tango", "ophyd": "ophyd_async"}.get(substrate):
        pytest.importorskip(library, reason=f"{library} is not installed")
    routes = [{"prefix": "bl7:", "substrate": substrate}]
    devices = "tests.support.infrastructure.site_devices:devices"
    async with open_control(Settings(control_routes=routes, ophyd_devices=devices)) as control:
        with pytest.raises(NoAdapterForAddressError):
            await control.read("ring:current")
        with pytest.raises(MalformedControlAddressError):
            await control.read("bl7: x")


MISSING = {
    "epics_pva": ("pv_access", ("p4p", "p4p.client", "p4p.client.asyncio"), "p4p; install the extra `epics`"),
    "tango": ("tango", ("tango",), "pytango; install the extra `tango`"),
    "ophyd": ("ophyd", ("ophyd_async", "ophyd_async.core"), "ophyd-async; install the extra `ophyd`"),
}


@pytest.mark.parametrize("substrate", MISSING)
def test_a_control_system_whose_library_is_missing_is_refused_with_what_to_install(
    substrate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, modules, sentence = MISSING[substrate]
    monkeypatch.delitem(sys.modules, f"baton.infrastructure.control.{adapter}", raising=False)
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(AdapterMissingError, match=sentence):
        configured_control(Settings(control_routes=[{"prefix": "", "substrate": substrate}]))


def test_ophyd_needs_to_know_which_devices() -> None:
    pytest.importorskip("ophyd_async", reason="ophyd-async is not installed (extra `ophyd`)")
    with pytest.raises(AdapterMissingError, match="OPHYD_DEVICES"):
        configured_control(Settings(control_routes=[{"prefix": "", "substrate": "ophyd"}]))


def test_without_the_compiled_library_channel_access_is_spoken_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "baton.infrastructure.control.aioca_client", raising=False)
    monkeypatch.setitem(sys.modules, "aioca", None)
    assert type(channel_access_client()).__name__ == "CaprotoClient"
