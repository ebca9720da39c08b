"""The Bluesky documents of a run, page by page: its start; a stream for each channel and way of sampling, its events in the
order in which they were observed; a stream for the frames of each dataset whose layout is known; its stop, once it ended.
An event has every key of its descriptor, and channels are read at times of their own: hence a stream for each."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, ClassVar, NamedTuple, Self
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.ends import ABORTED
from baton.domain.data import bluesky_documents as bluesky
from baton.domain.data.acquisition import ACQUISITIONS, AcquisitionSummary, ListAcquisitions, frame_layout
from baton.domain.data.bluesky_documents import NamedDocument, RunSample
from baton.domain.data.dataset import Dataset, DatasetStatus
from baton.domain.kernel import Call, CursorText, Document, LogPosition, Query
from baton.domain.recipe.plan import Plan
from baton.domain.run.logbooks import Channel, ListRunObservations, Observation, SamplingProcedure
from baton.domain.run.run import ENDINGS, Run, RunConducted, RunEnded, RunStarted, RunWitnessChanged, RunWitnessed, run
from baton.domain.run.witness import Witness
from baton.domain.shared.listing import Cursor, Order, Page, Where, decode_cursor, encode_cursor, malformed_cursor
from baton.domain.shared.reads import (
    Reads,
    Rows,
    events_of,
    find,
    find_all,
    latest_events,
    members_by_key,
    permitted_commands,
    records_of,
)
from baton.domain.shared.refusals import Conflict
from baton.domain.subject.subject import Subject

JSON_LINES = "application/jsonl"


class RunDocumentsElsewhereError(Conflict, context="run", reason="documents_elsewhere"):
    """The events of a witnessed run are where Bluesky put them."""


class SampledReading(Observation):
    """A reading, listed in the order in which readings were taken."""

    time: ClassVar[str] = "sampled_at"


class StreamPlace(NamedTuple):
    """Where a page ended in the readings of one stream: the last one, its number, and the descriptor that it belongs to."""

    channel: str  # The digest of its name.
    procedure: str
    at: datetime
    last_id: UUID
    number: int
    first_id: UUID  # The reading that its descriptor begins with.
    mark: str  # The digest of what the descriptor says.

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the place in this cursor; refuse one that no page ended with."""
        channel, procedure, at, last_id, number, first_id, mark = decode_cursor(text, 7)
        try:
            return cls(channel, procedure, datetime.fromisoformat(at), UUID(last_id), int(number), UUID(first_id), mark)
        except ValueError as error:
            raise malformed_cursor() from error

    def __str__(self) -> str:
        return encode_cursor(*self._replace(at=self.at.isoformat()))  # type: ignore[arg-type]


class FramePlace(NamedTuple):
    """Where a page ended in the acquisitions of a run: the cursor behind the last one, and the number of its stream."""

    cursor: str
    number: int


Part = tuple[Sequence[NamedDocument], StreamPlace | None]


