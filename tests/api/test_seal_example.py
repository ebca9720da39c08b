"""Seals over REST: the worked example as written, and with real keys, what a forger, a replayer or a thief of a key gets."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from baton.domain.shared.canonical import canonical_json
from baton.infrastructure.signing import key_id, sign_content
from tests.support.domain.seals import public_material
from tests.support.service import Api, running_api
from tests.support.waiting import until

HEADS = ("9f" * 32, "a0" * 32, "b1" * 32)
ONLINE, ROOT, NEXT, FORGER = (Ed25519PrivateKey.generate() for _ in range(4))


COLUMNS = "event_type, schema_version, payload, principal_id, command_name, correlation_id, occurred_at"
NEXT_EVENT = f"""INSERT INTO events (event_id, stream_type, stream_id, version, {COLUMNS})
SELECT gen_random_uuid(), stream_type, stream_id, version + 1, {COLUMNS}
FROM events WHERE stream_type = 'Seal' AND stream_id = %s ORDER BY version DESC LIMIT 1"""
WAITING = """SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid)
WHERE locktype = 'transactionid' AND NOT granted AND datname = current_database()"""


async def own_site(api: Api) -> str:
    position = await api.execute("/actors", {"name": "Anybody"})
    sites = await api.get("/federation/facilities", code="facility", min_position=position)
    return str(sites.json()["items"][0]["facility_id"])


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json()["code"], answer.json()["reason"]


def signature(key: Ed25519PrivateKey, content: dict[str, Any], kid: str | None = None) -> dict[str, str]:
    """A signature over the canonical bytes of this content, as it is sent; a forger names another key than its own."""
    made = sign_content(key, canonical_json(content))
    return {"kid": kid or made.kid, "bytes_hex": made.bytes_hex}


@dataclass
class SealedSite:
    """The own site with its seal, and what to sign for it."""

    api: Api
    facility_id: str
    online: str
    root: str
    paths: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        seal = f"/federation/seals/{self.facility_id}"
        verbs = {"sign": "pointer/sign", "rotate": "online-key/rotate", "complete": "republishing/complete"}
        self.paths = {"seal": seal, "start": f"{seal}/republishing/start"} | {k: f"{seal}/{v}" for k, v in verbs.items()}

    def pointer(self, sequence_number: int, head_hash: str = HEADS[0]) -> dict[str, Any]:
        said = {"facility_id": self.facility_id, "head_hash": head_hash, "sequence_number": sequence_number}
        return {**said, "purpose": "seal-pointer", "version": 1}

    def key_change(self, new_id: str, new_key: Ed25519PrivateKey, sequence_number: int) -> dict[str, Any]:
        return {
            "facility_id": self.facility_id,
            "previous_online_credential_id": self.online,
            "new_online_credential_id": new_id,
            "new_online_kid": key_id(new_key.public_key()),
            "sequence_number": sequence_number,
            "purpose": "seal-online-key",
            "version": 1,
        }

    async def sign(self, sequence_number: int, signature: Any = None, head_hash: str = HEADS[0]) -> httpx.Response:
        given = {"new_head_hash": head_hash, "new_sequence_number": sequence_number, "signature": signature}
        return await self.api.post(self.paths["sign"], given)

    async def rotate(self, new_id: str, signed: bool = True, offline_signature: Any = None) -> httpx.Response:
        given = {"new_online_credential_id": new_id, "signed_by_offline_root": signed}
        return await self.api.post(self.paths["rotate"], {**given, "offline_signature": offline_signature})

    async def read_seal(self) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.api.get(self.paths["seal"])).json()
        return shown


async def anchor(api: Api, facility_id: str, purpose: str, secret_ref: str, material: str | None, audience: str) -> str:
    """A credential of the site that its seal may rest on."""
    pointers = {"secret_ref": secret_ref, "public_material_ref": material}
    credential = {"facility_id": facility_id, "audience": audience, "purpose": purpose, **pointers}
    id = await api.create("/federation/credentials", credential)
    await api.execute(f"/federation/facilities/{facility_id}/trust-anchors/add", {"credential_id": id})
    return id


async def sealed_site(api: Api, secret_ref: str = "kms://k1") -> SealedSite:
    site = await own_site(api)
    audience = "registry.example"
    online = await anchor(api, site, "SealOnlineSigning", secret_ref, public_material(ONLINE), audience)
    root = await anchor(api, site, "SealOfflineRoot", "vault://root", public_material(ROOT), audience)
    pair = {"online_credential_id": online, "offline_credential_id": root}
    assert (await api.post("/federation/seals", {"facility_id": site, **pair})).json() == {"facility_id": site}
    return SealedSite(api, site, online, root)


@pytest.fixture
async def strict(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    """A service that takes nothing unsigned, and holds a few keys: the online one, the offline root, and public halves."""
    for name, key in {"online": ONLINE, "root": ROOT}.items():
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / f"{name}.pem").write_bytes(pem)
    public = NEXT.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "next.pub").write_bytes(public)
    async with running_api(database_url, seal_signatures="required", signing_key_directory=tmp_path) as api:
        yield api


async def test_two_light_sources_seal_what_they_publish(api: Api) -> None:
    """The worked example as written, with keys that nobody here can read."""
    f1 = await own_site(api)
    c1 = await anchor(api, f1, "SealOnlineSigning", "kms://k1", None, "registry.example")
    c2 = await anchor(api, f1, "SealOfflineRoot", "vault://root", None, "registry.example")
    pair = {"facility_id": f1, "online_credential_id": c1, "offline_credential_id": c2}
    made = await api.post("/federation/seals", pair)
    assert (made.status_code, made.json()) == (201, {"facility_id": f1})
    assert refusal(await api.post("/federation/seals", pair)) == (409, "SealAlreadyExistsError", "already_sealed")
    first = {"new_head_hash": HEADS[0], "new_sequence_number": 1}
    assert (await api.post(f"/federation/seals/{f1}/pointer/sign", first)).status_code == 204
    again = await api.post(f"/federation/seals/{f1}/pointer/sign", first)
    assert refusal(again) == (409, "SealSequenceNumberRegressionError", "not_newer")
    shown = (await api.get(f"/federation/seals/{f1}")).json()
    assert (shown["facility_id"], shown["status"], shown["signed"], shown["signature"]) == (f1, "Live", False, None)
    assert (shown["current_head_hash"], shown["current_sequence_number"]) == (HEADS[0], 1)
    rotation = f"/federation/credentials/{c1}/rotation"
    following = {"new_secret_ref": "kms://k2", "new_public_material_ref": None}
    assert (await api.post(f"{rotation}/start", following)).status_code == 204
    assert (await api.post(f"{rotation}/complete")).status_code == 204
    k3 = await anchor(api, f1, "SealOnlineSigning", "kms://k3", None, "registry-2.example")
    unsigned = {"new_online_credential_id": k3, "signed_by_offline_root": False}
    assert (await api.post(f"/federation/seals/{f1}/online-key/rotate", unsigned)).status_code == 204
    assert (await api.post(f"/federation/seals/{f1}/republishing/start", {"reason": "index lost"})).status_code == 204
    second = {"new_head_hash": HEADS[1], "new_sequence_number": 2}
    refused = await api.post(f"/federation/seals/{f1}/pointer/sign", second)
    assert refusal(refused) == (409, "SealCannotSignError", "republishing")
    position = await api.execute(f"/federation/seals/{f1}/republishing/complete", second)
    listed = (await api.get("/federation/seals", status="Live", min_position=position)).json()["items"]
    [row] = [row for row in listed if row["facility_id"] == f1]
    assert (row["current_sequence_number"], row["online_credential_id"], row["signed"]) == (2, k3, False)
    history = (await api.get(f"/federation/seals/{f1}/history")).json()
    assert history["facility_id"] == f1
    assert [event["event_type"] for event in history["items"]] == [
        *("SealInitialized", "SealPointerSigned", "SealOnlineKeyRotated"),
        *("SealRepublishingStarted", "SealRepublishingCompleted"),
    ]
    for event in ("SealInitialized", "SealOnlineKeyRotated"):
        decided = await api.get("/decisions", context=event, choice=f1, min_position=position)
        assert len(decided.json()["items"]) == 1, event
    unknown = await api.get(f"/federation/seals/{uuid4()}/pointer")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SealNotFoundError")


async def test_a_pointer_is_signed_elsewhere_checked_here_and_checked_again_by_a_peer(strict: Api) -> None:
    site = await sealed_site(strict)
    unsigned = await site.sign(1)
    assert refusal(unsigned) == (409, "SealCannotSignError", "no_signature")
    made = signature(ONLINE, site.pointer(1))
    assert (await site.sign(1, made)).status_code == 204
    shown = await site.read_seal()
    assert (shown["signed"], shown["kid"], shown["signature"]) == (True, made["kid"], made)
    peer = (await strict.get(f"{site.paths['seal']}/pointer")).json()
    assert peer["pointer"] == site.pointer(1)
    keys = {key["role"]: key for key in peer["public_keys"]}
    material = bytes.fromhex(keys["Online"]["public_material"].removeprefix("ed25519:"))
    public = Ed25519PublicKey.from_public_bytes(material)
    assert key_id(public) == peer["signature"]["kid"] == keys["Online"]["kid"]
    public.verify(bytes.fromhex(peer["signature"]["bytes_hex"]), peer["pointer_bytes"].encode())


async def test_a_forged_pointer_is_refused(strict: Api) -> None:
    site = await sealed_site(strict)
    forged = signature(FORGER, site.pointer(1), kid=key_id(ONLINE.public_key()))
    assert refusal(await site.sign(1, forged)) == (409, "SealPointerForgedError", "forged")
    true = signature(ONLINE, site.pointer(1))
    assert refusal(await site.sign(1, true, HEADS[1])) == (409, "SealPointerForgedError", "forged")
    assert refusal(await site.sign(2, true)) == (409, "SealPointerForgedError", "forged")
    assert (await site.read_seal())["current_sequence_number"] == 0


async def test_an_older_pointer_is_refused_though_its_signature_is_true(strict: Api) -> None:
    site = await sealed_site(strict)
    old = signature(ONLINE, site.pointer(1))
    assert (await site.sign(1, old)).status_code == 204
    assert (await site.sign(2, signature(ONLINE, site.pointer(2, HEADS[1])), HEADS[1])).status_code == 204
    assert refusal(await site.sign(1, old)) == (409, "SealSequenceNumberRegressionError", "not_newer")
    await strict.execute(site.paths["start"])
    replayed = {"new_head_hash": HEADS[0], "new_sequence_number": 1, "signature": old}
    answer = await strict.post(site.paths["complete"], replayed)
    assert refusal(answer) == (409, "SealSequenceNumberRegressionError", "not_newer")
    assert (await site.read_seal())["current_head_hash"] == HEADS[1]


async def test_another_key_than_the_online_one_signs_no_pointer(strict: Api) -> None:
    site = await sealed_site(strict)
    for key in (ROOT, NEXT, FORGER):
        answer = await site.sign(1, signature(key, site.pointer(1)))
        assert refusal(answer) == (409, "SealKeyMismatchError", "wrong_key")


async def test_a_rotation_that_the_offline_root_did_not_sign_is_refused(strict: Api) -> None:
    site = await sealed_site(strict)
    purpose, audience = "SealOnlineSigning", "registry-2.example"
    following = await anchor(strict, site.facility_id, purpose, "kms://k2", "file://next", audience)
    change = site.key_change(following, NEXT, 0)
    true = signature(ROOT, change)
    forged = signature(FORGER, change, kid=key_id(ROOT.public_key()))
    refused = {
        "not_signed": [(True, None), (False, None), (False, true)],
        "forged": [(True, forged), (False, forged), (True, signature(ROOT, site.key_change(following, FORGER, 0)))],
        "wrong_key": [(True, signature(ONLINE, change)), (True, signature(NEXT, change))],
    }
    for reason, tries in refused.items():
        for stated, given in tries:
            answer = await site.rotate(following, stated, given)
            assert refusal(answer) == (409, "SealRotationNotSignedError", reason)
    assert (await site.read_seal())["online_credential_id"] == site.online
    assert (await site.rotate(following, True, true)).status_code == 204
    shown = await site.read_seal()
    assert (shown["online_credential_id"], shown["key_change"], shown["offline_signature"]) == (following, change, true)
    assert refusal(await site.sign(1, signature(ONLINE, site.pointer(1))))[1] == "SealKeyMismatchError"
    assert (await site.sign(1, signature(NEXT, site.pointer(1)))).status_code == 204


async def test_the_service_signs_itself_with_a_key_that_it_holds_and_never_with_the_root(strict: Api) -> None:
    site = await sealed_site(strict, secret_ref="file://online")
    assert (await site.sign(1)).status_code == 204
    assert (await site.read_seal())["signature"] == signature(ONLINE, site.pointer(1))
    await strict.execute(site.paths["start"])
    following = {"new_head_hash": HEADS[1], "new_sequence_number": 2}
    await strict.execute(site.paths["complete"], following)
    assert (await site.read_seal())["signature"] == signature(ONLINE, site.pointer(2, HEADS[1]))
    rotation = f"/federation/credentials/{site.online}/rotation"
    stolen = {"new_secret_ref": "file://root", "new_public_material_ref": public_material(ROOT)}
    await strict.execute(f"{rotation}/start", stolen)
    assert (await site.sign(3)).status_code == 204
    await strict.execute(f"{rotation}/complete")
    assert refusal(await site.sign(4)) == (409, "SealCannotSignError", "no_signature")


async def test_of_many_who_sign_the_same_number_one_succeeds(fresh_api: Api) -> None:
    site = await sealed_site(fresh_api)
    answers = await asyncio.gather(*(site.sign(1, head_hash=head) for head in HEADS))
    assert sorted(answer.status_code for answer in answers) == [204, 409, 409]
    codes = {answer.json()["code"] for answer in answers if answer.status_code == 409}
    assert codes <= {"SealSequenceNumberRegressionError", "ConcurrencyError"}


async def test_a_key_revoked_while_a_pointer_is_being_signed_signs_nothing(fresh_api: Api) -> None:
    site = await sealed_site(fresh_api)
    async with await psycopg.AsyncConnection.connect(fresh_api.database_url) as rival:
        await rival.execute(NEXT_EVENT, [site.facility_id])
        answer = asyncio.ensure_future(site.sign(1))

        async def has_decided() -> bool:
            found = await rival.execute(WAITING)
            return (await found.fetchone()) == (1,)

        await until(has_decided)
        await fresh_api.execute(f"/federation/credentials/{site.online}/revoke")
        await rival.rollback()
    assert refusal(await answer) == (409, "SealCannotSignError", "credential_revoked")
