"""Seals: which keys may vouch for a facility's pointer, and that nothing older, forged or unvouched gets into it."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.decision.decision import Decision
from baton.domain.facility.facility import Facility
from baton.domain.federation.credential import CompleteCredentialRotation, RevokeCredential, StartCredentialRotation
from baton.domain.federation.seal import (
    CompleteSealRepublishing,
    GetSealPointer,
    InitializeSeal,
    ListSeals,
    RotateSealOnlineKey,
    Seal,
    SealInitialized,
    SealKeyChange,
    SealOnlineKeyRotated,
    SealPointerSigned,
    SealRepublishingCompleted,
    SealSignature,
    SignSealPointer,
    StartSealRepublishing,
    canonical_bytes,
)
from baton.infrastructure.signing import key_id
from tests.support.domain.peers import credential, own_id, site
from tests.support.domain.seals import (
    FORGER,
    HEADS,
    KEYS,
    anchor,
    initialize_seal,
    pointer,
    public_material,
    seal_world,
    signature_of,
)
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id
from tests.support.tables import for_each

ONLINE_KID = key_id(KEYS["online"].public_key())


def sign_pointer(
    world: World, sequence_number: int, head_hash: str = HEADS[0], signature: SealSignature | None = None
) -> list[Any]:
    asked = SignSealPointer(new_head_hash=head_hash, new_sequence_number=sequence_number, signature=signature)
    return world.when(asked, on=own_id(world))


def own_seal(world: World) -> Seal:
    state: Seal = world.state(Seal, own_id(world))
    return state


def change_key(world: World, following: UUID, **fields: Any) -> list[Any]:
    asked = {"new_online_credential_id": following, "signed_by_offline_root": True, **fields}
    return world.when(RotateSealOnlineKey(**asked), on=own_id(world))


def key_change(world: World, following: UUID, **fields: Any) -> SealKeyChange:
    """What the offline root must sign for the key of this credential to become the online one."""
    state = own_seal(world)
    usual = {
        "facility_id": state.id,
        "previous_online_credential_id": state.online_credential_id,
        "new_online_credential_id": following,
        "new_online_kid": key_id(KEYS["next"].public_key()),
        "sequence_number": state.current_sequence_number,
    }
    return SealKeyChange(**{**usual, **fields})


def test_what_is_signed_is_canonical_json_of_what_the_pointer_says() -> None:
    facility, old, new = (UUID(int=number) for number in (1, 2, 3))
    assert canonical_bytes(pointer(facility, 7, "9f" * 32)) == (
        b'{"facility_id":"00000000-0000-0000-0000-000000000001","head_hash":"' + b"9f" * 32 + b'",'
        b'"purpose":"seal-pointer","sequence_number":7,"version":1}'
    )
    change = SealKeyChange(
        facility_id=facility,
        previous_online_credential_id=old,
        new_online_credential_id=new,
        new_online_kid="ab" * 32,
        sequence_number=7,
    )
    assert canonical_bytes(change) == (
        b'{"facility_id":"00000000-0000-0000-0000-000000000001",'
        b'"new_online_credential_id":"00000000-0000-0000-0000-000000000003","new_online_kid":"' + b"ab" * 32 + b'",'
        b'"previous_online_credential_id":"00000000-0000-0000-0000-000000000002",'
        b'"purpose":"seal-online-key","sequence_number":7,"version":1}'
    )


def test_a_seal_is_initialized_under_its_facilitys_id() -> None:
    world = seal_world()
    facility_id, online, root = initialize_seal(world)
    assert facility_id == own_id(world)
    assert world.streams["Seal", facility_id] == [
        SealInitialized(online_credential_id=online, offline_credential_id=root, initialized_by=OPERATOR)
    ]
    state = own_seal(world)
    assert (state.status, state.current_head_hash, state.current_sequence_number) == ("Live", None, 0)
    assert (state.initialized_at, state.initialized_by, state.signed, state.pointer) == (world.now, OPERATOR, False, None)
    with expect_refusal("SealAlreadyExistsError", "already_sealed"):
        world.when(InitializeSeal(facility_id=facility_id, online_credential_id=online, offline_credential_id=online))


def initialization(world: World, **fields: Any) -> InitializeSeal:
    usual = {"facility_id": own_id(world), "online_credential_id": new_id(), "offline_credential_id": new_id()}
    return InitializeSeal(**{**usual, **fields})


def test_initializing_is_refused_in_the_order_of_its_rules() -> None:
    world = seal_world()
    same = new_id()
    with expect_refusal("SealKeyCollisionError", "same_credential"):
        world.when(initialization(world, facility_id=new_id(), online_credential_id=same, offline_credential_id=same))
    with expect_refusal("FacilityNotFoundError"):
        world.when(initialization(world, facility_id=new_id()))
    root = credential(world, audience="a", purpose="SealOfflineRoot", secret_ref="vault://root")
    with expect_refusal("CredentialNotFoundError") as missing:
        world.when(initialization(world, offline_credential_id=root))
    assert missing.value.facts["missing_ids"] != [str(root)]
    wrong = credential(world, audience="b", purpose="Signing", secret_ref="kms://k1")
    with expect_refusal("SealKeyPurposeMismatchError"):
        world.when(initialization(world, online_credential_id=wrong, offline_credential_id=root))
    online = credential(world, audience="c", purpose="SealOnlineSigning", secret_ref="kms://k1")
    keys = {"online_credential_id": online, "offline_credential_id": root}
    with expect_refusal("SealCredentialNotTrustAnchorError") as unknown:
        world.when(initialization(world, **keys))
    assert unknown.value.facts == {"credential_id": str(online)}


def test_the_purposes_do_not_change_places() -> None:
    world = seal_world()
    online, root = anchor(world, "online"), anchor(world, "root")
    with expect_refusal("SealKeyPurposeMismatchError"):
        world.when(initialization(world, online_credential_id=root, offline_credential_id=online))


@for_each("flaw", ["rotating", "revoked", "expired"])
@for_each("place", ["online", "root"])
def test_only_active_credentials_are_placed_in_a_seal(place: str, flaw: str) -> None:
    world = seal_world()
    ids = {name: anchor(world, name, expires_at=START + timedelta(hours=1)) for name in ("online", "root")}
    if flaw == "rotating":
        world.when(StartCredentialRotation(new_secret_ref="kms://k2"), on=ids[place])
    elif flaw == "revoked":
        world.when(RevokeCredential(), on=ids[place])
    else:
        world.now = START + timedelta(hours=2)
    with expect_refusal("SealRequiresActiveCredentialError", flaw):
        world.when(initialization(world, online_credential_id=ids["online"], offline_credential_id=ids["root"]))


@for_each("field", ["secret_ref", "public_material_ref"])
def test_two_credentials_for_one_key_make_no_seal(field: str) -> None:
    world = seal_world()
    ids = {name: anchor(world, name, **{field: "file://shared"}) for name in ("online", "root")}
    with expect_refusal("SealKeyCollisionError", "same_key"):
        world.when(initialization(world, online_credential_id=ids["online"], offline_credential_id=ids["root"]))


def test_initializing_and_rotating_are_decisions() -> None:
    world = seal_world()
    facility_id, *_ = initialize_seal(world)
    sign_pointer(world, 1)
    change_key(world, anchor(world, "next"), signed_by_offline_root=False)
    decisions = [world.state(Decision, id) for kind, id in world.streams if kind == "Decision"]
    about = [(one.context, one.choice, one.decided_by) for one in decisions if one.context.startswith("Seal")]
    assert about == [(name, str(facility_id), OPERATOR) for name in ("SealInitialized", "SealOnlineKeyRotated")]


def test_a_pointer_without_any_key_at_hand_is_recorded_as_unsigned() -> None:
    world = seal_world()
    initialize_seal(world, public_material_ref=None)
    [event] = sign_pointer(world, 1)
    assert event == SealPointerSigned(
        head_hash=HEADS[0], sequence_number=1, signed_at=world.now, signed_by=OPERATOR, signature=None
    )
    state = own_seal(world)
    assert (state.current_head_hash, state.current_sequence_number) == (HEADS[0], 1)
    assert (state.last_signed_at, state.last_signed_by, state.signed, state.kid) == (world.now, OPERATOR, False, None)


def test_where_signatures_are_required_an_unsigned_pointer_is_refused() -> None:
    world = seal_world(required=True)
    initialize_seal(world)
    with expect_refusal("SealCannotSignError", "no_signature"):
        sign_pointer(world, 1)
    sign_pointer(world, 1, signature=signature_of(KEYS["online"], pointer(own_id(world), 1)))
    assert own_seal(world).signed


@for_each("required", [False, True])
def test_a_given_signature_is_checked_and_kept(required: bool) -> None:
    world = seal_world(required=required)
    facility_id, *_ = initialize_seal(world)
    signature = signature_of(KEYS["online"], pointer(facility_id, 1))
    [event] = sign_pointer(world, 1, signature=signature)
    assert event.signature == signature
    assert (own_seal(world).signed, own_seal(world).kid) == (True, ONLINE_KID)
    others = [pointer(facility_id, 2, HEADS[2]), pointer(site(world), 2)]
    forged = signature_of(FORGER, pointer(facility_id, 2)).model_copy(update={"kid": ONLINE_KID})
    for wrong in (signature, forged, *(signature_of(KEYS["online"], other) for other in others)):
        with expect_refusal("SealPointerForgedError", "forged"):
            sign_pointer(world, 2, signature=wrong)
    for other in ("root", "next"):
        with expect_refusal("SealKeyMismatchError", "wrong_key"):
            sign_pointer(world, 2, signature=signature_of(KEYS[other], pointer(facility_id, 2)))
    assert own_seal(world).current_sequence_number == 1


def test_a_signature_that_cannot_be_checked_is_refused() -> None:
    world = seal_world()
    facility_id, *_ = initialize_seal(world, public_material_ref=None)
    with expect_refusal("SealCannotSignError", "no_public_material"):
        sign_pointer(world, 1, signature=signature_of(KEYS["online"], pointer(facility_id, 1)))


@for_each("material", [{}, {"public_material_ref": None}])
def test_the_service_signs_with_the_online_key_where_it_holds_it(material: dict[str, Any]) -> None:
    world = seal_world(required=True, held={"kms://online": KEYS["online"], "kms://root": KEYS["root"]})
    facility_id, *_ = initialize_seal(world, **material)
    [event] = sign_pointer(world, 1)
    assert event.signature == signature_of(KEYS["online"], pointer(facility_id, 1))


def test_the_service_does_not_sign_what_the_public_key_would_not_check() -> None:
    world = seal_world(held={"kms://online": FORGER})
    initialize_seal(world)
    with expect_refusal("SealKeyMismatchError"):
        sign_pointer(world, 1)


def test_the_service_never_signs_with_the_offline_root() -> None:
    world = seal_world(held={"kms://root": KEYS["root"]})
    _, online, _ = initialize_seal(world, public_material_ref=None)
    world.when(StartCredentialRotation(new_secret_ref="kms://root"), on=online)
    world.when(CompleteCredentialRotation(), on=online)
    [event] = sign_pointer(world, 1)
    assert event.signature is None


def test_nothing_is_signed_for_a_pointer_that_is_refused_anyway() -> None:
    world = seal_world(held={"kms://online": KEYS["online"]})
    initialize_seal(world)
    asked = world.ports["sign"].__self__.asked
    sign_pointer(world, 5)
    assert asked == ["kms://online"]
    with expect_refusal("SealSequenceNumberRegressionError"):
        sign_pointer(world, 5)
    with expect_refusal("InvalidSealHeadHashError"):
        sign_pointer(world, 6, "not a hash")
    world.when(StartSealRepublishing(), on=own_id(world))
    with expect_refusal("SealCannotSignError", "republishing"):
        sign_pointer(world, 6)
    assert asked == ["kms://online"]


def test_a_rotating_online_credential_signs_with_its_old_key_until_the_rotation_completes() -> None:
    world = seal_world(held={"kms://online": KEYS["online"], "kms://k2": KEYS["next"]})
    _, online, _ = initialize_seal(world)
    following = {"new_secret_ref": "kms://k2", "new_public_material_ref": public_material(KEYS["next"])}
    world.when(StartCredentialRotation(**following), on=online)
    sign_pointer(world, 1)
    assert own_seal(world).kid == ONLINE_KID
    world.when(CompleteCredentialRotation(), on=online)
    sign_pointer(world, 2)
    assert own_seal(world).kid == key_id(KEYS["next"].public_key())


@for_each("sequence_number", [3, 2, 1])
def test_an_older_pointer_is_refused_even_with_its_true_signature(sequence_number: int) -> None:
    world = seal_world()
    facility_id, *_ = initialize_seal(world)
    for number in (1, 2, 3):
        sign_pointer(world, number, signature=signature_of(KEYS["online"], pointer(facility_id, number)))
    with expect_refusal("SealSequenceNumberRegressionError", "not_newer") as caught:
        replayed = signature_of(KEYS["online"], pointer(facility_id, sequence_number))
        sign_pointer(world, sequence_number, signature=replayed)
    assert caught.value.facts == {"current_sequence_number": 3}


@for_each("head_hash", ["9f", "9F" * 32, "zz" * 32, "9f" * 31 + "9\n"])
def test_a_head_is_a_lowercase_sha256(head_hash: str) -> None:
    world = seal_world()
    initialize_seal(world)
    with expect_refusal("InvalidSealHeadHashError", "not_sha256"):
        sign_pointer(world, 1, head_hash)


@for_each(
    "fields",
    [
        {"new_head_hash": ""},
        {"new_head_hash": "a" * 65},
        {"new_sequence_number": 0},
        {"new_sequence_number": 2**53},
        {"signature": {"kid": "ab", "bytes_hex": "ab" * 64}},
        {"signature": {"kid": "ab" * 32, "bytes_hex": "AB" * 64}},
        {"signature": {"kid": "ab" * 32, "bytes_hex": "ab" * 64, "envelope_kind": "rsa"}},
    ],
)
def test_bounds_are_the_edges_business(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SignSealPointer(**{"new_head_hash": HEADS[0], "new_sequence_number": 1, **fields})


def test_a_revoked_or_expired_online_credential_signs_nothing() -> None:
    world = seal_world()
    _, online, _ = initialize_seal(world, expires_at=START + timedelta(hours=1))
    world.now = START + timedelta(hours=2)
    with expect_refusal("SealCannotSignError", "credential_expired"):
        sign_pointer(world, 1)
    world.when(RevokeCredential(), on=online)
    with expect_refusal("SealCannotSignError", "credential_revoked"):
        sign_pointer(world, 1)


def test_another_key_signs_once_the_offline_root_vouches_for_it() -> None:
    world = seal_world(required=True)
    facility_id, online, _ = initialize_seal(world)
    sign_pointer(world, 1, signature=signature_of(KEYS["online"], pointer(facility_id, 1)))
    following = anchor(world, "next")
    change = key_change(world, following)
    vouched = signature_of(KEYS["root"], change)
    [event] = change_key(world, following, offline_signature=vouched)
    assert event == SealOnlineKeyRotated(
        new_online_credential_id=following,
        new_online_kid=change.new_online_kid,
        signed_by_offline_root=True,
        offline_signature=vouched,
        rotated_by=OPERATOR,
    )
    state = own_seal(world)
    assert (state.online_credential_id, state.key_change, state.offline_signature) == (following, change, vouched)
    assert (state.kid, state.signing_credential_id) == (ONLINE_KID, online)
    with expect_refusal("SealKeyMismatchError"):
        sign_pointer(world, 2, signature=signature_of(KEYS["online"], pointer(facility_id, 2)))
    sign_pointer(world, 2, signature=signature_of(KEYS["next"], pointer(facility_id, 2)))


def test_without_signatures_required_a_rotation_is_recorded_as_stated() -> None:
    world = seal_world()
    initialize_seal(world, public_material_ref=None)
    [event] = change_key(world, anchor(world, "next", public_material_ref=None), signed_by_offline_root=False)
    assert (event.signed_by_offline_root, event.offline_signature, event.new_online_kid) == (False, None, None)


@for_each("required", [False, True])
def test_a_rotation_that_the_offline_root_did_not_sign_is_refused(required: bool) -> None:
    world = seal_world(required=required)
    initialize_seal(world)
    following = anchor(world, "next")
    change = key_change(world, following)
    bad = {
        "forged": signature_of(KEYS["root"], change.model_copy(update={"sequence_number": 9})),
        "wrong_key": signature_of(KEYS["online"], change),
    }
    for reason, signature in bad.items():
        for stated in (True, False):
            with expect_refusal("SealRotationNotSignedError", reason):
                change_key(world, following, signed_by_offline_root=stated, offline_signature=signature)
    other_key = signature_of(KEYS["root"], key_change(world, following, new_online_kid=key_id(FORGER.public_key())))
    with expect_refusal("SealRotationNotSignedError", "forged"):
        change_key(world, following, offline_signature=other_key)
    assert own_seal(world).online_credential_id != following


def test_where_signatures_are_required_the_root_must_have_signed_and_be_said_to() -> None:
    world = seal_world(required=True)
    initialize_seal(world)
    following = anchor(world, "next")
    with expect_refusal("SealRotationNotSignedError", "not_signed"):
        change_key(world, following)
    with expect_refusal("SealRotationNotSignedError", "not_signed"):
        vouched = signature_of(KEYS["root"], key_change(world, following))
        change_key(world, following, signed_by_offline_root=False, offline_signature=vouched)


def test_a_root_without_public_material_cannot_vouch_with_a_signature() -> None:
    world = seal_world()
    initialize_seal(world, public_material_ref=None)
    following = anchor(world, "next")
    with expect_refusal("SealRotationNotSignedError", "no_public_material"):
        change_key(world, following, offline_signature=signature_of(KEYS["root"], key_change(world, following)))


def test_an_old_rotation_cannot_be_played_again() -> None:
    world = seal_world(required=True)
    facility_id, online, _ = initialize_seal(world)
    following = anchor(world, "next")
    vouched = signature_of(KEYS["root"], key_change(world, following))
    change_key(world, following, offline_signature=vouched)
    sign_pointer(world, 1, signature=signature_of(KEYS["next"], pointer(facility_id, 1)))
    back = key_change(world, online, new_online_kid=ONLINE_KID)
    change_key(world, online, offline_signature=signature_of(KEYS["root"], back))
    with expect_refusal("SealRotationNotSignedError", "forged"):
        change_key(world, following, offline_signature=vouched)


def test_a_new_online_key_is_judged_like_the_first() -> None:
    world = seal_world()
    _, online, root = initialize_seal(world)
    with expect_refusal("CredentialNotFoundError"):
        change_key(world, new_id())
    with expect_refusal("SealCannotRotateError", "same_credential"):
        change_key(world, online)
    with expect_refusal("SealKeyCollisionError", "same_credential"):
        change_key(world, root)
    with expect_refusal("SealKeyPurposeMismatchError"):
        change_key(world, credential(world))
    apart = credential(world, audience="next", purpose="SealOnlineSigning", secret_ref="kms://next")
    with expect_refusal("SealCredentialNotTrustAnchorError"):
        change_key(world, apart)
    with expect_refusal("SealKeyCollisionError", "same_key"):
        change_key(world, anchor(world, "next", audience="twin", secret_ref="kms://root"))
    revoked = anchor(world, "next", audience="gone")
    world.when(RevokeCredential(), on=revoked)
    with expect_refusal("SealRequiresActiveCredentialError", "revoked"):
        change_key(world, revoked)
    assert world.state(Facility, own_id(world)).trust_anchor_credential_ids


def republish(world: World, **fields: Any) -> list[Any]:
    world.when(StartSealRepublishing(reason="index lost"), on=own_id(world))
    return world.when(CompleteSealRepublishing(**fields), on=own_id(world))


def test_republishing_ends_with_a_new_head_or_with_the_old_one() -> None:
    world = seal_world(held={"kms://online": KEYS["online"]})
    facility_id, *_ = initialize_seal(world)
    sign_pointer(world, 4)
    before = own_seal(world)
    [kept] = republish(world)
    assert kept == SealRepublishingCompleted(
        new_head_hash=None, new_sequence_number=None, completed_by=OPERATOR, signature=None
    )
    assert own_seal(world) == before
    [renewed] = republish(world, new_head_hash=HEADS[1], new_sequence_number=5)
    assert renewed.signature == signature_of(KEYS["online"], pointer(facility_id, 5, HEADS[1]))
    state = own_seal(world)
    assert (state.current_head_hash, state.current_sequence_number, state.last_signed_at) == (HEADS[1], 5, world.now)


@for_each(
    ("fields", "refusal", "reason"),
    [
        ({"new_head_hash": HEADS[1]}, "InvalidSealHeadHashError", "half_a_pointer"),
        ({"new_sequence_number": 5}, "InvalidSealHeadHashError", "half_a_pointer"),
        ({"signature": signature_of(FORGER, pointer(new_id(), 5))}, "InvalidSealHeadHashError", "half_a_pointer"),
        ({"new_head_hash": "9f", "new_sequence_number": 5}, "InvalidSealHeadHashError", "not_sha256"),
        ({"new_head_hash": HEADS[1], "new_sequence_number": 4}, "SealSequenceNumberRegressionError", "not_newer"),
        (
            {"new_head_hash": HEADS[1], "new_sequence_number": 5, "signature": signature_of(FORGER, pointer(new_id(), 5))},
            "SealKeyMismatchError",
            "wrong_key",
        ),
    ],
)
def test_republishing_takes_no_worse_a_head_than_signing(fields: dict[str, Any], refusal: str, reason: str) -> None:
    world = seal_world()
    initialize_seal(world)
    sign_pointer(world, 4)
    with expect_refusal(refusal, reason):
        republish(world, **fields)


def test_republishing_without_any_head_needs_one() -> None:
    world = seal_world()
    initialize_seal(world)
    with expect_refusal("InvalidSealHeadHashError", "no_head"):
        republish(world)


def test_republishing_needs_a_signature_where_they_are_required() -> None:
    world = seal_world(required=True)
    facility_id, *_ = initialize_seal(world)
    given = {"new_head_hash": HEADS[0], "new_sequence_number": 1}
    with expect_refusal("SealCannotSignError", "no_signature"):
        republish(world, **given)
    signature = signature_of(KEYS["online"], pointer(facility_id, 1))
    [event] = world.when(CompleteSealRepublishing(**given, signature=signature), on=facility_id)
    assert event.signature == signature


def test_a_peer_gets_everything_to_check_a_pointer_with() -> None:
    world = seal_world()
    facility_id, online, root = initialize_seal(world)
    empty = world.ask(GetSealPointer(), on=facility_id)
    assert (empty.pointer, empty.pointer_bytes, empty.signed, empty.key_change_bytes) == (None, None, False, None)
    sign_pointer(world, 1, signature=signature_of(KEYS["online"], pointer(facility_id, 1)))
    following = anchor(world, "next", public_material_ref=None)
    change = key_change(world, following, new_online_kid=None)
    change_key(world, following, offline_signature=signature_of(KEYS["root"], change))
    shown = world.ask(GetSealPointer(), on=facility_id)
    keys = {key.role: key for key in shown.public_keys}
    assert {role: key.credential_id for role, key in keys.items()} == {
        "Online": following,
        "OfflineRoot": root,
        "FormerOnline": online,
    }
    assert (keys["Online"].kid, keys["Online"].public_material) == (None, None)
    assert keys["FormerOnline"].kid == shown.signature.kid == ONLINE_KID
    KEYS["online"].public_key().verify(bytes.fromhex(shown.signature.bytes_hex), shown.pointer_bytes.encode())
    KEYS["root"].public_key().verify(bytes.fromhex(shown.offline_signature.bytes_hex), shown.key_change_bytes.encode())
    assert json.loads(shown.pointer_bytes) == shown.pointer.model_dump(mode="json")


def test_lists_say_whether_a_pointer_is_signed() -> None:
    world = seal_world(held={"kms://online": KEYS["online"]})
    facility_id, *_ = initialize_seal(world)
    sign_pointer(world, 1)
    row = ListSeals.summary.of(own_seal(world)).model_dump()
    assert (row["facility_id"], row["signed"], row["kid"]) == (facility_id, True, ONLINE_KID)
    assert ListSeals.summary.time == "initialized_at"


def test_a_deployment_without_the_key_ports_is_asked_nothing_for_a_plain_end_of_republishing() -> None:
    world = seal_world(held={"kms://online": KEYS["online"]})
    initialize_seal(world)
    sign_pointer(world, 1)
    world.ports = {"deployment": SimpleNamespace()}
    republish(world)
    assert own_seal(world).status == "Live"