@run.query(
    get="/{run_id}/documents", name="list_run_documents", media_types=[JSON_LINES], refuses=[RunDocumentsElsewhereError]
)
class ListRunDocuments(Query[Document]):
    """The run as Bluesky's documents, a line of JSON for each: its name and itself; the last one is `stop`, once it ended.

    A witnessed run has its own start and stop; its events are where Bluesky put them.
    """

    reads_projections: ClassVar[bool] = True

    events: bool | None = None
    """Whether events and datasets are wanted; unless said, of runs of the service's own."""
    limit: Annotated[int, Field(ge=1, le=5000)] = 1000
    """The largest number of events and datasets; documents that describe them come besides."""
    cursor: CursorText | None = None
    min_position: LogPosition | None = None

    def answer(self, run: Run, call: Call) -> Reads[Document]:
        if run.witness is not None:
            return page_of((yield from self._witnessed_ends(run, run.witness)))
        phase, place = phase_of(self.cursor)
        documents: list[NamedDocument] = []
        if phase == "start":
            documents.append((yield from start_of(run)))
        if phase != "datasets" and self.events is not False:
            readings, stopped = yield from readings_of(run, None if place is None else StreamPlace.parse(place), self.limit)
            documents += readings
            if stopped is not None:
                return page_of(documents, encode_cursor("readings", stopped))
        if self.events is not False:
            room = max(1, self.limit - len(documents))
            frames, later = yield from frames_of(run, frame_place(place if phase == "datasets" else None), room)
            documents += frames
            if later is not None:
                return page_of(documents, encode_cursor("datasets", encode_cursor(*later)))
        if run.status in ENDINGS.values():
            documents.append((yield from stop_of(run)))
        return page_of(documents)

    def _witnessed_ends(self, run: Run, witness: Witness) -> Reads[Iterable[NamedDocument]]:
        """Return the start and the stop of a run that happens elsewhere; refuse what Bluesky alone has."""
        if self.events:
            detail = "The events of this run are where Bluesky put them, under this uid; leave `events` out here."
            raise RunDocumentsElsewhereError(detail, facts={"uid": witness.document_uid})
        [began] = yield from events_of(run.id, RunWitnessed)
        readable = "ReadEventTexts" in (yield from permitted_commands())
        documents = [bluesky.witnessed_start_document(run, began, began.metadata if readable else None)]
        if run.status in ENDINGS.values():
            ended = yield from ending_of(run)
            told = yield from latest_events(run.id, RunWitnessChanged, count=1)
            documents.append(bluesky.witnessed_stop_document(run, witness.document_uid, ended, told[0] if told else None))
        return documents


def page_of(documents: Iterable[NamedDocument], next_cursor: str | None = None) -> Document:
    """Return documents as lines, with the cursor of the page behind them."""
    lines = (json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in documents)
    return Document(JSON_LINES, "".join(f"{line}\n" for line in lines).encode(), next_cursor)


def phase_of(cursor: str | None) -> tuple[str, str | None]:
    """Return in which part of the run a page begins, and at which place of it."""
    if cursor is None:
        return "start", None
    phase, place = decode_cursor(cursor, 2)
    if phase not in ("readings", "datasets"):
        raise malformed_cursor()
    return phase, place


def start_of(run: Run) -> Reads[NamedDocument]:
    """Return the start of a run, with the names that the caller may see."""
    permitted = yield from permitted_commands()
    [began] = yield from events_of(run.id, RunStarted)
    plan = yield from find(Plan, run.plan_id if "GetPlan" in permitted else None)
    subject = yield from find(Subject, run.subject_id if "GetSubject" in permitted else None)
    sample = None if run.subject_id is None else RunSample(run.subject_id, None if subject is None else subject.name)
    return bluesky.start_document(run, began, None if plan is None else plan.name, sample)


def ending_of(run: Run) -> Reads[RunEnded]:
    """Return the event that ended a run."""
    [ended] = yield from events_of(run.id, *ENDINGS)
    return ended  # type: ignore[return-value]


def stop_of(run: Run) -> Reads[NamedDocument]:
    """Return the stop of a run; it failed where its conduct did, unless somebody aborted that."""
    ended = yield from ending_of(run)
    conducted = yield from latest_events(run.id, RunConducted, count=1)
    failures = [one.result.failure for one in conducted if one.result.failure is not None]
    failed = any(failure.error_class != ABORTED.error_class for failure in failures)
    return bluesky.stop_document(run, ended, failed=failed, adjusted=run.adjustment_count > 0)


