"""The offline model: verdicts by rule, and accounts that say no more than the record does."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.application.language_models import (
    OFFLINE,
    LanguageModelInvalidRequestError,
    LanguageModelSchemaValidationError,
    Purpose,
    Usage,
)
from baton.infrastructure.llm.offline import OfflineModel
from tests.support.infrastructure.model_requests import chat_request
from tests.support.tables import for_each

CHOICES = ["NominalCompletion", "DegradedCompletion", "OperatorAbort", "EquipmentAbort", "DataSuspect"]
DEBRIEF = {
    "type": "object",
    "properties": {
        "choice": {"type": "string", "enum": CHOICES},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "reasoning": {"type": "string", "minLength": 80, "maxLength": 4000},
    },
    "required": ["choice", "confidence", "reasoning"],
    "additionalProperties": False,
}
CATEGORIES = ["Wear", "Calibration", "Wiring", "OperationalWindow", "InterlockQuirk", "ProcedureGotcha"]
PROPOSED = {
    "type": "object",
    "properties": {
        "target_kind": {"type": "string", "enum": ["Asset", "Procedure", "Recipe", "Plan"]},
        "target_id": {"type": "string"},
        "category": {"type": "string", "enum": CATEGORIES},
        "severity": {"type": "string", "enum": ["Notice", "Caution", "Warning"]},
        "title": {"type": "string", "minLength": 1, "maxLength": 200},
        "body": {"type": "string", "minLength": 40, "maxLength": 2000},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 50}, "maxItems": 8},
        "supersedes_caution_id": {"type": ["string", "null"]},
    },
    "required": ["target_kind", "target_id", "category", "severity", "title", "body", "tags", "supersedes_caution_id"],
    "additionalProperties": False,
}
DRAFT = {
    "type": "object",
    "properties": {
        "choice": {
            "type": "string",
            "enum": ["NoAction", "ProposeNotice", "ProposeCaution", "ProposeWarning", "ProposeSupersede"],
        },
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "reasoning": {"type": "string", "minLength": 40, "maxLength": 2000},
        "proposed_caution": {"anyOf": [PROPOSED, {"type": "null"}]},
    },
    "required": ["choice", "confidence", "reasoning", "proposed_caution"],
    "additionalProperties": False,
}
LABELS = ["Synopsis", "What should have happened", "What happened", "Why they differ"]
FAULT = {"error_class": "ControlNotConnectedError", "message": "bl7:rot does not answer", "source_kind": "setpoint"}
STOPPED = {"error_class": "RunStopped", "message": "The parent run was stopped.", "source_kind": "lifecycle"}


TARGET = {"kind": "Recipe", "id": "r-1"}


def phase(status: str = "Completed", failure: Any = None, **fields: Any) -> dict[str, Any]:
    named = {"procedure_id": "p-1", "name": "Dark frames", "iteration_count": None, "caution_target": TARGET}
    return {**named, "status": status, "failure": failure, "closing_failures": [], **fields}


def run(ended: str | None, reason: str | None = None, *phases: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "terminal_event_type": ended,
        "terminal_event_reason": reason,
        "terminal_event_occurred_at": "2026-10-06T09:12:00Z" if ended else None,
        "run_id": "0197a100-0000-7000-8000-000000000001",
        "run_name": "Overview scan 360",
        "run_status": (ended or "RunRunning").removeprefix("Run"),
        "plan_id": "0197a100-0000-7000-8000-000000000002",
        "subject_id": None,
        "campaign_id": None,
        "effective_parameters": {"exposure": 0.25},
        "hold_count": 0,
        "last_held_at": None,
        "last_hold_reason": None,
        "adjustment_count": 0,
        "last_adjusted_at": None,
        "interrupted_at": None,
        "pinned_calibration_ids": [],
        "channels": [],
        "phases": list(phases),
        **fields,
    }


async def offline_answer(facts: dict[str, Any], purpose: str = Purpose.RUN_DEBRIEF, schema: Any = None) -> dict[str, Any]:
    schema = schema or (DEBRIEF if purpose == Purpose.RUN_DEBRIEF else DRAFT)
    asked = chat_request(purpose=purpose, user_message=json.dumps(facts), structured_output_schema=schema, model_ref=OFFLINE)
    response = await OfflineModel().chat(asked)
    assert (response.usage, response.model_id) == (Usage(input_tokens=0, output_tokens=0), "rules-1")
    return dict(response.parsed)


@for_each(
    ("facts", "choice"),
    [
        (run("RunCompleted"), "NominalCompletion"),
        (run("RunCompleted", None, phase(), phase("Defined")), "NominalCompletion"),
        (run("RunCompleted", None, phase(), phase("Aborted", FAULT)), "DegradedCompletion"),
        (run("RunCompleted", None, phase(closing_failures=[FAULT])), "DegradedCompletion"),
        (run("RunAborted", "rotary stage encoder offline"), "EquipmentAbort"),
        (run("RunStopped", "PSS interlock tripped"), "EquipmentAbort"),
        (run("RunAborted", "enough", phase("Aborted", FAULT)), "EquipmentAbort"),
        (run("RunAborted", "sample drifted out of view"), "OperatorAbort"),
        (run("RunAborted", "user request, no fault found"), "OperatorAbort"),
        (run("RunStopped", "enough data"), "OperatorAbort"),
        (run("RunStopped", None, phase("Aborted", STOPPED)), "OperatorAbort"),
        (run("RunTruncated", "process lost", interrupted_at="2026-10-06T09:00:00Z"), "DataSuspect"),
        (run(None), "DataSuspect"),
    ],
)
async def test_a_run_has_its_verdict(facts: dict[str, Any], choice: str) -> None:
    assert (await offline_answer(facts))["choice"] == choice


async def test_what_a_terminal_left_in_a_reason_is_not_repeated() -> None:
    reason = "encoder\x1b offline\r\nsays\x00 the PLC"
    facts = run("RunAborted", reason, phase("Aborted", {**FAULT, "message": reason}))
    assert 'The reason given was "encoder offline says the PLC".' in (await offline_answer(facts))["reasoning"]
    assert (await offline_draft(facts))["choice"] == "ProposeCaution"


async def test_an_account_tells_of_holds() -> None:
    held = {"hold_count": 2, "last_held_at": "2026-10-06T09:10:00Z", "last_hold_reason": "beam lost"}
    answer = await offline_answer(run("RunCompleted", None, phase("Completed"), **held))
    assert answer["choice"] == "NominalCompletion"
    assert 'Holds: 2, the latest at 2026-10-06T09:10:00Z, for the reason "beam lost".' in answer["reasoning"]
    assert "The run was held on its way, as told above" in answer["reasoning"]
    assert "Holds" not in (await offline_answer(run("RunCompleted", None, phase("Completed"))))["reasoning"]


async def test_an_account_tells_of_images_replaced_workers_and_files() -> None:
    files = [{"name": f"scan_{number}.h5", "byte_size": 7} for number in range(7)]
    scan = {**phase("Completed"), "name": "Projections", "image_count": 110, "takeover_count": 2, "files": files}
    told = (await offline_answer(run("RunCompleted", None, phase("Completed"), scan)))["reasoning"]
    assert 'Images taken: 110 in phase "Projections".' in told
    assert 'Work was taken over from a worker that was lost or failed: 2 in phase "Projections".' in told
    assert 'Files left: "scan_0.h5",' in told
    assert '"scan_5.h5", and more.' in told
    quiet = (await offline_answer(run("RunCompleted", None, phase("Completed"))))["reasoning"]
    assert not any(word in quiet for word in ("Images", "taken over", "Files"))


async def test_an_account_tells_what_the_record_holds() -> None:
    channel = {"channel_name": "T_sample", "count": 361, "latest_value": 293.150, "units": "K", "simulated": False}
    adjusted = {"adjustment_count": 2, "last_adjusted_at": "2026-10-06T09:10:00Z", "channels": [channel]}
    answer = await offline_answer(run("RunAborted", "encoder offline", phase("Aborted", FAULT), subject_id="s", **adjusted))
    headline, *parts = answer["reasoning"].split("\n\n")
    assert headline == 'Run "Overview scan 360" was aborted.'
    assert [part.partition(":")[0] for part in parts] == LABELS
    for detail in (
        'The reason given was "encoder offline".',
        "RunAborted at 2026-10-06T09:12:00Z",
        "2, the latest at 2026-10-06T09:10:00Z",
        'Phase "Dark frames" is Aborted, after ControlNotConnectedError: "bl7:rot does not answer".',
        'Channel "T_sample" has 361 readings, the latest 293.15 K.',
        "reads as EquipmentAbort",
    ):
        assert detail in answer["reasoning"]


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=400)
SPOKEN = st.lists(st.sampled_from(["fault", "7.5 mm", 'the "gate"', "x" * 90, "12", "3e-4", "drift\n\n"]), max_size=60)
ANY_TEXT = st.one_of(st.none(), TEXT, SPOKEN.map(" ".join))
NUMBER = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
FAILURE = st.one_of(
    st.none(), st.just(STOPPED), st.fixed_dictionaries({}, optional={"error_class": ANY_TEXT, "message": ANY_TEXT})
)
PHASE = st.builds(
    lambda name, status, failure, closing: phase(status, failure, name=name, closing_failures=closing),
    ANY_TEXT,
    st.sampled_from(["Defined", "Running", "Held", "Completed", "Aborted", "Truncated", None]),
    FAILURE,
    st.lists(st.just(FAULT), max_size=1),
)
CHANNEL = st.fixed_dictionaries(
    {"channel_name": ANY_TEXT, "count": st.integers(1), "latest_value": NUMBER, "units": ANY_TEXT}
)
ENDS = st.sampled_from(["RunCompleted", "RunAborted", "RunStopped", "RunTruncated", None])
RUN = st.builds(
    lambda ended, reason, phases, fields: run(ended, reason, *phases, **fields),
    ENDS,
    ANY_TEXT,
    st.lists(PHASE, max_size=4),
    st.fixed_dictionaries(
        {
            "run_name": ANY_TEXT,
            "channels": st.lists(CHANNEL, max_size=4),
            "hold_count": st.integers(0),
            "last_held_at": st.sampled_from([None, "2026-10-06T08:10:00Z"]),
            "last_hold_reason": st.none() | ANY_TEXT,
            "adjustment_count": st.integers(0),
            "last_adjusted_at": st.sampled_from([None, "2026-10-06T09:10:00.25Z"]),
            "interrupted_at": st.sampled_from([None, "2026-10-06T09:00:00Z"]),
            "subject_id": st.sampled_from([None, "s"]),
            "campaign_id": st.sampled_from([None, "c"]),
        }
    ),
)


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def leaves(facts: Any) -> Iterator[str]:
    """Every single thing that a record says."""
    match facts:
        case dict():
            for value in facts.values():
                yield from leaves(value)
        case list():
            for value in facts:
                yield from leaves(value)
        case str():
            yield facts
        case _:
            yield json.dumps(facts)


@given(facts=RUN)
async def test_any_record_makes_an_account_of_the_right_length_without_numbers_of_its_own(facts: dict[str, Any]) -> None:
    answer = await offline_answer(facts)
    account = answer["reasoning"]
    assert 130 <= len(account.split()) <= 230
    assert [label for label in LABELS if f"\n\n{label}: " in account] == LABELS
    assert numbers_in(account) <= {number for leaf in leaves(facts) for number in numbers_in(leaf)}
    assert await offline_answer(facts) == answer


@for_each("ended", ["RunCompleted", "RunAborted", "RunStopped", "RunTruncated", None])
async def test_the_wordiest_record_makes_no_longer_account(ended: str | None) -> None:
    endless, time = " ".join(["word"] * 100), "2026-10-06T09:10:00Z"
    failed = phase("Aborted", {**FAULT, "message": endless}, name=endless, closing_failures=[FAULT])
    channel = {"channel_name": endless, "count": 361, "latest_value": 1.5, "units": "K"}
    adjusted = {"adjustment_count": 7, "last_adjusted_at": time, "interrupted_at": time}
    adjusted |= {"hold_count": 3, "last_held_at": time, "last_hold_reason": endless}
    named = {"run_name": endless, "subject_id": "s", "campaign_id": "c"}
    answer = await offline_answer(
        run(ended, f"a fault: {endless}", *[failed] * 3, channels=[channel] * 9, **adjusted, **named)
    )
    assert 200 < len(answer["reasoning"].split()) <= 230


RECIPE, ASSET = "r-1", "a-1"
KNOWN = {"candidates": {"assets": [ASSET], "recipes": [RECIPE], "plans": ["plan"]}, "cautions": []}


def caution(**fields: Any) -> dict[str, Any]:
    on = {"target_kind": "Recipe", "target_id": RECIPE, "category": "Wiring", "severity": "Notice"}
    return {"caution_id": "c-1", **on, "text": "It loses its encoder", "workaround": "Home it", **fields}


async def offline_draft(facts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return await offline_answer({**facts, **KNOWN, **fields}, Purpose.CAUTION_DRAFT)


@for_each(
    "facts",
    [
        run("RunCompleted", None, phase()),
        run("RunStopped", "enough data"),
        run("RunAborted", "sample drifted", phase("Aborted", STOPPED)),
        run("RunTruncated", "the file server was lost"),
        run(None),
    ],
)
async def test_nothing_is_proposed_without_a_fault(facts: dict[str, Any]) -> None:
    answer = await offline_draft(facts)
    assert (answer["choice"], answer["proposed_caution"]) == ("NoAction", None)


async def test_a_fault_that_ended_a_run_is_a_caution_on_what_the_next_run_meets() -> None:
    answer = await offline_draft(run("RunAborted", "gave up", phase(), phase("Aborted", FAULT)))
    assert answer["choice"] == "ProposeCaution"
    proposed = answer["proposed_caution"]
    assert (proposed["target_kind"], proposed["target_id"]) == ("Recipe", RECIPE)
    assert (proposed["category"], proposed["severity"]) == ("Wiring", "Caution")
    assert proposed["title"] == "Dark frames failed: ControlNotConnectedError: bl7:rot does not answer"
    assert proposed["supersedes_caution_id"] is None


async def test_a_fault_that_ended_nothing_is_a_notice() -> None:
    answer = await offline_draft(run("RunCompleted", None, phase("Aborted", FAULT)))
    assert (answer["choice"], answer["proposed_caution"]["severity"]) == ("ProposeNotice", "Notice")


async def test_a_reason_that_names_a_fault_concerns_the_only_asset() -> None:
    answer = await offline_draft(run("RunAborted", "PSS interlock tripped"))
    proposed = answer["proposed_caution"]
    assert (answer["choice"], proposed["target_kind"], proposed["target_id"]) == ("ProposeCaution", "Asset", ASSET)
    assert proposed["category"] == "InterlockQuirk"


@for_each("assets", [[], ["a-1", "a-2"]])
async def test_a_fault_of_nobody_knows_what_is_not_noted(assets: list[str]) -> None:
    answer = await offline_draft(run("RunAborted", "encoder offline"), candidates={"assets": assets})
    assert answer["choice"] == "NoAction"


async def test_a_caution_on_the_same_matter_is_superseded() -> None:
    others = [caution(category="Wear", caution_id="c-2"), caution(target_id="r-2", caution_id="c-3")]
    answer = await offline_draft(run("RunAborted", "gave up", phase("Aborted", FAULT)), cautions=[*others, caution()])
    assert (answer["choice"], answer["proposed_caution"]["supersedes_caution_id"]) == ("ProposeSupersede", "c-1")
    alone = await offline_draft(run("RunAborted", "gave up", phase("Aborted", FAULT)), cautions=others)
    assert alone["choice"] == "ProposeCaution"


async def test_superseding_never_weakens_and_never_warns() -> None:
    gone = run("RunStopped", "gave up", phase("Aborted", FAULT))
    stronger = await offline_draft(gone, cautions=[caution(severity="Caution")])
    assert stronger["proposed_caution"]["severity"] == "Caution"
    assert (await offline_draft(gone, cautions=[caution(severity="Warning")]))["choice"] == "NoAction"


async def test_what_is_said_already_is_not_said_again() -> None:
    facts = run("RunAborted", "gave up", phase("Aborted", FAULT))
    said = (await offline_draft(facts))["proposed_caution"]["title"]
    assert (await offline_draft(facts, cautions=[caution(text=said)]))["choice"] == "NoAction"


@given(facts=RUN, severity=st.sampled_from(["Notice", "Caution", "Warning"]), on=st.sampled_from(CATEGORIES))
async def test_any_record_makes_a_draft_that_fits(facts: dict[str, Any], severity: str, on: str) -> None:
    cautions = [caution(severity=severity, category=on)]
    answer = await offline_draft(facts, cautions=cautions)
    proposed = answer["proposed_caution"]
    assert (proposed is None) == (answer["choice"] == "NoAction")
    if proposed is not None:
        assert proposed["target_id"] in (RECIPE, ASSET)
        assert proposed["severity"] != "Warning"
        assert (proposed["supersedes_caution_id"] is None) == (answer["choice"] != "ProposeSupersede")


async def test_an_empty_proposal_is_left_out_where_the_schema_does_not_ask_for_it() -> None:
    optional = {**DRAFT, "required": ["choice", "confidence", "reasoning"]}
    answer = await offline_answer({**run("RunCompleted"), **KNOWN}, Purpose.CAUTION_DRAFT, optional)
    assert "proposed_caution" not in answer


@for_each("purpose", ["steering", "poetry"])
async def test_other_purposes_have_no_rules(purpose: str) -> None:
    with pytest.raises(LanguageModelInvalidRequestError, match=purpose):
        await offline_answer(run("RunCompleted"), purpose, DEBRIEF)


@for_each("message", ["", "[]", "Run 7 was aborted.", '{"run_id": '])
async def test_a_message_without_data_is_refused(message: str) -> None:
    with pytest.raises(LanguageModelInvalidRequestError):
        await OfflineModel().chat(chat_request(user_message=message))


async def test_even_rules_are_judged_by_the_schema() -> None:
    with pytest.raises(LanguageModelSchemaValidationError):
        await offline_answer(run("RunCompleted"), schema={**DEBRIEF, "properties": {"choice": {"enum": ["Fine"]}}})
