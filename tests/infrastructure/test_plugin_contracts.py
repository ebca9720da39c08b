"""The checks that a site runs against its plugins: our own adapters pass them, and broken ones are named."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from baton.application.control import WRITE_TIMEOUT, ControlError, Fence, Reading
from baton.domain.shared.citation import Citation, MintedIdentifier
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.steering.steering import DecideAdviceMalformedError, SteeringAdvice, SteeringEvidence, SteeringVerdict
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.decide.configured import GridWalkDecider
from baton.infrastructure.minting import DeterministicMinter
from baton.testing.contracts import ContractBrokenError, check_control, check_decider, check_minter
from tests.support.domain.searches import FOCUS
from tests.support.tables import for_each

PAGE = Citation(
    landing_page="https://bl7.example/7", resource_type="Instrument", title="Rotary", publisher="BL7", publication_year=2026
)


class Deaf(Simulator):
    """Never calls the fence."""

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        await super().write(address, value, wait, timeout)


class Hasty(Simulator):
    """Sends first, and calls the fence afterwards."""

    async def write(
        self, address: str, value: Any, wait: bool = True, timeout: float = WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        await super().write(address, value, wait, timeout)
        if fence:
            fence()


class Inventive(Simulator):
    """Makes up a value for every address."""

    async def read(self, address: str) -> Reading:
        try:
            return await super().read(address)
        except ControlError:
            return Reading(value=0)


class SilentControl(Simulator):
    """Yields the present value and then nothing more."""

    async def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:  # type: ignore[override]
        yield await self.read(address)
        yield await self.read("bl7:other")


def simulator(kind: type[Simulator] = Simulator) -> Simulator:
    return kind({"bl7:ao": 0.0, "bl7:other": 3.0}, read_timeout=0.1)


async def test_our_own_adapters_pass() -> None:
    await check_control(simulator(), "bl7:ao", (1.5, 2.5), "bl7:nothing")
    assert len(await check_decider(lambda: GridWalkDecider(3), FOCUS, lambda point: 1.0)) == 3
    await check_minter(DeterministicMinter(), PAGE)


@for_each(
    ("kind", "promise"),
    [
        (Deaf, "called its fence 0 times"),
        (Hasty, "a write whose fence was closed was sent all the same"),
        (Inventive, "a read of an absent signal raises"),
        (SilentControl, "a subscription yields what was written"),
    ],
)
async def test_a_control_adapter_that_breaks_a_promise_is_named(kind: type[Simulator], promise: str) -> None:
    with pytest.raises(ContractBrokenError, match=promise):
        await check_control(simulator(kind), "bl7:ao", (1.5, 2.5), "bl7:nothing")


class Forgetful:
    """Stops after the third question, whatever it is shown."""

    def __init__(self, point: dict[str, Any]) -> None:
        self._point, self._asked = point, 0

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        self._asked += 1
        if self._asked == 3:
            return SteeringAdvice(verdict=SteeringVerdict.STOP)
        return SteeringAdvice(verdict=SteeringVerdict.MEASURE, next_point=self._point)

    async def close(self) -> None:
        return


async def test_a_decider_that_remembers_or_leads_outside_is_named() -> None:
    with pytest.raises(ContractBrokenError, match="keep no memory"):
        await check_decider(lambda: Forgetful({"focus": 1}), FOCUS, lambda point: 1.0)
    with pytest.raises(DecideAdviceMalformedError, match="outside the space"):
        await check_decider(lambda: Forgetful({"focus": 9}), FOCUS, lambda point: 1.0)


class NumberingMinter(DeterministicMinter):
    """Counts instead of using the suffix."""

    def __init__(self, value: Callable[[int, str], str]) -> None:
        self._value, self._count = value, 0

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        self._count += 1
        return MintedIdentifier(scheme, self._value(self._count, suffix))


@for_each(
    ("value", "promise"),
    [
        (lambda count, suffix: f"10.5072/{count}", "a prefix, a slash and the suffix"),
        (lambda count, suffix: f"10.{5072 + count}/{suffix}", "asked for again is the same"),
    ],
)
async def test_a_minter_that_issues_twice_is_named(value: Callable[[int, str], str], promise: str) -> None:
    with pytest.raises(ContractBrokenError, match=promise):
        await check_minter(NumberingMinter(value), PAGE)
