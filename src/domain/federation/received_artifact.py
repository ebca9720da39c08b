"""What peers published and this facility took in: fetched by reference, checked stage by stage, and kept with the verdict.
Nothing that was received is used by itself: a person adopts it into a calibration."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, NamedTuple, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.calibration.calibration import AppendCalibrationRevision, AppendedRevision, Calibration, CalibrationStatus
from baton.domain.facility.facility import Facility
from baton.domain.federation.artifact_check import (
    ArtifactCheck,
    CheckReason,
    FailedCheck,
    PublishedRevisionForm,
    ReceivedArtifactStatus,
    Sha256,
    Stage,
    StageVerdict,
    accepted_kinds,
    check_artifact,
)
from baton.domain.federation.permit import (
    AbiTier,
    Permit,
    PermitDirection,
    PermitReceiptRecorded,
    permit_in_force,
    permits_of,
)
from baton.domain.federation.publication import ARTIFACT_KIND
from baton.domain.kernel import (
    Aggregate,
    Call,
    Document,
    Event,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    Query,
    State,
    Value,
    copy_with,
)
from baton.domain.registry import OpenedWork
from baton.domain.shared.canonical import canonical_json, derived_uuid7
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, ask, find, record_of, require
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, Refusal
from baton.domain.shared.tasks import Wait, begin_task
from baton.domain.shared.writes import Also, Answer, Put, Record

RECEPTION = (
    "artifact-reception"  # The kind of task that fetches an artifact, and the lock that receptions are recorded under.
)
VERIFIED, REJECTED, UNVERIFIABLE = ReceivedArtifactStatus


class ReceivedRevision(Value):
    """The calibration revision in a verified artifact, by the ids that it has at its publisher."""

    calibration_id: UUID
    target_id: UUID
    revision_id: UUID
    quantity: str
    operating_point: dict[str, Any]
    value: dict[str, Any]
    """The value, by name, in the units that the quantity declares."""
    status: CalibrationStatus
    """Whether the value is provisional or verified."""
    published_at: datetime
    expires_at: datetime
    abi_tier: AbiTier
    """How settled the artifact is: Testing, Stable, Obsolete or Removed."""


class Adoption(Value):
    """One time a received revision was made a revision of an own calibration."""

    calibration_id: UUID
    revision_id: UUID
    adopted_at: datetime
    adopted_by: UUID


@dataclass(frozen=True, kw_only=True)
class ReceivedArtifact(State):
    """A received artifact is what a peer published under one receipt, with the verdict of the check that it went through."""

    source_facility_id: UUID
    receipt_id: UUID
    content_hash: str
    permit_id: UUID
    work_id: UUID  # The reception that fetched what is kept.
    status: ReceivedArtifactStatus
    stage: Stage | None  # The stage that kept it from being Verified.
    reason: CheckReason | None
    """Why the check did not pass."""
    stages: tuple[StageVerdict, ...]
    """How each stage of the check went."""
    credential_id: UUID | None = None
    revision: ReceivedRevision | None = None
    """The calibration revision in the artifact, where it was verified."""
    adoptions: tuple[Adoption, ...] = ()
    """The own calibrations that it was made a revision of."""
    received_at: datetime
    received_by: UUID
    checked_at: datetime
    checked_by: UUID


received_artifact = Aggregate(ReceivedArtifact, "/federation/received-artifacts", context="federation")


class ArtifactCheckEvent(Event):
    """What every check of a received artifact records."""

    source_facility_id: UUID
    receipt_id: UUID
    content_hash: str
    permit_id: UUID
    work_id: UUID
    stages: tuple[StageVerdict, ...]
    checked_by: UUID


class ArtifactVerified(ArtifactCheckEvent, of=received_artifact, version=2, upcasters={1: dict}):
    """A peer's artifact passed every stage; a trusted key of the peer signed all that is kept of it."""

    credential_id: UUID
    revision: ReceivedRevision


class ArtifactRejected(ArtifactCheckEvent, of=received_artifact, version=2, upcasters={1: dict}):
    """A peer's artifact failed a stage."""

    stage: Stage
    reason: CheckReason


class ArtifactUnverifiable(ArtifactCheckEvent, of=received_artifact, version=2, upcasters={1: dict}):
    """A stage could not be run on a peer's artifact, and none failed; it may be checked again."""

    stage: Stage
    reason: CheckReason


class ReceivedArtifactAdopted(Event, of=received_artifact):
    """A person made the received revision one of an own calibration."""

    calibration_id: UUID
    revision_id: UUID
    adopted_by: UUID


