"""Holding everything, over REST: every queue, schedule, live run and conduct that the caller may hold, at once and as often
as wanted."""

from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.ports import CommandResult
from baton.application.queues import QueueRunner
from baton.application.schedules.firings import Firings
from baton.domain.kernel import SYSTEM_CONDUIT, Command
from baton.domain.queue.item_records import StartQueueItem
from baton.domain.queue.messages import QueueOrder, TurnVerdict
from baton.domain.schedule.messages import DueFiring
from baton.domain.target.start_launch import StartLaunch
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.wall_clock import clock
from tests.support.api.example_reads import history, refusal
from tests.support.api.mcp_clients import agent, sentence_of
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.queue_cases import reacting_queues
from tests.support.workflows.schedule_cases import swept_engine

STEP = {"kind": "setpoint", "address": "bl7:energy", "value": 25}
CHECK = {"kind": "check", "address": "bl7:energy", "criterion": {"kind": "equals", "expected": 25}}
WHY = {"reason": "somebody is in the hutch"}


@pytest.fixture
async def line(fresh_api: Api) -> Beamline:
    return await beamline(fresh_api)


async def hold(api: Api, **fields: Any) -> dict[str, Any]:
    answer = await api.post("/hold-everything", {**WHY, **fields})
    assert answer.status_code == 200, answer.text
    held: dict[str, Any] = answer.json()
    return held


async def conduct(api: Api, asset_id: str, **fields: Any) -> str:
    """A procedure whose conduct was opened and that no worker has taken up."""
    task = {"name": "Align", "kind": "alignment", "target_asset_ids": [asset_id], **fields}
    procedure = await api.create("/procedures", task)
    accepted = await api.post(f"/procedures/{procedure}/conduct", {"steps": [STEP], "wait": 0})
    assert accepted.status_code == 202, accepted.text
    return procedure


RESUMED_BY = {
    "run": "resume_run",
    "procedure": "conduct_from_procedure",
    "queue": "resume_queue",
    "schedule": "resume_schedule",
}


def item(kind: str, id: str, name: str, *, already: bool = False, run_id: str | None = None) -> dict[str, Any]:
    told = {"kind": kind, "id": id, "name": name, "already": already, "run_id": run_id}
    return {**told, "resumed_by": RESUMED_BY[kind] if run_id is None else None}


async def test_every_live_run_and_conduct_is_held_and_a_repeat_says_that_they_are(line: Beamline) -> None:
    run = await line.start_run()
    aligned = await conduct(line.api, line.camera_id)
    by_hand = await line.api.create("/procedures", {"name": "By hand", "kind": "alignment"})
    await line.api.execute(f"/procedures/{by_hand}/start")
    expected = [item("run", run, "Load step 1"), item("procedure", aligned, "Align")]
    message = "Held or asked to hold: 1 run, 1 procedure; nothing left in scope starts by itself."
    assert await hold(line.api) == {"message": message, "held": expected, "refused": [], "still_armed": []}
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Held"
    assert (await line.api.get(f"/procedures/{aligned}/conduct")).json()["pending_request"] == "Hold"
    assert (await line.api.get(f"/procedures/{by_hand}")).json()["status"] == "Running"
    recorded = [(await history(line.api, path))[-1] for path in (f"/runs/{run}", f"/procedures/{aligned}")]
    assert [(one["event_type"], one["payload"]["reason"], one["command_name"]) for one in recorded] == [
        ("RunHeld", WHY["reason"], "HoldRun"),
        ("ProcedureHoldRequested", WHY["reason"], "HoldProcedure"),
    ]
    again = await hold(line.api)
    message = "Nothing further was held; nothing left in scope starts by itself; held before: 1 run, 1 procedure."
    held_before = [{**one, "already": True} for one in expected]
    assert again == {"message": message, "held": held_before, "refused": [], "still_armed": []}
    assert (await history(line.api, f"/runs/{run}"))[-1] == recorded[0]


