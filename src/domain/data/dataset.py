"""A dataset: the record of one data product, what it is, where it came from and how far it is trusted. Its bytes are at
distributions, and nothing here deletes them. Status and intent are two axes: discarding says that the record is void,
promoting and demoting say whether results may rest on it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, NamedTuple, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.calibration.calibration import require_revisions
from baton.domain.data.values import (
    Checksum,
    Content,
    ContentRefusals,
    Encoding,
    GivenByteSize,
    GivenChecksum,
    GivenEncoding,
    GivenUri,
)
from baton.domain.kernel import Aggregate, Call, Event, IdSet, JudgedCreation, JudgedVerb, Outcome, State, Verb, copy_with
from baton.domain.procedure.procedure import UNDER_WAY, Procedure, ProcedureStatus
from baton.domain.run.run import Run, RunStatus, kind_of, phases_of
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.identifiers import GivenExternalId, GivenExternalIdScheme, checked_external_id
from baton.domain.shared.listing import Hidden, NamedListQuery, Summary, Where
from baton.domain.shared.reads import Reads, find_all, members_of, require_all, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, NotFound
from baton.domain.shared.tasks import queue_task
from baton.domain.shared.text import FreeText, Text
from baton.domain.shared.writes import Answer, Delist, Enlist, Put
from baton.domain.step.results import ActuationKind
from baton.domain.subject.subject import Subject

CHILDREN = "dataset-children"  # Look-up kind: the datasets derived from one.
PRODUCTS = "run-datasets"  # Look-up kind: the datasets that a run produced.
USERS = "revision-datasets"  # Look-up kind: the datasets that used a calibration revision.
DIGESTS = "dataset-digest"  # Look-up kind: the datasets with these bytes that are not Discarded.
TOMBSTONE = "dataset-tombstone"  # Kind of task: mark the DOI of a dataset that must not be cited any more.
MAX_PARENTS = 64
MAX_USED = 64
GOOD_ENDS = (RunStatus.COMPLETED, RunStatus.STOPPED)


class DatasetStatus(StrEnum):
    REGISTERED = "Registered"
    DISCARDED = "Discarded"


class DatasetIntent(StrEnum):
    TRIAL = "Trial"  # Nothing may rest on it yet.
    PRODUCTION = "Production"  # Results may rest on it.
    RETRACTED = "Retracted"  # Results did rest on it, and should not have.


REGISTERED, DISCARDED = DatasetStatus
TRIAL, PRODUCTION, RETRACTED = DatasetIntent


@dataclass(frozen=True, kw_only=True)
class Dataset(State):
    """A dataset is one data product: what it is, where it came from and how far it is trusted; its bytes are elsewhere."""

    name: FreeText
    uri: FreeText
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    producing_run_id: UUID | None
    producing_procedure_id: UUID | None
    producing_run_end_state: RunStatus | None  # The run's status when the dataset was registered.
    """How the run ended that made the data."""
    producing_actuation_kind: ActuationKind | None
    """Whether real equipment moved, simulated equipment, or both."""
    subject_id: UUID | None
    derived_from: IdSet
    used_calibration_ids: IdSet  # Revisions, all of them pinned by the producing run.
    status: DatasetStatus = REGISTERED
    intent: DatasetIntent
    """Whether results may rest on it: not yet (Trial), yes (Production), no longer (Retracted)."""
    external_id: str | None = None
    external_id_scheme: str | None = None
    external_id_draft: bool = False
    """Whether the identifier is only reserved, so that nobody finds it yet."""


dataset = Aggregate(Dataset, "/datasets", context="data")


class DatasetRegistered(Event, of=dataset):
    """A data product was recorded, with everything that is known of its origin."""

    name: FreeText
    uri: FreeText
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    producing_run_id: UUID | None
    producing_procedure_id: UUID | None
    producing_run_end_state: RunStatus | None
    producing_actuation_kind: ActuationKind | None
    subject_id: UUID | None
    derived_from: IdSet
    used_calibration_ids: IdSet
    intent: DatasetIntent
    registered_by: UUID


class DatasetPromoted(Event, of=dataset):
    """Somebody found the dataset good enough for results to rest on it."""

    reason: FreeText
    promoted_by: UUID


class DatasetDemoted(Event, of=dataset):
    """Somebody found that results should not have rested on the dataset."""

    reason: FreeText
    demoted_by: UUID


class DatasetDiscarded(Event, of=dataset, leads_to=DISCARDED):
    """The record was declared void; its bytes stay where they are."""

    reason: FreeText
    discarded_by: UUID


class DatasetExternalIdAssigned(Event, of=dataset, version=2, upcasters={1: dict}):
    """The dataset got the identifier that a registry gave it, which it keeps for good; a draft is found by nobody yet."""

    external_id: str
    external_id_scheme: str
    assigned_by: UUID
    draft: bool = False


@dataset.evolve
def evolve(dataset: Dataset, event: DatasetPromoted | DatasetDemoted | DatasetExternalIdAssigned) -> Dataset:
    match event:
        case DatasetPromoted():
            return copy_with(dataset, intent=PRODUCTION)
        case DatasetDemoted():
            return copy_with(dataset, intent=RETRACTED)
        case DatasetExternalIdAssigned():
            named = copy_with(dataset, external_id=event.external_id, external_id_scheme=event.external_id_scheme)
            return copy_with(named, external_id_draft=event.draft)
        case _:
            assert_never(event)


class InvalidDatasetChecksumError(Invalid, context="data"):
    """A checksum is `sha256` or `sha256-tree` and 64 lowercase hexadecimal digits."""


class InvalidDatasetByteSizeError(Invalid, context="data"):
    """A size in bytes is 0 or more, and below 2^53."""


class InvalidDatasetEncodingError(Invalid, context="data"):
    """An encoding needs a media type, and at most 16 profiles that are URIs."""


class InvalidDatasetUriError(Invalid, context="data"):
    """A URI needs a scheme that names a place where bytes are."""


class InvalidDerivedFromError(Invalid, context="data"):
    """A dataset is derived from at most 64 others."""


class InvalidUsedCalibrationsError(Invalid, context="data"):
    """A dataset uses at most 64 calibration revisions."""


class InvalidPromotionReasonError(Invalid, context="data"):
    """A promotion needs a reason that is not blank."""


class InvalidDemotionReasonError(Invalid, context="data"):
    """A demotion needs a reason that is not blank."""


class InvalidDatasetExternalIdError(Invalid, context="data"):
    """An external identifier is 1 to 200 characters, without the name of its scheme and without an address before it."""


class ProducingRunNotFoundError(NotFound, context="data"):
    """The run that is said to have produced this does not exist."""


class ProducingProcedureNotFoundError(NotFound, context="data"):
    """The procedure that is said to have produced this does not exist."""


class LinkedSubjectNotFoundError(NotFound, context="data"):
    """The subject that this is said to show does not exist."""


class DerivedFromDatasetsNotFoundError(NotFound, context="data"):
    """A dataset that this is said to be derived from does not exist."""


class ProducingProcedureNotTerminalError(Conflict, context="data"):
    """A procedure has produced something only once it has ended."""


class DerivedFromDatasetsDiscardedError(Conflict, context="data"):
    """Nothing new is derived from a Discarded dataset."""


class DatasetAlreadyIngestedError(Conflict, context="data", reason="already_ingested"):
    """A dataset with these bytes is on record already, and still counts."""


class DatasetCalibrationsNotSubsetError(Conflict, context="data"):
    """A dataset uses only calibration revisions that its run had pinned."""


class Origin(NamedTuple):
    """Where a dataset is said to come from, as the record has it."""

    run: Run | None
    procedure: Procedure | None
    subject_id: UUID | None
    parents: Mapping[UUID, Dataset]
    actuation_kind: ActuationKind | None
    duplicate_of: UUID | None  # The first dataset with the same bytes.


class RegisteredDataset(AnswerForm):
    """A dataset that was registered, and the one that had its bytes already, where there is one."""

    dataset_id: UUID
    duplicate_of: UUID | None


def first_with_bytes(digest: str) -> Reads[UUID | None]:
    """Return the first dataset that counts and has the bytes with this digest, or None."""
    return next(iter((yield from members_of(DIGESTS, digest))), None)


def refuse_duplicate(origin: Origin, *, allowed: bool) -> None:
    """Refuse bytes that are a dataset already, unless the caller allows a second one."""
    if origin.duplicate_of is not None and not allowed:
        detail = "A dataset with these bytes is on record already; use it, discard it first, or give allow_duplicate."
        facts = dict.fromkeys(("dataset_id", "duplicate_of"), origin.duplicate_of)
        raise DatasetAlreadyIngestedError(detail, facts=facts)


CONTENT_REFUSALS = ContentRefusals(
    InvalidDatasetUriError, InvalidDatasetChecksumError, InvalidDatasetByteSizeError, InvalidDatasetEncodingError
)


@dataset.creation(returns=RegisteredDataset, gated=True, refuses=[*CONTENT_REFUSALS])
class RegisterDataset(JudgedCreation[Origin]):
    """Record a data product; it begins as a Trial that nothing may rest on. Its run may still be under way."""

    name: Annotated[str, dataset.text("name", 200, personal=True)]
    uri: GivenUri
    checksum: GivenChecksum
    byte_size: GivenByteSize
    encoding: GivenEncoding
    producing_run_id: UUID | None = None
    producing_procedure_id: UUID | None = None
    subject_id: UUID | None = None
    derived_from: Annotated[IdSet, Field(max_length=1000, description="The datasets it was made from.")] = frozenset()
    used_calibration_ids: Annotated[
        IdSet, Field(max_length=1000, description="Revisions, all of them pinned by the producing run.")
    ] = frozenset()
    allow_duplicate: bool = False

    def gather(self, call: Call) -> Reads[Origin]:
        run = yield from require_if_given(Run, self.producing_run_id, ProducingRunNotFoundError)
        procedure = yield from require_if_given(Procedure, self.producing_procedure_id, ProducingProcedureNotFoundError)
        yield from require_if_given(Subject, self.subject_id, LinkedSubjectNotFoundError)
        parents = yield from require_all(Dataset, self.derived_from, DerivedFromDatasetsNotFoundError)
        yield from require_revisions(self.used_calibration_ids)
        kind = procedure.actuation_kind if procedure else (yield from actuation_kind_now(run))
        duplicate_of = yield from first_with_bytes(self.checksum.value)
        return Origin(run, procedure, self.subject_id, parents, kind, duplicate_of)

    def decide(self, call: Call, origin: Origin) -> Outcome:
        content = Content.from_given(self.uri, self.checksum, self.byte_size, self.encoding, CONTENT_REFUSALS)
        registered = registration(self.name, content, origin, self.used_calibration_ids, call)
        refuse_duplicate(origin, allowed=self.allow_duplicate)
        answer = RegisteredDataset(dataset_id=call.new_id, duplicate_of=origin.duplicate_of)
        return [*registered, Answer(answer.model_dump(mode="json"))]


def actuation_kind_now(run: Run | None) -> Reads[ActuationKind | None]:
    """Return what a run was done on so far, its phases under way included."""
    return None if run is None else kind_of(run, (yield from phases_of(run)))


def registration(name: str, content: Content, origin: Origin, used_calibration_ids: Iterable[UUID], call: Call) -> Outcome:
    """Return what records a new dataset, or refuse an origin that the record does not bear out."""
    used = frozenset(used_calibration_ids)
    _check_bounds(origin.parents, used)
    _check_origin(origin, used)
    registered = DatasetRegistered(
        **dict(content),
        name=name,
        producing_run_id=None if origin.run is None else origin.run.id,
        producing_procedure_id=None if origin.procedure is None else origin.procedure.id,
        producing_run_end_state=None if origin.run is None else origin.run.status,
        producing_actuation_kind=origin.actuation_kind,
        subject_id=origin.subject_id,
        derived_from=frozenset(origin.parents),
        used_calibration_ids=used,
        intent=TRIAL,
        registered_by=call.principal_id,
    )
    sources = {CHILDREN: sorted(origin.parents), PRODUCTS: [origin.run.id] if origin.run else [], USERS: sorted(used)}
    listed = (Enlist(kind, str(id)) for kind, ids in sources.items() for id in ids)
    return [registered, Enlist(DIGESTS, content.checksum.value), *listed]


def _check_bounds(parents: Mapping[UUID, Dataset], used: frozenset[UUID]) -> None:
    if len(parents) > MAX_PARENTS:
        detail = f"A dataset is derived from at most {MAX_PARENTS} others, and {len(parents)} are given; leave some out."
        raise InvalidDerivedFromError(detail, reason="too_many")
    if len(used) > MAX_USED:
        detail = f"A dataset uses at most {MAX_USED} calibration revisions, and {len(used)} are given; leave some out."
        raise InvalidUsedCalibrationsError(detail, reason="too_many")


def _check_origin(origin: Origin, used: frozenset[UUID]) -> None:
    if origin.procedure is not None and origin.procedure.status in (ProcedureStatus.DEFINED, *UNDER_WAY):
        detail = f"The procedure is {origin.procedure.status}; register what it produced once it has ended."
        raise ProducingProcedureNotTerminalError(detail, reason="not_terminal")
    if discarded := sorted(id for id, parent in origin.parents.items() if parent.status is DISCARDED):
        detail = "A dataset that this is derived from is Discarded; name one that still counts."
        raise DerivedFromDatasetsDiscardedError(detail, reason="discarded", facts={"dataset_ids": discarded})
    pinned = origin.run.pinned_calibration_ids if origin.run else frozenset()
    if foreign := sorted(used - pinned):
        detail = (
            "The producing run pinned other calibration revisions; name only those, or have a run that pins them compute it."
            if origin.run
            else "Only a dataset with a producing run uses calibration revisions; name the run that pinned them."
        )
        raise DatasetCalibrationsNotSubsetError(detail, reason="not_pinned", facts={"revision_ids": foreign})


class Trust(NamedTuple):
    """What a promotion is judged by: the producing run and the parents as they are now."""

    run: Run | None
    parents: Mapping[UUID, Dataset]
    actuation_kind: ActuationKind | None


@dataset.command(post="/{dataset_id}/promote", allowed=[REGISTERED], gated=True)
class PromoteDataset(JudgedVerb[Dataset, Trust]):
    """Declare a Trial dataset good enough for results to rest on it; one of a simulation never is."""

    reason: Annotated[str, Text(500, InvalidPromotionReasonError, "reason", personal=True)]

    def gather(self, dataset: Dataset, call: Call) -> Reads[Trust]:
        run = yield from require_if_given(Run, dataset.producing_run_id)
        kind = dataset.producing_actuation_kind or (yield from actuation_kind_now(run))
        return Trust(run, (yield from find_all(Dataset, sorted(dataset.derived_from))), kind)

    def require(self, dataset: Dataset) -> None:
        if dataset.intent is PRODUCTION:
            raise self.cannot("production", "The dataset is Production already.")
        if dataset.intent is RETRACTED:
            raise self.cannot("retracted", "The dataset is Retracted for good; register a new one that is derived from it.")

    def decide(self, dataset: Dataset, call: Call, trust: Trust) -> Outcome:
        if trust.run is not None and trust.run.status not in GOOD_ENDS:
            detail = f"The producing run is {trust.run.status}; only what a Completed or Stopped run left is promoted."
            raise self.cannot("run_not_good", detail, run_id=trust.run.id, run_status=trust.run.status)
        if doubtful := sorted(id for id, parent in trust.parents.items() if parent.intent is not PRODUCTION):
            detail = "A dataset that this is derived from is not Production; promote that one first."
            raise self.cannot("parents_not_production", detail, dataset_ids=doubtful)
        if trust.actuation_kind in (ActuationKind.SIMULATED, ActuationKind.HYBRID):
            detail = f"It comes from a {trust.actuation_kind.lower()} plant; only what real equipment measured is promoted."
            raise self.cannot("simulated_origin", detail, actuation_kind=trust.actuation_kind)
        if dataset.producing_procedure_id is not None and dataset.producing_actuation_kind is None:
            detail = "The producing procedure does not say what it was done on, so its origin is unproven; it stays a Trial."
            raise self.cannot("origin_unproven", detail)
        witness = None if trust.run is None else trust.run.witness
        if witness is not None and witness.simulated is None:
            detail = "The witness of its run does not say what it was done on, so its origin is unproven; it stays a Trial."
            raise self.cannot("origin_unproven", detail)
        if witness is not None and witness.witnessed_by == call.principal_id:
            detail = "The account that witnessed its run cannot vouch for what it says itself; somebody else promotes it."
            raise self.cannot("own_witness", detail)
        return [DatasetPromoted(reason=self.reason, promoted_by=call.principal_id)]


@dataset.command(post="/{dataset_id}/demote", allowed=[REGISTERED])
class DemoteDataset(Verb[Dataset]):
    """Declare that results should not have rested on a Production dataset; it never returns, but a new one may follow it."""

    reason: Annotated[str, Text(500, InvalidDemotionReasonError, "reason", personal=True)]

    def require(self, dataset: Dataset) -> None:
        if dataset.intent is TRIAL:
            raise self.cannot("trial", "The dataset is a Trial, which nothing rests on; discard it instead.")
        if dataset.intent is RETRACTED:
            raise self.cannot("retracted", "The dataset is Retracted already.")

    def decide(self, dataset: Dataset, call: Call) -> Outcome:
        return [DatasetDemoted(reason=self.reason, demoted_by=call.principal_id), *tombstone_of(dataset, call)]


@dataset.command(post="/{dataset_id}/discard", allowed=[REGISTERED], destructive=True)
class DiscardDataset(Verb[Dataset]):
    """Declare the record void; children, copies, editions and bytes stay as they are."""

    reason: Annotated[str, dataset.text("discard_reason", 500, label="reason", personal=True)]

    def decide(self, dataset: Dataset, call: Call) -> Outcome:
        discarded = DatasetDiscarded(reason=self.reason, discarded_by=call.principal_id)
        return [discarded, Delist(DIGESTS, dataset.checksum.value), *tombstone_of(dataset, call)]


def tombstone_of(dataset: Dataset, call: Call) -> tuple[Put, ...]:
    """Return the task that marks the DOI of a dataset, where one was minted here: such a DOI ends with the dataset's id."""
    if not (dataset.external_id or "").lower().endswith(f"/{dataset.id}"):
        return ()
    ids = {"dataset_id": str(dataset.id)}
    return (queue_task(TOMBSTONE, call.id_for(TOMBSTONE), ids, ids, call),)


