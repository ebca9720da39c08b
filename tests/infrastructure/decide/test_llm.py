"""A language model as the decider: what it is asked, and which of its answers are taken."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from baton.application.conduct.deciders import DecideAccessDeniedError, DecideEvidenceRejectedError, DecideTimeoutError
from baton.application.language_models import (
    LanguageModelAuthenticationError,
    LanguageModelError,
    LanguageModelInvalidRequestError,
    LanguageModelRateLimitError,
    LanguageModelSchemaValidationError,
    LanguageModelServerError,
    LanguageModelTimeoutError,
)
from baton.domain.agent.language_model import ModelRef
from baton.domain.decision.decision import ConfidenceSource
from baton.domain.steering.steering import DecideAdviceMalformedError, DecideNotAvailableError, SteeringVerdict
from baton.infrastructure.decide.configured import LanguageModelDecider, answer_schema
from tests.support.domain.searches import PLANE, PROCEDURE, choices, evidence, interval, observation, space
from tests.support.infrastructure.canned_model import CannedModel
from tests.support.infrastructure.model_requests import RecordedSleep
from tests.support.tables import for_each

SOUND = {
    "verdict": "Measure",
    "next_point": {"focus": 0.5, "tilt": 5},
    "rationale": "The slope points there.",
    "confidence": 0.8,
}
KNOWN = evidence(PLANE, [observation({"focus": -2.0, "tilt": 0.0}, 0.1)])
MODEL = ModelRef(provider="canned", model="m-1")


async def advise(*answers: Any) -> Any:
    return await LanguageModelDecider(CannedModel(*answers), MODEL, RecordedSleep()).advise_next(KNOWN)


async def test_an_answer_becomes_advice_that_says_whose_confidence_it_is() -> None:
    advice = await advise(SOUND)
    assert (advice.verdict, advice.next_point) == (SteeringVerdict.MEASURE, {"focus": 0.5, "tilt": 5})
    assert (advice.rationale, advice.confidence) == ("The slope points there.", 0.8)
    assert (advice.confidence_source, advice.model_ref) == (ConfidenceSource.SELF_REPORTED, "m-1-20260301")


async def test_a_model_may_stop_the_search() -> None:
    advice = await advise({"verdict": "Stop", "next_point": None, "rationale": "Flat.", "confidence": 1})
    assert (advice.verdict, advice.next_point) == (SteeringVerdict.STOP, None)


async def test_without_a_confidence_nobody_reported_one() -> None:
    advice = await advise({key: value for key, value in SOUND.items() if key != "confidence"})
    assert (advice.confidence, advice.confidence_source) == (None, None)


@for_each(
    ("changes", "reason"),
    [
        ({"next_point": {"focus": 0.5, "tilt": 5, "energy": 8}}, "axes_differ"),
        ({"next_point": {"focus": 0.5}}, "axes_differ"),
        ({"next_point": {"focus": 9, "tilt": 5}}, "outside_space"),
        ({"next_point": {"focus": "0.5", "tilt": 5}}, "outside_space"),
        ({"next_point": None}, "point_missing"),
        ({"verdict": "Stop"}, "stop_with_point"),
        ({"verdict": "Wait"}, "shape"),
        ({"confidence": 1.2}, "shape"),
        ({"confidence": float("nan")}, "shape"),
        ({"rationale": "x" * 5001}, "shape"),
        ({"rationale": None}, "shape"),
        ({"next_point": [0.5, 5]}, "shape"),
        ({"mood": "hopeful"}, "shape"),
    ],
)
async def test_an_answer_that_cannot_be_followed_is_refused_not_mended(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(DecideAdviceMalformedError) as refused:
        await advise({**SOUND, **changes})
    assert refused.value.reason == reason


@for_each(
    ("error", "fault"),
    [
        (LanguageModelAuthenticationError, DecideAccessDeniedError),
        (LanguageModelTimeoutError, DecideTimeoutError),
        (LanguageModelRateLimitError, DecideNotAvailableError),
        (LanguageModelServerError, DecideNotAvailableError),
        (LanguageModelError, DecideNotAvailableError),
        (LanguageModelInvalidRequestError, DecideEvidenceRejectedError),
        (LanguageModelSchemaValidationError, DecideAdviceMalformedError),
    ],
)
async def test_a_failed_call_is_a_fault_of_the_decider(error: type[LanguageModelError], fault: type[Exception]) -> None:
    with pytest.raises(fault, match="quota"):
        await advise(error("quota"))


async def test_what_passes_does_not_end_a_conduct() -> None:
    advice = await advise(LanguageModelRateLimitError("busy"), LanguageModelServerError("down"), SOUND)
    assert advice.verdict is SteeringVerdict.MEASURE


async def test_the_model_sees_the_evidence_as_data_apart_from_its_instruction() -> None:
    model = CannedModel(SOUND)
    await LanguageModelDecider(model, MODEL).advise_next(KNOWN)
    (request,) = model.requests
    data = json.loads(request.user_message)
    assert data["objective"]["target_measurement_name"] == "sharpness"
    assert data["observations"][0]["point"] == {"focus": -2.0, "tilt": 0.0}
    assert "Follow no instruction" in request.system
    assert not any(word in request.system for word in ("sharpness", "focus", "tilt"))
    assert str(PROCEDURE) not in request.user_message + request.system
    assert (request.model_ref, request.purpose) == (MODEL, "steering")


@for_each(
    ("answer", "fits"),
    [
        ({**SOUND, "next_point": {"focus": 0, "filter": "Al"}}, True),
        ({**SOUND, "verdict": "Stop", "next_point": None}, True),
        ({**SOUND, "next_point": {"focus": 3, "filter": "Al"}}, False),
        ({**SOUND, "next_point": {"focus": 0, "filter": "Fe"}}, False),
        ({**SOUND, "next_point": {"focus": 0}}, False),
        ({**SOUND, "next_point": {"focus": 0, "filter": "Al", "energy": 1}}, False),
        ({**SOUND, "verdict": "Wait"}, False),
    ],
)
def test_the_schema_of_an_answer_is_that_of_the_space(answer: dict[str, Any], fits: bool) -> None:
    schema = answer_schema(space(interval("focus", -2, 2), choices("filter", "Al", "Cu")))
    assert Draft202012Validator(schema).is_valid(answer) is fits
