"""Checks that a site runs against its own control adapter, decider or minter; each raises ContractBrokenError in a sentence.
They need no test framework: await them in any test, or in a script at the beamline. They hold an adapter to the rules that
conducts rest on; what a control system can do beyond them is not looked at."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from baton.application.conduct.deciders import Decider, advice_from
from baton.application.control import (
    Control,
    ControlError,
    ControlNotConnectedError,
    ControlTimeoutError,
    always_open,
    limits_of,
)
from baton.application.ports import Minter
from baton.domain.shared.citation import Citation
from baton.domain.steering import steering
from baton.domain.steering.steering import SteeringObservation, SteeringSpace
from baton.domain.step.results import Measured

OBJECTIVE = "objective"
CHANGE_SECONDS = 10.0  # How long a subscription has to yield what was written.


class ContractBrokenError(AssertionError):
    """A plugin does not keep a promise of its port."""


class ClosedFenceError(Exception):
    """The fence of these checks is closed."""


async def check_control(control: Control, address: str, values: tuple[object, object], absent_address: str) -> None:
    """Check reading, writing, fences and subscriptions at a writable signal, and the faults at an address without one. The
    signal is written: first with the one value, then with the other one, which it keeps."""
    first, second = values
    calls: list[None] = []
    await control.write(address, first, fence=lambda: calls.append(None))
    count = len(calls)
    _require(count == 1, f"a write that arrived called its fence {count} times; call it once, right before sending")
    _require((await control.read(address)).value == first, f"{address} does not read what was written to it")
    for wait in (True, False):
        async with _raises("a write whose fence is closed passes on what the fence raised", ClosedFenceError):
            await control.write(address, second, wait, fence=_refuse_late_write)
    _require((await control.read(address)).value == first, "a write whose fence was closed was sent all the same")
    changes = control.subscribe(address)
    try:
        async with asyncio.timeout(CHANGE_SECONDS):
            _require((await anext(changes)).value == first, "a subscription begins with the present value")
            await control.write(address, second, fence=always_open)
            _require((await anext(changes)).value == second, "a subscription yields what was written")
    except TimeoutError as error:
        raise ContractBrokenError(f"a subscription yields every change within {CHANGE_SECONDS:g} s") from error
    finally:
        await changes.aclose()
    limits = await limits_of(control, address)
    sides = () if limits is None else (limits.low, limits.high)
    _require(
        all(side is None or isinstance(side, float | int) for side in sides), "limits are ControlLimits of numbers or None"
    )
    missing = (ControlNotConnectedError, ControlTimeoutError)
    async with _raises("a read of an absent signal raises ControlNotConnectedError or ControlTimeoutError", *missing):
        await control.read(absent_address)
    async with _raises("a write to an absent signal raises a ControlError", ControlError):
        await control.write(absent_address, first, timeout=1.0)
    async with _raises("a subscription to an absent signal raises at its first item", *missing):
        await anext(control.subscribe(absent_address))
    for _ in range(2):
        await control.close()


async def check_decider(
    make: Callable[[], Decider], space: SteeringSpace, measure: Callable[[dict[str, object]], float], passes: int = 10
) -> list[SteeringObservation]:
    """Search a space by the advice of a decider, check that it can be followed, and return the passes."""
    decider, observations, point = make(), list[SteeringObservation](), space.first_point
    objective = steering.SteeringObjective(kind=steering.SteeringObjectiveKind.MAXIMIZE, target_measurement_name=OBJECTIVE)
    while len(observations) < passes:
        measured = Measured(name=OBJECTIVE, value=measure(point), kind="Scalar", quality="Good")
        observations.append(SteeringObservation(point=point, measurements=(measured,), succeeded=True))
        evidence = steering.SteeringEvidence(
            objective=objective,
            space=space,
            observations=tuple(observations),
            budget=steering.SteeringBudget(),
            iteration_index=len(observations),
            procedure_id=UUID(int=1),
        )
        advice = await advice_from(decider, evidence)
        newcomer = make()
        again = await advice_from(newcomer, evidence)
        await newcomer.close()
        _require(again.verdict is advice.verdict, "a decider that was just made gives another verdict: keep no memory")
        if advice.verdict is steering.SteeringVerdict.STOP or advice.next_point is None:
            break
        point = dict(advice.next_point)
    for _ in range(2):
        await decider.close()
    return observations


async def check_minter(minter: Minter, metadata: Citation) -> None:
    """Check that one suffix is one identifier, however often it is asked for; it registers and hides `baton-check-...`."""
    _require(bool(minter.schemes), "a minter names the schemes that it issues")
    for scheme in sorted(minter.schemes):
        suffixes = (f"baton-check-{scheme.lower()}-1", f"baton-check-{scheme.lower()}-2")
        minted, again, other = [await minter.mint(scheme, suffix, metadata) for suffix in (suffixes[0], *suffixes)]
        _require(minted.scheme is scheme, f"a minter asked for {scheme} issues {scheme}")
        _require(minted.value.endswith(f"/{suffixes[0]}"), "an identifier is a prefix, a slash and the suffix")
        _require(minted == again, "a suffix that is asked for again is the same identifier")
        _require(minted != other, "another suffix is another identifier")
        for value in (minted.value, minted.value, other.value):
            await minter.tombstone(scheme, value, "a check")
    await minter.aclose()


def _refuse_late_write() -> None:
    raise ClosedFenceError


def _require(kept: bool, promise: str) -> None:
    if not kept:
        raise ContractBrokenError(promise)


@asynccontextmanager
async def _raises(promise: str, *errors: type[Exception]) -> AsyncIterator[None]:
    try:
        yield
    except errors:
        return
    except Exception as error:
        raise ContractBrokenError(f"{promise}; it raised {type(error).__name__}") from error
    raise ContractBrokenError(f"{promise}; it raised nothing")
