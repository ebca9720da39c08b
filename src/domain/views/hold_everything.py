"""Hold everything: the queues and schedules that could start something, then every live run and conduct, are held by their
ordinary verbs, as the caller, each in a transaction of its own, so that one refusal keeps no other from being held."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Protocol, assert_never
from uuid import UUID

from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.live_work import LiveWork, load_live_work
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, related_asset_ids
from baton.domain.kernel import Call, Command, JudgedCreation, Outcome
from baton.domain.procedure.procedure import PendingRequest, Procedure
from baton.domain.queue.queue import HoldQueue, Queue, ResumeQueue
from baton.domain.run.run import HELD, HoldRun, Run, run
from baton.domain.schedule.schedule import HoldSchedule, ResumeSchedule, Schedule
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Answer
from baton.domain.start.procedure_start import resuming_command
from baton.domain.start.run_start import ResumeRun
from baton.domain.trust.authorization import holder_names
from baton.domain.views.armed_work import is_armed, load_armed_work

NAMED_AT_MOST = 5  # Things that a sentence names; the lists have all of them.


class HeldKind(StrEnum):
    RUN = "run"
    PROCEDURE = "procedure"
    QUEUE = "queue"
    SCHEDULE = "schedule"


LIVE_KINDS = (HeldKind.RUN, HeldKind.PROCEDURE)


class ArmedKind(StrEnum):
    QUEUE = "queue"
    SCHEDULE = "schedule"


class HeldWork(AnswerForm):
    """A run, a procedure that is conducted, a queue or a schedule that was asked to hold; `already` where it was before.

    A phase whose run holds is held with it, and needs nothing but its run to be resumed.
    """

    kind: HeldKind
    id: UUID
    name: FreeText
    already: bool = False
    """Whether it was held before."""
    run_id: UUID | None = None
    resumed_by: str | None = None
    """The command that resumes it; null for a phase, which its run resumes."""


class UnheldWork(AnswerForm):
    """A run, procedure, queue or schedule that continues: its hold was refused like this."""

    kind: HeldKind
    id: UUID
    name: FreeText
    code: str
    """The class name of the refusal."""
    detail: str
    reason: str | None


class ArmedWork(AnswerForm):
    """A queue or schedule that was not held and can still start something by itself, and who may hold it."""

    kind: ArmedKind
    id: UUID
    name: FreeText
    who_can: tuple[FreeText, ...]
    """The names of the people, accounts and groups who may hold it; none are known without policies."""


class HeldEverything(AnswerForm):
    """Everything in scope that was live or could start by itself: the work asked to hold, and the work that continues.

    A conduct finishes its step first. `message` says it in a sentence.
    """

    message: FreeText
    held: tuple[HeldWork, ...]
    """What was asked to hold, or was held before."""
    refused: tuple[UnheldWork, ...]
    """What was not held, and why."""
    still_armed: tuple[ArmedWork, ...]
    """What was not held and can still start by itself."""


Work = Run | Procedure | Queue | Schedule
HOLDS: Mapping[type[Work], type[Command]] = {
    Run: HoldRun,
    Procedure: HoldProcedure,
    Queue: HoldQueue,
    Schedule: HoldSchedule,
}


class HoldResult(NamedTuple):
    """What became of the hold of a piece of work: it was held before, it was asked to hold, or it was refused."""

    target: Work
    already: bool = False
    refusal: Refusal | None = None
    run_id: UUID | None = None  # The run that a phase is held with.


HoldResults = Sequence[HoldResult]


class HoldFacts(NamedTuple):
    """What became of every hold, and who may hold the queues and schedules that were refused, by their classes."""

    results: HoldResults
    who_can: Mapping[type[Work], tuple[str, ...]]


Orders = Sequence[tuple[Command, UUID]]  # Commands, and what each is about.


class OrderPort(Protocol):
    """Executes several commands for one."""

    async def execute_each(self, call: Call, orders: Orders, dry_run: bool) -> Sequence[Refusal | None]:
        """Execute commands as the caller, each in a transaction of its own; return the refusal of each, or None."""


@run.command(
    post="",
    path="/hold-everything",
    context="operation",
    status=200,
    returns=HeldEverything,
    attempts=3,
    refuses=[AncestorWalkDepthExceededError],
)
class HoldEverything(JudgedCreation[HoldFacts]):
    """Hold every queue, schedule, live run and conduct, or all on one asset, its parts and what it is part of.

    Each is held as by `hold_queue`, `hold_schedule`, `hold_run` or `hold_procedure` by the caller: what the caller may not
    hold is named in `refused`, and in `still_armed` where it can start something by itself. It can be repeated.
    """

    reason: Annotated[str, run.text("hold_reason", 500, label="reason", personal=True)]
    asset_id: UUID | None = None
    """Only what is on this asset, its parts and what it is part of; everything, when not given."""

    def gather(self, call: Call) -> Reads[HoldFacts]:
        self.operation.check(self, None)
        asset_ids = None if self.asset_id is None else (yield from related_asset_ids(self.asset_id))
        armed = yield from self._hold(call, (yield from load_armed_work(asset_ids)))
        live = yield from self._hold_live(call, asset_ids)  # After that: work that has just been started is held, too.
        refused = {type(one.target): HOLDS[type(one.target)].operation for one in armed if one.refusal is not None}
        who_can = {}
        for kind, operation in refused.items():
            who_can[kind] = yield from holder_names(operation.command_name)
        return HoldFacts([*live, *armed], who_can)

    def _hold_live(self, call: Call, asset_ids: frozenset[UUID] | None) -> Reads[HoldResults]:
        live = yield from load_live_work(asset_ids)
        runs = tuple(one.run for one in live.runs)
        results = yield from self._hold(call, [*runs, *conducted_alone(live)])
        holding = {one.target.id for one in results if one.refusal is None}
        phases = [one.procedure for one in live.conducts if one.procedure.parent_run_id in {run.id for run in runs}]
        before = {run.id for run in runs if run.status is HELD}
        with_run = [
            HoldResult(phase, already=phase.parent_run_id in before, run_id=phase.parent_run_id)
            for phase in phases
            if phase.parent_run_id in holding
        ]
        others = yield from self._hold(call, [phase for phase in phases if phase.parent_run_id not in holding])
        return [*results, *with_run, *others]

    def _hold(self, call: Call, targets: Iterable[Work]) -> Reads[HoldResults]:
        wanted = tuple(targets)
        due = [one for one in wanted if not is_holding(one)]
        given = [(HOLDS[type(one)].model_validate({"reason": self.reason}), one.id) for one in due]
        refusals = (yield from ask(OrderPort.execute_each, call, given, False)) if given else ()
        held_meanwhile = (HoldQueue.Cannot, HoldSchedule.Cannot)  # Somebody else held or retired it a moment ago.
        by_id = {
            one.id: refusal for one, refusal in zip(due, refusals, strict=True) if not isinstance(refusal, held_meanwhile)
        }
        return [HoldResult(one, already=one.id not in by_id, refusal=by_id.get(one.id)) for one in wanted]

    def decide(self, call: Call, facts: HoldFacts) -> Outcome:
        return [Answer(answer_of(facts).model_dump(mode="json"))]


def conducted_alone(live: LiveWork) -> list[Procedure]:
    """Return the procedures whose conduct is no phase of a live run."""
    runs = {one.run.id for one in live.runs}
    return [one.procedure for one in live.conducts if one.procedure.parent_run_id not in runs]


def is_holding(work: Work) -> bool:
    """Return whether a run, queue or schedule is held, or a procedure was asked to hold."""
    match work:
        case Run():
            return work.status is HELD
        case Procedure():
            return work.pending_request is PendingRequest.HOLD
        case Queue() | Schedule():
            return not is_armed(work)
        case _:
            assert_never(work)


def resuming_command_of(work: Work) -> str:
    """Return the command that resumes held work."""
    match work:
        case Run():
            return ResumeRun.operation.name
        case Procedure():
            return resuming_command(work)
        case Queue():
            return ResumeQueue.operation.name
        case Schedule():
            return ResumeSchedule.operation.name
        case _:
            assert_never(work)


def answer_of(facts: HoldFacts) -> HeldEverything:
    """Return what was held, what was not, and what of that can start something by itself."""
    held: list[HeldWork] = []
    refused: list[UnheldWork] = []
    armed: list[ArmedWork] = []
    for target, already, refusal, run_id in facts.results:
        own: dict[str, Any] = {"id": target.id, "name": target.name}
        kind = HeldKind(type(target).__name__.lower())
        if refusal is None:
            resumed_by = resuming_command_of(target) if run_id is None else None
            held.append(HeldWork(kind=kind, already=already, run_id=run_id, resumed_by=resumed_by, **own))
            continue
        why = {name: getattr(refusal, name) for name in ("code", "detail", "reason")}
        refused.append(UnheldWork(kind=kind, **own, **why))
        if isinstance(target, Queue | Schedule):
            armed.append(ArmedWork(kind=ArmedKind(kind.value), **own, who_can=facts.who_can[type(target)]))
    message = message_of(held, [one for one in refused if one.kind in LIVE_KINDS], armed)
    return HeldEverything(message=message, held=tuple(held), refused=tuple(refused), still_armed=tuple(armed))


def message_of(held: Sequence[HeldWork], going_on: Sequence[UnheldWork], armed: Sequence[ArmedWork]) -> str:
    """Return in a sentence what was held, what is still going on, and what can still start by itself."""
    if not held and not going_on and not armed:
        return "Nothing was live and nothing could start by itself, so nothing had to be held."
    counted = [one for one in held if one.run_id is None]  # A phase is held with its run, which is counted.
    asked, before = (count_kinds(one.kind for one in counted if one.already is already) for already in (False, True))
    parts = [f"Held or asked to hold: {asked}" if asked else "Nothing further was held"]
    if going_on:
        parts.append(f"still going on: {first_few([f'{one.kind} {one.name} ({one.detail})' for one in going_on])}")
    if armed:
        named = [f"{one.kind} {one.name} ({who_can_hold(one)})" for one in armed]
        parts.append(f"can still start by itself: {first_few(named)}")
    else:
        parts.append("nothing left in scope starts by itself")
    parts += [f"held before: {before}"] if before else []
    return f"{'; '.join(parts)}."


def count_kinds(kinds: Iterable[HeldKind]) -> str:
    """Return how many there are of each kind: `1 run, 2 queues`."""
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in Counter(kinds).items())


def first_few(named: Sequence[str]) -> str:
    """Return the first of these names in a sentence, and how many there are besides."""
    more = len(named) - NAMED_AT_MOST
    return f"{', '.join(named[:NAMED_AT_MOST])}{f' and {more} more' if more > 0 else ''}"


def who_can_hold(work: ArmedWork) -> str:
    """Return who may hold a queue or a schedule, in words."""
    return f"{' or '.join(work.who_can[:NAMED_AT_MOST])} can hold it" if work.who_can else "nobody is known who can hold it"
