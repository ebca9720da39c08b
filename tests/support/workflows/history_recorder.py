"""Records the histories that every change is held against: `python -m tests.support.workflows.history_recorder [form ...]`.

A form is one way that a workflow can go. Its history is what a running workflow looks like to the next release, which must
be able to replay it. What earlier code recorded stays: a form that is recorded again is kept beside it, by the next number.
"""

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from baton.activities.bindings import declared_workflows
from baton.application.agents.model_agents import LeaseResult
from baton.application.caller import Caller
from baton.application.queues import QueueRunner
from baton.application.settings import Settings
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.domain.agent.caution_proposal import ProposalOrder
from baton.domain.agent.conclusions import ConclusionOrder
from baton.domain.agent.rule_agents import DuePage
from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure, ConductUntilConverged
from baton.domain.conduct.control_signals import ReadSignals
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import conduct_workflow_id
from baton.domain.conduct.run_messages import run_workflow_id
from baton.domain.conduct.steered_conduct import (
    AdviseProcedure,
    ConductUntilAdvised,
    ConductUntilAdvisedFrom,
    GetProcedureSteering,
)
from baton.domain.data.attestation import AttestDistributions
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus, RegisterEnclosure
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.procedure.procedure import ProcedureStatus
from baton.domain.queue.messages import queue_workflow_id
from baton.domain.recipe.recipe import DeprecateRecipe
from baton.domain.step.results import Measured
from baton.infrastructure.compute.in_memory import SimulatedCompute, SimulatedOutcome
from baton.infrastructure.plugins import ActionRegistry
from baton.infrastructure.postgres.migrate import migrate
from baton.infrastructure.temporal.engine import connect
from baton.infrastructure.wall_clock import clock, new_id
from baton.workflows.activity_stubs import MintRequest
from tests.support.databases import with_database
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.queue_cases import QueueCase, open_queue
from tests.support.workflows.run_cases import PLANT, build_run_stack
from tests.support.workflows.schedule_cases import darks_target, define_schedule, recipe
from tests.support.workflows.step_json import (
    action,
    capture,
    captured_value,
    check,
    compute,
    criterion,
    setpoint,
    steered_value,
)

HISTORIES = Path(__file__).parents[2] / "workflows" / "histories"
NEUTRAL = "worker@facility"
"""Whose identity stands in the files instead of this machine's."""
FEW_EVENTS = {"limit.historyCount.suggestContinueAsNew": "25"}
"""A server that suggests to go on in a fresh history when there are so many events."""

GATE = check("gate", 1, timeout=60)
CLOSING = [setpoint("shutter", 0)]
FOCUS = [setpoint("a", steered_value("focus")), capture("sharpness", "sharpness")]
SEARCH = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": 0.0, "upper": 2.0}]},
    "objective_capture_name": "sharpness",
    "wait": 60,
}
ASKING = {**SEARCH, "decide": {"substrate": "caller"}}

Form = Callable[[ConductStack], Awaitable[str]]
FORMS: dict[str, Form] = {}
"""The ways a conduct, of a procedure or of a run, can go; each answers the id of its workflow."""


def form(conduct: Form) -> Form:
    FORMS[conduct.__name__.replace("_", "-")] = conduct
    return conduct


@form
async def conduct_flat(stack: ConductStack) -> str:
    steps = [setpoint("a", 1), check("a", 1), capture("b", "seen"), setpoint("c", captured_value("seen")), action("expose")]
    id, result = await stack.conduct_steps(steps)
    assert result["succeeded"], result
    return conduct_workflow_id(id)


@form
async def conduct_with_a_closed_gate(stack: ConductStack) -> str:
    enclosure = await stack.do(RegisterEnclosure(name="Hutch", facility_code="facility"))
    enclosure_id = UUID((enclosure.body or {})["enclosure_id"])
    await observe_enclosure(stack, enclosure_id, "Permitted")
    place = {"tier": "Unit", "facility_code": "facility", "located_in_enclosure_id": enclosure_id}
    asset = await stack.do(RegisterAsset(name="Stage", **place))
    targets = [(asset.body or {})["asset_id"]]
    id = await stack.register_from_recipe(
        [setpoint("a", 1), setpoint("a", 2), GATE, setpoint("a", 3)], target_asset_ids=targets
    )
    await stack.do(ConductProcedure(wait=0), id)
    await until(lambda: has_rows(stack, id, 4))
    await observe_enclosure(stack, enclosure_id, "NotPermitted")
    await stack.plant.write("gate", 1)
    await wait_for_status(stack, id, ProcedureStatus.HELD)
    return conduct_workflow_id(id)


