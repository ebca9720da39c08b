"""The sentence that an answer to an agent begins with, and the size of an answer."""

from typing import Any

from baton.api.mcp import sentences
from baton.api.mcp.toolbox import LARGEST_PAGE
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.support.api.mcp_clients import agent, refusal, sentence_of, text_of, tool_result
from tests.support.service import Api
from tests.support.tables import for_each
from tests.support.workflows.conduct_service import ConductService
from tests.support.workflows.step_json import setpoint

FAILURE = {"step_index": 6, "source_kind": "check", "target": "bl7:shutter", "error_class": "CheckError", "message": "Shut."}
HOLD = {"since": "03:00", "held_by": "a", "held_by_name": "Mira", "reason": "top-up"}
QUERIES: list[tuple[str, dict[str, Any], str]] = [
    (
        "get_run",
        {"name": "R", "status": "Held", "held_at": "2026-11-17T03:00:00Z"},
        "Run R is Held since 2026-11-17T03:00:00Z.",
    ),
    ("get_run", {"name": "R", "status": "Running", "last_hold_reason": "Beam."}, "Run R is Running."),
    (
        "get_run",
        {"name": "R", "status": "Held", "held_at": "03:00", "held_by_name": "Mira", "last_hold_reason": "Beam lost."},
        "Run R is Held since 03:00, by Mira: Beam lost.",
    ),
    (
        "get_run",
        {"name": "R", "status": "Aborted", "ended_at": "03:00", "ended_by_name": "Mira", "end_reason": "sample slipped"},
        "Run R is Aborted since 03:00, by Mira: sample slipped",
    ),
    (
        "get_supply",
        {"name": "Cooling", "status": "Unavailable", "last_status_reason": "The pump leaks."},
        "Supply Cooling is Unavailable: The pump leaks.",
    ),
    (
        "get_my_access",
        {"name": "Mira", "permitted_commands": ["HoldRun"], "enforced": False, "remark": "Not enforced."},
        "You are Mira, and are permitted 1 commands and queries. Not enforced.",
    ),
    ("list_runs", {"items": [], "next_cursor": None}, "0 runs on this page."),
    ("list_facilities", {"items": [{}], "next_cursor": None}, "1 facility on this page."),
    (
        "get_queue",
        {
            "queue_id": "q",
            "name": "Tomography",
            "status": "Active",
            "items": [{"title": "Bar 4", "status": "Blocked", "detail": "No beam."}],
        },
        "The queue Tomography is Active: nothing runs; 1 item waiting; next Bar 4, Blocked: No beam.",
    ),
    (
        "get_queue",
        {
            "queue_id": "q",
            "name": "Tonight",
            "status": "Active",
            "item_count": 5,
            "items": [{"title": "Bar 4", "status": "Running"}, {"title": "Bar 5", "status": "Waiting"}],
            "last_items": [{"status": "Completed"}, {"status": "Failed"}, {"status": "Completed"}],
        },
        "The queue Tonight is Active: Bar 4 runs; 1 item waiting; next Bar 5, Waiting; 3 ended (2 Completed, 1 Failed).",
    ),
    (
        "get_queue",
        {
            "queue_id": "q",
            "name": "Tonight",
            "status": "Active",
            "item_count": 12,
            "items": [],
            "last_items": [{"status": "Completed"}],
        },
        "The queue Tonight is Active: nothing runs; 0 items waiting; 12 ended, the last 1 (1 Completed).",
    ),
    (
        "get_dataset",
        {"name": "scan_0042.h5", "status": "Registered", "intent": "Production"},
        "Dataset scan_0042.h5 is Registered, with intent Production.",
    ),
    (
        "get_beamline_now",
        {
            "name": "BL-7",
            "permits": [{"name": "Hutch B", "permit_status": "Permitted"}],
            "conducts": [],
            "supplies": [{"name": "Beam", "status": "Available"}],
            "runs": [{"name": "R", "status": "Held", "started_by_name": "Mira"}],
            "queue": {"name": "Tonight", "status": "Held", "hold": {"held_by_name": "Ada", "reason": "search"}},
        },
        "At BL-7: run R is Held, by Mira; hutch Hutch B Permitted; Beam Available; "
        "queue Tonight Held by Ada, because search; 0 cautions.",
    ),
    (
        "read_signals",
        {
            "signals": [
                {"address": "x", "value": 45.0, "unit": "deg"},
                {"address": "y", "value": 1, "error": {"detail": "Off."}},
            ]
        },
        "x is 45.0 deg; y was not read: Off.",
    ),
    (
        "get_dataset_provenance",
        {"dataset_id": "d", "nodes": [{"kind": "dataset"}, {"kind": "dataset"}, {"kind": "actor"}], "edges": [{}]},
        "The provenance has 2 datasets, 1 actor, and 1 relation between them.",
    ),
    (
        "list_runs",
        {"items": [{"status": "Held"}, {"status": "Completed"}, {"status": "Held"}], "next_cursor": "x"},
        "3 runs on this page (2 Held, 1 Completed); there are more: go on with cursor.",
    ),
    ("get_run_history", {"items": [{}], "next_cursor": None}, "1 event on this page."),
    ("preflight_run", {"passed": True, "gates": [{"passed": True}]}, "It may start or go on now: 1 of 1 gates are open."),
    (
        "preflight_run",
        {"passed": False, "gates": [{"passed": True}, {"gate": "beam", "passed": False, "detail": "No beam."}]},
        "1 gate of 2 closed, first beam: No beam.",
    ),
    (
        "get_procedure_conduct",
        {"conduct_id": "c", "status": "Running", "message": "step 2 of 3", "result": None},
        "The procedure is Running: step 2 of 3.",
    ),
    (
        "get_procedure_conduct",
        {"conduct_id": "c", "status": "Aborted", "message": "", "result": {"succeeded": False, "failure": FAILURE}},
        "The conduct did not succeed at step 7: Shut.",
    ),
    (
        "get_run_conduct",
        {"conduct_id": "c", "phases": [{"status": "Running"}], "waiting": {"for": "run"}, "result": None, "hold": HOLD},
        "The run is being conducted in 1 phase (1 Running); it waits. Held since 03:00, by Mira: top-up.",
    ),
    (
        "get_procedure_conduct",
        {"conduct_id": "c", "status": "Held", "message": "", "result": {"succeeded": True}, "hold": HOLD},
        "The conduct succeeded. Held since 03:00, by Mira: top-up.",
    ),
    ("get_procedure_steering", {"waiting": False, "evidence": None}, "The conduct does not wait for advice."),
    (
        "get_work",
        {"work_id": "w", "state": "failed", "error": {"detail": "No space left."}},
        "The work came to nothing: No space left.",
    ),
    (
        "get_work",
        {"work_id": "w", "state": "running", "message": "waits for approval until 03:00Z", "ids": {"proposal_id": "w"}},
        "The proposal waits for approval until 03:00Z; get_proposal shows who may approve it.",
    ),
    (
        "get_work",
        {"work_id": "w", "state": "done", "answer": {}, "ids": {"proposal_id": "w"}},
        "The proposal was approved and carried out.",
    ),
    (
        "get_work",
        {"work_id": "w", "state": "failed", "error": {"detail": "Not now."}, "ids": {"proposal_id": "w"}},
        "The proposal was not carried out: Not now.",
    ),
    ("get_work", {"work_id": "w", "state": "running", "message": "step 1 of 2"}, "The work is running: step 1 of 2."),
]
COMMANDS: list[tuple[str, dict[str, Any], int, str]] = [
    ("hold_run", {}, 204, "Done: hold_run. The run is Held now."),
    ("hold_run", {"reason": "x"}, 200, "Done: hold_run."),
    ("register_asset", {"asset_id": "a"}, 201, "Done: register_asset made asset a, which is Commissioned."),
    (
        "define_policy",
        {"policy_id": "p", "enforced": False, "remark": "Not enforced."},
        201,
        "Done: define_policy made policy p. Not enforced.",
    ),
    (
        "conduct_procedure",
        {"work_id": "w"},
        202,
        "conduct_procedure continues and is not done yet; get_work with work_id w tells how it stands.",
    ),
    ("conduct_procedure", {"succeeded": True, "completed_count": 3}, 200, "The conduct succeeded: 3 parts completed."),
    (
        "conduct_run",
        {"succeeded": True, "phases": [{"captures": {"angle": {"value": 45.0, "unit": "deg"}}}]},
        200,
        "The conduct succeeded; angle is 45.0 deg.",
    ),
    (
        "conduct_run",
        {
            "succeeded": True,
            "phases": [{"passes": [{"measurements": [{"name": "counts", "value": value}]} for value in (3, 2.5)]}],
        },
        200,
        "The conduct succeeded; counts was 3, 2.5 in the last passes.",
    ),
    (
        "conduct_until_advised",
        {
            "succeeded": True,
            "completed_count": 3,
            "termination_reason": "It is sharp.",
            "best": {"name": "sharpness", "value": 100.0, "point": {"focus": 1.2}},
        },
        200,
        "The conduct succeeded: 3 parts completed; best sharpness 100.0 at focus 1.2; it ended because: It is sharp.",
    ),
    (
        "conduct_until_advised",
        {
            "succeeded": True,
            "best": {"name": "sharpness", "value": 100.0, "point": {"focus": 1.2}},
            "passes": [{"point": {"focus": 1.2}, "measurements": []}, {"point": {"focus": 3.0}, "measurements": []}],
        },
        200,
        "The conduct succeeded; best sharpness 100.0 at focus 1.2 (the last pass measured at focus 3.0; to go to the best "
        "point, launch the recipe again with conduct_until_advised, that first_point and a budget of iterations_remaining "
        "1).",
    ),
    (
        "approve_clearance",
        {"four_eyes": False, "remark": "Have somebody else look at it."},
        200,
        "Done: approve_clearance. The clearance is Approved now. Have somebody else look at it.",
    ),
    (
        "conduct_procedure",
        {"succeeded": False, "held": True, "failure": {**FAILURE, "step_index": 0}},
        200,
        "The conduct was held at step 1: Shut.",
    ),
    (
        "conduct_run",
        {"succeeded": False, "failure": None, "phases": [{"failure": None}, {"failure": FAILURE}]},
        200,
        "The conduct did not succeed at step 7: Shut.",
    ),
    (
        "conduct_procedure",
        {"succeeded": True, "closing_failures": [{"target": "bl7:shutter", "message": "It does not answer."}]},
        200,
        "Closing was not done: bl7:shutter failed: It does not answer. Look at the equipment.",
    ),
    (
        "conduct_run",
        {
            "succeeded": True,
            "phases": [{"closing_failures": [{"target": "bl7:shutter", "message": "No."}, {"target": "x"}]}],
        },
        200,
        "Closing was not done: bl7:shutter failed, and 1 other: No. Look at the equipment.",
    ),
    (
        "hold_everything",
        {"message": "Nothing further was held.", "held": [], "refused": [], "still_armed": []},
        200,
        "Nothing further was held.",
    ),
]


