"""Verbs to arrange editions with: Production datasets with copies, creators with profiles, a registry that mints."""

from typing import Any
from uuid import UUID

from baton.domain.access.actor import RegisterActor
from baton.domain.data.edition import (
    Edition,
    RecordEditionPublication,
    RecordEditionWithdrawal,
    RegisterEdition,
    SealEdition,
)
from baton.domain.shared.citation import Citation, MintedIdentifier
from baton.domain.shared.identifiers import ExternalIdScheme
from tests.support.domain.assets import LUMEN
from tests.support.domain.datasets import data_world, promoted_dataset, registered_copy, storage
from tests.support.domain.world import World

DOI = {"external_id": "10.5072/ed-1", "external_id_scheme": "DOI"}


def edition_world() -> World:
    """A world with a registry that mints."""
    world = data_world()
    world.ports["mint"] = mint_for_test
    return world


def mint_for_test(scheme: ExternalIdScheme, suffix: str, citation: Citation) -> MintedIdentifier:
    return MintedIdentifier(scheme, f"10.5072/{suffix}")


def member(world: World, disk: UUID | None = None, **fields: Any) -> UUID:
    """A Production dataset with a Registered copy."""
    dataset_id = promoted_dataset(world, **fields)
    registered_copy(world, dataset_id, disk or storage(world, f"Disk {dataset_id}"))
    return dataset_id


def creator(world: World, name: str = "Mira Okafor", **profile: Any) -> UUID:
    return world.create(RegisterActor(name=name, **profile))


def registered_edition(world: World, *dataset_ids: UUID, **fields: Any) -> UUID:
    given = {"kind": "ROCrate", "title": "Pellet B-12", "publisher_facility_code": LUMEN}
    members = dataset_ids or (member(world),)
    people = {"creator_ids": [creator(world)]} if "creator_ids" not in fields else {}
    return world.create(RegisterEdition(**{**given, "dataset_ids": members, **people, **fields}))


def sealed_edition(world: World, *dataset_ids: UUID, **fields: Any) -> UUID:
    id = registered_edition(world, *dataset_ids, **fields)
    world.when(SealEdition(), on=id)
    return id


def record_publication(world: World, id: UUID) -> None:
    """Record what the work of publishing leaves."""
    world.when(RecordEditionPublication(**DOI), on=id)


def record_withdrawal(world: World, id: UUID) -> None:
    """Record what the work of withdrawing leaves."""
    world.when(RecordEditionWithdrawal(withdrawal_reason="wrong sample"), on=id)


def edition_of(world: World, id: UUID) -> Edition:
    state: Edition = world.state(Edition, id)
    return state