async def observe_enclosure(stack: ConductStack, enclosure_id: UUID, status: str) -> None:
    monitor = {"source_kind": "ProcessVariable", "source_id": "PSS:SEARCHED"}
    command = ObserveEnclosureStatus(new_status=status, reason="search", monitor_ref=monitor)
    await stack.runtime.commands.execute(command, Caller.system(new_id()), target_id=enclosure_id)


async def has_rows(stack: ConductStack, id: UUID, count: int) -> bool:
    return len(await stack.ledger(id)) >= count


@form
async def conduct_closing(stack: ConductStack) -> str:
    """A step fails, what is to be closed is closed, and the procedure is aborted."""
    id = await stack.register_from_recipe([setpoint("a", 1), check("a", 2), setpoint("c", 1)], CLOSING)
    result = await stack.conduct(ConductProcedure(wait=60), id)
    assert result["failure"]["error_class"] == "CheckFailedError", result
    return conduct_workflow_id(id)


@form
async def conduct_held(stack: ConductStack) -> str:
    return conduct_workflow_id(await hold_gated_conduct(stack, [setpoint("a", 1), GATE, setpoint("c", 1)]))


@form
async def conduct_resumed(stack: ConductStack) -> str:
    id = await hold_gated_conduct(stack, [setpoint("a", 1), GATE, setpoint("c", 1)])
    result = await stack.conduct(ConductFromProcedure(wait=60), id)
    assert result["succeeded"], result
    return conduct_workflow_id(id)


@form
async def conduct_aborted(stack: ConductStack) -> str:
    id = await start_gated_conduct(stack, [setpoint("a", 1), GATE])
    await stack.do(AbortProcedure(reason="wrong sample"), id)
    await wait_for_status(stack, id, ProcedureStatus.ABORTED)
    return conduct_workflow_id(id)


@form
async def conduct_cancelled(stack: ConductStack) -> str:
    """Cancelled in the engine, by somebody who did not ask the service."""
    id = await start_gated_conduct(stack, [setpoint("a", 1), GATE, setpoint("c", 1)], CLOSING)
    await stack.client.get_workflow_handle(conduct_workflow_id(id)).cancel()
    await wait_for_status(stack, id, ProcedureStatus.ABORTED)
    return conduct_workflow_id(id)


@form
async def conduct_closing_only(stack: ConductStack) -> str:
    """What was held is aborted, and only its closing steps are done."""
    id = await hold_gated_conduct(stack, [setpoint("a", 1), GATE], CLOSING)
    await stack.do(AbortProcedure(reason="not needed any more", run_closing=True), id)
    await wait_for_status(stack, id, ProcedureStatus.ABORTED)
    return conduct_workflow_id(id)


@form
async def conduct_waiting(stack: ConductStack) -> str:
    """Still at a step when the next release comes."""
    return conduct_workflow_id(await start_gated_conduct(stack, [setpoint("a", 1), GATE, setpoint("c", 1)]))


@form
async def conduct_converged(stack: ConductStack) -> str:
    steps = [compute("find-offset", capture_name="offset"), setpoint("a", captured_value("offset"))]
    id = await stack.register_from_recipe(steps, CLOSING)
    command = ConductUntilConverged(convergence_capture_name="offset", criterion=criterion(0, 0.5), wait=60)
    result = await stack.conduct(command, id)
    assert result["iteration_count"] == 2, result
    return conduct_workflow_id(id)


@form
async def conduct_advised(stack: ConductStack) -> str:
    id = await stack.register_from_recipe(FOCUS, CLOSING)
    decide = {"substrate": "grid_walk", "points_per_axis": 2}
    result = await stack.conduct(ConductUntilAdvised(**SEARCH, decide=decide), id)
    assert result["succeeded"], result
    return conduct_workflow_id(id)