def tombstone_text(dataset: Dataset) -> str:
    """Return what everybody may read under the DOI of a dataset that must not be cited any more."""
    if dataset.status is DISCARDED:
        return "This dataset was discarded: its record is void."
    return "This dataset was retracted: results should not rest on it."


@dataset.command(post="/{dataset_id}/assign-external-id")
class AssignDatasetExternalId(Verb[Dataset]):
    """Keep the identifier a registry gave the dataset, once and for all, in whatever status it is."""

    external_id: GivenExternalId
    external_id_scheme: GivenExternalIdScheme = "DOI"

    def require(self, dataset: Dataset) -> None:
        if dataset.external_id is not None:
            detail = "The dataset has an external identifier already; it keeps that one."
            kept = {"external_id": dataset.external_id, "external_id_scheme": dataset.external_id_scheme}
            raise self.cannot("already_assigned", detail, **kept)

    def decide(self, dataset: Dataset, call: Call) -> Outcome:
        kept = checked_external_id(self.external_id, self.external_id_scheme, InvalidDatasetExternalIdError)
        id, scheme = kept["external_id"], kept["external_id_scheme"]
        return [DatasetExternalIdAssigned(external_id=id, external_id_scheme=scheme, assigned_by=call.principal_id)]


GetDataset = dataset.get(hidden=["created_at"])


