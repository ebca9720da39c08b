"""Artifacts of a peer as it really publishes them, or forged as somebody without or with its key could, and a world that
receives them."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from baton.domain.calibration.calibration import Calibration
from baton.domain.facility.facility import Facility
from baton.domain.federation.permit import Permit
from baton.domain.federation.publication import (
    CalibrationPublication,
    artifact_bytes,
    bytes_hash,
    published_bytes,
    with_signature,
)
from baton.domain.federation.received_artifact import ArtifactReference, ReceiveArtifact, RecordReception, artifact_id_of
from baton.domain.kernel import Event
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.signatures import Signature, SignatureVerdict
from baton.infrastructure.signing import check_signature, sign_content
from tests.support.domain.calibrations import publishable_revision, publishing_world
from tests.support.domain.peers import INBOUND, OWN, credential, own_id, permit, site
from tests.support.domain.world import World, new_id

SOURCE = "alpha-source"
ADDRESS = "https://alpha.example"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))


def public_material(key: Ed25519PrivateKey = KEY) -> str:
    return f"ed25519:{key.public_key().public_bytes_raw().hex()}"


@cache
def published_artifact(status: str = "Verified") -> bytes:
    """What another facility sends of a revision, signed with its key."""
    world = publishing_world()
    id, publish = publishable_revision(world, status=status)
    world.when(publish, on=id)
    [row] = [one for one in world.records.values() if isinstance(one, CalibrationPublication)]
    dated = replace(row, published_at=world.now)
    calibration, permitted = world.state(Calibration, id), world.state(Permit, row.permit_id)
    source: Facility = replace(world.state(Facility, own_id(world)), code=SOURCE)
    signature = sign_content(KEY, published_bytes(dated, calibration, permitted, source))
    return artifact_bytes(with_signature(dated, signature, world.now), calibration, permitted, source)


def forged_artifact(
    key: Ed25519PrivateKey = KEY,
    *,
    terms: Mapping[str, Any] | None = None,
    content: Mapping[str, Any] | None = None,
    signature: Mapping[str, Any] | None = None,
    outside: Mapping[str, Any] | None = None,
) -> bytes:
    """An artifact with other terms or another content, signed again; or with other things around what is signed."""
    artifact = json.loads(published_artifact())
    signed = json.loads(b64decode(artifact["canonical_bytes"]))
    signed = {**signed, "terms": {**signed["terms"], **(terms or {})}, **(content or {})}
    signed_bytes = canonical_json(signed)
    made = sign_content(key, signed_bytes)
    around = {
        "content_hash": bytes_hash(signed_bytes),
        "canonical_bytes": b64encode(signed_bytes).decode(),
        "signature_envelope": {
            "kind": made.envelope_kind,
            "signing_version": 2,
            "kid": made.kid,
            "bytes_hex": made.bytes_hex,
            **(signature or {}),
        },
    }
    return canonical_json({**signed.get("terms", {}), **around, **(outside or {})})


class Receiver(NamedTuple):
    """A world that may receive from a peer, and what it knows of it."""

    world: World
    source_id: UUID
    credential_id: UUID
    permit_id: UUID

    def reference(self, document: bytes, **fields: Any) -> dict[str, Any]:
        """What names an artifact, as its publisher tells it."""
        artifact = json.loads(document)
        named = {"receipt_id": artifact["receipt_id"], "content_hash": artifact["content_hash"]}
        return {"source_facility_id": self.source_id, **named, **fields}

    def ask_for(self, document: bytes, **fields: Any) -> UUID:
        """Ask for an artifact, and return what it will be known as."""
        assert self.world.when(ReceiveArtifact(**self.reference(document, **fields))) == []
        return UUID(self.world.answer["received_artifact_id"])

    def receive(self, document: bytes, work_id: UUID | None = None, **fields: Any) -> tuple[UUID, list[Event]]:
        """Record an artifact that was fetched; return its id and what was recorded."""
        reference = ArtifactReference(**self.reference(document, **fields))
        id = artifact_id_of(reference.source_facility_id, reference.receipt_id)
        record = RecordReception(reference=reference, document=document.decode(), work_id=work_id or new_id())
        return id, self.world.when(record, opening=id)


def addressee() -> UUID:
    """The id that the receiving facility has at the publisher."""
    return UUID(json.loads(published_artifact())["peer_facility_id"])


def verify(public_material_ref: str | None, content: bytes, signature: Signature) -> SignatureVerdict:
    """What checking a signature against inline material finds."""
    if public_material_ref is None or not public_material_ref.startswith("ed25519:"):
        return SignatureVerdict.UNKNOWN_KEY
    raw = bytes.fromhex(public_material_ref.removeprefix("ed25519:"))
    return check_signature(Ed25519PublicKey.from_public_bytes(raw), content, signature)


def receiver(*, key: Mapping[str, Any] | None = None, **permit_fields: Any) -> Receiver:
    """A world with a peer, a key of the peer, and an inbound permit in force."""
    world = publishing_world()
    world.ports["deployment"] = SimpleNamespace(
        self_facility_code=OWN, peer_addresses={SOURCE: ADDRESS}, own_ids_at_peers={SOURCE: addressee()}
    )
    world.ports["verify_signature"] = verify
    source = site(world, SOURCE)
    material = {"purpose": "Verification", "secret_ref": "none", "public_material_ref": public_material()}
    key_id = credential(world, source, **{**material, **(key or {})})
    inbound = {"direction": "Inbound", "terms": INBOUND, "allowed_credential_ids": [key_id]}
    permit(world, source, **{**inbound, **permit_fields})
    return receiver_in(world)


def receiver_in(world: World) -> Receiver:
    """The receiver in a world that has one."""
    (credential_id,), (permit_id,) = (
        [id for kind, id in world.streams if kind == name] for name in ("Credential", "Permit")
    )
    return Receiver(world, world.claims[FACILITY_CODE, SOURCE], credential_id, permit_id)