@form
async def conduct_advised_by_caller(stack: ConductStack) -> str:
    """A search that somebody outside steers, held while it waits and taken up again."""
    id = await stack.register_from_recipe(FOCUS)
    await stack.do(ConductUntilAdvised(**{**ASKING, "wait": 0}), id)
    await advise(stack, id, measure(0.5))
    await wait_until_asked(stack, id)
    await stack.do(HoldProcedure(reason="shift change"), id)
    await wait_for_status(stack, id, ProcedureStatus.HELD)
    await stack.do(ConductUntilAdvisedFrom(**{**ASKING, "wait": 0}), id)
    await advise(stack, id, measure(1.5))
    await advise(stack, id, {"verdict": "Stop"})
    await wait_for_status(stack, id, ProcedureStatus.COMPLETED)
    return conduct_workflow_id(id)


@form
async def conduct_of_a_held_run(stack: ConductStack) -> str:
    """A phase that waits for its run to be resumed."""
    series = await (await build_run_stack(stack)).start()
    phase = await series.recipe_phase([setpoint("a", 1), GATE, setpoint("c", 1)], CLOSING)
    await stack.do(ConductProcedure(wait=0), phase)
    await series.wait_for_ledger_rows(phase, 2)
    await series.give("hold_run", reason="beam dump")
    await stack.plant.write("gate", 1)

    async def is_waiting() -> bool:
        async with stack.runtime.pool.connection() as connection:
            found = await connection.execute("SELECT waiting_for FROM conduct_progress WHERE procedure_id = %s", [phase])
            return await found.fetchone() == ("run",)

    await until(is_waiting)
    await series.give("resume_run")
    await wait_for_status(stack, phase, ProcedureStatus.COMPLETED)
    return conduct_workflow_id(phase)


@form
async def conduct_closing_with_its_run(stack: ConductStack) -> str:
    """Done, but not closed before its run is resumed."""
    series = await (await build_run_stack(stack)).start()
    phase = await series.recipe_phase([GATE], CLOSING)
    await series.conduct(phase, wait=0)
    await series.wait_until_conducted(phase)
    await series.give("hold_run", reason="beam dump")
    await stack.plant.write("gate", 1)
    await series.wait_until_waiting_for("run")
    await series.give("resume_run")
    assert (await series.result())["succeeded"]
    return conduct_workflow_id(phase)


@form
async def conduct_run_flat(stack: ConductStack) -> str:
    """Two phases, and a hold between them."""
    series = await (await build_run_stack(stack)).start()
    first, second = await series.recipe_phase([GATE]), await series.recipe_phase([setpoint("c", 1)], CLOSING)
    await series.conduct(first, second, wait=0)
    await series.wait_until_conducted(first)
    await series.give("hold_run", reason="beam dump")
    await stack.plant.write("gate", 1)
    await series.wait_until_waiting_for("run")
    await series.give("resume_run")
    assert (await series.result())["succeeded"]
    return run_workflow_id(series.run_id)


@form
async def conduct_run_failed(stack: ConductStack) -> str:
    series = await (await build_run_stack(stack)).start()
    first, second = await series.recipe_phase([check("a", 5)]), await series.recipe_phase([setpoint("c", 1)])
    executed = await series.conduct(first, second)
    assert not (executed.body or {})["succeeded"], executed.body
    return run_workflow_id(series.run_id)


@form
async def read_signals(stack: ConductStack) -> str:
    read = await stack.ask(ReadSignals(addresses=("a", "nowhere")))
    assert [one.error and one.error.code for one in read.signals] == [None, "ControlNotConnectedError"], read
    (found,) = [one async for one in stack.client.list_workflows("WorkflowType = 'read-signals'")]
    return found.id


@form
async def task(stack: ConductStack) -> str:
    """A sweep over copies, of which there are none."""
    swept = await stack.do(AttestDistributions(wait=60))
    assert swept.status == 200, swept
    (found,) = [one async for one in stack.client.list_workflows("WorkflowType = 'task'")]
    return found.id


@form
async def schedule_firing(stack: ConductStack) -> str:
    """By its calendar; it lasts until its conduct has ended."""
    table = await define_schedule(stack, darks_target(await recipe(stack, [setpoint("a", 1)])))
    await table.fire_now()
    (fired,) = await table.outcomes(1)
    await wait_for_status(stack, fired.procedure_id, ProcedureStatus.COMPLETED)
    (firing,) = await table.firings()
    return str(firing)


@form
async def schedule_firing_refused(stack: ConductStack) -> str:
    """On request, of a recipe that is not in service any more."""
    recipe_id = await recipe(stack, [setpoint("a", 1)])
    table = await define_schedule(stack, darks_target(recipe_id))
    await stack.do(DeprecateRecipe(reason="outdated"), recipe_id)
    firing = await table.trigger()
    await table.outcomes(1)
    return firing


