"""Publishing on the whole stack: sent once and recorded once, waited for or not, also when a worker is killed meanwhile."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.domain.peers import grant
from tests.support.stack import Stack, eventually

KEY = Ed25519PrivateKey.generate()


@dataclass(frozen=True)
class Post:
    """A stack that publishes, a person who signs off, and a peer that is permitted to have calibrations."""

    stack: Stack
    outbox: Path
    mira: str
    own: str
    peer: str
    permit: str

    def revision(self) -> str:
        """The address of a fresh revision's publication."""
        place = {"energy": 25, "optics_config": f"5x {uuid4()}"}
        target = {"target_id": str(uuid4()), "quantity": "rotation_center", "operating_point": place}
        calibration = self.stack.create("/calibrations", target)
        source = {"kind": "Asserted", "asserted_by": self.mira}
        value = {"value": {"center": 1024.72, "uncertainty": 0.08}, "status": "Verified", "source": source}
        revision = self.stack.create(f"/calibrations/{calibration}/revisions", value)
        return f"/calibrations/{calibration}/revisions/{revision}/publish"

    def publish(self, address: str, wait: int = 60, key: str | None = None, **body: Any) -> httpx.Response:
        headers = {"X-Principal-Id": self.mira, **({"Idempotency-Key": key} if key else {})}
        asked = {"peer_facility_id": self.peer, "wait": wait, **body}
        return self.stack.client.post(address, json=asked, headers=headers, timeout=70)

    def publications(self, address: str) -> list[dict[str, Any]]:
        """Return what the calibration's stream has of publications."""
        history = self.stack.client.get(f"{address.partition('/revisions/')[0]}/history").json()["items"]
        return [event["payload"] for event in history if event["event_type"] == "CalibrationRevisionPublished"]

    def receipts(self, receipt_id: str) -> list[dict[str, Any]]:
        """Return what the permit's stream has of one receipt."""
        history = self.stack.client.get(f"/federation/permits/{self.permit}/history", params={"limit": 100}).json()["items"]
        payloads = [event["payload"] for event in history if event["event_type"] == "PermitReceiptRecorded"]
        return [payload for payload in payloads if payload["receipt_id"] == receipt_id]


def open_post(stack: Stack, outbox: Path) -> Post:
    """Register who signs off, a peer and what permits it to have calibrations."""
    mira = stack.create("/actors", {"name": "Mira Okafor"})
    peer = stack.create("/federation/facilities", {"code": "beta-source", "display_name": "Beta", "kind": "Site"})
    own = eventually(lambda: stack.client.get("/federation/facilities", params={"code": "facility"}).json()["items"])
    own_id = own[0]["facility_id"]
    signing = {"facility_id": own_id, "audience": "registry.example", "purpose": "Signing"}
    credential = stack.create("/federation/credentials", {**signing, "secret_ref": "file://calibration"})
    permit = stack.create("/federation/permits", grant(peer, credential))
    assert stack.client.post(f"/federation/permits/{permit}/activate").status_code == 204
    return Post(stack, outbox, mira, own_id, peer, permit)


@pytest.fixture(scope="module")
def post(shared_stack: Stack) -> Post:
    directory = shared_stack.directory.parent
    pem = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / "keys" / "calibration.pem").write_bytes(pem)
    return open_post(shared_stack, directory / "outbox")


def test_a_publication_that_is_waited_for_answers_with_its_receipt(post: Post) -> None:
    address = post.revision()
    answer = post.publish(address)
    assert answer.status_code == 201, answer.text
    receipt_id = answer.json()["receipt_id"]
    assert answer.json() == {"receipt_id": receipt_id}
    artifact = json.loads((post.outbox / f"{receipt_id}.json").read_bytes())
    content = base64.b64decode(artifact["canonical_bytes"])
    [published] = post.publications(address)
    KEY.public_key().verify(bytes.fromhex(published["signature_bytes_hex"]), content)
    assert (published["published_by"], published["outbound_permit_id"]) == (post.mira, post.permit)
    [receipt] = post.receipts(receipt_id)
    assert (receipt["content_hash"], receipt["home_artifact_id"]) == (artifact["content_hash"], published["revision_id"])
    again = post.publish(address)
    assert (again.status_code, again.json()["reason"]) == (409, "already_published")


