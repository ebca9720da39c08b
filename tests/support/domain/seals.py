"""A facility with a seal: real keys, credentials that point to them, and ports that sign and check with them."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from baton.domain.federation.credential import AddFacilityTrustAnchorCredential
from baton.domain.federation.seal import InitializeSeal, SealKeyChange, SealPointer, SealSignature, canonical_bytes
from baton.domain.shared.signatures import PublicKey, Signature, SignatureVerdict
from baton.infrastructure.signing import check_signature, key_id, sign_content
from tests.support.domain.peers import OWN, credential, federated_world, own_id
from tests.support.domain.world import World

HEADS = tuple(digit * 64 for digit in "9abc")


def fixed_key(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


KEYS = {"online": fixed_key(1), "root": fixed_key(2), "next": fixed_key(3)}
FORGER = fixed_key(9)


def public_material(key: Ed25519PrivateKey) -> str:
    """The public half of a key, as a credential refers to it."""
    return f"ed25519:{key.public_key().public_bytes_raw().hex()}"


def signature_of(key: Ed25519PrivateKey, content: SealPointer | SealKeyChange) -> SealSignature:
    made = sign_content(key, canonical_bytes(content))
    return SealSignature(kid=made.kid, bytes_hex=made.bytes_hex)


class KeyPorts:
    """Signs with some of the keys and knows the public half of all that are given inline."""

    def __init__(self, held: Mapping[str, Ed25519PrivateKey]) -> None:
        self.held = held
        self.asked: list[str] = []
        """The references that something was to be signed with."""

    def sign(self, secret_ref: str, content: bytes) -> Signature | None:
        self.asked.append(secret_ref)
        key = self.held.get(secret_ref)
        return None if key is None else sign_content(key, content)

    def verify(self, public_material_ref: str | None, content: bytes, signature: Signature) -> SignatureVerdict:
        for key in (*KEYS.values(), FORGER):
            if public_material_ref == public_material(key):
                return check_signature(key.public_key(), content, signature)
        return SignatureVerdict.UNKNOWN_KEY

    def public_key(self, public_material_ref: str | None) -> PublicKey | None:
        known = {public_material(key): key_id(key.public_key()) for key in (*KEYS.values(), FORGER)}
        if public_material_ref is None or public_material_ref not in known:
            return None
        return PublicKey(kid=known[public_material_ref], public_material=public_material_ref)


def seal_world(*, required: bool = False, held: Mapping[str, Ed25519PrivateKey] | None = None) -> World:
    """A world with the own facility, and these keys to sign with."""
    world = federated_world()
    ports = KeyPorts(held or {})
    world.ports["deployment"] = SimpleNamespace(self_facility_code=OWN, seal_signatures_required=required)
    world.ports |= {"sign": ports.sign, "verify_signature": ports.verify, "public_key": ports.public_key}
    return world


PURPOSES = {"online": "SealOnlineSigning", "root": "SealOfflineRoot", "next": "SealOnlineSigning"}


def anchor(world: World, name: str, **fields: Any) -> UUID:
    """A credential for the key of this name that the own facility's seal may rest on."""
    own = {"purpose": PURPOSES[name], "audience": name, "secret_ref": f"kms://{name}"}
    id = credential(world, **{**own, "public_material_ref": public_material(KEYS[name]), **fields})
    world.when(AddFacilityTrustAnchorCredential(credential_id=id), on=own_id(world))
    return id


def initialize_seal(world: World, **fields: Any) -> tuple[UUID, UUID, UUID]:
    """The facility of a new seal, its online credential and its offline one."""
    online, root = anchor(world, "online", **fields), anchor(world, "root", **fields)
    asked = InitializeSeal(facility_id=own_id(world), online_credential_id=online, offline_credential_id=root)
    return world.create(asked), online, root


def pointer(facility_id: UUID, sequence_number: int, head_hash: str = HEADS[0]) -> SealPointer:
    return SealPointer(facility_id=facility_id, head_hash=head_hash, sequence_number=sequence_number)