CheckEvent = ArtifactVerified | ArtifactRejected | ArtifactUnverifiable


@received_artifact.begin
def begin(event: CheckEvent) -> ReceivedArtifact:
    at, by = event.occurred_at, event.checked_by
    return ReceivedArtifact(id=event.stream_id, created_at=at, received_at=at, received_by=by, **checked_fields(event))


@received_artifact.evolve
def evolve(artifact: ReceivedArtifact, event: CheckEvent | ReceivedArtifactAdopted) -> ReceivedArtifact:
    match event:
        case ReceivedArtifactAdopted():
            adoption = Adoption(**dict(event), adopted_at=event.occurred_at)
            return copy_with(artifact, adoptions=(*artifact.adoptions, adoption))
        case ArtifactVerified() | ArtifactRejected() | ArtifactUnverifiable():
            return copy_with(artifact, **checked_fields(event))
        case _:
            assert_never(event)


def checked_fields(event: CheckEvent) -> dict[str, Any]:
    """Return the fields of the state that a check sets."""
    nothing = {"stage": None, "reason": None, "credential_id": None, "revision": None}
    return {**nothing, **dict(event), "status": STATUSES[type(event)], "checked_at": event.occurred_at}


STATUSES: Mapping[type[Event], ReceivedArtifactStatus] = {
    ArtifactVerified: VERIFIED,
    ArtifactRejected: REJECTED,
    ArtifactUnverifiable: UNVERIFIABLE,
}


@dataclass(frozen=True)
class ReceivedDocument(Record):
    """The artifact as it was fetched."""

    relation: ClassVar[str] = "received_artifact_document"
    key: ClassVar[tuple[str, ...]] = ("received_artifact_id",)
    received_artifact_id: UUID
    document: str


class InboundPermitNotActiveError(Conflict, context="federation"):
    """No inbound permit in force lets artifacts of this kind come in from this peer."""


class ArtifactAlreadyReceivedError(Conflict, context="federation", reason="already_received"):
    """The artifact under this receipt of this peer was received and verified before."""


class PeerNotConfiguredError(Conflict, context="federation", reason="no_address"):
    """The deployment has no address of this peer."""


class InvalidArtifactUriError(Invalid, context="federation", reason="other_address"):
    """An artifact is fetched from the address of its publisher only."""


class ArtifactFetchError(Refusal, context="federation"):
    """The artifact could not be fetched, or is not the one that was asked for; nothing was recorded."""

    status = 502


class ReceivedArtifactDocumentNotFoundError(NotFound, context="federation"):
    """The bytes of this received artifact are not kept any more."""


class ArtifactReference(Value):
    """What names an artifact of a peer: whose it is, its receipt, and the SHA-256 of its canonical bytes."""

    source_facility_id: UUID
    receipt_id: UUID
    content_hash: str
    uri: str | None = None


class ReceptionResult(Value):
    """A received artifact and its verdict; where it is not Verified, the stage that decided and why."""

    received_artifact_id: UUID
    status: ReceivedArtifactStatus
    stage: Stage | None
    reason: CheckReason | None
    """Why the check did not pass."""


class ReceptionAccepted(Value):
    """A reception that is still under way; `get_work` tells how it goes."""

    received_artifact_id: UUID
    work_id: UUID


class ReceptionFacts(NamedTuple):
    """What is asked before an artifact is fetched, and again before it is recorded."""

    source: Facility
    permit: Permit | None
    earlier: ReceivedArtifact | None


def artifact_id_of(source_facility_id: UUID, receipt_id: UUID) -> UUID:
    """Return the id of what one facility published under one receipt; there is one stream for it, however often it comes."""
    return derived_uuid7(receipt_id.int >> 80, "received-artifact", f"{source_facility_id}:{receipt_id}")


def inbound_permit(source_facility_id: UUID, now: datetime) -> Reads[Permit | None]:
    """Return the permit in force under which artifacts of a peer come in, or None."""
    permits = yield from permits_of(source_facility_id, PermitDirection.INBOUND, ARTIFACT_KIND)
    return permit_in_force((one for one in permits if ARTIFACT_KIND in accepted_kinds(one)), now)


def reception_facts(source_facility_id: UUID, receipt_id: UUID, now: datetime) -> Reads[ReceptionFacts]:
    """Return what a reception is judged by, or refuse with 404 where there is no such facility."""
    source = yield from require(Facility, source_facility_id)
    permit = yield from inbound_permit(source_facility_id, now)
    return ReceptionFacts(
        source, permit, (yield from find(ReceivedArtifact, artifact_id_of(source_facility_id, receipt_id)))
    )


