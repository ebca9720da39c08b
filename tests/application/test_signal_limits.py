"""Between which values a signal may be set: what its owners and its control system say, and how soon a change counts."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from baton.application.conduct.signal_limits import REREAD_SECONDS, SetpointLimits
from baton.application.control import (
    ControlAccessDeniedError,
    ControlLimits,
    ControlNotConnectedError,
    SetpointOutOfLimitsError,
)
from baton.application.plant import SimulatedMotor
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.equipment.signals import SetAssetSignalLimits
from baton.domain.facility.facility import RegisterFacility
from baton.infrastructure.control.devices import Motor
from baton.infrastructure.control.simulator import Simulator
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import new_id

X, PLAIN = "bl7:x", "bl7:plain"


@dataclass
class Seconds:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Plant(Simulator):
    """A plant that counts how often its limits are asked for, and may keep them to itself."""

    asked = 0
    denied = False

    async def limits(self, address: str) -> ControlLimits | None:
        self.asked += 1
        if self.denied:
            raise ControlAccessDeniedError(f"{address} may not be read from here.")
        return await super().limits(address)


@pytest.fixture
def plant() -> Plant:
    return Plant({PLAIN: 0}, [Motor(SimulatedMotor(address=X, lower=-10, upper=10))])


@pytest.fixture
def client() -> CommandCaller:
    return CommandCaller(MemoryStore())


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def limits(plant: Plant, client: CommandCaller, clock: Seconds) -> SetpointLimits:
    return SetpointLimits(plant, client.commands, new_id, clock)


async def own(client: CommandCaller) -> UUID:
    """Register an asset that owns both signals."""
    await client.create(RegisterFacility(code="lumen", display_name="Lumen", kind="Site"))
    names = ({"kind": "EPICS_PV", "value": address} for address in (X, PLAIN))
    return await client.create(
        RegisterAsset(name="Stage", tier="Unit", facility_code="lumen", alternate_identifiers=tuple(names))
    )


async def test_the_control_systems_limits_count_without_an_owner(limits: SetpointLimits) -> None:
    for value in (-10, 10, 0.5, True, [1, 10]):
        await limits.check(X, value)
    for value in (10.001, -11, [1, 11], [[0, -11]]):
        with pytest.raises(SetpointOutOfLimitsError) as refused:
            await limits.check(X, value)
        assert (refused.value.facts["high"], refused.value.facts["whose"]) == (10, "control_system")


async def test_the_owners_limits_count_beside_them(limits: SetpointLimits, client: CommandCaller) -> None:
    asset_id = await own(client)
    await client.do(SetAssetSignalLimits(address=X, low=2, reason="travel"), asset_id)
    await client.do(SetAssetSignalLimits(address=PLAIN, high=5, reason="travel"), asset_id)
    with pytest.raises(SetpointOutOfLimitsError, match=r"bl7:x was not set to 1: its owners allow values from 2\.0\."):
        await limits.check(X, 1)
    with pytest.raises(SetpointOutOfLimitsError, match="the control system allows values from -10"):
        await limits.check(X, 11)
    with pytest.raises(SetpointOutOfLimitsError, match=r"its owners allow values to 5\.0\."):
        await limits.check(PLAIN, 6)


async def test_a_limit_that_is_set_counts_within_a_second(
    limits: SetpointLimits, client: CommandCaller, clock: Seconds, plant: Plant
) -> None:
    asset_id = await own(client)
    await limits.check(X, 9)
    await client.do(SetAssetSignalLimits(address=X, high=5, reason="a sample is in"), asset_id)
    clock.now = REREAD_SECONDS
    await limits.check(X, 9)
    assert plant.asked == 1, "what was read a moment ago is used again"
    clock.now = 1.0
    with pytest.raises(SetpointOutOfLimitsError):
        await limits.check(X, 9)
    await limits.check(X, 5)
    assert plant.asked == 2


@pytest.mark.parametrize("value", ["Open", None, {}, [], float("nan"), float("inf"), ["a"]])
async def test_what_is_no_finite_number_has_no_limits(limits: SetpointLimits, plant: Plant, value: Any) -> None:
    await limits.check(X, value)
    assert plant.asked == 0


async def test_limits_that_may_not_be_read_are_none(limits: SetpointLimits, plant: Plant) -> None:
    plant.denied = True
    await limits.check(X, 11)


async def test_a_signal_that_is_not_there_is_an_error(limits: SetpointLimits) -> None:
    with pytest.raises(ControlNotConnectedError):
        await limits.check("bl7:absent", 1)