@form
async def queue_flat(stack: ConductStack) -> str:
    """Two items, one after the other, and one that is refused between them."""
    queue = await open_queue(stack, on_failure="continue")
    deprecated, fine = await recipe(stack, [setpoint("a", 2)]), await recipe(stack, [setpoint("a", 1)])
    targets = [darks_target(id) for id in (fine, deprecated, fine)]
    await queue.give("hold_queue", reason="not yet")
    await queue.add(*targets)
    await stack.do(DeprecateRecipe(reason="outdated"), deprecated)
    await queue.give("resume_queue")
    return await follow_queue(stack, queue)


@form
async def queue_blocked(stack: ConductStack) -> str:
    """An item that waits for its time, another one that waits for an asset, and news while it does."""
    queue = await open_queue(stack)
    asset_id = (await queue.state()).asset_id
    await stack.plant.write("gate", 0)
    rival = await stack.register_from_recipe([GATE], target_asset_ids=[asset_id])
    await stack.do(ConductProcedure(wait=0), rival)
    simple = await recipe(stack, [setpoint("a", 1)])
    await queue.add(darks_target(simple), not_before=clock() + timedelta(seconds=1))
    (blocked,) = await queue.add(darks_target(simple, target_asset_ids=[asset_id]))
    await start_with_news(stack, queue)
    await queue.wait_for(blocked, "Blocked")
    await stack.plant.write("gate", 1)
    await wait_for_status(stack, rival, ProcedureStatus.COMPLETED)
    return await follow_queue(stack, queue)


async def follow_queue(stack: ConductStack, queue: QueueCase) -> str:
    """Tell a queue its news, wait until it has nothing left to do, and return the id of its workflow."""
    await start_with_news(stack, queue)
    await queue.wait_until_idle()
    await queue.workflow.result()
    return queue_workflow_id(queue.id)


async def conduct_continued(stack: ConductStack) -> str:
    """So many steps that it goes on in a fresh history."""
    id, result = await stack.conduct_steps([setpoint("a", value) for value in range(9)])
    assert result["succeeded"], result
    return conduct_workflow_id(id)


async def start_gated_conduct(stack: ConductStack, steps: list[Any], closing: list[Any] | None = None) -> UUID:
    """A conduct that waits at the step before which its ledger has two rows."""
    await stack.plant.write("gate", 0)
    id = await stack.register_from_recipe(steps, closing or ())
    await stack.do(ConductProcedure(wait=0), id)

    async def has_two_rows() -> bool:
        return len(await stack.ledger(id)) >= 2

    await until(has_two_rows)
    return id


async def hold_gated_conduct(stack: ConductStack, steps: list[Any], closing: list[Any] | None = None) -> UUID:
    """A conduct that was held at its gate."""
    id = await start_gated_conduct(stack, steps, closing)
    await stack.do(HoldProcedure(reason="shift change"), id)
    await stack.plant.write("gate", 1)
    await wait_for_status(stack, id, ProcedureStatus.HELD)
    return id


async def wait_until_asked(stack: ConductStack, id: UUID) -> int:
    """The pass for which a search waits for advice, once it does."""

    async def waiting_iteration() -> int | None:
        index: int | None = (await stack.ask(GetProcedureSteering(), id)).iteration_index
        return index

    index: int = await until(waiting_iteration)
    return index


async def advise(stack: ConductStack, id: UUID, advice: dict[str, Any]) -> None:
    await stack.do(AdviseProcedure(iteration_index=await wait_until_asked(stack, id), advice=advice), id)


def measure(at: float) -> dict[str, Any]:
    return {"verdict": "Measure", "next_point": {"focus": at}}


async def wait_for_status(stack: ConductStack, id: UUID, status: ProcedureStatus) -> None:
    async def has_reached() -> bool:
        return (await stack.procedure(id)).status is status

    await until(has_reached)


async def collect_action(control: Any, time: Any, params: Any) -> dict[str, Any]:
    return {"frames": 1}


def offsets(*values: float) -> SimulatedCompute:
    """A program that finds these offsets, one after the other."""

    def simulated_finding(value: float) -> Callable[[Any], SimulatedOutcome]:
        measured = Measured(name="offset", value=value, kind="Scalar", units="px", quality="Good")
        return lambda job: SimulatedOutcome(measurements=(measured,))

    program = SimulatedCompute()
    program.seed(("find-offset",), *map(simulated_finding, values))
    return program


