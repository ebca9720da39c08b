"""Addresses find their control system by prefix."""

import pytest

from application.control import ControlNotConnectedError, NoAdapterForAddressError
from application.settings import Settings
from infrastructure.control.routes import RoutedControl, configured_control
from infrastructure.control.simulator import Simulator


async def test_the_longest_matching_prefix_wins() -> None:
    signals = {"bl7:det:x": "", "bl7:stage": "", "ring:current": ""}
    plants = {
        prefix: Simulator(dict.fromkeys(signals, name))
        for prefix, name in {"bl7:": "line", "bl7:det:": "det", "": "all"}.items()
    }
    control = RoutedControl(plants)
    assert [(await control.read(signal)).value for signal in signals] == ["det", "line", "all"]


async def test_an_address_without_a_route_is_refused() -> None:
    control = RoutedControl({"bl7:": Simulator()})
    with pytest.raises(NoAdapterForAddressError, match="ring:current"):
        await control.read("ring:current")
    with pytest.raises(NoAdapterForAddressError, match="ring:current"):
        control.subscribe("ring:current")


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
