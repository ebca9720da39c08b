"""Asking a decider: in time, and never following what cannot be followed."""

import asyncio

import pytest

from baton.application.conduct.deciders import (
    FAULTS,
    DecideColdStartError,
    DecideEvidenceRejectedError,
    DecideTimeoutError,
    advice_from,
)
from baton.domain.steering.steering import DecideAdviceMalformedError, SteeringAdvice, SteeringEvidence, SteeringVerdict
from tests.support.domain.searches import FOCUS, evidence
from tests.support.tables import for_each

KNOWN = evidence(FOCUS)


class AnsweringDecider:
    """Says what it was made to, or never answers."""

    def __init__(self, advice: SteeringAdvice | None) -> None:
        self._advice = advice

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        if self._advice is None:
            await asyncio.Event().wait()
        assert self._advice is not None
        return self._advice

    async def close(self) -> None:
        return


async def test_sound_advice_is_passed_on() -> None:
    advice = SteeringAdvice(verdict=SteeringVerdict.MEASURE, next_point={"focus": 1.0})
    assert await advice_from(AnsweringDecider(advice), KNOWN) == advice


async def test_a_decider_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    with pytest.raises(DecideTimeoutError, match=r"within 0\.01 s"):
        await advice_from(AnsweringDecider(None), KNOWN, within=0.01)


@for_each("point", [None, {}, {"focus": 3.0}, {"tilt": 0.0}, {"focus": 0.0, "tilt": 0.0}])
async def test_advice_that_cannot_be_followed_is_refused_from_every_decider(point: dict[str, float] | None) -> None:
    with pytest.raises(DecideAdviceMalformedError):
        await advice_from(AnsweringDecider(SteeringAdvice(verdict=SteeringVerdict.MEASURE, next_point=point)), KNOWN)


def test_a_cold_start_is_a_kind_of_rejected_evidence() -> None:
    assert issubclass(DecideColdStartError, DecideEvidenceRejectedError)
    assert issubclass(DecideColdStartError, FAULTS)