def readings_of(run: Run, place: StreamPlace | None, room: int) -> Reads[tuple[list[NamedDocument], StreamPlace | None]]:
    """Return the documents of the next readings, and where they ended if there are more: stream after stream."""
    channels = yield from records_of(Channel, run_id=run.id)
    streams = [(one.channel_name, procedure) for one in channels for procedure in SamplingProcedure]
    if place is not None:
        streams = streams[place_of(place, streams) :]
    documents: list[NamedDocument] = []
    for channel, procedure in streams:
        page = yield from readings_behind(run.id, channel, procedure, place, room)
        for reading in page.items:
            place, described = next_place(place, reading)
            documents += [*described, bluesky.reading_event(reading, place.first_id, place.number)]
        room -= len(page.items)
        if page.next_cursor is not None:
            return documents, place
        if room <= 0 and place is not None:
            return documents, place
        place = None
    return documents, None


def place_of(place: StreamPlace, streams: Sequence[tuple[str, SamplingProcedure]]) -> int:
    """Return which of the streams a page ended in; refuse a place in none of them."""
    for number, (channel, procedure) in enumerate(streams):
        if (bluesky.digest(channel), procedure) == (place.channel, place.procedure):
            return number
    raise malformed_cursor()


def readings_behind(
    run_id: UUID, channel: str, procedure: SamplingProcedure, place: StreamPlace | None, count: int
) -> Reads[Page[SampledReading]]:
    """Return the next readings of a stream in the order in which they were taken."""
    cursor = None if place is None else str(Cursor(order=Order.ASC, time=place.at, id=place.last_id))
    query = ListRunObservations.model_construct(limit=count, cursor=cursor, order=Order.ASC)
    wanted = {"run_id": run_id, "channel_name": channel, "sampling_procedure": procedure.value}
    where = tuple(Where(name, "is", value) for name, value in wanted.items())
    page: Page[SampledReading] = yield Rows(SampledReading, query, where)
    return page


def next_place(before: StreamPlace | None, reading: Observation) -> tuple[StreamPlace, list[NamedDocument]]:
    """Return the place of a reading behind another one of its stream, and its descriptor where that is another one."""
    mark = bluesky.digest(str(bluesky.mark_of(reading)))
    own = (bluesky.digest(reading.channel_name), reading.sampling_procedure, reading.sampled_at, reading.event_id)
    number = 1 if before is None else before.number + 1
    if before is not None and before.mark == mark:
        return StreamPlace(*own, number, before.first_id, mark), []
    return StreamPlace(*own, number, reading.event_id, mark), [bluesky.reading_descriptor(reading)]


def frame_place(cursor: str | None) -> FramePlace | None:
    """Return the place in the acquisitions that a cursor names; refuse one that no page ended with."""
    if cursor is None:
        return None
    behind, number = decode_cursor(cursor, 2)
    if not (number.isascii() and number.isdigit()):
        raise malformed_cursor()
    return FramePlace(behind, int(number))


def frames_of(run: Run, place: FramePlace | None, room: int) -> Reads[tuple[list[NamedDocument], FramePlace | None]]:
    """Return the documents of the next datasets whose frames are known, and where they ended if there are more.

    Of several acquisitions of a dataset the latest counts, and a Discarded dataset has none.
    """
    behind, number = place or (None, 0)
    query = ListAcquisitions.model_construct(limit=room, cursor=behind, order=Order.ASC)
    page: Page[AcquisitionSummary] = yield Rows(AcquisitionSummary, query, (Where("producing_run_id", "is", run.id),))
    datasets = yield from find_all(Dataset, [one.dataset_id for one in page.items])
    latest = yield from members_by_key(ACQUISITIONS, *datasets)
    documents: list[NamedDocument] = []
    for one in page.items:
        dataset, layout = datasets.get(one.dataset_id), frame_layout(one.evidence)
        is_latest = one.acquisition_id == max(latest.get(str(one.dataset_id), (one.acquisition_id,)))
        if dataset is None or dataset.status is DatasetStatus.DISCARDED or layout is None or not is_latest:
            continue
        number += 1
        documents += bluesky.frame_documents(run.id, dataset, one, layout, number)
    return documents, None if page.next_cursor is None else FramePlace(page.next_cursor, number)