QUESTION = {"question": 3, "procedure_id": "p", "waiting": True}


def test_work_that_waits_for_a_question_says_so_and_how_it_is_answered() -> None:
    asked = "waits for advice on question 3 of procedure p, shown here with its evidence; advise_procedure answers it."
    begun = {"procedure_id": "p", "conduct_id": "c", "work_id": "w", "waiting_question": QUESTION}
    launched = {**begun, "launch_id": "l", "name": "Align", "run_id": None, "procedure_ids": ["p"]}
    for name, answer in (("conduct_until_advised", begun), ("launch", launched)):
        said = sentences.command_sentence(REGISTRY.operations[name], answer, sentences.ACCEPTED)
        assert said.endswith(asked), said


@for_each(("name", "answer", "sentence"), QUERIES)
def test_what_was_read_is_said_in_a_sentence(name: str, answer: dict[str, Any], sentence: str) -> None:
    assert sentences.query_sentence(REGISTRY.operations[name], answer) == sentence


@for_each(("name", "answer", "status", "sentence"), COMMANDS)
def test_what_came_of_a_command_is_said_in_a_sentence(name: str, answer: dict[str, Any], status: int, sentence: str) -> None:
    assert sentences.command_sentence(REGISTRY.operations[name], answer, status) == sentence


