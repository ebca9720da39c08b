"""Catalogues outside that show the facility's datasets: what each shows of a dataset, how far that has come, and how a
person has it tried again. The record never waits for a catalogue, and a catalogue never leads the record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from baton.domain.data.acquisition import ACQUISITIONS, Acquisition, AcquisitionRecorded
from baton.domain.data.dataset import (
    Dataset,
    DatasetDemoted,
    DatasetDiscarded,
    DatasetExternalIdAssigned,
    DatasetIntent,
    DatasetPromoted,
    DatasetRegistered,
    DatasetStatus,
    dataset,
)
from baton.domain.data.distribution import (
    Distribution,
    DistributionDiscarded,
    DistributionMarkedStale,
    DistributionRegistered,
    copies_of,
)
from baton.domain.kernel import Call, Event, JudgedVerb, Outcome, State, Value
from baton.domain.registry import OpenedWork
from baton.domain.run.run import Run
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.deployment import CatalogueName, DeploymentPort
from baton.domain.shared.listing import ListQuery, Page, Summary
from baton.domain.shared.reads import Reads, ask, find, find_all, members_of, record_of, records_of, require
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.tasks import Task, TaskStatus, Wait, begin_task
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Answer, Put, Record

CATALOGUES = "catalogue"  # The kind of task that brings a catalogue up to date, and the lock its entries change under.
MAX_ERROR_LENGTH = 500
SHOWN_EVENTS: tuple[type[Event], ...] = (
    *(DatasetRegistered, DatasetPromoted, DatasetDemoted, DatasetDiscarded, DatasetExternalIdAssigned),
    *(DistributionRegistered, DistributionMarkedStale, DistributionDiscarded, AcquisitionRecorded),
)  # What changes how a catalogue shows a dataset.


class CatalogueEntryStatus(StrEnum):
    PENDING = "Pending"  # The catalogue does not show the dataset as it is yet; it is told until it does.
    ENTERED = "Entered"
    REFUSED = "Refused"  # The catalogue does not take it; somebody has to mend that and have it retried.


PENDING, ENTERED, REFUSED = CatalogueEntryStatus


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry(Record):
    """How far one catalogue has come with one dataset."""

    relation: ClassVar[str] = "catalogue_entries"
    key: ClassVar[tuple[str, ...]] = ("entry_id",)
    entry_id: UUID
    """The id of the entry."""
    dataset_id: UUID
    catalogue: CatalogueName
    status: CatalogueEntryStatus = PENDING
    created_at: datetime
    asked: int = 1  # How often it was asked for, so that what happens during an attempt is not taken for done.
    attempts: int = 0
    """Number of times that it was tried."""
    entered_at: datetime | None = None
    last_error: str | None = None


class CatalogueEntrySummary(Summary):
    relation: ClassVar[str] = CatalogueEntry.relation
    entry_id: UUID
    dataset_id: UUID
    catalogue: CatalogueName
    status: CatalogueEntryStatus
    attempts: int
    entered_at: datetime | None
    last_error: FreeText | None
    created_at: datetime


class CataloguedDataset(NamedTuple):
    """A dataset with everything that a catalogue shows of it."""

    dataset: Dataset
    run: Run | None
    copies: tuple[Distribution, ...]  # Those that are not Discarded.
    captured_at: datetime | None  # When it was captured first, where somebody recorded that.
    facility_code: str
    publisher: str


class CatalogueNotConfiguredError(Conflict, context="data"):
    """This deployment enters nothing into such a catalogue; its settings name none."""


def refuse_unconfigured(catalogue: CatalogueName | None) -> Reads[None]:
    """Refuse a catalogue that this deployment does not have, or any where it has none."""
    configured = (yield from ask(DeploymentPort.deployment)).catalogues
    if not configured:
        detail = "No catalogue is configured; set SCICAT_ADDRESS or TILED_DIRECTORY."
        raise CatalogueNotConfiguredError(detail, reason="none_configured")
    if catalogue is not None and catalogue not in configured:
        detail = f"{catalogue} is not configured; there is {' and '.join(sorted(configured))}."
        raise CatalogueNotConfiguredError(detail, reason="not_configured")


def catalogued_dataset(dataset_id: UUID) -> Reads[CataloguedDataset]:
    """Return a dataset as catalogues show it."""
    dataset = yield from require(Dataset, dataset_id)
    run = yield from find(Run, dataset.producing_run_id)
    copies = yield from copies_of(dataset_id)
    acquisitions = yield from find_all(Acquisition, (yield from members_of(ACQUISITIONS, dataset_id)))
    captured_at = min((one.captured_at for one in acquisitions.values()), default=None)
    deployment = yield from ask(DeploymentPort.deployment)
    return CataloguedDataset(dataset, run, copies, captured_at, deployment.self_facility_code, deployment.publisher)


def origin_metadata(shown: CataloguedDataset) -> dict[str, object]:
    """Return what the record knows of a dataset's origin; what is not known is left out."""
    dataset = shown.dataset
    known = {
        "dataset_id": dataset.id,
        "status": dataset.status.value,
        "intent": dataset.intent.value,
        "producing_run_id": dataset.producing_run_id,
        "producing_procedure_id": dataset.producing_procedure_id,
        "actuation_kind": dataset.producing_actuation_kind and dataset.producing_actuation_kind.value,
        "subject_id": dataset.subject_id,
        "external_id": dataset.external_id,
        "external_id_scheme": dataset.external_id_scheme,
        "media_type": dataset.encoding.media_type,
        "checksum": f"{dataset.checksum.algorithm}:{dataset.checksum.value}",
    }
    metadata: dict[str, object] = {name: str(value) for name, value in known.items() if value is not None}
    metadata["results_may_rest_on_it"] = (
        dataset.status is DatasetStatus.REGISTERED and dataset.intent is DatasetIntent.PRODUCTION
    )
    if dataset.used_calibration_ids:
        metadata["used_calibration_ids"] = [str(id) for id in sorted(dataset.used_calibration_ids)]
    if shown.copies:
        metadata["copies"] = [copy.uri for copy in shown.copies]
    return metadata


