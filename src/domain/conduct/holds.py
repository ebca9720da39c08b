"""Why work is held, since when and by whom."""

from datetime import datetime
from uuid import UUID

from baton.domain.access.actor import Names, appearance, names_of
from baton.domain.kernel import Event, Value
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import HoldCause, Procedure
from baton.domain.run.run import HELD, Run, RunHeld
from baton.domain.shared.reads import Reads, latest_events
from baton.domain.shared.text import FreeText


class HoldNow(Value):
    """Why a run, a procedure or a queue is held, since when, and who holds it."""

    since: datetime
    reason: FreeText | None
    held_by: UUID
    held_by_name: str | None


def hold_now(held: Event, reason: str | None, names: Names, asked: Event | None = None) -> HoldNow:
    """Return the hold that an event began as it is shown; who asked for it holds it, where somebody did."""
    who = appearance(asked or held)
    return HoldNow(since=held.occurred_at, reason=reason, held_by=who[0], held_by_name=names[who])


def hold_of_run(run: Run) -> Reads[HoldNow | None]:
    """Return why a run is held; None where it is not."""
    if run.status is not HELD:
        return None
    (held,) = yield from latest_events(run.id, RunHeld, count=1)
    return hold_now(held, held.reason, (yield from names_of([appearance(held)])))


def hold_of_procedure(procedure: Procedure) -> Reads[HoldNow | None]:
    """Return why a procedure is held; None where it is not. Its conduct records the hold that somebody asked it for."""
    if procedure.status is not procedures.HELD:
        return None
    (held,) = yield from latest_events(procedure.id, procedures.ProcedureHeld, count=1)
    asked = None
    if held.cause is HoldCause.OPERATOR:
        requests = yield from latest_events(procedure.id, procedures.ProcedureHoldRequested, count=1)
        asked = next((one for one in requests if one.conduct_id == procedure.last_conduct_id), None)
    return hold_now(held, held.reason, (yield from names_of([appearance(asked or held)])), asked)