@for_each(
    "operation",
    [
        one
        for one in REGISTRY
        if one.name.startswith("list_") and one.name not in ("list_events", "list_step_reliability", "list_waiting")
    ],
)
def test_a_list_counts_its_things_by_their_own_plural(operation: Operation) -> None:
    things = operation.name.removeprefix("list_").replace("_", " ")
    assert sentences.query_sentence(operation, {"items": [{}] * 2, "next_cursor": None}).startswith(f"2 {things} ")


def test_a_sentence_is_one_line_of_bounded_length() -> None:
    said = sentences.refusal_sentence({"detail": "Two\nlines, and " + "more " * 1000})
    assert said.startswith("Refused: Two lines, and more")
    assert "\n" not in said
    assert len(said) < 700


async def test_a_conduct_that_did_not_succeed_says_so_first(conduct_service: ConductService) -> None:
    procedure_id = str(await conduct_service.stack.register_procedure())
    steps = [setpoint("a", 1), {"kind": "check", "address": "a", "criterion": {"kind": "equals", "expected": 5}}]
    async with agent(conduct_service.operator) as client:
        arguments = {"procedure_id": procedure_id, "steps": steps, "wait": 30}
        answer = await client.call_tool("conduct_procedure", arguments)
        assert answer.structured_content is not None
        assert not answer.structured_content["succeeded"]
        failure = answer.structured_content["failure"]
        assert sentence_of(answer) == f"The conduct did not succeed at step 2: {failure['message']}"
        looked = await client.call_tool("get_procedure_conduct", {"procedure_id": procedure_id})
        assert sentence_of(looked) == sentence_of(answer)


