"""Fetching from a peer: only from its own address, only what was asked for, bounded in size and time."""

import json
from collections.abc import AsyncIterator, Iterator
from uuid import UUID, uuid4

import pytest

from baton.application.settings import FederationPeer
from baton.domain.federation.received_artifact import ArtifactFetchError
from baton.infrastructure.peers import HttpPeerClient
from tests.support.domain.artifacts import forged_artifact, published_artifact
from tests.support.infrastructure.peer_server import TOKEN, PeerServer, running_peer

ARTIFACT = json.loads(published_artifact())
RECEIPT, HASH = UUID(ARTIFACT["receipt_id"]), ARTIFACT["content_hash"]


@pytest.fixture
def peer() -> Iterator[PeerServer]:
    with running_peer() as peer:
        peer.publish(RECEIPT, published_artifact())
        yield peer


def client_of(peer: PeerServer, deadline: float = 20) -> HttpPeerClient:
    return HttpPeerClient({"alpha": FederationPeer(address=f"{peer.url}/", token=TOKEN)}, deadline=deadline)


@pytest.fixture
async def client(peer: PeerServer) -> AsyncIterator[HttpPeerClient]:
    client = client_of(peer)
    yield client
    await client.aclose()


async def refusal(client: HttpPeerClient, receipt_id: UUID = RECEIPT, hash: str = HASH, uri: str | None = None) -> str:
    with pytest.raises(ArtifactFetchError) as caught:
        await client.fetch("alpha", receipt_id, hash, uri)
    assert (caught.value.status, TOKEN in str(caught.value)) == (502, False)
    return caught.value.reason or ""


async def test_an_artifact_is_fetched_as_it_is_with_the_peers_token(peer: PeerServer, client: HttpPeerClient) -> None:
    assert await client.fetch("alpha", RECEIPT, HASH) == published_artifact()
    assert peer.asked == [(f"/federation/artifacts/{RECEIPT}", TOKEN)]


async def test_an_artifact_may_be_at_another_place_of_the_same_peer(peer: PeerServer, client: HttpPeerClient) -> None:
    peer.documents["/exchange/17.json"] = published_artifact()
    assert await client.fetch("alpha", RECEIPT, HASH, f"{peer.url}/exchange/17.json") == published_artifact()


async def test_nothing_is_fetched_from_elsewhere(peer: PeerServer, client: HttpPeerClient) -> None:
    with running_peer() as other:
        assert await refusal(client, uri=f"{other.url}/17.json") == "other_address"
        assert await refusal(client, uri=f"{peer.url}@{other.url.removeprefix('http://')}/17") == "other_address"
        assert other.asked == []
    with pytest.raises(ArtifactFetchError, match="FEDERATION_PEERS"):
        await client.fetch("gamma", RECEIPT, HASH)
    assert peer.asked == []


async def test_a_redirect_is_not_followed(peer: PeerServer, client: HttpPeerClient) -> None:
    peer.failure, peer.documents["/hidden"] = "elsewhere", published_artifact()
    assert await refusal(client) == "redirected"
    assert len(peer.asked) == 1


async def test_what_has_another_hash_is_refused(peer: PeerServer, client: HttpPeerClient) -> None:
    assert await refusal(client, hash="ab" * 32) == "hash_mismatch"
    for document in (
        forged_artifact(content={"value": {"center": 3}}),
        b"",
        b"[]",
        b"{}",
        b'{"canonical_bytes":7}',
        b"\xff",
    ):
        peer.publish(RECEIPT, document)
        assert await refusal(client) == "hash_mismatch"


async def test_what_is_too_large_is_not_read_to_its_end(peer: PeerServer, client: HttpPeerClient) -> None:
    peer.publish(RECEIPT, published_artifact() + b" " * 40_000_000)
    assert await refusal(client) == "too_large"


@pytest.mark.parametrize("failure", ["silent", "slow", "cut"])
async def test_a_peer_that_does_not_answer_in_time_is_unreachable(peer: PeerServer, failure: str) -> None:
    peer.failure, hasty = failure, client_of(peer, deadline=0.3)
    assert await refusal(hasty) == "unreachable"
    await hasty.aclose()


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "access_refused"), (403, "access_refused"), (409, "not_permitted"), (500, "failed"), (429, "failed")],
)
async def test_a_refusal_of_the_peer_is_told(peer: PeerServer, client: HttpPeerClient, status: int, reason: str) -> None:
    peer.failure = status
    assert await refusal(client) == reason


async def test_an_unknown_receipt_and_a_peer_that_is_away_are_told(peer: PeerServer, client: HttpPeerClient) -> None:
    assert await refusal(client, uuid4()) == "not_found"
    away = HttpPeerClient({"alpha": FederationPeer(address="http://127.0.0.1:9")})
    assert await refusal(away) == "unreachable"
    await away.aclose()
