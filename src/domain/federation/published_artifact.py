"""What this facility published, as its peers read it: the list of what went to one of them, and each artifact as sent."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.facility.facility import Facility, facility
from baton.domain.federation.permit import (
    OutboundTerms,
    Permit,
    PermitDirection,
    PermitReceiptRecorded,
    ReadScope,
    permit,
    permits_of,
)
from baton.domain.federation.publication import (
    ARTIFACT_KIND,
    CalibrationPublication,
    OutboundPermitNotActiveError,
    PublicationStatus,
    no_permit_refusal,
)
from baton.domain.kernel import Call, CursorText, Document, PageLimit, Query, Value
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.listing import Cursor, Order, Page
from baton.domain.shared.reads import Reads, ask, events_of, find, record_of
from baton.domain.shared.refusals import Forbidden, NotFound

ARTIFACTS = "/federation/artifacts"


class PublishedArtifactNotFoundError(NotFound, context="federation"):
    """Nothing was published under this receipt."""


class PeerAccountError(Forbidden, context="federation"):
    """An account of a peer reads what was published to its own facility, and nothing else."""


NOT_READABLE = (OutboundPermitNotActiveError, PeerAccountError)


class PublishedArtifact(Value):
    """What a peer needs to ask for an artifact, and to know that it got that one."""

    receipt_id: UUID
    content_hash: str
    artifact_kind: str
    """The kind of artifact."""
    published_at: datetime


class ArtifactPort(Protocol):
    """Keeps what was sent."""

    async def published_artifact(self, receipt_id: UUID) -> bytes | None:
        """Return what was sent under a receipt, or None where it is not kept here."""


@permit.query(
    path=f"{ARTIFACTS}/{{receipt_id}}",
    media_types=["application/json"],
    refuses=[PublishedArtifactNotFoundError, *NOT_READABLE],
)
class GetPublishedArtifact(Query[Document]):
    """A published artifact as it was sent, as long as the permit is in force that let it go."""

    receipt_id: UUID

    def answer(self, call: Call) -> Reads[Document]:
        own_code = yield from facility_of_caller(call)
        publication = yield from record_of(CalibrationPublication, receipt_id=self.receipt_id)
        if publication is None or publication.status is not PublicationStatus.PUBLISHED:
            raise self.not_found()
        peer = yield from find(Facility, publication.peer_facility_id)
        if own_code is not None and (peer is None or peer.code != own_code):
            raise self.not_found()
        granted = yield from find(Permit, publication.permit_id)
        if granted is None or not granted.is_in_force(call.now):
            raise no_permit_refusal(publication.peer_facility_id)
        assert isinstance(granted.terms, OutboundTerms), "an outbound permit has outbound terms"
        if granted.terms.read_scope is ReadScope.LIST_METADATA_ONLY:
            detail = "The permit lets this peer list what was published and not read it; ask for a wider read_scope."
            raise OutboundPermitNotActiveError(detail, reason="metadata_only")
        if (artifact := (yield from ask(ArtifactPort.published_artifact, self.receipt_id))) is None:
            raise self.not_found()
        return Document("application/json", artifact)

    def not_found(self) -> PublishedArtifactNotFoundError:
        """Return the refusal of a receipt that nothing was published under, or whose artifact is not kept here."""
        detail = f"There is no artifact {self.receipt_id} here; list what was published, or ask for it to be published."
        return PublishedArtifactNotFoundError(detail, facts={"missing_ids": [self.receipt_id]})


@facility.query(get="/{facility_id}/artifacts", returns=Page[PublishedArtifact], refuses=NOT_READABLE)
class ListPublishedArtifacts(Query[Page[PublishedArtifact]]):
    """What was published to a facility under the permits in force, in order of time."""

    limit: PageLimit = 50
    cursor: CursorText | None = None
    order: Order = Order.ASC

    def answer(self, peer: Facility, call: Call) -> Reads[Page[PublishedArtifact]]:
        own_code = yield from facility_of_caller(call)
        if own_code is not None and peer.code != own_code:
            detail = f"This account is of {own_code} and lists what was published to that facility alone; name its id."
            raise PeerAccountError(detail, reason="other_facility")
        after = Cursor.parse(self.cursor, self.order) if self.cursor else None
        found = yield from permits_of(peer.id, PermitDirection.OUTBOUND, ARTIFACT_KIND)
        in_force = [one for one in found if one.is_in_force(call.now)]
        if not in_force:
            raise no_permit_refusal(peer.id)
        receipts: list[PermitReceiptRecorded] = []
        for one in in_force:
            receipts += yield from events_of(one.id, PermitReceiptRecorded)
        return page_of(receipts, after, self.order, self.limit)


def facility_of_caller(call: Call) -> Reads[str | None]:
    """Return the code of the peer whose account the caller is, or None for a person of this facility; refuse a service
    account that is bound to no facility."""
    deployment = yield from ask(DeploymentPort.deployment)
    if (code := deployment.peer_accounts.get(call.principal_id)) is not None:
        return code
    caller = yield from find(Actor, call.principal_id)
    if caller is not None and caller.kind is ActorKind.SERVICE_ACCOUNT:
        detail = "This account is bound to no facility; have it listed in the accounts of its peer in FEDERATION_PEERS."
        raise PeerAccountError(detail, reason="not_bound")
    return None


def page_of(
    receipts: Sequence[PermitReceiptRecorded], after: Cursor | None, order: Order, limit: int
) -> Page[PublishedArtifact]:
    """Return the page of receipts that follows a cursor."""
    descending = order is Order.DESC
    keyed = sorted(((one.recorded_at, one.receipt_id, one) for one in receipts), key=lambda row: row[:2], reverse=descending)
    if after is not None:
        place = (after.time, after.id)
        keyed = [row for row in keyed if (row[:2] < place if descending else row[:2] > place)]
    items = tuple(
        PublishedArtifact(
            receipt_id=receipt.receipt_id,
            content_hash=receipt.content_hash,
            artifact_kind=ARTIFACT_KIND,
            published_at=receipt.recorded_at,
        )
        for _, _, receipt in keyed[:limit]
    )
    more = len(keyed) > limit
    cursor = Cursor(order=order, time=items[-1].published_at, id=items[-1].receipt_id) if more else None
    return Page(items, None if cursor is None else str(cursor))
