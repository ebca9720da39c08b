"""Work that the record calls unfinished: whether somebody carries it, and what keeps it from going on."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from baton.cli.doctor.findings import Finding, ok, wrong
from baton.cli.processes import one_line
from baton.infrastructure.postgres.pool import Connection

if TYPE_CHECKING:
    from temporalio.client import Client

PATIENCE = timedelta(seconds=5)
UNTAKEN, SILENT = 15.0, 60.0
"""Seconds that a conduct may wait to be begun, and seconds without a sign of life after which it may be truncated."""
SHOWN = 5
"""Ids that one sentence lists."""
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
END = "end it with truncate_procedure or abort_run"
MEND = "read the worker's log and mend that"
CARRIED_BY_WORKER = "a running worker starts them within seconds, so see that one runs"


async def examine_sweeps(connection: Connection, client: "Client") -> Finding:
    """Whether each mint sweep that the record calls running is carried by a workflow."""
    running = await ids(connection, "SELECT sweep_id FROM equipment_mint_sweep WHERE status = 'Running'")
    return await carried(client, "mint sweeps", "mint-sweep", running)


async def examine_publications(connection: Connection, client: "Client") -> Finding:
    """Whether each publication that has not come to its end is carried by a workflow."""
    unfinished = "SELECT receipt_id FROM calibration_publication WHERE status IN ('Running', 'Sending')"
    return await carried(client, "publications", "calibration-publication", await ids(connection, unfinished))


async def examine_conducts(connection: Connection, client: "Client | None") -> Finding:
    """Whether every live conduct was taken up and is heard of; the engine, if it answers, says why not."""
    live = await (await connection.execute(LIVE)).fetchall()
    untaken, silent, stalled = [], [], []
    for what, workflow_id, phase, age, silence in live:
        if phase == "Opened":
            if age > UNTAKEN:
                untaken.append(f"{what} (opened {age:.0f} s ago)")
        elif phase == "Stalled":
            why = await trouble(client, workflow_id)
            stalled.append(f"{what} ({why})" if why else what)
        elif silence > SILENT:
            why = await trouble(client, workflow_id)
            silent.append(f"{what} (silent for {silence:.0f} s{f', {why}' if why else ''})")
    sentences = []
    if untaken:
        sentences.append(
            f"No worker has taken up the conduct of {listed(untaken)}; see that one runs, because after "
            "CONDUCT_RESTART_LIMIT_SECONDS it is given up."
        )
    if silent:
        sentences.append(
            f"Nothing is heard of the conduct of {listed(silent)}; see that a worker and Temporal run and it goes on, or "
            f"{END}."
        )
    if stalled:
        sentences.append(f"The conduct of {listed(stalled)} fails to go on again and again; {MEND}, or {END}.")
    if sentences:
        return wrong(" ".join(sentences))
    return ok(f"{len(live)} live, each heard of." if live else "No conduct is live.")


async def carried(client: "Client", what: str, workflow: str, unfinished: Sequence[UUID]) -> Finding:
    """Whether a workflow carries each of these, and gets on with it."""
    stranded, struggling = [], []
    for id in unfinished:
        why = await trouble(client, f"{workflow}:{id}")
        if why == ABSENT:
            stranded.append(str(id))
        elif why is not None:
            struggling.append(f"{id} ({why})")
    if stranded:
        return wrong(f"No workflow carries the unfinished {what} {listed(stranded)}; {CARRIED_BY_WORKER}.")
    if struggling:
        return wrong(f"{what.capitalize()} do not get on: {listed(struggling)}; {MEND}.")
    one = what.removesuffix("s")
    return ok(f"{len(unfinished)} unfinished, each carried by a workflow." if unfinished else f"No {one} is unfinished.")


ABSENT = "no workflow is open"


async def trouble(client: "Client | None", workflow_id: str) -> str | None:
    """What the engine says keeps a workflow from going on; None where that is nothing, or it cannot be asked."""
    from temporalio.client import WorkflowExecutionStatus
    from temporalio.service import RPCError, RPCStatusCode

    from baton.infrastructure.temporal.engine import trouble_of

    if client is None:
        return None
    try:
        described = await client.get_workflow_handle(workflow_id).describe(rpc_timeout=PATIENCE)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return ABSENT
        raise
    if described.status is not WorkflowExecutionStatus.RUNNING:
        return ABSENT
    trouble = trouble_of(described)
    return None if trouble is None else one_line(trouble)


async def ids(connection: Connection, query: str) -> list[UUID]:
    return [row[0] for row in await (await connection.execute(query)).fetchall()]


def listed(texts: Iterable[str]) -> str:
    """The first of them, and how many more there are."""
    every = list(texts)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more