def test_a_publication_that_is_not_waited_for_is_accepted_and_goes_on(post: Post) -> None:
    address = post.revision()
    answer = post.publish(address, wait=0, key=f"once {address}")
    assert answer.status_code == 202, answer.text
    accepted = answer.json()
    assert accepted["work_id"] == accepted["receipt_id"]
    [published] = eventually(lambda: post.publications(address))
    assert published["receipt_id"] == accepted["receipt_id"]
    repeated = post.publish(address, wait=0, key=f"once {address}")
    assert (repeated.status_code, repeated.headers["Idempotency-Replayed"]) == (200, "true")
    assert repeated.json() == {"receipt_id": accepted["receipt_id"]}


def test_gates_are_told_at_once(post: Post) -> None:
    address = post.revision()
    unknown = post.publish(address, peer_facility_id=str(uuid4()))
    assert (unknown.status_code, unknown.json()["code"]) == (409, "OutboundPermitNotActiveError")
    missing = post.publish(f"{address.rpartition('/revisions/')[0]}/revisions/{uuid4()}/publish")
    assert (missing.status_code, missing.json()["code"]) == (404, "CalibrationRevisionNotFoundError")
    by_nobody = post.stack.client.post(address, json={"peer_facility_id": post.peer})
    assert (by_nobody.status_code, by_nobody.json()["reason"]) == (409, "sign_off_not_human")


def test_a_failure_on_the_way_is_the_answer_and_can_be_mended(post: Post) -> None:
    address = post.revision()
    post.outbox.mkdir(exist_ok=True)
    away = post.outbox.rename(post.outbox.with_name("away"))
    post.outbox.write_text("in the way")
    try:
        failed = post.publish(address)
    finally:
        post.outbox.unlink()
        away.rename(post.outbox)
    assert (failed.status_code, failed.json()["code"]) == (502, "CalibrationPublicationError"), failed.text
    assert failed.json()["reason"] == "sending_failed"
    assert post.publications(address) == []
    mended = post.publish(address)
    assert mended.status_code == 201, mended.text
    assert len(post.publications(address)) == 1


@pytest.mark.timeout(240)
def test_a_worker_killed_between_sending_and_recording_leaves_one_publication(post: Post) -> None:
    address = post.revision()
    owner, service = post.stack.address("database_owner_url"), post.stack.address("database_url")
    with psycopg.connect(owner) as rival, psycopg.connect(service, autocommit=True) as onlooker:
        rival.execute("LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE")
        receipt_id = post.publish(address, wait=0).json()["receipt_id"]
        artifact = post.outbox / f"{receipt_id}.json"
        eventually(artifact.exists, what="nothing was sent")
        stuck = eventually(lambda: waiting_appends(onlooker), what="nothing waits to be recorded")
        sent = artifact.stat()
        post.stack.kill("worker")
        for pid in stuck:
            onlooker.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        assert post.publications(address) == []
    [published] = eventually(lambda: post.publications(address), within=100)
    assert published["receipt_id"] == receipt_id
    assert len(post.receipts(receipt_id)) == 1
    assert (artifact.stat().st_ino, artifact.stat().st_mtime_ns) == (sent.st_ino, sent.st_mtime_ns)
    assert post.publish(address).json()["reason"] == "already_published"


def waiting_appends(onlooker: psycopg.Connection[Any]) -> list[int]:
    """The backends that wait to add to the log."""
    found = onlooker.execute(
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO events%' "
        "AND pid <> pg_backend_pid()"
    )
    return [row[0] for row in found.fetchall()]