async def test_a_phase_is_held_with_its_run_and_goes_on_with_it(line: Beamline) -> None:
    run = await line.start_run()
    phase = await conduct(line.api, line.camera_id, parent_run_id=run)
    answer = await hold(line.api)
    held = answer["held"]
    assert answer["message"] == "Held or asked to hold: 1 run; nothing left in scope starts by itself."
    assert held == [item("run", run, "Load step 1"), item("procedure", phase, "Align", run_id=run)]
    shown = (await line.api.get(f"/procedures/{phase}")).json()
    assert (shown["status"], shown["pending_request"]) == ("Running", None)
    assert all(one["already"] for one in (await hold(line.api))["held"])


async def test_only_what_touches_an_asset_its_parts_or_what_it_is_part_of_is_held(line: Beamline) -> None:
    other = await beamline(line.api)
    here, there = await conduct(line.api, line.camera_id), await conduct(line.api, other.camera_id)
    run = await other.start_run()
    assert (await hold(line.api, asset_id=line.rotary_id))["held"] == []
    assert (await hold(line.api, asset_id=line.unit_id))["held"] == [item("procedure", here, "Align")]
    whole = await conduct(line.api, line.unit_id)
    assert (await hold(line.api, asset_id=line.rotary_id))["held"] == [item("procedure", whole, "Align")]
    assert {one["id"] for one in (await hold(line.api))["held"]} == {here, there, whole, run}


async def test_what_is_no_request_holds_nothing(line: Beamline) -> None:
    run = await line.start_run()
    assert refusal(await line.api.post("/hold-everything", {})) == (422, "RequestValidationError")
    assert refusal(await line.api.post("/hold-everything", {"reason": "  "})) == (400, "InvalidRunHoldReasonError")
    unknown = await line.api.post("/hold-everything", {**WHY, "asset_id": str(uuid4())})
    assert refusal(unknown) == (404, "AssetNotFoundError")
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"


async def test_a_dry_run_says_what_would_be_held_and_holds_nothing(line: Beamline) -> None:
    run = await line.start_run()
    answer = await line.api.post("/hold-everything", WHY, Prefer="handling=dry-run")
    assert answer.status_code == 200, answer.text
    assert answer.json()["answer"]["held"] == [item("run", run, "Load step 1")]
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"


async def test_a_key_that_is_used_again_is_answered_and_holds_nothing_more(line: Beamline) -> None:
    run = await line.start_run()
    first = await line.api.post("/hold-everything", WHY, Idempotency_Key="hold-1")
    await line.api.execute(f"/runs/{run}/resume")
    again = await line.api.post("/hold-everything", WHY, Idempotency_Key="hold-1")
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"


async def test_what_the_caller_may_not_hold_goes_on_and_is_named(line: Beamline) -> None:
    """A phase is held by itself where its run cannot be."""
    admin, operator = str(uuid4()), str(uuid4())
    run = await line.start_run()
    phase = await conduct(line.api, line.camera_id, parent_run_id=run)
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": admin}
    async with running_api(line.api.database_url, projecting=False, **enforced) as guarded:
        grant = {"conduit_id": str(SYSTEM_CONDUIT), "surface_id": str(SYSTEM_HTTP), "permitted_principal_ids": [operator]}
        permitted = {"name": "Holding", **grant, "permitted_commands": ["HoldEverything", "HoldProcedure"]}
        assert refusal(await guarded.acting_as(operator).post("/hold-everything", WHY)) == (403, "UnauthorizedError")
        await guarded.acting_as(admin).create("/policies", permitted)
        answer = await hold(guarded.acting_as(operator))
        assert answer["held"] == [item("procedure", phase, "Align")]
        (refused,) = answer["refused"]
        detail = "HoldRun was refused. Your policies do not permit this operation here; ask an administrator for it."
        why = {"code": "UnauthorizedError", "detail": detail, "reason": "command_not_permitted"}
        assert refused == {"kind": "run", "id": run, "name": "Load step 1", **why}
    assert (await line.api.get(f"/runs/{run}")).json()["status"] == "Running"
    assert (await line.api.get(f"/procedures/{phase}")).json()["pending_request"] == "Hold"


