"""Verbs to arrange trust with: the own facility, a peer, credentials and permits."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from baton.domain.facility.facility import RegisterFacility
from baton.domain.federation.credential import RegisterCredential
from baton.domain.federation.permit import ActivatePermit, DefinePermit
from tests.support.domain.world import START, World, new_id

OWN = "facility"
IN_A_YEAR = START + timedelta(days=365)
OUTBOUND = {
    "kind": "Outbound",
    "scopes": [{"kind": "beamline", "name": "imaging-1", "qualifier": None}],
    "read_scope": "ReadAllArtifacts",
    "onward_action_scope": "MayCacheLocally",
}
INBOUND = {"kind": "Inbound", "inbound_allowed_artifact_kinds": ["CalibrationRevision"]}


def federated_world() -> World:
    """A world with the own facility in it."""
    world = World()
    world.ports["deployment"] = SimpleNamespace(self_facility_code=OWN, peer_accounts={}, own_ids_at_peers={})
    site(world, OWN)
    return world


def own_id(world: World) -> UUID:
    return world.claims["facility-code", OWN]


def site(world: World, code: str = "peer-lightsource", **fields: Any) -> UUID:
    return world.create(RegisterFacility(**{"code": code, "display_name": "Peer Light Source", "kind": "Site", **fields}))


def credential(world: World, facility_id: UUID | None = None, **fields: Any) -> UUID:
    values = {"audience": "registry.example", "purpose": "Signing", "secret_ref": "file://calibration", **fields}
    return world.create(RegisterCredential(facility_id=facility_id or own_id(world), **values))


def grant(peer_facility_id: Any, *credential_ids: Any, **fields: Any) -> dict[str, Any]:
    """A permit to send a peer calibrations, as it is asked for over the wire."""
    return {
        "peer_facility_id": peer_facility_id,
        "audience": "registry.example",
        "purpose": "calibration-exchange",
        "direction": "Outbound",
        "allowed_credential_ids": credential_ids,
        "allowed_payload_types": ["application/json"],
        "allowed_artifact_kinds": ["CalibrationRevision"],
        "abi_tier_floor": "Stable",
        "expires_at": "2127-01-01T00:00:00Z",
        "terms": OUTBOUND,
        **fields,
    }


def permit_fields(peer_facility_id: UUID, **fields: Any) -> dict[str, Any]:
    return grant(peer_facility_id, new_id(), **{"expires_at": IN_A_YEAR, **fields})


def permit(world: World, peer_facility_id: UUID, *, active: bool = True, **fields: Any) -> UUID:
    id = world.create(DefinePermit(**permit_fields(peer_facility_id, **fields)))
    if active:
        world.when(ActivatePermit(), on=id)
    return id
