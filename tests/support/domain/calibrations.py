"""Verbs to arrange calibrations with, and everything a revision needs to be published."""

from typing import Any
from uuid import UUID

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.calibration.calibration import AppendCalibrationRevision, DefineCalibration
from baton.domain.federation.publication import PublishCalibrationRevision
from tests.support.domain.peers import credential, federated_world, permit, site
from tests.support.domain.world import OPERATOR, World, new_id

AT_25_KEV = {"energy": 25, "optics_config": "5x"}


def definition(**fields: Any) -> DefineCalibration:
    values = {"target_id": new_id(), "quantity": "rotation_center", "operating_point": AT_25_KEV}
    return DefineCalibration(**{**values, **fields})


def rotation_center(world: World, **fields: Any) -> UUID:
    return world.create(definition(**fields))


def measured_revision(center: float = 1024.5, **fields: Any) -> AppendCalibrationRevision:
    source = {"kind": "Measured", "procedure_id": new_id()}
    values = {"value": {"center": center, "uncertainty": 0.3}, "status": "Provisional", "source": source}
    return AppendCalibrationRevision(**{**values, **fields})


def append_revision(world: World, calibration_id: UUID, **fields: Any) -> UUID:
    """Append a revision and return its id."""
    [event] = world.when(measured_revision(**fields), on=calibration_id)
    id: UUID = event.revision_id  # type: ignore[attr-defined]
    return id


def publishing_world() -> World:
    """A world in which the caller is a person and the own facility has a key to sign with."""
    world = federated_world()
    world.given(OPERATOR, ActorRegistered(kind=ActorKind.HUMAN))
    return world


def publishable_revision(world: World, **fields: Any) -> tuple[UUID, PublishCalibrationRevision]:
    """A calibration with a revision, and the command to send that revision to a peer that is permitted to have it."""
    peer = site(world)
    permit(world, peer, allowed_credential_ids=[credential(world)], abi_tier_floor="Testing")
    id = rotation_center(world)
    return id, PublishCalibrationRevision(revision_id=append_revision(world, id, **fields), peer_facility_id=peer)