async def simple_workflows(client: Client, keep: Callable[[str, WorkflowHandle[Any, Any]], Awaitable[None]]) -> None:
    """The workflows that are told an id and know nothing else; those who do their work are stood in for."""
    batches = [["0197a100-0000-7000-8000-0000000000a1", "0197a100-0000-7000-8000-0000000000a2"], []]

    @activity.defn(name="mint_sweep_candidates")
    async def candidates(sweep_id: str) -> list[str]:
        return batches.pop(0)

    @activity.defn(name="mint_sweep_asset")
    async def mint(request: MintRequest) -> None: ...

    @activity.defn(name="mint_sweep_finish")
    async def finish(sweep_id: str) -> None: ...

    @activity.defn(name="sign_calibration_publication")
    async def sign(receipt_id: str) -> bool:
        return True

    @activity.defn(name="send_calibration_publication")
    async def send(receipt_id: str) -> bool:
        return receipt_id.endswith("1")

    @activity.defn(name="record_calibration_publication")
    async def record(receipt_id: str) -> None: ...

    async with Worker(
        client,
        task_queue="recording",
        workflows=declared_workflows(),
        activities=[candidates, mint, finish, sign, send, record],
    ):
        for name, kind, id in (
            ("mint-sweep", "mint-sweep", "0197a100-0000-7000-8000-0000000000b0"),
            ("calibration-publication", "calibration-publication", "0197a100-0000-7000-8000-0000000000c1"),
            ("calibration-publication-refused", "calibration-publication", "0197a100-0000-7000-8000-0000000000c2"),
        ):
            handle = await client.start_workflow(kind, id, id=f"{kind}:{id}", task_queue="recording")
            await handle.result()
            await keep(name, handle)


async def start_with_news(stack: ConductStack, queue: QueueCase) -> None:
    """Start the workflow of a queue as an event does."""
    job = await stack.runtime.works.of(QueueRunner).job(queue.id)
    assert job is not None
    await stack.runtime.engine.start(replace(job, news=True))


async def proposal_workflows(client: Client, keep: Callable[[str, WorkflowHandle[Any, Any]], Awaitable[None]]) -> None:
    """The workflow of a proposal that somebody approves, and of one whose time is over; who settles it is stood in for."""
    approved, expired = (f"0197a100-0000-7000-8000-0000000000d{number}" for number in "12")
    seconds_left: dict[str, list[float | None]] = {approved: [86400.0, None], expired: [0.2, None]}

    @activity.defn(name="settle_proposal")
    async def settle(proposal_id: str) -> float | None:
        return seconds_left[proposal_id].pop(0)

    async with Worker(client, task_queue="recording", workflows=declared_workflows(), activities=[settle]):
        for name, id in (("proposal", approved), ("proposal-expired", expired)):
            opened = {"id": f"proposal:{id}", "task_queue": "recording", "start_signal": "news"}
            handle = await client.start_workflow("proposal", id, **opened)
            if id == approved:
                await until(lambda handle=handle: is_waiting(handle))
                await handle.signal("news")
            await handle.result()
            await keep(name, handle)


async def is_waiting(handle: WorkflowHandle[Any, Any]) -> bool:
    """Tell whether a workflow has set a timer."""
    return any(event.HasField("timer_started_event_attributes") for event in (await handle.fetch_history()).events)