async def test_conducts_stop_at_their_next_step(conduct_service: ConductService) -> None:
    opened = [await conduct_service.start_conduct(PAUSE, PAUSE) for _ in range(3)]
    for _ in opened:
        await conduct_service.pauses.wait_until_reached()
    held = await hold(conduct_service.operator)
    assert {UUID(one["id"]) for one in held["held"]} == {procedure_id for procedure_id, _ in opened}
    for _ in opened:
        conduct_service.pauses.end()
    for procedure_id, conduct_id in opened:
        result = await conduct_service.result(conduct_id)
        assert (result["held"], result["completed_count"]) == (True, 1)
        assert (await conduct_service.stack.procedure(procedure_id)).status.value == "Held"


async def recipe(api: Api, *steps: dict[str, Any]) -> str:
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await api.create("/capabilities", {"code": f"baton.capability.{uuid4().hex}", "name": "Darks", **shapes})
    return await api.create("/recipes", {"name": "darks", "capability_id": capability, "steps": list(steps)})


def darks(recipe_id: str, *asset_ids: str) -> dict[str, Any]:
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Darks {count}", "target_asset_ids": list(asset_ids)}


async def define_schedule(api: Api, target: dict[str, Any], name: str = "Nightly darks", **calendar: Any) -> str:
    return await api.create("/schedules", {"name": name, "calendar": calendar or {"cron": ["0 2 * * *"]}, "target": target})


async def open_queue(api: Api, asset_id: str | None = None, name: str = "Tonight") -> str:
    """Open the queue of a beamline, or of a new one."""
    root = {"name": f"Beamline {uuid4().hex[:8]}", "tier": "Unit", "facility_code": "facility"}
    return await api.create("/queues", {"name": name, "asset_id": asset_id or await api.create("/assets", root)})


async def add_item(api: Api, queue: str, target: dict[str, Any], **fields: Any) -> str:
    added = await api.post(f"/queues/{queue}/add-items", {"items": [{"title": "Darks", "target": target, **fields}]})
    assert added.status_code == 200, added.text
    (item_id,) = added.json()["item_ids"]
    return str(item_id)


async def held_names(api: Api, **scope: Any) -> list[str]:
    """Rehearse a hold, and return what of queues and schedules it would hold."""
    answer = await api.post("/hold-everything", {**WHY, **scope}, Prefer="handling=dry-run")
    return [one["name"] for one in answer.json()["answer"]["held"] if one["kind"] in ("queue", "schedule")]


async def test_queues_and_schedules_are_held_with_the_reason_and_a_repeat_says_that_they_are(line: Beamline) -> None:
    empty, schedule = await open_queue(line.api), await define_schedule(line.api, darks(await recipe(line.api, STEP)))
    over = await open_queue(line.api)
    await line.api.execute(f"/queues/{over}/retire", {"reason": "over"})
    expected = [item("queue", empty, "Tonight"), item("schedule", schedule, "Nightly darks")]
    answer = await hold(line.api)
    assert (answer["held"], answer["still_armed"]) == (expected, [])
    assert answer["message"] == "Held or asked to hold: 1 queue, 1 schedule; nothing left in scope starts by itself."
    for path in (f"/queues/{empty}", f"/schedules/{schedule}"):
        shown = (await line.api.get(path)).json()
        assert (shown["status"], shown["last_status_reason"]) == ("Held", WHY["reason"])
    assert (await hold(line.api))["held"] == [{**one, "already": True} for one in expected]


