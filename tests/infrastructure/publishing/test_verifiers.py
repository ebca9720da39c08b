"""What checking a signature finds: it stands, it is forged, it is another key's, or the key cannot be had."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from baton.domain.shared.signatures import Signature, SignatureVerdict
from baton.infrastructure.signing import KeyDirectoryVerifier, key_id, sign_content

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2))
INLINE = f"ed25519:{KEY.public_key().public_bytes_raw().hex()}"
CONTENT = b'{"center":1024.5}'
SIGNATURE = sign_content(KEY, CONTENT)


@pytest.fixture
def verifier(tmp_path: Path) -> KeyDirectoryVerifier:
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "peer.pub").write_bytes(pem)
    (tmp_path / "outside.pub").write_bytes(pem)
    (tmp_path / "keys" / "text.pub").write_bytes(b"no key at all")
    curve = generate_private_key(SECP256R1()).public_key()
    (tmp_path / "keys" / "curve.pub").write_bytes(curve.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return KeyDirectoryVerifier(tmp_path / "keys")


@pytest.mark.parametrize("material", [INLINE, INLINE.upper().replace("ED25519", "ed25519"), "file://peer"])
async def test_a_signature_is_checked_against_public_material(verifier: KeyDirectoryVerifier, material: str) -> None:
    assert await verifier.verify(material, CONTENT, SIGNATURE) is SignatureVerdict.VALID
    assert await verifier.verify(material, CONTENT + b" ", SIGNATURE) is SignatureVerdict.FORGED
    assert await verifier.verify(material, CONTENT, sign_content(OTHER, CONTENT)) is SignatureVerdict.WRONG_KEY


@pytest.mark.parametrize(
    "changes",
    [
        {"bytes_hex": sign_content(OTHER, CONTENT).bytes_hex},
        {"bytes_hex": SIGNATURE.bytes_hex[:-2]},
        {"bytes_hex": "no hex"},
        {"bytes_hex": ""},
        {"bytes_hex": "0" * 127},
        {"envelope_kind": "rsa-detached"},
    ],
)
async def test_whatever_else_stands_under_the_keys_name_is_forged(
    verifier: KeyDirectoryVerifier, changes: dict[str, str]
) -> None:
    forged = Signature(**{**SIGNATURE.model_dump(), **changes})
    assert await verifier.verify(INLINE, CONTENT, forged) is SignatureVerdict.FORGED


@pytest.mark.parametrize(
    "material",
    [
        *(None, "", "kms://k1", "ed25519:", f"{INLINE}00", "ed25519:" + "zz" * 32, "file://absent", "file://text"),
        *("file://curve", "file://../outside", "file:///etc/passwd", "file://.hidden"),
    ],
)
async def test_material_that_cannot_be_had_is_no_verdict_on_the_signature(
    verifier: KeyDirectoryVerifier, material: str | None
) -> None:
    assert await verifier.verify(material, CONTENT, SIGNATURE) is SignatureVerdict.UNKNOWN_KEY
    assert await verifier.public_key(material) is None


async def test_without_a_directory_keys_that_are_given_inline_still_count() -> None:
    verifier = KeyDirectoryVerifier(None)
    assert await verifier.verify(INLINE, CONTENT, SIGNATURE) is SignatureVerdict.VALID
    assert await verifier.verify("file://peer", CONTENT, SIGNATURE) is SignatureVerdict.UNKNOWN_KEY


@pytest.mark.parametrize("material", [INLINE, "file://peer"])
async def test_a_public_key_is_told_the_same_way_wherever_it_is_kept(verifier: KeyDirectoryVerifier, material: str) -> None:
    found = await verifier.public_key(material)
    assert found is not None
    assert (found.kid, found.public_material) == (key_id(KEY.public_key()), INLINE)
