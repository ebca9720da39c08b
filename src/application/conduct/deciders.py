"""The decide port: programs that advise where to measure next."""

import asyncio
from typing import Protocol

from baton.domain.steering import steering
from baton.domain.steering.steering import SteeringAdvice, SteeringEvidence

DECIDE_TIMEOUT_SECONDS = 120.0


class DecideError(Exception):
    """A decider gave no advice; the message is one sentence for the record."""


class DecideTimeoutError(DecideError):
    """The decider took too long."""


class DecideEvidenceRejectedError(DecideError):
    """The decider cannot advise on such evidence."""


class DecideColdStartError(DecideEvidenceRejectedError):
    """The decider cannot advise on so little evidence."""


class DecideAccessDeniedError(DecideError):
    """The decider does not let this deployment ask it."""


FAULTS = (DecideError, steering.DecideNotAvailableError, steering.DecideAdviceMalformedError)
"""Every error of asking a decider; each ends a conduct, and is recorded by its class name."""


class Decider(Protocol):
    """Advises from the evidence alone: it receives the whole history each time and keeps no state."""

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        """Return where to measure next, or that there is nothing more to measure; raise one of FAULTS."""

    async def close(self) -> None:
        """Release what is held open, by default nothing; may be repeated."""
        return


class Deciders(Protocol):
    """The deciders of this deployment."""

    async def decider(self, decide: steering.AskedDecide) -> Decider:
        """Return the decider of this choice; raise DecideNotAvailableError where there is none."""


async def advice_from(
    decider: Decider, evidence: SteeringEvidence, within: float = DECIDE_TIMEOUT_SECONDS
) -> SteeringAdvice:
    """Return checked advice in time; raise one of FAULTS."""
    try:
        async with asyncio.timeout(within):
            advice = await decider.advise_next(evidence)
    except TimeoutError as error:
        raise DecideTimeoutError(f"The decider gave no advice within {within:g} s.") from error
    steering.check_advice(advice, evidence.space)
    return advice