def required_permit(facts: ReceptionFacts) -> Permit:
    """Return the permit to receive under; refuse what was verified before, and what no permit lets in."""
    if facts.earlier is not None and facts.earlier.status is VERIFIED:
        detail = f"This artifact was received and verified before, as {facts.earlier.id}; use that one."
        raise ArtifactAlreadyReceivedError(detail, facts={"received_artifact_id": facts.earlier.id})
    if facts.permit is None:
        raise no_permit_refusal(facts.source.id)
    return facts.permit


def no_permit_refusal(source_facility_id: UUID) -> InboundPermitNotActiveError:
    """Return the refusal of what comes from a peer that nothing may come in from."""
    detail = f"No inbound permit in force lets a {ARTIFACT_KIND} of this peer in; define or activate one first."
    facts = {"source_facility_id": source_facility_id}
    return InboundPermitNotActiveError(detail, reason="no_permit_in_force", facts=facts)


@received_artifact.creation(
    work=OpenedWork(RECEPTION), returns=ReceptionResult, accepted=ReceptionAccepted, refuses=[ArtifactFetchError]
)
class ReceiveArtifact(JudgedCreation[tuple[ReceptionFacts, str | None]]):
    """Fetch what a peer published, check it stage by stage and keep it with the verdict; an inbound permit must be in force.

    An artifact that was not Verified before is fetched and checked again. Nothing here rests on it until it is adopted.
    """

    source_facility_id: UUID
    receipt_id: UUID
    content_hash: Annotated[Sha256, Field(description="The SHA-256 of the artifact's canonical bytes, by its publisher.")]
    uri: Annotated[str, Field(max_length=2000, description="Where it is, if not at the peer's usual place.")] | None = None
    wait: Wait = 30

    def gather(self, call: Call) -> Reads[tuple[ReceptionFacts, str | None]]:
        facts = yield from reception_facts(self.source_facility_id, self.receipt_id, call.now)
        deployment = yield from ask(DeploymentPort.deployment)
        return facts, deployment.peer_addresses.get(facts.source.code)

    def decide(self, call: Call, facts: tuple[ReceptionFacts, str | None]) -> Outcome:
        reception, address = facts
        if address is not None and self.uri is not None and not self.uri.startswith(f"{address}/"):
            detail = "The address is not one of this peer; give one under the peer's own address, or none."
            raise InvalidArtifactUriError(detail)
        required_permit(reception)
        if address is None:
            detail = f"There is no address of {reception.source.code} to fetch from; add it to FEDERATION_PEERS."
            raise PeerNotConfiguredError(detail, facts={"facility_code": reception.source.code})
        request = self.model_dump(mode="json", include=set(ArtifactReference.model_fields))
        ids = {"received_artifact_id": artifact_id_of(self.source_facility_id, self.receipt_id)}
        return begin_task(RECEPTION, call.new_id, request, ids, call)


class CheckedReception(NamedTuple):
    """What a reception is judged by, and how the artifact fared if there is a permit to check it under."""

    facts: ReceptionFacts
    check: ArtifactCheck | None


@received_artifact.internal_command(creates=True, command_name=ReceiveArtifact.__name__, lock=RECEPTION, gated=True)
class RecordReception(JudgedCreation[CheckedReception]):
    """Check a fetched artifact and record the verdict; the permit and the keys must stand when that is written."""

    reference: ArtifactReference
    document: str
    work_id: UUID

    def gather(self, call: Call) -> Reads[CheckedReception]:
        wanted = self.reference
        facts = yield from reception_facts(wanted.source_facility_id, wanted.receipt_id, call.now)
        check = None
        if facts.permit is not None:
            document = self.document.encode()
            check = yield from check_artifact(
                document, wanted.content_hash, wanted.receipt_id, facts.permit, facts.source, call.now
            )
        return CheckedReception(facts, check)

    def decide(self, call: Call, reception: CheckedReception) -> Outcome:
        if (recorded := recorded_result(reception.facts.earlier, self.work_id)) is not None:
            return [Answer(recorded)]
        permit = required_permit(reception.facts)
        assert reception.check is not None, "what a permit lets in was checked"
        kept = Put(ReceivedDocument(call.new_id, self.document))
        return [kept, *check_outcome(call.new_id, self.reference, self.work_id, permit, reception.check, call)]


