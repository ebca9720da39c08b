"""Publications of calibration revisions: what the workflow's activities do, and where its answer is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from baton.application.ports import Authorizer, Batch, Caller, Clock, IdGenerator, Job, Store, StreamAppend, WorkItem
from baton.application.publishing import Publisher, SendingFailedError, Signer, SigningFailedError
from baton.application.record_reader import load_row
from baton.application.unit_of_work import UnitOfWork
from baton.domain.calibration.calibration import Calibration, required_revision
from baton.domain.calibration.publication import (
    LOCK,
    UNDER_WAY,
    CalibrationPublication,
    CalibrationPublicationError,
    PublicationStatus,
    PublishCalibrationRevision,
    PublishedRevision,
    artifact,
    credentials_of,
    is_recorded,
    no_permit,
    published_bytes,
    recorded,
    refusal_of,
    refused,
    signed,
    signing_credential,
)
from baton.domain.federation.credential import Credential
from baton.domain.federation.facility import Facility, own_facility
from baton.domain.federation.permit import Permit
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, required
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.writes import Put


class Publications:
    """Long work: a revision is signed, sent and recorded, each step once however often it is begun."""

    workflow = "calibration-publication"

    def __init__(
        self,
        store: Store,
        authorizer: Authorizer,
        clock: Clock,
        new_id: IdGenerator,
        ports: Ports,
        signer: Signer,
        publisher: Publisher,
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._clock = clock
        self._new_id = new_id
        self._ports = ports
        self._signer = signer
        self._publisher = publisher

    async def job(self, work_id: UUID) -> Job:
        """A repeat has the id of what was refused, whose workflow may still be ending; once it has signed, its own runs."""
        publication = await self._publication(work_id)
        return Job(self.workflow, f"{self.workflow}:{work_id}", str(work_id), succeeds=publication.signature is None)

    async def item(self, work_id: UUID) -> WorkItem | None:
        publication = await load_row(self._store, CalibrationPublication, receipt_id=work_id)
        if publication is None:
            return None
        ids = {"receipt_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(publication.principal_id, "GetCalibration", ids, publication.correlation_id)

    async def progress(self, work_id: UUID) -> None:
        return None

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        publication = await self._publication(work_id)
        match publication.status:
            case PublicationStatus.RUNNING | PublicationStatus.SENDING:
                return None
            case PublicationStatus.PUBLISHED:
                return PublishedRevision(receipt_id=work_id).model_dump(mode="json")
            case PublicationStatus.REFUSED:
                raise refusal_of(publication)

    async def unfinished(self) -> Sequence[UUID]:
        """The publications that have not come to their end."""
        async with self._store.session() as session:
            rows = await session.records(CalibrationPublication, {"status": UNDER_WAY})
        return [row.receipt_id for row in rows]

    async def sign(self, receipt_id: UUID) -> bool:
        """Have the revision signed, once; false where the publication has come to its end."""
        publication = await self._publication(receipt_id)
        if publication.status not in UNDER_WAY:
            return False
        if publication.signature is not None:
            return True
        parts = await self._parts(publication)
        credential = signing_credential(parts.permit, parts.credentials, parts.own, self._clock())
        if credential is None:
            return await self._refuse(receipt_id, asked(publication).without_credential(publication.permit_id))
        revision = required_revision(parts.calibration, publication.revision_id)
        try:
            signature = await self._signer.sign(credential.secret_ref, published_bytes(parts.calibration, revision))
        except SigningFailedError as error:
            return await self._refuse(receipt_id, CalibrationPublicationError(str(error), reason="signing_failed"))
        await self._change(receipt_id, lambda kept: None if kept.signature else signed(kept, signature, self._clock()))
        return True

    async def send(self, receipt_id: UUID) -> bool:
        """Send what is signed, once, if the permit still lets it go; what was sent before is past that question."""
        publication = await self._publication(receipt_id)
        if publication.status not in UNDER_WAY:
            return False
        try:
            if await self._publisher.sent(receipt_id):
                return True
            parts = await self._parts(publication)
            if publication.status is PublicationStatus.RUNNING:
                if not parts.permit.in_force(self._clock()):
                    return await self._refuse(receipt_id, no_permit(publication.peer_facility_id))
                if not await self._change(receipt_id, lambda kept: replace(kept, status=PublicationStatus.SENDING)):
                    return False
            assert parts.own is not None, "what is signed comes from the own facility"
            await self._publisher.send(receipt_id, artifact(publication, parts.calibration, parts.permit, parts.own))
        except SendingFailedError as error:
            return await self._refuse(receipt_id, CalibrationPublicationError(str(error), reason="sending_failed"))
        return True

    async def record(self, receipt_id: UUID) -> None:
        """Tell both streams what was sent, in one transaction; raises ConcurrencyError where one moved meanwhile."""
        publication = await self._publication(receipt_id)
        if publication.status not in UNDER_WAY or not await self._publisher.sent(receipt_id):
            return
        caller = Caller(publication.principal_id, publication.surface_id, publication.correlation_id, receipt_id)
        call = caller.call(self._clock(), self._new_id())
        async with self._store.session() as session:
            unit = UnitOfWork(session, caller, self._authorizer, self._ports)
            calibration: Any = await unit.target(Calibration.aggregate, publication.calibration_id)
            await unit.target(Permit.aggregate, publication.permit_id)
            batch = Batch(call, PublishCalibrationRevision.__name__)
            streams = (publication.calibration_id, publication.permit_id)
            if not is_recorded(publication, calibration):
                for id, event in zip(streams, recorded(publication, calibration, call.now), strict=True):
                    name = event.aggregate.name
                    once = (uuid5(receipt_id, type(event).__name__), event.stamped(id, call.now))
                    batch.appends.append(StreamAppend(name, id, unit.version(name, id), [once]))
            batch.puts.append(Put(replace(publication, status=PublicationStatus.PUBLISHED)))
            await session.append(batch)

    async def _refuse(self, receipt_id: UUID, refusal: Refusal) -> bool:
        """End the publication without a result."""
        await self._change(receipt_id, lambda kept: refused(kept, refusal))
        return False

    async def _publication(self, receipt_id: UUID) -> CalibrationPublication:
        publication = await load_row(self._store, CalibrationPublication, receipt_id=receipt_id)
        assert publication is not None, "what is worked on was asked for"
        return publication

    async def _parts(self, publication: CalibrationPublication) -> "Parts":
        caller = Caller.system(publication.correlation_id)
        async with self._store.session() as session:
            return await UnitOfWork(session, caller, self._authorizer, self._ports).fulfil(parts_of(publication))

    async def _change(
        self, receipt_id: UUID, change: Callable[[CalibrationPublication], CalibrationPublication | None]
    ) -> bool:
        """Change a publication that is under way; an attempt that was given up and comes late changes nothing."""
        async with self._store.session(LOCK) as session:
            (publication,) = await session.records(CalibrationPublication, {"receipt_id": receipt_id})
            if publication.status not in UNDER_WAY:
                return False
            if (changed := change(publication)) is not None:
                call = Caller.system(publication.correlation_id).call(self._clock(), self._new_id())
                await session.append(Batch(call, PublishCalibrationRevision.__name__, puts=[Put(changed)]))
            return True


class Parts(NamedTuple):
    """What a publication is made of, as it stands now."""

    calibration: Calibration
    permit: Permit
    credentials: Mapping[UUID, Credential]
    own: Facility | None


def parts_of(publication: CalibrationPublication) -> Reads[Parts]:
    calibration = yield from required(Calibration, publication.calibration_id)
    permit = yield from required(Permit, publication.permit_id)
    credentials = yield from credentials_of([permit])
    own = yield from own_facility()
    return Parts(calibration, permit, credentials, own)


def asked(publication: CalibrationPublication) -> PublishCalibrationRevision:
    """The command that the publication carries out."""
    return PublishCalibrationRevision(revision_id=publication.revision_id, peer_facility_id=publication.peer_facility_id)