async def agent_workflows(client: Client, keep: Callable[[str, WorkflowHandle[Any, Any]], Awaitable[None]]) -> None:
    """The workflows of agents; those who do their work are stood in for."""
    first, second = (UUID(f"0197a100-0000-7000-8000-0000000000a{number}") for number in "12")

    @activity.defn(name="take_lease")
    async def take_lease(order: ConclusionOrder) -> LeaseResult:
        return LeaseResult.HELD if order.agent_id == first else LeaseResult.LOST

    @activity.defn(name="conclude")
    async def conclude(order: ConclusionOrder) -> bool:
        return True

    @activity.defn(name="due_clearances")
    async def due_page(after: str | None) -> DuePage:
        return DuePage(clearance_ids=(first,), next_cursor="more") if after is None else DuePage(clearance_ids=(second,))

    def silent_port(name: str) -> Any:
        @activity.defn(name=name)
        async def do_nothing(*given: Any) -> None: ...

        return do_nothing

    others = ("write_up_debrief", "regenerate_debrief", "promote_caution", "supervise_runs", "expire_clearance")
    ids = {"run_id": second, "terminal_event_id": second, "correlation_id": second}
    proposal = ProposalOrder(proposal_decision_id=first, event_id=second, agent_id=first, correlation_id=second)
    forms: dict[str, tuple[str, list[Any]]] = {
        "debrief": ("debrief", [ConclusionOrder(kind="RunDebriefer", agent_id=first, **ids)]),
        "debrief-lost": ("debrief", [ConclusionOrder(kind="RunDebriefer", agent_id=second, **ids)]),
        "draft-caution": ("draft-caution", [ConclusionOrder(kind="CautionDrafter", agent_id=first, **ids)]),
        "regenerate-debrief": ("regenerate-debrief", [str(first)]),
        "promote-caution": ("promote-caution", [proposal]),
        "supervise-runs": ("supervise-runs", []),
        "expire-clearances": ("expire-clearances", []),
        "expire-clearance": ("expire-clearance", [str(first)]),
    }
    activities = [take_lease, conclude, due_page, *map(silent_port, others)]
    async with Worker(client, task_queue="recording", workflows=declared_workflows(), activities=activities):
        for name, (kind, told) in forms.items():
            handle = await client.start_workflow(kind, args=told, id=f"recorded:{name}", task_queue="recording")
            await handle.result()
            await keep(name, handle)


def paths_of(name: str) -> Iterator[Path]:
    """Where recordings of a form are kept, the earliest first."""
    yield HISTORIES / f"{name}.json"
    yield from (HISTORIES / f"{name}-{number}.json" for number in count(2))


async def record(names: set[str], directory: Path) -> None:
    """Run each form on servers of its own and keep what the engine says of it."""
    here = f"{os.getpid()}@{socket.gethostname()}"

    async def keep_history(name: str, handle: WorkflowHandle[Any, Any]) -> None:
        if not names or name in names:
            history = (await handle.fetch_history()).to_json().replace(here, NEUTRAL)
            events = [json.dumps(event, separators=(",", ":")) for event in json.loads(history)["events"]]
            path = next(path for path in paths_of(name) if not path.exists())
            path.write_text('{"events":[\n' + ",\n".join(events) + "\n]}\n")
            print(f"{path.stem}: {len(events)} events")

    async def conduct(name: str, act: Form, stack: ConductStack) -> None:
        if names and name not in names:
            return
        id = await act(stack)
        latest = await stack.client.get_workflow_handle(id).describe()
        first = latest.raw_description.workflow_execution_info.first_run_id
        if act is not FORMS.get("conduct-waiting"):
            await stack.client.get_workflow_handle(id).result()
        if act is conduct_continued:
            await keep_history(f"{name}-from", stack.client.get_workflow_handle(id, run_id=first))
        await keep_history(name, stack.client.get_workflow_handle(id, run_id=latest.run_id))

    numbers = count(1)

    def database(postgres: EmbeddedPostgres) -> str:
        name = f"form_{next(numbers)}"
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE forms STRATEGY file_copy")
        return with_database(postgres.url, name)

    plant: dict[str, Any] = {**PLANT, "actions": ActionRegistry({"expose": collect_action})}
    known = {"headless": True, "search_attributes": SEARCH_ATTRIBUTES}
    with EmbeddedPostgres(directory / "postgres") as postgres:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE forms")
        migrate(with_database(postgres.url, "forms"))
        with EmbeddedTemporal(directory / "temporal", **known) as temporal:
            client = await connect(Settings(temporal_address=temporal.address))
            await simple_workflows(client, keep_history)
            await proposal_workflows(client, keep_history)
            await agent_workflows(client, keep_history)
            for name, act in FORMS.items():
                program = offsets(3.2, 0.3)
                async with open_conduct_stack(database(postgres), temporal.address, compute=program, **plant) as stack:
                    await conduct(name, act, stack)
        with EmbeddedTemporal(directory / "short", settings=FEW_EVENTS, **known) as temporal:
            async with open_conduct_stack(database(postgres), temporal.address, **plant) as stack:
                await conduct("conduct-continued", conduct_continued, stack)


if __name__ == "__main__":
    HISTORIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(record(set(sys.argv[1:]), Path(place)))
