"""Checks of unfinished work: whether a workflow carries it, and what keeps it from advancing."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from baton.cli.doctor.findings import CheckResult, ok, wrong
from baton.cli.startup import one_line
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.temporal.engine import stall_reason

RPC_TIMEOUT = timedelta(seconds=5)
UNSTARTED_SECONDS, SILENT_SECONDS = 15.0, 60.0
"""How long a conduct may wait to be begun, and how long it may be silent before it may be truncated."""
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


async def examine_conducts(connection: Connection, client: Client | None) -> CheckResult:
    """Check that every live conduct was taken up and reports; the engine, if there is one, tells why not."""
    live = await (await connection.execute(LIVE)).fetchall()
    untaken, silent, stalled = [], [], []
    for what, workflow_id, phase, age, silence in live:
        if phase == "Opened":
            if age > UNSTARTED_SECONDS:
                untaken.append(f"{what} (opened {age:.0f} s ago)")
        elif phase == "Stalled":
            why = await workflow_trouble(client, workflow_id)
            stalled.append(f"{what} ({why})" if why else what)
        elif silence > SILENT_SECONDS:
            why = await workflow_trouble(client, workflow_id)
            silent.append(f"{what} (silent for {silence:.0f} s{f', {why}' if why else ''})")
    end = "end it with truncate_procedure or abort_run"
    remedies = [
        (
            untaken,
            "No worker has taken up the conduct of {}; see that one runs, because after CONDUCT_RESTART_LIMIT_SECONDS "
            "it is given up.",
        ),
        (silent, f"Nothing is heard of the conduct of {{}}; see that a worker and Temporal run and it goes on, or {end}."),
        (stalled, f"The conduct of {{}} fails to go on again and again; {MEND}, or {end}."),
    ]
    if sentences := [sentence.format(shorten(conducts)) for conducts, sentence in remedies if conducts]:
        return wrong(" ".join(sentences))
    return ok(f"{len(live)} live, each heard of." if live else "No conduct is live.")


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
    try:
        described = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return NOT_OPEN
        raise
    if described.status is not WorkflowExecutionStatus.RUNNING:
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
