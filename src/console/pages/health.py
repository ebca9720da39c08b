"""Health: whether the service can answer, which processes run, and what the doctor finds, each with its remedy."""

import baton
from baton.console.health import Examination
from baton.console.page import Context, MenuGroup, page
from baton.console.page_queries import PageQueries
from baton.domain.trust.policy import EXAMINE_SERVICE

FIRST_WAIT_SECONDS = 1.0  # how long the first sight of the page waits for an examination; a page that is live does not wait
NEARLY_FULL = 0.8  # of the live streams that a process serves; the count itself changes with every tab that is opened
ORDER = {"wrong": 0, "warning": 1, "ok": 2}

health = page(
    "/health", "Health", "Whether the service is well, and what mends it.", template="health.html", menu=MenuGroup.HOUSE
)


@health.region("service", asks=[], every=5.0)
async def load_service(queries: PageQueries) -> Context:
    """Load what the process knows itself; hosts and process numbers are for those who may examine the service."""
    assert queries.health is not None, "every queries of the console has it"
    readiness = await queries.health.read()
    troubles = [(process, trouble) for process in readiness.processes for trouble in process.troubles]
    restarts = [
        {"process": process, "task": task, "count": count}
        for process in readiness.processes
        for task, count in sorted(process.restarts.items())
        if count
    ]
    return {
        "readiness": readiness,
        "troubles": troubles,
        "restarts": restarts,
        "dropped": sum(process.dropped_lines for process in readiness.processes),
        "actuation": queries.health.actuation,
        "version": baton.__version__,
        "streams": queries.health.streams,
        "streams_nearly_full": queries.health.streams.open_count >= NEARLY_FULL * queries.health.streams.limit,
        "may_examine": EXAMINE_SERVICE in queries.permitted,
    }


@health.region("findings", asks=[], every=5.0)
async def load_findings(queries: PageQueries) -> Context:
    """Load what the doctor found last, what is wrong first."""
    permitted = EXAMINE_SERVICE in queries.permitted
    assert queries.health is not None, "every queries of the console has it"
    examination = (
        await queries.health.latest(FIRST_WAIT_SECONDS if queries.recorded else 0.0) if permitted else Examination()
    )
    findings = sorted(examination.findings, key=lambda one: ORDER[one.status])
    return {
        "permitted": permitted,
        "permission": EXAMINE_SERVICE,
        "examinable": queries.health.examinable,
        "examination": examination,
        "findings": findings,
        "counts": {status: sum(one.status == status for one in findings) for status in ORDER},
    }
