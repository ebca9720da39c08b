"""A publication step by step: each step once however often it is begun, and whatever fails, the record is true."""

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from baton.application.ports import Batch, SendingFailedError
from baton.application.publications import Publications
from baton.domain.access.actor import RegisterActor
from baton.domain.calibration.calibration import Calibration
from baton.domain.facility.facility import RegisterFacility
from baton.domain.federation.credential import (
    CompleteCredentialRotation,
    RegisterCredential,
    RevokeCredential,
    StartCredentialRotation,
)
from baton.domain.federation.permit import ActivatePermit, DefinePermit, Permit, ResumePermit, SuspendPermit
from baton.domain.federation.publication import (
    CalibrationPublicationError,
    OutboundPermitNotActiveError,
    PublishCalibrationRevision,
)
from baton.domain.shared.refusals import ConcurrencyError
from baton.infrastructure.signing import key_id
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller, new_id
from tests.support.application.ports import ports_of
from tests.support.domain.calibrations import definition, measured_revision
from tests.support.domain.peers import permit_fields
from tests.support.infrastructure.memory_adapters import MemoryPublisher, MemorySigner

SECRET = "file://calibration"


@dataclass(frozen=True)
class Deployment:
    self_facility_code: str = "facility"


async def deployment() -> Deployment:
    return Deployment()


