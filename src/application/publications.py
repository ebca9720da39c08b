"""Publications of calibration revisions: what the workflow's activities do, and where its answer is read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.long_work import Pace, RowWork, carries_out
from baton.application.ports import Batch, Job, Publisher, SendingFailedError, Signer, SigningFailedError
from baton.domain.calibration.calibration import Calibration
from baton.domain.facility.facility import Facility, own_facility
from baton.domain.federation import publication as rules
from baton.domain.federation.credential import Credential
from baton.domain.federation.permit import Permit
from baton.domain.federation.publication import CalibrationPublication, PublicationStatus
from baton.domain.shared.reads import Reads, require
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.writes import Put


@dataclass
class Publications(RowWork[CalibrationPublication]):
    """Long work: a revision is signed, sent and recorded, each step once however often it is begun."""

    workflow = "calibration-publication"
    row_type = CalibrationPublication
    command_name = rules.PublishCalibrationRevision.__name__
    readable_with = "GetCalibration"
    running = rules.UNDER_WAY
    commands: Commands
    signer: Signer
    publisher: Publisher

    async def job(self, work_id: UUID) -> Job:
        """Return the job; an unsigned repeat has the id of a refused publication whose workflow may still be ending."""
        return replace(await super().job(work_id), succeeds=(await self.load(work_id)).signature is None)

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        publication = await self.load(work_id)
        match publication.status:
            case PublicationStatus.RUNNING | PublicationStatus.SENDING:
                return None
            case PublicationStatus.PUBLISHED:
                return rules.PublishedRevision(receipt_id=work_id).model_dump(mode="json")
            case PublicationStatus.REFUSED:
                raise rules.refusal_of(publication)

    @carries_out("sign_calibration_publication", Pace.QUICK)
    async def sign(self, receipt_id: UUID) -> bool:
        """Sign the revision, once; return false where the publication has ended."""
        publication = await self.load(receipt_id)
        if publication.status not in rules.UNDER_WAY:
            return False
        if publication.signature is not None:
            return True
        parts = await self._parts(publication)
        credential = rules.signing_credential(parts.permit, parts.credentials, parts.own, self.commands.clock())
        if credential is None:
            revision_id, peer_id = publication.revision_id, publication.peer_facility_id
            asked = rules.PublishCalibrationRevision(revision_id=revision_id, peer_facility_id=peer_id)
            return await self._refuse(receipt_id, asked.no_credential_refusal(publication.permit_id))
        assert parts.own is not None, "a credential of the own facility was found"
        now = self.commands.clock()
        dated = replace(publication, published_at=now)  # The time is among what is signed.
        content = rules.published_bytes(dated, parts.calibration, parts.permit, parts.own)
        try:
            signature = await self.signer.sign(credential.secret_ref, content)
        except SigningFailedError as error:
            return await self._refuse(receipt_id, rules.CalibrationPublicationError(str(error), reason="signing_failed"))
        await self.change(receipt_id, lambda row: row if row.signature else rules.with_signature(row, signature, now))
        return True

    @carries_out("send_calibration_publication", Pace.QUICK)
    async def send(self, receipt_id: UUID) -> bool:
        """Send the signed revision, once, if the permit still allows it; one that was sent needs none any more."""
        if not await self.sign(receipt_id):  # It is signed, unless an earlier build signed it in a form of its own.
            return False
        publication = await self.load(receipt_id)
        try:
            if await self.publisher.is_sent(receipt_id):
                return True
            parts = await self._parts(publication)
            if publication.status is PublicationStatus.RUNNING:
                if not parts.permit.is_in_force(self.commands.clock()):
                    return await self._refuse(receipt_id, rules.no_permit_refusal(publication.peer_facility_id))
                if not await self.change(receipt_id, lambda current: replace(current, status=PublicationStatus.SENDING)):
                    return False
            assert parts.own is not None, "what is signed comes from the own facility"
            artifact = rules.artifact_bytes(publication, parts.calibration, parts.permit, parts.own)
            await self.publisher.send(receipt_id, artifact)
        except SendingFailedError as error:
            return await self._refuse(receipt_id, rules.CalibrationPublicationError(str(error), reason="sending_failed"))
        return True

    @carries_out("record_calibration_publication", Pace.QUICK)
    async def record(self, receipt_id: UUID) -> None:
        """Append what was sent to both streams, in one transaction; raise ConcurrencyError where one moved meanwhile."""
        publication = await self.load(receipt_id)
        if publication.status not in rules.UNDER_WAY or not await self.publisher.is_sent(receipt_id):
            return
        caller = Caller(publication.principal_id, publication.surface_id, publication.correlation_id, receipt_id)
        call = caller.call(self.commands.clock(), self.commands.new_id())
        async with self.commands.store.session() as session:
            unit = self.commands.unit_of_work(session, caller)
            parts = await unit.fulfil(read_parts(publication))
            assert parts.own is not None, "what was sent comes from the own facility"
            sources = (parts.calibration, parts.permit, parts.own)
            batch = Batch(call, rules.PublishCalibrationRevision.__name__)
            streams = (publication.calibration_id, publication.permit_id)
            if not rules.is_recorded(publication, parts.calibration):
                for id, event in zip(streams, rules.publication_events(publication, *sources, call.now), strict=True):
                    event_id = partial(uuid5, receipt_id, type(event).__name__)
                    batch.add([event], id, unit.version, event_id)
            batch.puts.append(Put(replace(publication, status=PublicationStatus.PUBLISHED)))
            await session.append(batch)

    async def _refuse(self, receipt_id: UUID, refusal: Refusal) -> bool:
        await self.change(receipt_id, lambda current: rules.with_refusal(current, refusal))
        return False

    async def _parts(self, publication: CalibrationPublication) -> "PublicationParts":
        return await self.commands.read(read_parts(publication), Caller.system(publication.correlation_id))


class PublicationParts(NamedTuple):
    calibration: Calibration
    permit: Permit
    credentials: Mapping[UUID, Credential]
    own: Facility | None


def read_parts(publication: CalibrationPublication) -> Reads[PublicationParts]:
    calibration = yield from require(Calibration, publication.calibration_id)
    permit = yield from require(Permit, publication.permit_id)
    credentials = yield from rules.credentials_of([permit])
    own = yield from own_facility()
    return PublicationParts(calibration, permit, credentials, own)