def recorded_result(artifact: ReceivedArtifact | None, work_id: UUID) -> dict[str, object] | None:
    """Return what a reception came to, where it is recorded already."""
    if artifact is None or artifact.work_id != work_id:
        return None
    return reception_result(artifact.id, artifact.status, artifact.stage, artifact.reason)


def reception_result(
    id: UUID, status: ReceivedArtifactStatus, stage: Stage | None, reason: CheckReason | None
) -> dict[str, Any]:
    """Return the answer that tells how an artifact fared."""
    result = ReceptionResult(received_artifact_id=id, status=status, stage=stage, reason=reason)
    return result.model_dump(mode="json")


def check_outcome(
    id: UUID, reference: ArtifactReference, work_id: UUID, permit: Permit, check: ArtifactCheck, call: Call
) -> Outcome:
    """Return what records a verdict: with a verified artifact, its receipt on the inbound permit."""
    common: dict[str, Any] = {
        **reference.model_dump(exclude={"uri"}),
        "permit_id": permit.id,
        "work_id": work_id,
        "stages": check.stages,
        "checked_by": call.principal_id,
    }
    if isinstance(check, FailedCheck):
        kind = ArtifactRejected if check.status is REJECTED else ArtifactUnverifiable
        answer = Answer(reception_result(id, check.status, check.stage, check.reason))
        return [kind(**common, stage=check.stage, reason=check.reason), answer]
    revision = received_revision(check.revision)
    receipt = PermitReceiptRecorded(
        receipt_id=reference.receipt_id,
        content_hash=reference.content_hash,
        home_stream_type=ReceivedArtifact.__name__,
        home_stream_id=id,
        home_artifact_id=revision.revision_id,
        recorded_at=call.now,
    )
    return [
        ArtifactVerified(**common, credential_id=check.credential_id, revision=revision),
        Also(Permit, permit.id, [receipt]),
        Answer(reception_result(id, VERIFIED, None, None)),
    ]


def received_revision(published: PublishedRevisionForm) -> ReceivedRevision:
    """Return what is kept of a verified revision."""
    terms = published.terms
    own = {name: getattr(published, name) for name in ReceivedRevision.model_fields if hasattr(published, name)}
    return ReceivedRevision(**own, published_at=terms.published_at, expires_at=terms.expires_at, abi_tier=terms.abi_tier)


class Recheck(NamedTuple):
    """The permit of a received artifact's publisher, and how the artifact fares under it now."""

    permit: Permit
    check: ArtifactCheck


def recheck_facts(artifact: ReceivedArtifact, call: Call) -> Reads[Recheck]:
    """Return how a received artifact fares now; refuse where no permit is in force."""
    source = yield from require(Facility, artifact.source_facility_id)
    permit = yield from inbound_permit(source.id, call.now)
    if permit is None:
        raise no_permit_refusal(source.id)
    document = (yield from kept_document(artifact)).encode()
    check = yield from check_artifact(document, artifact.content_hash, artifact.receipt_id, permit, source, call.now)
    return Recheck(permit, check)


def kept_document(artifact: ReceivedArtifact) -> Reads[str]:
    """Return the artifact as it was fetched, or refuse with 404."""
    row = yield from record_of(ReceivedDocument, received_artifact_id=artifact.id)
    if row is None:
        raise ReceivedArtifactDocumentNotFoundError("The bytes of this artifact are not kept any more; receive it again.")
    return row.document


@received_artifact.command(
    post="/{received_artifact_id}/recheck",
    allowed=[UNVERIFIABLE],
    status=200,
    returns=ReceptionResult,
    gated=True,
    attempts=3,
)
class RecheckReceivedArtifact(JudgedVerb[ReceivedArtifact, Recheck]):
    """Check an artifact again that could not be checked, by the permit and the keys of now; it is not fetched again."""

    def gather(self, artifact: ReceivedArtifact, call: Call) -> Reads[Recheck]:
        return (yield from recheck_facts(artifact, call))

    def decide(self, artifact: ReceivedArtifact, call: Call, recheck: Recheck) -> Outcome:
        names = ("source_facility_id", "receipt_id", "content_hash")
        reference = ArtifactReference(**{name: getattr(artifact, name) for name in names})
        return check_outcome(artifact.id, reference, artifact.work_id, recheck.permit, recheck.check, call)