async def test_what_may_start_on_an_asset_is_in_its_scope_and_so_is_what_nobody_can_tell(line: Beamline) -> None:
    other = await beamline(line.api)
    quiet, writing = await recipe(line.api, CHECK), await recipe(line.api, STEP)
    await define_schedule(line.api, darks(quiet, line.camera_id), "On the camera")
    await define_schedule(line.api, darks(quiet, other.camera_id), "On another camera")
    await define_schedule(line.api, darks(writing, other.camera_id), "Writes what nobody owns")
    queue = await open_queue(line.api, line.unit_id)
    assert await held_names(line.api, asset_id=line.camera_id) == ["On the camera", "Writes what nobody owns", "Tonight"]
    assert await held_names(line.api, asset_id=line.rotary_id) == ["Writes what nobody owns", "Tonight"]
    owned = {"kind": "EPICS_PV", "value": STEP["address"]}
    await line.api.execute(f"/assets/{line.rotary_id}/add-alternate-identifier", owned)
    await add_item(line.api, queue, darks(quiet, other.camera_id))
    assert await held_names(line.api, asset_id=line.camera_id) == ["On the camera"]
    assert await held_names(line.api, asset_id=line.rotary_id) == ["Writes what nobody owns"]
    await add_item(line.api, queue, darks(quiet, line.camera_id))
    assert await held_names(line.api, asset_id=line.unit_id) == ["On the camera", "Writes what nobody owns", "Tonight"]
    every = ["On the camera", "On another camera", "Writes what nobody owns", "Tonight"]
    assert await held_names(line.api) == every


async def test_a_schedule_that_the_caller_may_not_hold_is_still_armed_and_says_who_can_hold_it(line: Beamline) -> None:
    admin = str(uuid4())
    schedule = await define_schedule(line.api, darks(await recipe(line.api, STEP)))
    queue = await open_queue(line.api)
    people = ("Jo Field", "Mira Okafor", "Somebody who left")
    operator, mira, gone = [await line.api.create("/actors", {"name": name}) for name in people]
    await line.api.execute(f"/actors/{gone}/deactivate")
    crew = await line.api.create("/groups", {"name": "Night crew"})
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": admin}
    async with running_api(line.api.database_url, projecting=False, **enforced) as guarded:
        keeper = guarded.acting_as(admin)
        place = {"conduit_id": str(SYSTEM_CONDUIT), "surface_id": str(SYSTEM_HTTP)}
        own = {"permitted_principal_ids": [operator], "permitted_commands": ["HoldEverything", "HoldQueue"]}
        await keeper.create("/policies", {"name": "Holding", **place, **own})
        theirs = {"permitted_principal_ids": [mira, gone], "permitted_group_ids": [crew]}
        await keeper.create("/policies", {"name": "Keeping", **place, **theirs, "permitted_commands": ["HoldSchedule"]})
        answer = await hold(guarded.acting_as(operator))
        assert answer["held"] == [item("queue", queue, "Tonight")]
        assert [(one["kind"], one["id"], one["code"]) for one in answer["refused"]] == [
            ("schedule", schedule, "UnauthorizedError")
        ]
        (left,) = answer["still_armed"]
        named = ["Mira Okafor", "group Night crew"]
        assert left == {"kind": "schedule", "id": schedule, "name": "Nightly darks", "who_can": named}
        assert answer["message"] == (
            "Held or asked to hold: 1 queue; can still start by itself: "
            f"schedule Nightly darks ({' or '.join(named)} can hold it)."
        )
    assert (await line.api.get(f"/schedules/{schedule}")).json()["status"] == "Active"


async def test_an_agent_reads_first_what_can_still_start(line: Beamline) -> None:
    await open_queue(line.api)
    async with agent(line.api) as client:
        answer = await client.call_tool("hold_everything", WHY)
        assert sentence_of(answer) == "Held or asked to hold: 1 queue; nothing left in scope starts by itself."


