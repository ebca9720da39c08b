"""Checks of what Temporal tells: its namespace, attributes and workers, the workflows of unfinished work, and calendars."""

from collections.abc import Awaitable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as requests
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from baton.application.agents.agent_schedules import agent_schedules
from baton.application.ports import Calendars
from baton.application.schedules.schedule_reconciliation import entry_of
from baton.application.settings import Settings
from baton.cli.doctor import CheckResult, ok, warning, wrong
from baton.cli.doctor.database import remedy_for_unled
from baton.cli.startup import one_line
from baton.domain.conduct.progress import LOST_CONDUCTS
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import LIVE_RUNS, RUNNING, Run
from baton.domain.schedule.schedule import RETIRED, Schedule
from baton.infrastructure.postgres.leadership import SCHEDULES_LOCK, is_led
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.postgres.projections import read_states
from baton.infrastructure.temporal.attributes import NAMES, RPC_TIMEOUT, creation_command, missing_attributes
from baton.infrastructure.temporal.calendars import TemporalCalendars
from baton.infrastructure.temporal.engine import TASK_QUEUE, stall_reason
from baton.infrastructure.wall_clock import clock

T = TypeVar("T")
START_WORKER = "start `baton worker`, or `baton up`"
WORKER_LOST_SECONDS = 75.0  # a worker polls at least once a minute
UNSTARTED_SECONDS, SILENT_SECONDS = 15.0, 60.0  # a conduct waits too long to be begun; is silent enough to be truncated
MAX_LISTED = 5
NOT_OPEN = "no workflow is open"
LIVE = """
SELECT what, workflow_id, CASE WHEN stalled_at > coalesce(heartbeat_at, started_at) THEN 'Stalled' ELSE phase END,
    extract(epoch FROM clock_timestamp() - started_at)::float,
    extract(epoch FROM clock_timestamp() - coalesce(heartbeat_at, started_at))::float
FROM (
    SELECT 'procedure ' || procedure_id AS what, 'conduct:' || procedure_id AS workflow_id, phase, started_at, heartbeat_at,
        stalled_at
    FROM conduct_progress
    UNION ALL
    SELECT 'run ' || run_id, 'conduct-run:' || run_id, phase, started_at, heartbeat_at, stalled_at FROM run_conduct_progress
) conduct
WHERE phase <> 'Ended' ORDER BY started_at
"""
MEND = "read the worker's log and mend that"
TAKE_UP = "look at the equipment, then take it up with conduct_from_procedure, or end it with abort_procedure or abort_run"
READ = "look again in a moment, and if they stay so read the worker's log for `schedule_not_kept` and `schedules_not_kept`"


async def examine_server(client: Client) -> CheckResult:
    """Tell which server answers."""
    info = await client.workflow_service.get_system_info(requests.GetSystemInfoRequest(), timeout=RPC_TIMEOUT)
    return ok(f"Temporal {info.server_version} answers at {client.service_client.config.target_host}.")


async def examine_namespace(client: Client) -> CheckResult:
    """Check that the namespace exists."""
    request = requests.DescribeNamespaceRequest(namespace=client.namespace)
    described = await _answer_or_none(client.workflow_service.describe_namespace(request, timeout=RPC_TIMEOUT))
    if described is None:
        remedy = f"run `temporal operator namespace create --namespace {client.namespace}`, or correct TEMPORAL_NAMESPACE"
        return wrong(f"There is no namespace {client.namespace}; {remedy}.")
    days = described.config.workflow_execution_retention_ttl.ToTimedelta() / timedelta(days=1)
    return ok(f"The namespace {client.namespace} is there and keeps finished workflows for {days:g} days.")


async def examine_attributes(client: Client) -> CheckResult:
    """Check that the search attributes exist."""
    if lacking := await missing_attributes(client):
        remedy = f"run `{creation_command(client.namespace, lacking)}`"
        missing = f"The search attributes {', '.join(lacking)} are missing"
        return warning(f"{missing}, so nobody finds workflows by them; {remedy}.")
    return ok(f"All {len(NAMES)} search attributes are there.")