def test_a_dry_run_says_that_a_second_person_decides() -> None:
    would = {"would": [{"event_type": "ZoneDefined"}], "approval_needed": True}
    said = sentences.dry_run_sentence(REGISTRY.operations["define_zone"], would)
    assert said == "Nothing was done: define_zone would be proposed and, once a second person approves, record ZoneDefined."


async def test_a_dry_run_says_what_would_be_recorded_and_records_nothing(api: Api) -> None:
    async with agent(api) as client:
        answer = await client.call_tool("define_zone", {"name": "Hall", "dry_run": True})
        assert sentence_of(answer) == "Nothing was done: define_zone would be accepted and record ZoneDefined."
        assert (answer.meta or {})["baton/dry_run"] is True
        assert not (await tool_result(client, "list_zones", name="Hall"))["items"]
        blank = await refusal(client, "define_zone", name=" ", dry_run=True)
        assert blank["code"] == "InvalidZoneNameError"
        wrong = await refusal(client, "define_zone", name="Hall", dry_run="yes")
        assert wrong["errors"][0]["loc"] == ["arguments", "dry_run"]


async def test_wrong_arguments_are_answered_with_what_is_needed_and_an_example(api: Api, eventually: Any) -> None:
    asset_id = await api.create("/assets", {"name": "Tour camera", "tier": "Unit", "facility_code": "facility"})
    async with agent(api) as client:

        async def candidates() -> Any:
            return (await refusal(client, "get_asset", asset_id="Tour camera")).get("facts")

        facts = await eventually(candidates)
        assert facts["candidates"] == [{"field": "asset_id", "id": asset_id, "name": "Tour camera"}]
        missing = await refusal(client, "call_operation", name="register_asset", arguments={})
        assert {field["name"] for field in missing["needed"]} >= {"name", "tier"}
        assert missing["example"] == REGISTRY.operations["register_asset"].example
        unknown = await refusal(client, "call_operation", name="pause_run")
        assert "did you mean hold_run" in unknown["detail"]


async def test_the_log_is_read_as_a_line_for_each_command_unless_it_is_asked_for_whole(api: Api) -> None:
    asset_id = await api.create("/assets", {"name": "Ring", "tier": "Unit", "facility_code": "facility"})
    await api.execute(f"/assets/{asset_id}/activate")
    async with agent(api) as client:
        asked = {"asset_id": asset_id, "limit": 1}
        page = await tool_result(client, "list_events", **asked)
        (first,) = page["items"]
        assert first["line"].endswith(f"Z not signed in, RegisterAsset: AssetRegistered of Asset Ring ({asset_id})")
        assert first.keys() == {"position", "correlation_id", "line"}
        (second,) = (await tool_result(client, "list_events", **asked, cursor=page["next_cursor"]))["items"]
        assert "ActivateAsset: AssetActivated" in second["line"]
        (whole,) = (await tool_result(client, "list_events", **asked, full=True))["items"]
        assert (whole["event_type"], whole["payload"]["name"]) == ("AssetRegistered", "Ring")


async def test_a_page_is_bounded_in_bytes_and_says_how_to_go_on(api: Api) -> None:
    for number in range(110):
        await api.create("/zones", {"name": f"{number} {'x' * 190}"})
    whole = (await api.get("/events", limit=100, stream_type="Zone")).content
    assert len(whole) > LARGEST_PAGE, "a page of this size is not cut"
    names, asked = [], {"limit": 100, "stream_type": ["Zone"], "full": True}
    async with agent(api) as client:
        while True:
            answer = await client.call_tool("list_events", asked)
            assert answer.structured_content is not None
            assert len(text_of(answer).encode()) <= LARGEST_PAGE + 1000
            names += [event["payload"]["name"].split()[0] for event in answer.structured_content["items"]]
            if (cursor := answer.structured_content["next_cursor"]) is None:
                break
            assert "go on with cursor" in sentence_of(answer)
            asked["cursor"] = cursor
    assert names == ["System", *(str(number) for number in range(110))]