async def test_what_was_about_to_begin_does_not_start(conduct_service: ConductService) -> None:
    """Schedules of one interval fire at the same moments: one that was defined later proves that some have passed."""
    api, stack = conduct_service.operator, conduct_service.stack
    async with swept_engine(stack), reacting_queues(stack):
        written = darks(await recipe(api, {**STEP, "address": "a", "value": 7}))
        queue, schedule = await open_queue(api), await define_schedule(api, written, every=10)
        soon = clock() + timedelta(seconds=5)
        waiting = await add_item(api, queue, written, not_before=soon.isoformat())
        await stack.runtime.schedule_reconciler.reconcile_changed()
        answer = await hold(api)
        assert {("queue", queue), ("schedule", schedule)} <= {(one["kind"], one["id"]) for one in answer["held"]}
        fired = (await api.get(f"/schedules/{schedule}")).json()["firing_count"]
        begun = clock()

        proof = darks(await recipe(api, {**STEP, "address": "c", "value": 1}))
        later_queue, later_schedule = await open_queue(api), await define_schedule(api, proof, every=10)
        later = await add_item(api, later_queue, proof, not_before=(soon + timedelta(seconds=1)).isoformat())
        await stack.runtime.schedule_reconciler.reconcile_changed()

        async def proven() -> bool:
            times = [one["scheduled_at"] for one in (await api.get(f"/schedules/{later_schedule}")).json()["last_firings"]]
            after = [time for time in times if datetime.fromisoformat(time) > begun]
            items = (await api.get(f"/queues/{later_queue}/items", status="Completed")).json()["items"]
            return len(after) > 1 and [one["item_id"] for one in items] == [later]

        await until(proven, 120)
        assert (await api.get(f"/schedules/{schedule}")).json()["firing_count"] == fired
        (left,) = (await api.get(f"/queues/{queue}")).json()["items"]
        assert (left["item_id"], left["status"], left["attempt"]) == (waiting, "Waiting", 1)
        assert [value for address, value in stack.control.writes if address == "a"] == [7] * fired


async def test_an_item_that_was_started_and_not_opened_waits_when_its_queue_is_held(conduct_service: ConductService) -> None:
    api, runtime = conduct_service.operator, conduct_service.stack.runtime
    queue = await open_queue(api)
    item_id = await add_item(api, queue, darks(await recipe(api, STEP)))
    start = StartQueueItem(item_id=UUID(item_id), attempt=1)
    await runtime.commands.execute(start, Caller.system(uuid4()), target_id=UUID(queue))
    await hold(api)
    report = await runtime.works.of(QueueRunner).start_next(QueueOrder(queue_id=UUID(queue)))
    assert report.verdict is TurnVerdict.BLOCKED
    (left,) = (await api.get(f"/queues/{queue}")).json()["items"]
    assert (left["status"], left["code"], left["procedure_id"]) == ("Blocked", "QueueItemWithdrawnError", None)


class HoldingCommands(Commands):
    """Commands of a process that is overtaken by a hold of everything right before it opens a conduct."""

    def __init__(self, commands: Commands, api: Api) -> None:
        super().__init__(**{field.name: getattr(commands, field.name) for field in fields(commands)})
        self._api = api

    async def execute(self, command: Command, *given: Any, **named: Any) -> CommandResult:
        if isinstance(command, StartLaunch):
            await hold(self._api)
        return await super().execute(command, *given, **named)


async def test_what_opens_at_the_moment_of_the_hold_is_held_too(conduct_service: ConductService) -> None:
    api, stack = conduct_service.operator, conduct_service.stack
    runtime, overtaken = stack.runtime, HoldingCommands(stack.runtime.commands, api)
    launches = replace(runtime.launches, commands=overtaken)
    pausing = darks(await recipe(api, PAUSE, {**STEP, "address": "b"}))
    queue, schedule = await open_queue(api), await define_schedule(api, pausing)
    await add_item(api, queue, pausing)
    turns = replace(runtime.works.of(QueueRunner), commands=overtaken, launches=launches)
    await turns.start_next(QueueOrder(queue_id=UUID(queue)))
    running = (await api.get(f"/queues/{queue}")).json()["items"][0]["procedure_id"]
    await api.execute(f"/schedules/{schedule}/resume")
    due = DueFiring(schedule_id=UUID(schedule), scheduled_at=clock(), started_at=clock())
    await replace(runtime.works.of(Firings), launches=launches).open(due)
    for procedure_id in (UUID(running), due.procedure_id()):

        async def is_held(procedure_id: UUID = procedure_id) -> bool:
            conduct_service.pauses.end()
            return (await stack.procedure(procedure_id)).status.value == "Held"

        await until(is_held)
        assert (await stack.procedure(procedure_id)).last_status_reason == WHY["reason"]
