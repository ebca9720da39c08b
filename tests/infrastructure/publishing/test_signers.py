"""What every signer promises: the same key under the same reference, and nothing said of where it is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from baton.application.ports import Signer, SigningFailedError
from baton.infrastructure.signing import KeyDirectorySigner, key_id
from tests.support.infrastructure.memory_adapters import MemorySigner

KEYS = {"file://calibration": Ed25519PrivateKey.generate(), "file://archive": Ed25519PrivateKey.generate()}
CONTENT = b'{"center":1024.5}'
Made = Callable[[Path], Signer]


def pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def with_key_files(directory: Path) -> Signer:
    for reference, key in KEYS.items():
        (directory / f"{reference.removeprefix('file://')}.pem").write_bytes(pem(key))
    return KeyDirectorySigner(directory)


def with_keys_in_memory(directory: Path) -> Signer:
    return MemorySigner(KEYS)


@pytest.fixture(params=[with_key_files, with_keys_in_memory])
def signer(request: pytest.FixtureRequest, tmp_path: Path) -> Signer:
    made: Made = request.param
    return made(tmp_path)


@pytest.mark.parametrize("reference", KEYS)
async def test_a_signature_is_verified_by_the_public_half_of_its_key(signer: Signer, reference: str) -> None:
    signature = await signer.sign(reference, CONTENT)
    public = KEYS[reference].public_key()
    public.verify(bytes.fromhex(signature.bytes_hex), CONTENT)
    with pytest.raises(InvalidSignature):
        public.verify(bytes.fromhex(signature.bytes_hex), CONTENT + b" ")
    assert (signature.kid, signature.envelope_kind) == (key_id(KEYS[reference].public_key()), "ed25519-detached")


async def test_the_same_bytes_have_the_same_signature(signer: Signer) -> None:
    assert await signer.sign("file://archive", CONTENT) == await signer.sign("file://archive", CONTENT)


async def test_a_key_that_is_not_there_is_said_to_be_missing_without_saying_where(signer: Signer) -> None:
    with pytest.raises(SigningFailedError) as caught:
        await signer.sign("file://elsewhere", CONTENT)
    assert "elsewhere" not in str(caught.value)


@pytest.mark.parametrize(
    "reference", ["kms://k1", "calibration", "file://../calibration", "file:///etc/passwd", "file://a/b", "file://.hidden"]
)
async def test_only_names_of_files_in_the_directory_are_looked_for(tmp_path: Path, reference: str) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "calibration.pem").write_bytes(pem(KEYS["file://calibration"]))
    with pytest.raises(SigningFailedError, match="names no key file"):
        await KeyDirectorySigner(tmp_path / "keys").sign(reference, CONTENT)


async def test_without_a_directory_nothing_is_signed() -> None:
    with pytest.raises(SigningFailedError, match="set SIGNING_KEY_DIRECTORY"):
        await KeyDirectorySigner(None).sign("file://calibration", CONTENT)


@pytest.mark.parametrize(
    "content",
    [b"no key at all", generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())],
)
async def test_a_file_that_holds_another_kind_of_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "calibration.pem").write_bytes(content)
    with pytest.raises(SigningFailedError, match="replace it"):
        await KeyDirectorySigner(tmp_path).sign("file://calibration", CONTENT)
