"""One run as it is shown: its state, when it was started, held, resumed and ended, by whom, and its phases."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from baton.domain.access.references import Acts, ActsByTurns, acts_of
from baton.domain.kernel import TimeTravel, Value
from baton.domain.procedure.procedure import ProcedureStatus
from baton.domain.run.run import BEGINNINGS, ENDINGS, Run, RunHeld, RunResumed, phases_of, run
from baton.domain.run.witness import Standing, WitnessContact
from baton.domain.shared.reads import Reads, permitted_commands, record_of
from baton.domain.shared.text import FreeText


class RunPhaseView(Value):
    """A phase of a run; its name is null without `GetProcedure`."""

    procedure_id: UUID
    name: FreeText | None
    status: ProcedureStatus
    lost: bool
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class RunView(ActsByTurns, Run):
    """A run with when it was started, last held and resumed, and ended, by whom, and its phases in order of registration.

    The past of a run does not have the phases as they were then, so it has none.
    """

    started_at: datetime
    started_by: UUID
    started_by_name: str | None
    phases: tuple[RunPhaseView, ...] | None
    heard_at: datetime | None
    """When its witness last gave word; null for a run that is not witnessed."""
    standing: Standing | None
    """How its witness was doing at its last word; null for a run that is not witnessed."""

    @classmethod
    def load(cls, query: TimeTravel[Self], state: Run) -> Reads[Self]:
        by_turns: Acts = {"held": (RunHeld,), "resumed": (RunResumed,), "ended": tuple(ENDINGS)}
        acts = yield from acts_of(query, state.id, {"started": BEGINNINGS}, by_turns)
        phases = None if query.travels else (yield from run_phases(state))
        contact = (yield from record_of(WitnessContact, run_id=state.id)) if state.witnessed else None
        heard_at, standing = (None, None) if contact is None else (contact.heard_at, Standing.of(contact))
        return cls.of(state, **acts, phases=phases, heard_at=heard_at, standing=standing)


def run_phases(run: Run) -> Reads[tuple[RunPhaseView, ...]]:
    """Return the phases of a run as they are."""
    phases = yield from phases_of(run)
    named = bool(phases) and "GetProcedure" in (yield from permitted_commands())
    return tuple(
        RunPhaseView(
            procedure_id=phase.id,
            name=phase.name if named else None,
            status=phase.status,
            lost=phase.lost,
            started_at=phase.started_at,
            ended_at=phase.ended_at,
        )
        for phase in phases
    )


HIDDEN = "parameters_schema_revision hold_count last_held_at running_since updated_at"
GetRun = run.get(hidden=HIDDEN.split(), view=RunView)
