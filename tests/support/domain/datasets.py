"""Verbs to arrange data products with: datasets, their copies on storage supplies, runs and procedures they come from."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

from baton.domain.data.dataset import Dataset, PromoteDataset, RegisterDataset
from baton.domain.data.distribution import Distribution, DistributionVerified, RegisterDistribution
from baton.domain.data.lineage import Lineage, LineageDirection, LineageNode
from baton.domain.kernel import Event
from baton.domain.procedure.procedure import ProcedureRegistered
from baton.domain.supply.supply import RegisterSupply
from tests.support.domain.assets import LUMEN, facility_world
from tests.support.domain.lifecycles.run import run_started
from tests.support.domain.world import OPERATOR, World, new_id

CHECKSUM = {"algorithm": "sha256", "value": sha256(b"frames").hexdigest()}
CONTENT: dict[str, Any] = {
    "uri": "file:///data/2026-07/pellet-b12/scan_001.h5",
    "checksum": CHECKSUM,
    "byte_size": 6,
    "encoding": {"media_type": "application/x-hdf5", "conforms_to": ["https://doi.org/10.1107/S160057751401604X"]},
}


def data_world() -> World:
    """A world in which the lineage of datasets can be asked for."""
    world = facility_world()
    world.ports["dataset_lineage"] = lambda *asked: lineage_in(world, *asked)
    return world


def registered_dataset(world: World, **fields: Any) -> UUID:
    return world.create(RegisterDataset(**{"name": "scan_001.h5", **CONTENT, "allow_duplicate": True, **fields}))


def dataset_of(world: World, id: UUID) -> Dataset:
    state: Dataset = world.state(Dataset, id)
    return state


def promoted_dataset(world: World, **fields: Any) -> UUID:
    id = registered_dataset(world, **fields)
    world.when(PromoteDataset(reason="frame count and flats checked"), on=id)
    return id


def storage(world: World, name: str = "Analysis disk", kind: str = "Storage") -> UUID:
    return world.create(RegisterSupply(kind=kind, name=name, facility_code=LUMEN))


def registered_copy(world: World, dataset_id: UUID, supply_id: UUID, **fields: Any) -> UUID:
    place = {"dataset_id": dataset_id, "supply_id": supply_id, "access_protocol": "POSIX"}
    return world.create(RegisterDistribution(**{**CONTENT, **place, **fields}))


def verify_copy(world: World, id: UUID) -> None:
    """Record what an attestation that found the right bytes leaves on a copy."""
    world.given(id, DistributionVerified(attestation_id=new_id(), verified_by=OPERATOR))


def verified_copy(world: World, dataset_id: UUID, supply_id: UUID, **fields: Any) -> UUID:
    id = registered_copy(world, dataset_id, supply_id, **fields)
    verify_copy(world, id)
    return id


def copy_of(world: World, id: UUID) -> Distribution:
    state: Distribution = world.state(Distribution, id)
    return state


def run_with(world: World, *events: Event, pins: Sequence[UUID] = ()) -> UUID:
    """A run that pinned these revisions, and what happened to it since."""
    id = new_id()
    world.given(id, run_started().model_copy(update={"pinned_calibration_ids": frozenset(pins)}), *events)
    return id


def procedure_with(world: World, *events: Event) -> UUID:
    """A procedure of no run, and what happened to it since."""
    id = new_id()
    unsaid = {"capability_id": None, "recipe_id": None, "max_consecutive_unconverged_iterations": None}
    task = {"name": "Flat field", "kind": "flat_field", "target_asset_ids": frozenset(), "parent_run_id": None}
    world.given(id, ProcedureRegistered(**task, **unsaid), *events)
    return id


def lineage_in(
    world: World, dataset_ids: Sequence[UUID], direction: LineageDirection, max_depth: int, limit: int
) -> Lineage:
    """Return what was derived from these datasets, as a projection that has seen everything would."""
    assert direction is LineageDirection.DESCENDANTS
    parents = {id: dataset_of(world, id).derived_from for name, id in world.streams if name == Dataset.__name__}
    nodes = dict.fromkeys(sorted(dataset_ids), 0)
    generation, depth = set(nodes), 0
    while generation:
        depth += 1
        found = {(parent, child) for child, of in parents.items() for parent in of & generation}
        generation = {child for _, child in found} - nodes.keys()
        nodes |= dict.fromkeys(sorted(generation), depth)
    kept = [LineageNode(id, depth, sorted(parents[id])) for id, depth in nodes.items() if depth <= max_depth][:limit]
    return Lineage(tuple(kept), truncated=len(kept) < len(nodes))