async def examine_workers(client: Client, settings: Settings | None) -> CheckResult:
    """Check that a worker polls and is given new workflows."""
    polled: dict[str, datetime] = {}
    queue = TaskQueue(name=TASK_QUEUE)
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        request = requests.DescribeTaskQueueRequest(namespace=client.namespace, task_queue=queue, task_queue_type=kind)
        described = await client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
        for poller in described.pollers:
            at = poller.last_access_time.ToDatetime(tzinfo=UTC)
            polled[poller.identity] = max(at, polled.get(poller.identity, at))
    if not polled:
        return wrong(f"No worker asks for work on the task queue {TASK_QUEUE}; {START_WORKER}.")
    ages = {identity: max(0.0, (datetime.now(UTC) - at).total_seconds()) for identity, at in polled.items()}
    text = ", ".join(f"{identity} {age:.0f} s ago" for identity, age in sorted(ages.items(), key=lambda item: item[1]))
    if min(ages.values()) > WORKER_LOST_SECONDS:
        return wrong(f"Every worker of the task queue {TASK_QUEUE} is lost (last polls: {text}); {START_WORKER}.")
    deployment = settings.worker_deployment_name if settings else None
    if deployment and (idle := await _idle_deployment(client, deployment)) is not None:
        return idle
    return ok(f"Workers poll the task queue {TASK_QUEUE} (last polls: {text}).")


async def _idle_deployment(client: Client, name: str) -> CheckResult | None:
    """Return what keeps the workers of a named deployment from being given new workflows."""
    request = requests.DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    known = await _answer_or_none(client.workflow_service.describe_worker_deployment(request, timeout=RPC_TIMEOUT))
    if known is None:
        return wrong(f"No worker of the deployment {name} has asked for work; start one with WORKER_DEPLOYMENT_NAME={name}.")
    if known.worker_deployment_info.routing_config.current_deployment_version.build_id:
        return None
    options = f"--namespace {client.namespace} --deployment-name {name} --build-id"
    remedy = f"run `temporal worker deployment set-current-version {options}` with one"
    return wrong(f"The deployment {name} has no current build, so nobody is given new workflows; {remedy}.")


async def _answer_or_none(call: Awaitable[T]) -> T | None:
    """Return the answer of the server, or None where it does not know what is asked for."""
    try:
        return await call
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def examine_conducts(connection: Connection, client: Client | None) -> CheckResult:
    """Check that every live conduct was taken up and reports; the engine, if there is one, tells why not."""
    live = await (await connection.execute(LIVE)).fetchall()
    untaken, silent, stalled = [], [], []
    for what, workflow_id, phase, age, silence in live:
        if phase == "Opened" and age > UNSTARTED_SECONDS:
            untaken.append(f"{what} (opened {age:.0f} s ago)")
        elif phase == "Stalled":
            why = await workflow_trouble(client, workflow_id)
            stalled.append(f"{what} ({why})" if why else what)
        elif phase != "Opened" and silence > SILENT_SECONDS:
            why = await workflow_trouble(client, workflow_id)
            silent.append(f"{what} (silent for {silence:.0f} s{f', {why}' if why else ''})")
    end = "end it with truncate_procedure or abort_run"
    limit = "see that one runs, because after CONDUCT_RESTART_LIMIT_SECONDS it is given up"
    remedies = [
        (untaken, f"No worker has taken up the conduct of {{}}; {limit}."),
        (silent, f"Nothing is heard of the conduct of {{}}; see that a worker and Temporal run and it continues, or {end}."),
        (stalled, f"The conduct of {{}} fails to go on again and again; {MEND}, or {end}."),
        (await load_lost(connection), f"The engine does not know of the conduct of {{}} any more; {TAKE_UP}."),
    ]
    if sentences := [sentence.format(shorten(conducts)) for conducts, sentence in remedies if conducts]:
        return wrong(" ".join(sentences))
    return ok(f"{len(live)} live, each heard of." if live else "No conduct is live, and none was lost.")


async def load_lost(connection: Connection) -> list[str]:
    """Return the runs and procedures that are Running on the record alone, since the engine lost their conducts."""
    lost = []
    for kind, look_up in (("Run", LIVE_RUNS), ("Procedure", LOST_CONDUCTS)):
        rows = await (await connection.execute("SELECT stream_id FROM lookups WHERE kind = %s", [look_up])).fetchall()
        async for _, state in read_states(connection, kind, [id for (id,) in rows]):
            assert isinstance(state, Run | Procedure)
            if state.lost and state.status == RUNNING:
                lost.append(f"{kind.lower()} {state.id}")
    return lost


