"""The logbooks of a run: readings by channel while it is on, and what people and agents write about it at any time."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.kernel import Call, JudgedVerb, Outcome, Query, Value, Verb
from baton.domain.run.run import FAILED_RUNS, LIVE, Run, RunNarrativeLogbookOpened, RunObservationLogbookOpened, run
from baton.domain.run.witness import PAST_GATE
from baton.domain.shared.listing import ListQuery, Page, Where
from baton.domain.shared.logbooks import Appended, Entry, LogbookKind, ProducedId, open_logbook
from baton.domain.shared.reads import Reads, find, records_of
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import FreeText, Text, Word, refuse_blank_text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Delist, Enter, Record


class SamplingProcedure(StrEnum):
    BASELINE = "baseline"  # A snapshot at a boundary of the run.
    MONITOR = "monitor"  # A slow series during the run.
    CAPTURE = "capture"  # What a step of a phase captured; the ledger of its conduct has it.


class InvalidChannelNameError(Invalid, context="run"):
    """A channel needs a name that is not blank."""


class InvalidObservationValueError(Invalid, context="run"):
    """An observed value is a finite number."""


class InvalidSamplingProcedureError(Invalid, context="run"):
    """The sampling procedure is none that is known."""


class RunObservationLogbookClosedError(Conflict, context="run"):
    """The run has ended, and its observations with it."""


APPENDED = (SamplingProcedure.BASELINE, SamplingProcedure.MONITOR)  # How readings are taken that somebody appends.


class Sample(Value):
    """One reading as its producer took it; a repeated event_id is ignored."""

    event_id: ProducedId
    channel_name: Annotated[str, Text(255, InvalidChannelNameError, "channel name")]
    value: Annotated[float, Field(strict=True, allow_inf_nan=True)]
    """The reading, in the unit beside it."""
    sampled_at: Instant
    sampling_procedure: Annotated[str, Field(min_length=1, max_length=50)]
    units: Annotated[str, Word(64)] | None = None
    occurred_at: Instant | None = None
    simulated: bool = False


class Observation(Entry):
    """A reading of a run: appended, or captured by a step of a phase under the name of its channel."""

    relation: ClassVar[str] = "run_readings"
    time: ClassVar[str] = "recorded_at"
    kind: ClassVar[LogbookKind] = LogbookKind.OBSERVATION
    run_id: UUID
    channel_name: str
    value: float
    """The reading, in the unit beside it."""
    units: str | None
    sampling_procedure: str
    simulated: bool
    sampled_at: datetime


class StoredReading(Observation):
    """A reading as it is stored."""

    relation: ClassVar[str] = "entries_run_observations"


@run.command(post="/{run_id}/observations", status=200, returns=Appended, attempts=3)
class AppendObservations(Verb[Run]):
    """Add readings to a run that is on; the batch is taken whole or not at all, and repeats are harmless."""

    entries: Annotated[tuple[Sample, ...], Field(min_length=1, max_length=500)]

    def examine(self) -> None:
        refuse_blank_text(self)
        for sample in self.entries:
            if not math.isfinite(sample.value):
                detail = f"The value of {sample.channel_name} is not finite; leave it out."
                raise InvalidObservationValueError(detail, facts={"event_id": str(sample.event_id)})
            if sample.sampling_procedure not in APPENDED:
                detail = f"There is no sampling procedure {sample.sampling_procedure}; use {' or '.join(APPENDED)}."
                raise InvalidSamplingProcedureError(detail, facts={"event_id": str(sample.event_id)})

    def decide(self, run: Run, call: Call) -> Outcome:
        if run.status not in LIVE:
            advice = "write what matters into its logbook with append_run_logbook_entries"
            detail = f"The run is {run.status.value}, and its observations are closed; {advice}."
            raise RunObservationLogbookClosedError(detail, reason=run.status.value.lower())
        logbook_id, opening = open_logbook(run.observation_logbook_id, RunObservationLogbookOpened, StoredReading, call)
        rows = [StoredReading.by(call, self, logbook_id, run_id=run.id, **vars(sample)) for sample in self.entries]
        return [*opening, Enter(rows), Answer({"event_count": len(rows)})]


@run.listing(Observation, get="/{run_id}/observations")
class ListRunObservations(ListQuery[Observation]):
    """The readings of a run in the order they were recorded: those appended, and what the steps of its phases captured."""

    limit: Annotated[int, Field(ge=1, le=500)] = 50
    channel_name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    sampling_procedure: SamplingProcedure | None = None
    since: Instant | None = None
    """Only readings taken at this time or later."""

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.since is not None:
            yield Where("recorded_at", "after", self.since)


@dataclass(frozen=True)
class Channel(Record):
    """A channel of a run: its count and its latest reading, derived where the readings are stored."""

    relation: ClassVar[str] = "run_reading_channels"
    key: ClassVar[tuple[str, ...]] = ("run_id", "channel_name")
    run_id: UUID
    channel_name: str
    count: int
    """Number of readings."""
    first_recorded_at: datetime
    """When the first reading was written down."""
    latest_recorded_at: datetime
    """When the latest reading was written down."""
    latest_value: float
    """The latest reading, in the unit of the channel."""
    units: str | None
    latest_sampled_at: datetime
    """When the latest reading was taken."""
    simulated: bool  # Whether any of its readings is.


def channels_of(readings: Iterable[Observation]) -> tuple[Channel, ...]:
    """Return the channels of stored readings by run and name; the latest reading is the one recorded last."""
    in_order = sorted(readings, key=attrgetter("run_id", "channel_name", "recorded_at", "event_id"))
    return tuple(_channel(list(series)) for _, series in groupby(in_order, attrgetter("run_id", "channel_name")))


def _channel(series: list[Observation]) -> Channel:
    first, latest = series[0], series[-1]
    assert first.recorded_at is not None, "the store says when it recorded a reading"
    assert latest.recorded_at is not None, "the store says when it recorded a reading"
    return Channel(
        run_id=latest.run_id,
        channel_name=latest.channel_name,
        count=len(series),
        first_recorded_at=first.recorded_at,
        latest_recorded_at=latest.recorded_at,
        latest_value=latest.value,
        units=latest.units,
        latest_sampled_at=latest.sampled_at,
        simulated=any(reading.simulated for reading in series),
    )


@run.query(get="/{run_id}/channels", returns=Page[Channel])
class ListRunChannels(Query[Page[Channel]]):
    """The channels of a run by name, each with its latest reading."""

    def answer(self, run: Run, call: Call) -> Reads[Page[Channel]]:
        return Page((yield from records_of(Channel, run_id=run.id)), None)


class RunLogbookEntryKind(StrEnum):
    NOTE = "Note"
    DEBRIEF = "Debrief"


class InvalidRunLogbookEntryError(Invalid, context="run"):
    """An entry needs a text; a Debrief comes from an agent and names its decision, a Note names none."""


class NarrativeEntry(Value):
    """One entry as its author sends it; a repeated event_id is ignored."""

    event_id: ProducedId
    text: Annotated[str, Text(4000, InvalidRunLogbookEntryError, "text", personal=True)]
    entry_kind: RunLogbookEntryKind = RunLogbookEntryKind.NOTE
    decision_id: UUID | None = None
    """The decision that the entry is about."""
    occurred_at: Instant | None = None


class RunLogbookEntry(Entry):
    """A stored entry."""

    relation: ClassVar[str] = "entries_run_narrative"
    time: ClassVar[str] = "recorded_at"
    kind: ClassVar[LogbookKind] = LogbookKind.NARRATIVE
    run_id: UUID
    entry_kind: RunLogbookEntryKind
    text: FreeText
    decision_id: UUID | None


@run.command(post="/{run_id}/logbook", status=200, returns=Appended, attempts=3)
class AppendRunLogbookEntries(JudgedVerb[Run, Actor | None]):
    """Write into the logbook of a run, whether it is on or over; debriefs are for agents."""

    entries: Annotated[tuple[NarrativeEntry, ...], Field(min_length=1, max_length=100)]

    def gather(self, run: Run, call: Call) -> Reads[Actor | None]:
        return (yield from find(Actor, call.principal_id))

    def decide(self, run: Run, call: Call, author: Actor | None) -> Outcome:
        for writing in self.entries:
            check_writing(writing, author)
        logbook_id, opening = open_logbook(run.narrative_logbook_id, RunNarrativeLogbookOpened, RunLogbookEntry, call)
        rows = [RunLogbookEntry.by(call, self, logbook_id, run_id=run.id, **vars(writing)) for writing in self.entries]
        by_person = run.status not in LIVE and (author is None or author.kind is not ActorKind.AGENT)
        noted = author is None or author.kind is ActorKind.HUMAN
        looked = [Delist(FAILED_RUNS, "")] if by_person else []
        looked += [Delist(PAST_GATE, "")] if run.witnessed and noted else []
        return [*opening, Enter(rows), *looked, Answer({"event_count": len(rows)})]


def check_writing(writing: NarrativeEntry, author: Actor | None) -> None:
    """Refuse a debrief that no agent wrote or that names no decision, and a note that names one."""
    debrief = writing.entry_kind is RunLogbookEntryKind.DEBRIEF
    if debrief and (author is None or author.kind is not ActorKind.AGENT):
        raise InvalidRunLogbookEntryError("Only agents write debriefs; send a Note instead.", reason="agent_only")
    if debrief and writing.decision_id is None:
        raise InvalidRunLogbookEntryError("A Debrief names its decision; give decision_id.", reason="decision_missing")
    if not debrief and writing.decision_id is not None:
        raise InvalidRunLogbookEntryError("A Note names no decision; leave decision_id out.", reason="decision_unexpected")


@run.listing(RunLogbookEntry, get="/{run_id}/logbook")
class ListRunLogbookEntries(ListQuery[RunLogbookEntry]):
    """What was written about a run, in the order it was recorded."""

    entry_kind: RunLogbookEntryKind | None = None
