"""Receptions on a real database, from a peer over real HTTP: each recorded once, under a permit and keys that stand."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from baton.application.caller import Caller
from baton.application.receptions import Receptions
from baton.application.settings import FederationPeer, Settings
from baton.application.unit_of_work import load_events, load_row, load_state
from baton.cli.composition.runtime import Runtime
from baton.domain.access.actor import RegisterActor
from baton.domain.calibration.calibration import Calibration
from baton.domain.contexts import REGISTRY
from baton.domain.facility.facility import RegisterFacility
from baton.domain.federation.credential import RegisterCredential, RevokeCredential
from baton.domain.federation.permit import ActivatePermit, DefinePermit, PermitReceiptRecorded, RevokePermit, SuspendPermit
from baton.domain.federation.received_artifact import (
    AdoptReceivedArtifact,
    ArtifactAlreadyReceivedError,
    ArtifactFetchError,
    GetReceivedArtifactDocument,
    InboundPermitNotActiveError,
    ReceiveArtifact,
    ReceivedArtifact,
    ReceivedDocument,
    RecheckReceivedArtifact,
)
from baton.domain.kernel import SYSTEM_CONDUIT, Command
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.shared.tasks import Task
from baton.domain.trust.policy import DefinePolicy, RevokePolicyGrant
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.peers import HttpPeerClient
from tests.support.api.concurrent_requests import overtake
from tests.support.domain.artifacts import (
    KEY,
    OTHER_KEY,
    SOURCE,
    addressee,
    forged_artifact,
    public_material,
    published_artifact,
)
from tests.support.domain.calibrations import definition
from tests.support.domain.peers import INBOUND, grant
from tests.support.infrastructure.peer_server import TOKEN, PeerServer, running_peer

SYSTEM = Caller.system(UUID(int=7))


@pytest.fixture
def peer() -> Iterator[PeerServer]:
    with running_peer() as peer:
        yield peer


@dataclass
class Beta:
    """A facility that may receive from a peer, and a person of it."""

    runtime: Runtime
    peer: PeerServer
    mira: Caller
    source_id: UUID
    credential_id: UUID
    permit_id: UUID

    async def do(self, command: Command, on: UUID | None = None, caller: Caller = SYSTEM) -> dict[str, Any]:
        executed = await self.runtime.service.commands.execute(command, caller, target_id=on)
        return dict(executed.body or {})

    async def ask_for(self, document: bytes) -> UUID:
        """Have the peer publish a document, and ask for it; return the work that no engine carries."""
        artifact = json.loads(document)
        self.peer.publish(artifact["receipt_id"], document)
        named = {name: artifact[name] for name in ("receipt_id", "content_hash")}
        return UUID(
            (await self.do(ReceiveArtifact(source_facility_id=self.source_id, **named), caller=self.mira))["work_id"]
        )

    @property
    def receptions(self) -> Receptions:
        return self.runtime.works.of(Receptions)

    async def carry_out(self, work_id: UUID) -> dict[str, Any]:
        await self.receptions.run(work_id)
        return dict(await self.receptions.answer(work_id) or {})

    async def receive(self, document: bytes) -> dict[str, Any]:
        return await self.carry_out(await self.ask_for(document))

    async def artifacts(self) -> int:
        async with self.runtime.pool.connection() as connection:
            found = await connection.execute("SELECT count(*) FROM events WHERE stream_type = 'ReceivedArtifact'")
            kept = await connection.execute("SELECT count(*) FROM received_artifact_document")
            (events,), (documents,) = await found.fetchone() or (0,), await kept.fetchone() or (0,)
        assert bool(events) == bool(documents)
        return int(events)

    async def receipts(self) -> list[PermitReceiptRecorded]:
        return await load_events(self.runtime.store, self.permit_id, PermitReceiptRecorded)


async def open_beta(runtime: Runtime, peer: PeerServer, material: str = public_material()) -> Beta:
    """Register who is needed, and permit calibrations to come in from the peer."""
    beta = Beta(runtime, peer, SYSTEM, *[UUID(int=0)] * 3)
    beta.mira = Caller(UUID((await beta.do(RegisterActor(name="Mira Okafor")))["actor_id"]), SYSTEM_HTTP, UUID(int=9))
    site = RegisterFacility(code=SOURCE, display_name="Alpha", kind="Site")
    beta.source_id = UUID((await beta.do(site))["facility_id"])
    key = {"audience": "registry.example", "purpose": "Verification", "secret_ref": "none", "public_material_ref": material}
    beta.credential_id = UUID((await beta.do(RegisterCredential(facility_id=beta.source_id, **key)))["credential_id"])
    inbound = grant(beta.source_id, beta.credential_id, direction="Inbound", terms=INBOUND)
    beta.permit_id = UUID((await beta.do(DefinePermit(**inbound)))["permit_id"])
    await beta.do(ActivatePermit(), on=beta.permit_id)
    return beta


@pytest.fixture
async def open_runtime(database_url: str, peer: PeerServer) -> AsyncIterator[Callable[..., Awaitable[Runtime]]]:
    async with AsyncExitStack() as stack:

        async def open(**settings: Any) -> Runtime:
            peers = {SOURCE: FederationPeer(address=peer.url, token=TOKEN, facility_id=addressee())}
            chosen = Settings(database_url=database_url, app_env="test", federation_peers=peers, **settings)
            runtime = await stack.enter_async_context(Runtime(chosen))
            await runtime.plant_seeds()
            return runtime

        yield open


@pytest.fixture
async def beta(open_runtime: Callable[..., Awaitable[Runtime]], peer: PeerServer) -> Beta:
    return await open_beta(await open_runtime(), peer)


async def test_an_artifact_is_fetched_checked_and_recorded_once(beta: Beta) -> None:
    work_id = await beta.ask_for(published_artifact())
    assert await beta.receptions.unfinished_ids() == [work_id]
    answer = await beta.carry_out(work_id)
    id = UUID(answer["received_artifact_id"])
    assert answer == {"received_artifact_id": str(id), "status": "Verified", "stage": None, "reason": None}
    shown = await beta.runtime.service.ask(REGISTRY.operations["get_received_artifact"].input(), beta.mira, target_id=id)
    assert (shown.status, shown.received_by, shown.work_id) == ("Verified", beta.mira.principal_id, work_id)
    document = await beta.runtime.service.ask(GetReceivedArtifactDocument(), beta.mira, target_id=id)
    assert document.content == published_artifact()
    [receipt] = await beta.receipts()
    assert (receipt.home_stream_type, receipt.home_stream_id) == ("ReceivedArtifact", id)
    assert await beta.artifacts() == 1
    assert beta.peer.asked[0][1] == TOKEN
    with pytest.raises(ArtifactAlreadyReceivedError):
        await beta.ask_for(published_artifact())


async def test_an_attempt_that_comes_late_finds_what_the_first_recorded(beta: Beta) -> None:
    work_id = await beta.ask_for(published_artifact())
    task = await load_row(beta.runtime.store, Task, work_id=work_id)
    assert task is not None
    first = await beta.receptions.carry_out(task)
    beta.peer.failure = 500
    assert await beta.receptions.carry_out(task) == first
    assert await beta.carry_out(work_id) == first
    assert len(beta.peer.asked) == 1
    assert len(await beta.receipts()) == 1


async def test_of_two_receptions_at_once_one_is_recorded(beta: Beta) -> None:
    works = [await beta.ask_for(published_artifact()) for _ in range(4)]
    await asyncio.gather(*(beta.receptions.run(work_id) for work_id in works))
    answers = await asyncio.gather(*(beta.receptions.answer(work_id) for work_id in works), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["ArtifactAlreadyReceivedError"] * 3 + ["dict"]
    assert (await beta.artifacts(), len(await beta.receipts())) == (1, 1)


async def test_what_was_not_asked_for_is_not_recorded(beta: Beta) -> None:
    work_id = await beta.ask_for(published_artifact())
    receipt_id = json.loads(published_artifact())["receipt_id"]
    beta.peer.publish(receipt_id, forged_artifact(content={"value": {"center": 1}}))
    with pytest.raises(ArtifactFetchError) as caught:
        await beta.carry_out(work_id)
    assert (caught.value.reason, await beta.artifacts()) == ("hash_mismatch", 0)
    beta.peer.failure = 500
    with pytest.raises(ArtifactFetchError):
        await beta.receive(published_artifact())
    beta.peer.failure = None
    assert (await beta.receive(published_artifact()))["status"] == "Verified"


async def test_a_rejected_artifact_is_kept_with_its_stage_and_may_come_again(beta: Beta) -> None:
    answer = await beta.receive(forged_artifact(OTHER_KEY))
    assert (answer["status"], answer["stage"], answer["reason"]) == ("Rejected", "signature", "wrong_key")
    id = UUID(answer["received_artifact_id"])
    row = await load_row(beta.runtime.store, ReceivedDocument, received_artifact_id=id)
    assert row is not None
    assert row.document.encode() == forged_artifact(OTHER_KEY)
    assert await beta.receipts() == []
    again = await beta.receive(published_artifact())
    assert (again["status"], again["received_artifact_id"]) == ("Verified", str(id))
    assert await beta.artifacts() == 2


async def test_a_key_that_is_brought_later_is_found_by_another_check(
    open_runtime: Callable[..., Awaitable[Runtime]], peer: PeerServer, tmp_path: Path
) -> None:
    beta = await open_beta(await open_runtime(signing_key_directory=tmp_path), peer, material="file://alpha")
    answer = await beta.receive(published_artifact())
    assert (answer["status"], answer["reason"]) == ("Unverifiable", "key_unavailable")
    id = UUID(answer["received_artifact_id"])
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "alpha.pub").write_bytes(pem)
    peer.failure = 500
    assert (await beta.do(RecheckReceivedArtifact(), on=id, caller=beta.mira))["status"] == "Verified"
    assert len(await beta.receipts()) == 1


class MeddledPeers(HttpPeerClient):
    """A client during whose fetching something happens here."""

    meanwhile: Callable[[], Awaitable[Any]]

    async def fetch(self, facility_code: str, receipt_id: UUID, content_hash: str, uri: str | None = None) -> bytes:
        document = await super().fetch(facility_code, receipt_id, content_hash, uri)
        await self.meanwhile()
        return document


async def receive_while(beta: Beta, meanwhile: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
    peers = MeddledPeers(beta.runtime.settings.federation_peers)
    peers.meanwhile = meanwhile
    receptions = Receptions(beta.runtime.commands, peers)
    work_id = await beta.ask_for(published_artifact())
    await receptions.run(work_id)
    await peers.aclose()
    return dict(await receptions.answer(work_id) or {})


@pytest.mark.parametrize("end", [SuspendPermit, RevokePermit])
async def test_a_permit_that_ends_while_an_artifact_is_fetched_keeps_it_out(beta: Beta, end: type[Command]) -> None:
    with pytest.raises(InboundPermitNotActiveError):
        await receive_while(beta, lambda: beta.do(end(), on=beta.permit_id))
    assert await beta.artifacts() == 0
    with pytest.raises(InboundPermitNotActiveError):
        await beta.ask_for(published_artifact())


async def test_a_key_that_is_revoked_meanwhile_is_not_trusted(beta: Beta) -> None:
    answer = await receive_while(beta, lambda: beta.do(RevokeCredential(), on=beta.credential_id))
    assert (answer["status"], answer["reason"]) == ("Rejected", "no_trusted_key")


async def test_a_key_revoked_between_the_check_and_the_record_is_not_trusted(beta: Beta, database_url: str) -> None:
    """The check has passed and its record waits to be written when the key is revoked: it is checked anew."""
    work_id = await beta.ask_for(published_artifact())
    revoked = {"revoked_by": str(UUID(int=0)), "reason": None}
    receiving = beta.receptions.run(work_id)
    await overtake(database_url, receiving, beta.credential_id, "CredentialRevoked", revoked)
    answer = await beta.receptions.answer(work_id)
    assert answer is not None
    assert (answer["status"], answer["reason"]) == ("Rejected", "no_trusted_key")
    assert await beta.receipts() == []


async def test_a_person_adopts_a_verified_value(beta: Beta) -> None:
    id = UUID((await beta.receive(published_artifact()))["received_artifact_id"])
    calibration_id = UUID((await beta.do(definition()))["calibration_id"])
    adopt = AdoptReceivedArtifact(calibration_id=calibration_id)
    adopted = await beta.do(adopt, on=id, caller=beta.mira)
    calibration = await load_state(beta.runtime.store, Calibration, calibration_id)
    artifact = await load_state(beta.runtime.store, ReceivedArtifact, id)
    assert calibration is not None
    assert artifact is not None
    [revision] = calibration.revisions
    assert adopted == {"revision_id": str(revision.revision_id)}
    assert (revision.value, revision.established_by) == ({"center": 1024.5, "uncertainty": 0.3}, beta.mira.principal_id)
    assert [one.revision_id for one in artifact.adoptions] == [revision.revision_id]
    with pytest.raises(AdoptReceivedArtifact.Cannot) as caught:
        await beta.do(adopt, on=id, caller=beta.mira)
    assert caught.value.reason == "already_adopted"


async def test_only_whom_a_policy_permits_receives_and_the_grant_must_last(
    open_runtime: Callable[..., Awaitable[Runtime]], peer: PeerServer
) -> None:
    beta = await open_beta(await open_runtime(authorization_mode="policy"), peer)
    with pytest.raises(UnauthorizedError):
        await beta.ask_for(published_artifact())
    ids = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [beta.mira.principal_id]}
    policy = await beta.do(DefinePolicy(name="Exchange", **ids, permitted_commands=["ReceiveArtifact"]))
    work_id = await beta.ask_for(published_artifact())
    revoke = RevokePolicyGrant(permitted_principal_id=beta.mira.principal_id, reason="the shift is over")
    await beta.do(revoke, on=UUID(policy["policy_id"]))
    with pytest.raises(UnauthorizedError):
        await beta.carry_out(work_id)
    assert await beta.artifacts() == 0