class AdoptionFacts(NamedTuple):
    """The calibration that is to have a received revision, who asks, and how the artifact fares now."""

    calibration: Calibration
    caller: Actor | None
    check: ArtifactCheck


@received_artifact.command(
    post="/{received_artifact_id}/adopt", allowed=[VERIFIED], status=201, returns=AppendedRevision, gated=True, attempts=3
)
class AdoptReceivedArtifact(JudgedVerb[ReceivedArtifact, AdoptionFacts]):
    """Make a verified revision of a peer one of an own calibration of the same quantity and operating point.

    The caller vouches for it and must be a person. It is checked once more, by the permit and the keys of now.
    """

    calibration_id: UUID
    """The own calibration, of the same quantity and operating point."""

    def gather(self, artifact: ReceivedArtifact, call: Call) -> Reads[AdoptionFacts]:
        calibration = yield from require(Calibration, self.calibration_id)
        caller = yield from find(Actor, call.principal_id)
        return AdoptionFacts(calibration, caller, (yield from recheck_facts(artifact, call)).check)

    def decide(self, artifact: ReceivedArtifact, call: Call, facts: AdoptionFacts) -> Outcome:
        for adoption in artifact.adoptions:
            if adoption.calibration_id == self.calibration_id:
                detail = "The calibration has this revision already; use that one."
                raise self.cannot("already_adopted", detail, revision_id=adoption.revision_id)
        if facts.caller is None or facts.caller.kind is not ActorKind.HUMAN:
            raise self.cannot("not_a_person", "Only a person can vouch for a value of a peer; have one adopt it.")
        if isinstance(facts.check, FailedCheck):
            stage, cause = facts.check.stage, facts.check.reason
            detail = f"The artifact does not pass the stage {stage} any more ({cause}); have the peer publish it again."
            raise self.cannot("no_longer_verified", detail, stage=stage, cause=cause)
        revision = artifact.revision
        assert revision is not None, "what is Verified has its revision"
        self.refuse_other_calibration(revision, facts.calibration)
        source = {"kind": "Asserted", "asserted_by": call.principal_id}
        append = AppendCalibrationRevision.model_validate(
            {"value": revision.value, "status": revision.status, "source": source}
        )
        adopted = ReceivedArtifactAdopted(
            calibration_id=self.calibration_id, revision_id=call.new_id, adopted_by=call.principal_id
        )
        appended = append.decide(facts.calibration, call, None)
        answer = Answer({"revision_id": str(call.new_id)})
        return [adopted, Also(Calibration, self.calibration_id, appended), answer]

    def refuse_other_calibration(self, revision: ReceivedRevision, calibration: Calibration) -> None:
        """Refuse a calibration of something else than the peer's."""
        if revision.quantity != calibration.quantity:
            detail = f"The peer's value is a {revision.quantity} and the calibration a {calibration.quantity}; name another."
            raise self.cannot("other_quantity", detail, quantity=revision.quantity)
        if canonical_json(revision.operating_point) != canonical_json(calibration.operating_point):
            detail = "The peer's value holds at another operating point; name the calibration of that one, or define it."
            raise self.cannot("other_operating_point", detail, operating_point=revision.operating_point)


GetReceivedArtifact = received_artifact.get(hidden=["created_at"])


@received_artifact.query(
    get="/{received_artifact_id}/document", media_types=["application/json"], refuses=[ReceivedArtifactDocumentNotFoundError]
)
class GetReceivedArtifactDocument(Query[Document]):
    """The artifact as it was fetched, byte for byte."""

    def answer(self, artifact: ReceivedArtifact, call: Call) -> Reads[Document]:
        return Document("application/json", (yield from kept_document(artifact)).encode())


COLUMNS = (
    "source_facility_id receipt_id content_hash permit_id status stage reason credential_id received_at received_by "
    "checked_at checked_by"
)


class ReceivedArtifactSummary(Summary):
    time: ClassVar[str] = "received_at"
    received_artifact_id: UUID
    source_facility_id: UUID
    receipt_id: UUID
    content_hash: str
    permit_id: UUID
    status: ReceivedArtifactStatus
    stage: Stage | None
    reason: CheckReason | None
    credential_id: UUID | None
    received_at: datetime
    received_by: UUID
    checked_at: datetime
    checked_by: UUID


@received_artifact.listing(ReceivedArtifactSummary)
class ListReceivedArtifacts(ListQuery[ReceivedArtifactSummary]):
    """Received artifacts in order of their first reception."""

    source_facility_id: UUID | None = None
    status: ReceivedArtifactStatus | None = None