async def examine_work(connection: Connection, client: Client, what: str, workflow: str, query: str) -> CheckResult:
    """Check that a workflow carries each unfinished item of this work and advances."""
    unfinished = await load_ids(connection, query)
    stranded, struggling = [], []
    for id in unfinished:
        why = await workflow_trouble(client, f"{workflow}:{id}")
        if why == NOT_OPEN:
            stranded.append(str(id))
        elif why is not None:
            struggling.append(f"{id} ({why})")
    if stranded:
        remedy = "a running worker starts them within seconds, so see that one runs"
        return wrong(f"No workflow carries the unfinished {what} {shorten(stranded)}; {remedy}.")
    if struggling:
        return wrong(f"{what.capitalize()} do not get on: {shorten(struggling)}; {MEND}.")
    one = what.removesuffix("s")
    return ok(f"{len(unfinished)} unfinished, each carried by a workflow." if unfinished else f"No {one} is unfinished.")


async def workflow_trouble(client: Client | None, workflow_id: str) -> str | None:
    """Return what keeps a workflow from advancing; None where nothing does, or there is no engine to ask."""
    if client is None:
        return None
    described = await _answer_or_none(client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT))
    if described is None or described.status is not WorkflowExecutionStatus.RUNNING:
        return NOT_OPEN
    found = stall_reason(described)
    return None if found is None else one_line(found)


async def load_ids(connection: Connection, query: str) -> list[UUID]:
    """Return the ids that a query selects."""
    return [row[0] for row in await (await connection.execute(query)).fetchall()]


def shorten(texts: Sequence[str]) -> str:
    """Return the first texts as a list, and how many more there are."""
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return ", ".join(texts[:MAX_LISTED]) + more


async def examine_schedules(connection: Connection, client: Client, settings: Settings | None) -> CheckResult:
    """Check that somebody keeps the calendars, and each is as recorded."""
    query = "SELECT schedule_id FROM schedule_standings WHERE NOT removed ORDER BY schedule_id"
    schedule_ids = await load_ids(connection, query)
    turns = [tick for tick in agent_schedules(settings) if tick.on] if settings else []
    if not schedule_ids and not turns:
        return ok("No schedule is defined, and no agent has turns.")
    calendars = TemporalCalendars(lambda: nullcontext(client), clock)
    facility_code = settings.self_facility_code if settings else "facility"
    differing = await differences(connection, calendars, schedule_ids, facility_code, set(await missing_attributes(client)))
    paused = []
    for tick in turns:
        view = await calendars.view(tick.entry)
        if view is None or not view.as_defined:
            differing.append(f"{tick.entry.id} ({'missing' if view is None else 'edited'})")
        elif view.paused:
            paused.append(tick.entry.id)
    counts = ((len(schedule_ids), "schedule"), (len(turns), "agent"))
    what = " and ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts if number)
    if not await is_led(connection, SCHEDULES_LOCK):
        differences_text = f" (not as recorded: {shorten(differing)})" if differing else ""
        remedy = await remedy_for_unled(connection, "schedules")
        return wrong(f"Nobody keeps the engine's calendars of {what}{differences_text}; {remedy}.")
    if paused:
        resume = " and ".join(f"`temporal schedule toggle --unpause --schedule-id {id}`" for id in paused)
        return warning(f"Somebody paused the turns of {' and '.join(paused)} in the engine; let them go on with {resume}.")
    if differing:
        return warning(f"The engine's calendars differ from the record: {shorten(differing)}; {READ}.")
    return ok(f"{what}, the engine's calendar of each as recorded.")


async def differences(
    connection: Connection, calendars: Calendars, schedule_ids: list[Any], facility_code: str, lacking: set[str]
) -> list[str]:
    """Return the schedules whose calendar differs from the record, with how; attributes the engine lacks are ignored."""
    found = []
    async for _, schedule in read_states(connection, Schedule.__name__, schedule_ids):
        assert isinstance(schedule, Schedule)
        entry = entry_of(schedule, facility_code)
        if lacking & set(entry.attributes):  # then it was put without any
            entry = replace(entry, attributes={})
        view = await calendars.view(entry)
        if schedule.status is RETIRED:
            why = None if view is None else "retired, and still there"
        elif view is None:
            why = "missing"
        elif not view.as_defined:
            why = "edited"
        else:
            why = None if view.paused == entry.paused else "paused" if view.paused else "not paused"
        if why is not None:
            found.append(f"{schedule.id} ({why})")
    return found
