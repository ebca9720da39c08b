"""The lives of credentials and permits as the specification tabulates them."""

from typing import Any
from uuid import UUID

from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, reason_fields
from tests.support.domain.peers import credential, federated_world, permit, site
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

LIVES = (CREDENTIAL, PERMIT)
STATELESS = ()
