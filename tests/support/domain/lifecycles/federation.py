"""The lives of credentials, permits, seals and received artifacts as the specification tabulates them."""

from typing import Any
from uuid import UUID

from baton.domain.shared.signatures import SignatureVerdict
from tests.support.domain.artifacts import published_artifact, receiver, receiver_in
from tests.support.domain.calibrations import rotation_center
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, reason_fields
from tests.support.domain.peers import credential, federated_world, permit, site
from tests.support.domain.seals import HEADS, anchor, initialize_seal, seal_world
from tests.support.domain.world import World


def credential_begins(world: World) -> tuple[UUID, Scene]:
    return credential(world), Scene()


def next_secret(scene: Scene) -> dict[str, Any]:
    return {"new_secret_ref": "kms://k2", "new_public_material_ref": None}


CREDENTIAL = Lifecycle(
    "Credential",
    "register_credential",
    credential_begins,
    {"status": {"Active": "", "Rotating": "start_credential_rotation", "Revoked": "revoke_credential"}},
    {
        "start_credential_rotation": Verb("Active", at("Rotating"), "CredentialCannotStartRotationError", given=next_secret),
        "complete_credential_rotation": Verb("Rotating", at("Active"), "CredentialCannotCompleteRotationError"),
        "abort_credential_rotation": Verb(
            "Rotating", at("Active"), "CredentialCannotAbortRotationError", given=reason_fields
        ),
        "revoke_credential": Verb("Active Rotating", at("Revoked"), "CredentialCannotRevokeError", given=reason_fields),
    },
    federated_world,
)


def permit_begins(world: World) -> tuple[UUID, Scene]:
    return permit(world, site(world), active=False), Scene()


PERMIT = Lifecycle(
    "Permit",
    "define_permit",
    permit_begins,
    {
        "status": {
            "Defined": "",
            "Active": "activate_permit",
            "Suspended": "activate_permit suspend_permit",
            "Revoked": "revoke_permit",
        }
    },
    {
        "activate_permit": Verb("Defined", at("Active"), "PermitCannotActivateError"),
        "suspend_permit": Verb("Active", at("Suspended"), "PermitCannotSuspendError", given=reason_fields),
        "resume_permit": Verb("Suspended", at("Active"), "PermitCannotResumeError"),
        "revoke_permit": Verb("Defined Active Suspended", at("Revoked"), "PermitCannotRevokeError", given=reason_fields),
    },
    federated_world,
)


def seal_begins(world: World) -> tuple[UUID, Scene]:
    facility_id, *_ = initialize_seal(world, public_material_ref=None)
    return facility_id, Scene(following=anchor(world, "next", public_material_ref=None))


def next_pointer(scene: Scene) -> dict[str, Any]:
    return {"new_head_hash": HEADS[0], "new_sequence_number": 1}


def next_key(scene: Scene) -> dict[str, Any]:
    return {"new_online_credential_id": scene.following, "signed_by_offline_root": True}


SEAL = Lifecycle(
    "Seal",
    "initialize_seal",
    seal_begins,
    {"status": {"Live": "", "Republishing": "start_seal_republishing"}},
    {
        "sign_seal_pointer": Verb("Live", {}, "SealCannotSignError", given=next_pointer),
        "rotate_seal_online_key": Verb("Live", {}, "SealCannotRotateError", given=next_key),
        "start_seal_republishing": Verb("Live", at("Republishing"), "SealCannotStartRepublishingError", given=reason_fields),
        "complete_seal_republishing": Verb(
            "Republishing", at("Live"), "SealCannotCompleteRepublishingError", given=next_pointer
        ),
    },
    seal_world,
)


def receiving_world() -> World:
    return receiver().world


def artifact_begins(world: World) -> tuple[UUID, Scene]:
    """An artifact whose publisher's key is not here yet."""
    world.ports["verify_signature"] = SignatureVerdict.UNKNOWN_KEY
    id, _ = receiver_in(world).receive(published_artifact())
    return id, Scene(calibration_id=rotation_center(world))


def find_key(world: World, id: UUID, scene: Scene) -> None:
    world.ports["verify_signature"] = SignatureVerdict.VALID


def find_forgery(world: World, id: UUID, scene: Scene) -> None:
    world.ports["verify_signature"] = SignatureVerdict.FORGED


RECEIVED_ARTIFACT = Lifecycle(
    "ReceivedArtifact",
    "receive_artifact",
    artifact_begins,
    {
        "status": {
            "Unverifiable": "",
            "Verified": "find_key recheck_received_artifact",
            "Rejected": "find_forgery recheck_received_artifact",
        }
    },
    {
        "recheck_received_artifact": Verb("Unverifiable", {}, "ReceivedArtifactCannotRecheckError"),
        "adopt_received_artifact": Verb(
            "Verified", {}, "ReceivedArtifactCannotAdoptError", given=lambda scene: {"calibration_id": scene.calibration_id}
        ),
    },
    receiving_world,
    from_elsewhere={"find_key": find_key, "find_forgery": find_forgery},
)

LIVES = (CREDENTIAL, PERMIT, SEAL, RECEIVED_ARTIFACT)
STATELESS = ()
