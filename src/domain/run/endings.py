"""How a run ends: completed, stopped, aborted or truncated."""

from typing import Annotated
from uuid import UUID

from baton.domain.kernel import Call, Command, JudgedVerb, Outcome
from baton.domain.operation.conduct.actuation import ActuationKind, merged_kind
from baton.domain.operation.procedure.procedure import COMPLETED, PHASES, Procedure
from baton.domain.registry import Internal
from baton.domain.run.run import HELD, LIVE, Run, RunAborted, RunCompleted, RunStopped, RunTruncated, run
from baton.domain.shared.reads import Reads, every, members_of
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import refuse_blank_text
from baton.domain.shared.times import Instant

Phases = tuple[Procedure, ...]


class InvalidRunInterruptedAtError(Invalid, context="run"):
    """A run cannot have been interrupted in the future."""


def phases_of(run: Run) -> Reads[Phases]:
    """Return the phases of a run in order of registration."""
    found = yield from every(Procedure, (yield from members_of(PHASES, run.id)))
    return tuple(found.values())


def kind_of(run: Run, phases: Phases) -> ActuationKind | None:
    """Return what the run was done on so far."""
    return merged_kind((run.actuation_kind, *(phase.actuation_kind for phase in phases)))


def refuse_live(command: Command, run: Run, phases: Phases, own: UUID | None = None) -> None:
    """Refuse to end a run under a conduct that is still at work, unless it is the run's own that ends it."""
    live = [phase for phase in phases if phase.live_conduct_id is not None]
    if live or run.live_conduct_id != own:
        raise command.cannot(
            "conduct_live",
            "A conduct of this run is live; wait for it, or stop or abort the run.",
            procedure_ids=[str(phase.id) for phase in live],
            conduct_id=None if run.live_conduct_id is None else str(run.live_conduct_id),
        )


@run.command(post="/{run_id}/complete", allowed=LIVE, essential=True)
class CompleteRun(JudgedVerb[Run, Phases]):
    """Complete the run as intended; a held one only once it has phases and every one of them is Completed."""

    conduct_id: Annotated[UUID | None, Internal()] = None
    """The run's own conduct, where that completes it; while the run is held, it does not."""

    def gather(self, run: Run, call: Call) -> Reads[Phases]:
        return (yield from phases_of(run))

    def decide(self, run: Run, call: Call, phases: Phases) -> Outcome:
        completed = RunCompleted(actuation_kind=kind_of(run, phases))
        undone = [phase for phase in phases if phase.status is not COMPLETED]
        if run.status is HELD and phases and not undone and self.conduct_id is None:
            return [completed]
        refuse_live(self, run, phases, self.conduct_id)
        if run.status is HELD and not undone:
            raise self.cannot("held", "The run is Held; resume it, or stop or abort it.")
        if run.status is HELD:
            raise self.cannot(
                "phase_not_completed",
                "The run is Held, and not every phase of it is Completed; resume it, or stop or abort it.",
                procedure_ids=[str(phase.id) for phase in undone],
            )
        return [completed]


class RunEnding(JudgedVerb[Run, Phases]):
    """A verb that ends a run early; a blank reason is refused before the status."""

    decided_by_decision_id: UUID | None = None

    def gather(self, run: Run, call: Call) -> Reads[Phases]:
        refuse_blank_text(self)
        return (yield from phases_of(run))


@run.command(post="/{run_id}/stop", allowed=LIVE, attempts=3, destructive=True, essential=True)
class StopRun(RunEnding):
    """End the run early by choice; what it measured so far is good."""

    reason: Annotated[str, run.text("stop_reason", 500, label="reason", personal=True)]

    def decide(self, run: Run, call: Call, phases: Phases) -> Outcome:
        return [RunStopped(**dict(self), actuation_kind=kind_of(run, phases))]


@run.command(post="/{run_id}/abort", allowed=LIVE, attempts=3, destructive=True)
class AbortRun(RunEnding):
    """End the run in an emergency; what it measured is suspect."""

    reason: Annotated[str, run.text("abort_reason", 500, label="reason", personal=True)]

    def decide(self, run: Run, call: Call, phases: Phases) -> Outcome:
        return [RunAborted(**dict(self), actuation_kind=kind_of(run, phases))]


@run.command(post="/{run_id}/truncate", allowed=LIVE, destructive=True)
class TruncateRun(RunEnding):
    """Close the books on a run that died by itself, with the best guess of when."""

    reason: Annotated[str, run.text("truncate_reason", 500, label="reason", personal=True)]
    interrupted_at: Instant | None = None

    def gather(self, run: Run, call: Call) -> Reads[Phases]:
        refuse_blank_text(self)
        if self.interrupted_at is not None and self.interrupted_at > call.now:
            raise InvalidRunInterruptedAtError("The run cannot have been interrupted in the future; give a past time.")
        return (yield from phases_of(run))

    def decide(self, run: Run, call: Call, phases: Phases) -> Outcome:
        refuse_live(self, run, phases, run.live_conduct_id)
        return [RunTruncated(**dict(self), actuation_kind=kind_of(run, phases))]