def shown_dataset_id(state: State) -> UUID:
    """Return the dataset that a stream is or belongs to."""
    return state.dataset_id if isinstance(state, Distribution | Acquisition) else state.id


def entry_id_of(dataset_id: UUID, catalogue: CatalogueName) -> UUID:
    """Return the id of a dataset's entry in a catalogue."""
    return UUID(content_hash([dataset_id, catalogue])[:32])


def with_request(entry: CatalogueEntry | None, dataset_id: UUID, catalogue: CatalogueName, now: datetime) -> CatalogueEntry:
    """Return the entry as one that is to be brought up to date."""
    if entry is not None:
        return replace(entry, status=PENDING, asked=entry.asked + 1)
    id = entry_id_of(dataset_id, catalogue)
    return CatalogueEntry(entry_id=id, dataset_id=dataset_id, catalogue=catalogue, created_at=now)


def running_pass(tasks: Sequence[Task], catalogue: CatalogueName) -> UUID | None:
    """Return the task that brings a catalogue up to date, if one is under way; it sees every entry that is Pending."""
    running = (task.work_id for task in tasks if task.request["catalogue"] == catalogue)
    return next(running, None)


class CataloguePass(Value):
    """What became of the entries that were Pending."""

    catalogue: CatalogueName
    entered_count: int
    """Number of entries that the catalogue took."""
    refused_count: int
    """Number of entries that the catalogue refused."""


class CataloguePassAccepted(Value):
    """The catalogue has not answered yet; `list_catalogue_entries` and `get_work` tell how it goes."""

    catalogue: CatalogueName
    work_id: UUID


class RetryFacts(NamedTuple):
    """The dataset's entry so far, and the work that is under way."""

    entry: CatalogueEntry | None
    running: tuple[Task, ...]


@dataset.command(
    post="/{dataset_id}/retry-catalogue-entry",
    status=200,
    work=OpenedWork(CATALOGUES),
    returns=CataloguePass,
    accepted=CataloguePassAccepted,
    lock=CATALOGUES,
)
class RetryCatalogueEntry(JudgedVerb[Dataset, RetryFacts]):
    """Have a catalogue show a dataset once more, or one from before the catalogue was configured.

    What it refused may be mended by now. Everything else that is Pending there is tried too.
    """

    catalogue: CatalogueName
    wait: Wait = 30

    def gather(self, dataset: Dataset, call: Call) -> Reads[RetryFacts]:
        yield from refuse_unconfigured(self.catalogue)
        entry = yield from record_of(CatalogueEntry, entry_id=entry_id_of(dataset.id, self.catalogue))
        return RetryFacts(entry, (yield from records_of(Task, kind=CATALOGUES, status=TaskStatus.RUNNING)))

    def decide(self, dataset: Dataset, call: Call, facts: RetryFacts) -> Outcome:
        wanted = Put(with_request(facts.entry, dataset.id, self.catalogue, call.now))
        if (work_id := running_pass(facts.running, self.catalogue)) is not None:
            return [wanted, Answer({"catalogue": self.catalogue, "work_id": str(work_id)})]
        request = {"catalogue": self.catalogue.value}
        return [wanted, *begin_task(CATALOGUES, call.new_id, request, request, call)]


@dataset.listing(CatalogueEntrySummary, path="/catalogue-entries", refuses=[CatalogueNotConfiguredError])
class ListCatalogueEntries(ListQuery[CatalogueEntrySummary]):
    """How far each catalogue has come with each dataset, in the order in which they were first asked for."""

    dataset_id: UUID | None = None
    catalogue: CatalogueName | None = None
    status: CatalogueEntryStatus | None = None

    def answer(self, *known: State | Call) -> Reads[Page[Any]]:
        yield from refuse_unconfigured(self.catalogue)
        return (yield from super().answer(*known))
