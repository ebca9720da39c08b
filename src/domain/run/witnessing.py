"""What the witness of a run tells while it happens: its devices, pauses, signs of life, and how it ended."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import ActorKind
from baton.domain.equipment.signals import owners_of
from baton.domain.kernel import Call, IdSet, JudgedVerb, Outcome
from baton.domain.run.run import (
    LIVE,
    LIVE_RUNS,
    Phases,
    Run,
    RunAborted,
    RunCompleted,
    RunEnded,
    RunStopped,
    RunWitnessChanged,
    end_of,
    load_end,
    run,
)
from baton.domain.run.witness import (
    LATE,
    WITNESSED_ASSETS,
    EndEvidence,
    ExitStatus,
    Standing,
    Witness,
    WitnessChange,
    WitnessContact,
    WitnessedEnd,
)
from baton.domain.shared.reads import Reads, latest_events, record_of
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Enlist, Put
from baton.domain.step.results import ActuationKind, merged_kind

MEMORY = 100  # Changes of a run that a repeated one is compared with.


class InvalidRunWitnessChangeError(Invalid, context="run"):
    """The change `ended` says how the run ended, `described` which addresses its devices have, and no other change does."""


class WitnessFacts(NamedTuple):
    """What a word from a witness is judged by: the changes told before, what was heard of the witness, the owners of
    the devices, the phases."""

    told: Sequence[RunWitnessChanged]
    contact: WitnessContact | None
    asset_ids: IdSet
    phases: Phases


@run.command(post="/{run_id}/witness", callers=[ActorKind.SERVICE_ACCOUNT], attempts=3)
class WitnessRunChange(JudgedVerb[Run, WitnessFacts]):
    """Tell what became of a run that happens elsewhere; a change that was told before is left as it is."""

    change: WitnessChange
    """What is told: the devices, a pause, a sign of life, or the end."""
    at: Instant
    """When it happened, by the clock of the RunEngine; of a sign of life, up to when its witness knows of the run."""
    sources: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=500)], ...], Field(max_length=200)] = ()
    """The addresses of the devices that a stream reads."""
    standing: Standing = Standing()
    """How the witness is doing."""
    end: WitnessedEnd | None = None
    """How the run ended."""

    def examine(self) -> None:
        for change, field, given in (
            (WitnessChange.ENDED, "end", self.end is not None),
            (WitnessChange.DESCRIBED, "sources", bool(self.sources)),
        ):
            if given is not (self.change is change):
                detail = f"{field} belongs to the change {change}, and to no other; this one is {self.change}."
                raise InvalidRunWitnessChangeError(detail, reason=field)

    def gather(self, run: Run, call: Call) -> Reads[WitnessFacts]:
        told = yield from latest_events(run.id, RunWitnessChanged, count=MEMORY)
        owners = yield from owners_of([address_of(source) for source in self.sources])
        owned = frozenset(asset.id for assets in owners.values() for asset in assets)
        contact = yield from record_of(WitnessContact, run_id=run.id)
        return WitnessFacts(told, contact, owned, (yield from load_end(run)) if self.change is WitnessChange.ENDED else ())

    def decide(self, run: Run, call: Call, facts: WitnessFacts) -> Outcome:
        heard = Put(self.next_contact(run.id, call, facts.contact))
        if run.witness is None and facts.contact is not None:
            return [heard]  # the end of a plan ends the step, and nothing of the run
        if run.witness is None:
            raise self.cannot("not_witnessed", "The run is one of the service's own; only a witnessed one has changes told.")
        if run.witness.witnessed_by != call.principal_id:
            detail = "Another account witnesses this run; tell its changes with the token of that account."
            raise self.cannot("other_witness", detail, witnessed_by=str(run.witness.witnessed_by))
        repeated = any((one.change, one.at) == (self.change, self.at) for one in facts.told)
        if self.change is WitnessChange.HEARD and run.status in LIVE and run.witness.late and call.now - self.at < LATE:
            # It was told late, and is still under way.
            return [heard, Enlist(LIVE_RUNS, str(run.plan_id)), *assets_in_use(run.used_asset_ids)]
        if run.status not in LIVE or self.change is WitnessChange.HEARD or repeated:
            return [heard]
        ids = facts.asset_ids - run.witness.asset_ids
        told = RunWitnessChanged(change=self.change, at=self.at, sources=self.sources, asset_ids=ids, end=self.end)
        if self.end is not None:
            return [told, heard, *end_of(run, witnessed_ending(run.witness, self.end))]
        # Nothing is kept from devices that were used long ago.
        return [told, heard, *([] if run.witness.late else assets_in_use(ids))]

    def next_contact(self, run_id: UUID, call: Call, known: WitnessContact | None) -> WitnessContact:
        """Return the row of what is known of the witness after this word; its end says how many events came."""
        if known is None:
            return WitnessContact(run_id=run_id, heard_at=call.now, witness_id=call.principal_id, **dict(self.standing))
        standing = dict(self.standing) if "standing" in self.model_fields_set else {}
        contact = replace(known, heard_at=call.now, witness_id=call.principal_id, **standing)
        match self.change:
            case WitnessChange.HEARD:
                is_new = contact.events != known.events
                return replace(contact, last_document="event", last_document_at=call.now) if is_new else contact
            case WitnessChange.DESCRIBED:
                return replace(contact, last_document="descriptor", last_document_at=self.at)
            case WitnessChange.ENDED if self.end is not None:
                came = {stream: count.recorded for stream, count in self.end.streams.items()}
                contact = replace(contact, events=came, exit_status=self.end.exit_status.value)
                return replace(contact, last_document="stop", last_document_at=self.at)
            case _:
                return contact


def assets_in_use(asset_ids: IdSet) -> list[Enlist]:
    """Return what places assets among those that live runs elsewhere use."""
    return [Enlist(WITNESSED_ASSETS, str(id)) for id in sorted(asset_ids)]


def address_of(source: str) -> str:
    """Return the address by which assets own a data key's source: without the control system's scheme."""
    return source.partition("://")[2] or source


def witnessed_ending(witness: Witness, end: WitnessedEnd) -> RunEnded:
    """Return how a witnessed run ended: a stopped one says that it succeeded, so that alone completes no run."""
    kind = witnessed_kind(witness, end)
    given: dict[str, Any] = {"decided_by_decision_id": None, "actuation_kind": kind}
    match end.exit_status, end.evidence:
        case ExitStatus.SUCCESS, EndEvidence.STOPPING:
            return RunStopped(reason=end.reason or "The RunEngine was told to stop.", **given)
        case ExitStatus.SUCCESS, EndEvidence.MISSING_EVENTS:
            counts = f"{end.came} of {end.num_points} announced events came."
            return RunStopped(reason=end.reason or counts, **given)
        case ExitStatus.SUCCESS, _:
            return RunCompleted(actuation_kind=kind)
        case ExitStatus.ABORT, _:
            return RunAborted(reason=end.reason or "The RunEngine aborted it.", **given)
        case _:
            return RunAborted(reason=end.reason or "It failed in the RunEngine, which gave no reason.", **given)


def witnessed_kind(witness: Witness, end: WitnessedEnd) -> ActuationKind | None:
    """Return what a witnessed run was done on, as far as somebody declares it: nothing is taken for real by itself."""
    if witness.simulated is None:
        return None
    if witness.simulated:
        return ActuationKind.SIMULATED
    return merged_kind([ActuationKind.PHYSICAL, *([ActuationKind.SIMULATED] if end.simulated_sources else [])])