class DatasetSummary(Summary):
    dataset_id: UUID
    name: FreeText
    uri: FreeText
    checksum: Checksum
    byte_size: int
    producing_run_id: UUID | None
    producing_procedure_id: UUID | None
    subject_id: UUID | None
    status: DatasetStatus
    intent: DatasetIntent
    used_calibration_ids: IdSet
    created_at: datetime
    derived_from: Hidden[IdSet]
    producing_actuation_kind: Hidden[ActuationKind | None]


@dataset.listing(DatasetSummary)
class ListDatasets(NamedListQuery[DatasetSummary]):
    """Datasets in order of registration; `derived_from` lists the direct children of one."""

    indexed: ClassVar[tuple[str, ...]] = ("derived_from",)

    status: DatasetStatus | None = None
    intent: DatasetIntent | None = None
    """Whether results may rest on it: not yet (Trial), yes (Production), no longer (Retracted)."""
    producing_run_id: UUID | None = None
    subject_id: UUID | None = None
    derived_from: UUID | None = None
    """Only datasets made directly from this one."""
    used_calibration_id: UUID | None = None

    def where(self) -> Iterator[Where]:
        if self.derived_from is not None:
            yield Where("derived_from", "has", self.derived_from)
        yield from (one for one in super().where() if one.column != "derived_from")
