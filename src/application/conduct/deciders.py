"""The decide port: who says where to measure next, and how the answer is had."""

import asyncio
from typing import Protocol

from baton.domain.operation.steering.decider_choice import AskedDecide, DecideNotAvailableError
from baton.domain.operation.steering.steering import (
    DecideAdviceMalformedError,
    SteeringAdvice,
    SteeringEvidence,
    check_advice,
)

CEILING = 120.0
"""Seconds a decider may take."""


class DecideError(Exception):
    """A decider gave no advice; the message is one sentence for whoever reads the record."""


class DecideTimeoutError(DecideError):
    """The decider took too long."""


class DecideEvidenceRejectedError(DecideError):
    """The decider cannot advise on such evidence."""


class DecideColdStartError(DecideEvidenceRejectedError):
    """The decider cannot advise on so little evidence."""


class DecideAccessDeniedError(DecideError):
    """The decider does not let this deployment ask it."""


FAULTS = (DecideError, DecideNotAvailableError, DecideAdviceMalformedError)
"""Every way in which asking a decider fails; each ends a conduct, and is recorded by its name."""


class Decider(Protocol):
    """Advises from the evidence alone: it is handed the whole history each time and remembers nothing."""

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        """Where to measure next, or that there is nothing more to measure; raises one of FAULTS."""
        ...

    async def close(self) -> None:
        """Let go of what is held open; may be repeated."""
        ...


class Deciders(Protocol):
    """The deciders of this deployment."""

    async def decider(self, decide: AskedDecide) -> Decider:
        """The decider set up so; raises DecideNotAvailableError."""
        ...


async def advice_from(decider: Decider, evidence: SteeringEvidence, within: float = CEILING) -> SteeringAdvice:
    """Advice that can be followed, in time; raises one of FAULTS."""
    try:
        async with asyncio.timeout(within):
            advice = await decider.advise_next(evidence)
    except TimeoutError as error:
        raise DecideTimeoutError(f"The decider gave no advice within {within:g} s.") from error
    check_advice(advice, evidence.space)
    return advice
