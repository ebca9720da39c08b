"""Credentials: one for each facility, audience and purpose, rotated without a gap, and never the secret itself."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from baton.domain.decision.decision import Decision
from baton.domain.federation.credential import (
    AbortCredentialRotation,
    CompleteCredentialRotation,
    Credential,
    CredentialPurpose,
    CredentialRegistered,
    CredentialRevoked,
    CredentialRotationAborted,
    CredentialRotationCompleted,
    CredentialRotationStarted,
    CredentialStatus,
    ListCredentials,
    RegisterCredential,
    RevokeCredential,
    StartCredentialRotation,
)
from tests.support.domain.peers import IN_A_YEAR, credential, federated_world, own_id, site
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return federated_world()


def decisions(world: World) -> list[Decision]:
    return [world.state(Decision, id) for kind, id in world.streams if kind == "Decision"]


def rotation(**fields: Any) -> StartCredentialRotation:
    return StartCredentialRotation(**{"new_secret_ref": "kms://k2", **fields})


def test_a_credential_is_registered_with_a_pointer_to_its_secret(world: World) -> None:
    own = own_id(world)
    [event] = world.when(
        RegisterCredential(
            facility_id=own,
            audience=" registry.example ",
            purpose="SealOnlineSigning",
            secret_ref="kms://k1",
            expires_at=IN_A_YEAR,
        )
    )
    assert event == CredentialRegistered(
        facility_id=own,
        audience="registry.example",
        purpose=CredentialPurpose.SEAL_ONLINE_SIGNING,
        secret_ref="kms://k1",
        public_material_ref=None,
        expires_at=IN_A_YEAR,
        registered_by=OPERATOR,
    )
    state = world.state(Credential, event.stream_id)
    assert (state.status, state.registered_at, state.registered_by) == (CredentialStatus.ACTIVE, world.now, OPERATOR)
    assert (state.rotation_started_at, state.revoked_at, state.rotation_pending_secret_ref) == (None, None, None)


def test_a_credential_belongs_to_a_known_facility(world: World) -> None:
    with expect_refusal("FacilityNotFoundError"):
        credential(world, facility_id=new_id(), audience=" ")


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"audience": " "}, "InvalidCredentialAudienceError"),
        ({"secret_ref": " "}, "InvalidCredentialSecretRefError"),
        ({"public_material_ref": " "}, "InvalidCredentialPublicMaterialRefError"),
        ({"expires_at": START}, "InvalidCredentialExpiresAtError"),
    ],
)
def test_a_credential_with_a_bad_value_is_refused(world: World, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        credential(world, **fields)


@pytest.mark.parametrize("fields", [{"audience": "a" * 501}, {"secret_ref": "s" * 2001}, {"purpose": "Anything"}])
def test_lengths_and_purposes_are_the_edges_business(world: World, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        credential(world, **fields)


def test_facility_audience_and_purpose_are_taken_until_the_credential_is_revoked(world: World) -> None:
    first = credential(world)
    with expect_refusal("CredentialAlreadyExistsError"):
        credential(world, secret_ref="file://other")
    credential(world, purpose="Verification")
    credential(world, audience="archive.example")
    credential(world, facility_id=site(world))
    world.when(RevokeCredential(), on=first)
    assert credential(world) != first


def test_rotation_keeps_the_current_material_in_use_until_it_is_completed(world: World) -> None:
    id = credential(world, secret_ref="kms://k1", public_material_ref="pub://1", expires_at=IN_A_YEAR)
    [started] = world.when(rotation(new_public_material_ref="pub://2"), on=id)
    assert started == CredentialRotationStarted(
        pending_secret_ref="kms://k2", pending_public_material_ref="pub://2", rotation_started_by=OPERATOR
    )
    rotating = world.state(Credential, id)
    assert (rotating.secret_ref, rotating.rotation_pending_secret_ref) == ("kms://k1", "kms://k2")
    assert rotating.rotation_started_at == world.now
    [completed] = world.when(CompleteCredentialRotation(), on=id)
    assert completed == CredentialRotationCompleted(rotation_completed_by=OPERATOR)
    state = world.state(Credential, id)
    assert (state.status, state.secret_ref, state.public_material_ref) == ("Active", "kms://k2", "pub://2")
    assert (state.rotation_pending_secret_ref, state.rotation_pending_public_material_ref) == (None, None)
    assert state.expires_at == IN_A_YEAR


def test_an_aborted_rotation_leaves_everything_as_it_was(world: World) -> None:
    id = credential(world, secret_ref="kms://k1", public_material_ref="pub://1")
    before = world.state(Credential, id)
    world.when(rotation(), on=id)
    [aborted] = world.when(AbortCredentialRotation(reason="wrong vault"), on=id)
    assert aborted == CredentialRotationAborted(rotation_aborted_by=OPERATOR, reason="wrong vault")
    after = world.state(Credential, id)
    assert (after.status, after.secret_ref, after.public_material_ref) == ("Active", "kms://k1", "pub://1")
    assert after.rotation_pending_secret_ref is before.rotation_pending_secret_ref is None


def test_rotation_leads_to_another_secret(world: World) -> None:
    id = credential(world, secret_ref="kms://k1")
    with expect_refusal("InvalidCredentialSecretRefError", "unchanged"):
        world.when(rotation(new_secret_ref=" kms://k1 "), on=id)
    with expect_refusal("InvalidCredentialSecretRefError", "blank"):
        world.when(rotation(new_secret_ref=" "), on=id)


def test_an_expired_credential_is_not_rotated_but_can_be_revoked(world: World) -> None:
    id = credential(world, expires_at=START + timedelta(hours=1))
    world.now = START + timedelta(hours=2)
    with expect_refusal("CredentialExpiredError"):
        world.when(rotation(new_secret_ref=" "), on=id)
    assert not world.state(Credential, id).is_usable(world.now)
    world.when(RevokeCredential(), on=id)


def test_revoking_ends_a_rotation_too(world: World) -> None:
    id = credential(world)
    world.when(rotation(), on=id)
    [revoked] = world.when(RevokeCredential(reason="key ceremony"), on=id)
    assert revoked == CredentialRevoked(revoked_by=OPERATOR, reason="key ceremony")
    state = world.state(Credential, id)
    assert (state.status, state.revoked_at, state.rotation_pending_secret_ref) == ("Revoked", world.now, None)


def test_registering_and_revoking_are_decisions(world: World) -> None:
    id = credential(world)
    world.when(rotation(), on=id)
    world.when(RevokeCredential(), on=id)
    assert [(d.context, d.choice, d.decided_by) for d in decisions(world)] == [
        ("CredentialRegistered", str(id), OPERATOR),
        ("CredentialRevoked", str(id), OPERATOR),
    ]
    for decision in decisions(world):
        assert (decision.parent_id, decision.rule, decision.reasoning, decision.confidence) == (None, None, None, None)
        assert (decision.alternatives, decision.inputs, decision.override_kind) == ((), None, None)


def test_references_to_secrets_are_withheld_from_callers_who_may_not_read_texts() -> None:
    assert CredentialRegistered.personal == {"secret_ref"}
    assert CredentialRotationStarted.personal == {"pending_secret_ref"}
    form = RegisterCredential.model_json_schema()["properties"]["secret_ref"]
    assert "x-may-contain-personal-data" not in form


def test_lists_show_no_references(world: World) -> None:
    row = ListCredentials.summary.of(world.state(Credential, credential(world)))
    assert not [name for name in row.model_dump() if name.endswith("_ref")]