@dataclass
class Brittle(MemoryPublisher):
    """A publisher that fails as told."""

    failure: Exception | None = None
    artifacts: dict[UUID, bytes] = field(default_factory=dict)

    async def send(self, receipt_id: UUID, artifact: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        await super().send(receipt_id, artifact)


class RacedStore(MemoryStore):
    """A store in which somebody else is faster, once."""

    interference: Callable[[], None] | None = None

    def check(self, batch: Batch) -> None:
        if self.interference is not None:
            interference, self.interference = self.interference, None
            interference()
        super().check(batch)


@dataclass
class Scene:
    """A service with a revision on its way to a peer, and no engine: the test does the steps."""

    client: CommandCaller
    store: RacedStore
    keys: dict[str, Ed25519PrivateKey]
    publisher: Brittle
    publications: Publications
    calibration_id: UUID
    permit_id: UUID
    credential_id: UUID
    publish: PublishCalibrationRevision
    receipt_id: UUID

    def publications_through(self, signer: Any, publisher: Any) -> Publications:
        """The same work through other hands."""
        return Publications(self.client.commands, signer, publisher)

    async def events(self, stream_type: str, id: UUID) -> list[str]:
        async with self.client.store.session() as session:
            return [row.event_type for row in await session.load(stream_type, [id])]

    async def publication_counts(self) -> tuple[int, int]:
        """How often each stream tells of the publication."""
        told = await self.events(Calibration.__name__, self.calibration_id)
        receipts = await self.events(Permit.__name__, self.permit_id)
        return told.count("CalibrationRevisionPublished"), receipts.count("PermitReceiptRecorded")

    def signing_key_of(self, receipt_id: UUID) -> str:
        """Return the reference of the key that signed what was sent, which its signature proves."""
        artifact = json.loads(self.publisher.artifacts[receipt_id])
        envelope = artifact["signature_envelope"]
        content, signature = base64.b64decode(artifact["canonical_bytes"]), bytes.fromhex(envelope["bytes_hex"])
        [reference] = [name for name, key in self.keys.items() if key_id(key.public_key()) == envelope["kid"]]
        self.keys[reference].public_key().verify(signature, content)
        return reference

    async def run_steps(self) -> bool:
        """Every step in order, until one refuses."""
        id = self.receipt_id
        if await self.publications.sign(id) and await self.publications.send(id):
            await self.publications.record(id)
            return True
        return False


@pytest.fixture
async def scene() -> Scene:
    store = RacedStore()
    client = CommandCaller(store, ports=ports_of(deployment=deployment))
    mira = await client.create(RegisterActor(name="Mira Okafor"))
    client = client.acting_as(mira)
    site = {"display_name": "Light Source", "kind": "Site"}
    own = await client.create(RegisterFacility(code="facility", **site))
    peer = await client.create(RegisterFacility(code="beta-source", **site))
    key = await client.create(
        RegisterCredential(facility_id=own, audience="registry.example", purpose="Signing", secret_ref=SECRET)
    )
    permit = await client.create(DefinePermit(**permit_fields(peer, allowed_credential_ids=[key])))
    await client.do(ActivatePermit(), on=permit)
    calibration = await client.create(definition())
    appended = await client.do(measured_revision(status="Verified"), on=calibration)
    assert appended.body
    publish = PublishCalibrationRevision(revision_id=UUID(appended.body["revision_id"]), peer_facility_id=peer)
    accepted = await client.do(publish, on=calibration)
    assert accepted.body
    publisher = Brittle()
    keys = {SECRET: Ed25519PrivateKey.generate()}
    publications = Publications(client.commands, MemorySigner(keys), publisher)
    receipt_id = UUID(accepted.body["receipt_id"])
    return Scene(client, store, keys, publisher, publications, calibration, permit, key, publish, receipt_id)


async def test_step_by_step_a_revision_is_published(scene: Scene) -> None:
    assert await scene.publications.unfinished_ids() == [scene.receipt_id]
    assert await scene.publications.answer(scene.receipt_id) is None
    assert await scene.run_steps()
    assert await scene.publications.answer(scene.receipt_id) == {"receipt_id": str(scene.receipt_id)}
    assert await scene.publications.unfinished_ids() == []
    assert (await scene.publication_counts(), list(scene.publisher.artifacts)) == ((1, 1), [scene.receipt_id])


async def test_every_step_may_be_repeated(scene: Scene) -> None:
    id = scene.receipt_id
    for _ in range(2):
        assert await scene.publications.sign(id)
    sent = []
    for _ in range(2):
        assert await scene.publications.send(id)
        sent.append(scene.publisher.artifacts[id])
    for _ in range(2):
        await scene.publications.record(id)
    assert (await scene.publication_counts(), sent[0]) == ((1, 1), sent[1])
    assert not await scene.publications.sign(id)
    assert not await scene.publications.send(id)


async def test_what_was_signed_in_an_older_form_is_signed_anew_before_it_is_sent(scene: Scene) -> None:
    """Upgrading takes such signatures away, and the engine may be past signing."""
    id = scene.receipt_id
    await scene.publications.sign(id)
    await scene.publications.change(id, lambda row: replace(row, signature=None, published_at=None))
    assert await scene.publications.send(id)
    await scene.publications.record(id)
    assert scene.signing_key_of(id) == SECRET
    assert await scene.publication_counts() == (1, 1)


async def test_a_permit_suspended_before_sending_stops_it(scene: Scene) -> None:
    await scene.publications.sign(scene.receipt_id)
    await scene.client.do(SuspendPermit(), on=scene.permit_id)
    assert not await scene.publications.send(scene.receipt_id)
    with pytest.raises(OutboundPermitNotActiveError):
        await scene.publications.answer(scene.receipt_id)
    assert (await scene.publication_counts(), scene.publisher.artifacts) == ((0, 0), {})


async def test_what_was_sent_is_recorded_whatever_becomes_of_the_permit(scene: Scene) -> None:
    await scene.publications.sign(scene.receipt_id)
    await scene.publications.send(scene.receipt_id)
    await scene.client.do(SuspendPermit(), on=scene.permit_id)
    assert await scene.run_steps(), "begun anew by another worker"
    assert await scene.publications.answer(scene.receipt_id) == {"receipt_id": str(scene.receipt_id)}
    assert (await scene.publication_counts(), len(scene.publisher.artifacts)) == ((1, 1), 1)


async def test_an_expired_permit_stops_it_too(scene: Scene) -> None:
    scene.client.clock.now += timedelta(days=400)
    assert not await scene.run_steps()
    with pytest.raises(OutboundPermitNotActiveError):
        await scene.publications.answer(scene.receipt_id)


async def test_a_key_that_is_gone_by_then_is_told_as_at_the_gate(scene: Scene) -> None:
    await scene.client.do(RevokeCredential(), on=scene.credential_id)
    assert not await scene.run_steps()
    with pytest.raises(PublishCalibrationRevision.Cannot) as caught:
        await scene.publications.answer(scene.receipt_id)
    assert caught.value.reason == "no_signing_credential"


async def test_a_key_that_is_being_rotated_signs_until_the_rotation_completes(scene: Scene) -> None:
    scene.keys["file://next"] = Ed25519PrivateKey.generate()
    await scene.client.do(StartCredentialRotation(new_secret_ref="file://next"), on=scene.credential_id)
    assert await scene.run_steps()
    assert scene.signing_key_of(scene.receipt_id) == SECRET
    await scene.client.do(CompleteCredentialRotation(), on=scene.credential_id)
    later = await scene.client.do(measured_revision(status="Verified"), on=scene.calibration_id)
    assert later.body
    publish = scene.publish.model_copy(update={"revision_id": UUID(later.body["revision_id"])})
    accepted = await scene.client.do(publish, on=scene.calibration_id)
    assert accepted.body
    scene.receipt_id = UUID(accepted.body["receipt_id"])
    assert await scene.run_steps()
    assert scene.signing_key_of(scene.receipt_id) == "file://next"


async def test_a_key_that_cannot_be_found_is_no_secret_told(scene: Scene) -> None:
    scene.keys.clear()
    assert not await scene.run_steps()
    with pytest.raises(CalibrationPublicationError) as caught:
        await scene.publications.answer(scene.receipt_id)
    assert (caught.value.status, caught.value.reason) == (502, "signing_failed")
    assert SECRET not in caught.value.detail


async def test_what_was_certainly_not_sent_is_refused_and_may_be_asked_for_again(scene: Scene) -> None:
    scene.publisher.failure = SendingFailedError("The outbox is full; empty it.")
    assert not await scene.run_steps()
    with pytest.raises(CalibrationPublicationError, match="The outbox is full"):
        await scene.publications.answer(scene.receipt_id)
    assert await scene.publication_counts() == (0, 0)
    scene.publisher.failure = None
    again = await scene.client.do(scene.publish, on=scene.calibration_id)
    assert again.body == {"receipt_id": str(scene.receipt_id), "work_id": str(scene.receipt_id)}
    assert await scene.publications.answer(scene.receipt_id) is None
    assert await scene.run_steps()
    assert await scene.publication_counts() == (1, 1)


class HesitantPort:
    """A signer or publisher whose first answer comes when it is let go, long after it was given up."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def sign(self, secret_ref: str, content: bytes) -> Any:
        await self._hesitate()
        return await self._real.sign(secret_ref, content)

    async def is_sent(self, receipt_id: UUID) -> bool:
        return bool(await self._real.is_sent(receipt_id))

    async def send(self, receipt_id: UUID, artifact: Any) -> None:
        await self._hesitate()
        await self._real.send(receipt_id, artifact)

    async def _hesitate(self) -> None:
        if not self.asked.is_set():
            self.asked.set()
            await self.let_go.wait()


async def test_a_late_signature_does_not_take_back_what_was_published(scene: Scene) -> None:
    signer = HesitantPort(MemorySigner(scene.keys))
    scene.publications = scene.publications_through(signer, scene.publisher)
    late = asyncio.create_task(scene.publications.sign(scene.receipt_id))
    await signer.asked.wait()
    assert await scene.run_steps()
    signer.let_go.set()
    await late
    assert await scene.publications.answer(scene.receipt_id) == {"receipt_id": str(scene.receipt_id)}
    assert await scene.publications.unfinished_ids() == []


async def test_what_is_on_its_way_is_recorded_although_the_permit_is_gone(scene: Scene) -> None:
    publisher = HesitantPort(scene.publisher)
    scene.publications = scene.publications_through(MemorySigner(scene.keys), publisher)
    await scene.publications.sign(scene.receipt_id)
    late = asyncio.create_task(scene.publications.send(scene.receipt_id))
    await publisher.asked.wait()
    await scene.client.do(SuspendPermit(), on=scene.permit_id)
    assert await scene.run_steps(), "the permit let it go before it was taken away"
    publisher.let_go.set()
    await late
    assert (await scene.publication_counts(), len(scene.publisher.artifacts)) == ((1, 1), 1)


async def test_what_may_have_been_sent_is_tried_again(scene: Scene) -> None:
    scene.publisher.failure = ConnectionError("the line went dead")
    with pytest.raises(ConnectionError):
        await scene.run_steps()
    assert await scene.publications.answer(scene.receipt_id) is None
    assert await scene.publications.unfinished_ids() == [scene.receipt_id]


async def test_streams_that_moved_meanwhile_are_followed_with_their_new_versions(scene: Scene) -> None:
    await scene.publications.sign(scene.receipt_id)
    await scene.publications.send(scene.receipt_id)
    await scene.client.do(measured_revision(), on=scene.calibration_id)
    await scene.client.do(SuspendPermit(), on=scene.permit_id)
    await scene.client.do(ResumePermit(), on=scene.permit_id)
    await scene.publications.record(scene.receipt_id)
    assert await scene.publication_counts() == (1, 1)


async def test_a_lost_race_records_nothing_and_the_next_attempt_everything(scene: Scene) -> None:
    await scene.publications.sign(scene.receipt_id)
    await scene.publications.send(scene.receipt_id)
    stream = scene.store.streams["Calibration", scene.calibration_id]
    stolen = stream[-1]._replace(version=stream[-1].version + 1, event_id=new_id())
    scene.store.interference = lambda: stream.append(stolen)
    with pytest.raises(ConcurrencyError):
        await scene.publications.record(scene.receipt_id)
    assert await scene.publication_counts() == (0, 0)
    await scene.publications.record(scene.receipt_id)
    assert await scene.publication_counts() == (1, 1)


async def test_no_secret_reaches_the_record_of_a_publication(scene: Scene) -> None:
    await scene.run_steps()
    assert SECRET not in str(scene.store.rows)
    told = [row for stream in scene.store.streams.values() for row in stream if SECRET in row.payload]
    assert [row.event_type for row in told] == ["CredentialRegistered"]
