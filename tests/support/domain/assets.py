"""Verbs to arrange assets with: a facility's tree, families, models, mounts and fixtures."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, TypeVar
from uuid import UUID

from baton.domain.enclosure.enclosure import RegisterEnclosure
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.equipment.family import DefineFamily
from baton.domain.equipment.fixture import FixtureRegistered, SlotBinding
from baton.domain.equipment.frame import RegisterFrame
from baton.domain.equipment.model import DefineModel
from baton.domain.equipment.mount import InstallAsset, RegisterMount
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.reads import Read, Reads
from baton.domain.shared.schema import DIALECT
from baton.domain.steering.steering import offered_deciders
from tests.support.domain.world import LENIENT, World, new_id
from tests.support.workflows.step_json import PROGRAMS

T = TypeVar("T")

LUMEN = "lumen"
DEGREE = {"system": "udunits", "code": "degree"}
RADIAN = {"system": "udunits", "code": "rad"}
ORIGIN = dict.fromkeys(f"{part}{axis}" for part in ("", "r", "tol_", "tol_r") for axis in "xyz")


def facility_world() -> World:
    world = World()
    world.claims["facility-code", LUMEN] = new_id()
    world.ports["deployment"] = SimpleNamespace(
        **LENIENT,
        base_url="https://baton.example",
        landing_page_templates={},
        drafts_minted=True,
        publisher="Lumen Light Source",
        minted_schemes=frozenset(ExternalIdScheme),
        self_facility_code=LUMEN,
        deciders=offered_deciders(()),
        monitored_supplies=frozenset(),
        enclosure_observation_ttl=timedelta(seconds=120),
        monitored_permit_ttl=timedelta(seconds=10),
        compute_programs=frozenset(PROGRAMS),
        control_routes=(),
    )
    return world


def root(world: World, **fields: Any) -> UUID:
    return world.create(RegisterAsset(**{"name": "Tomography", "tier": "Unit", "facility_code": LUMEN, **fields}))


def part(world: World, parent_id: UUID, **fields: Any) -> UUID:
    return world.create(RegisterAsset(**{"name": "Rotary", "tier": "Device", "parent_id": parent_id, **fields}))


def hanging_chain(world: World, parent_id: UUID, length: int) -> list[UUID]:
    """The parent and `length` assets, each below the one before."""
    links = [parent_id]
    for _ in range(length):
        links.append(part(world, links[-1]))
    return links


def enclosure(world: World, name: str = "Imaging hutch B") -> UUID:
    return world.create(RegisterEnclosure(name=name, facility_code=LUMEN))


def asset_of(world: World, id: UUID) -> Asset:
    state: Asset = world.state(Asset, id)
    return state


def run_reads(world: World, reads: Reads[T]) -> T:
    """Run a generator of reads in this world and return its result."""
    answer: T = world.fulfil(reads)
    return answer


def requested_reads(world: World, reads: Reads[Any]) -> list[Read]:
    """Return the reads that a generator asks for in this world, in order."""
    requests: list[Read] = []

    def record_reads() -> Reads[None]:
        answer = None
        while True:
            try:
                requests.append(reads.send(answer))
            except StopIteration:
                return
            answer = yield requests[-1]

    world.fulfil(record_reads())
    return requests


def settings_schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    closed = {"additionalProperties": False, "unevaluatedProperties": False}
    return {"$schema": DIALECT, "type": "object", "properties": properties, "required": list(required), **closed}


def rotary_schema(unit: dict[str, str] = DEGREE) -> dict[str, Any]:
    return settings_schema(
        min_position={"type": "number", "unit": unit},
        max_position={"type": "number", "unit": unit},
        serial_number={"type": "string"},
        firmware_version={"type": "string"},
    )


def family(world: World, name: str = "RotaryStage", schema: dict[str, Any] | None = None, *affordances: str) -> UUID:
    return world.create(DefineFamily(name=name, affordances=affordances, settings_schema=schema))


def model(world: World, *family_ids: UUID, name: str = "acme_r250", **fields: Any) -> UUID:
    described = {"manufacturer": {"name": "Acme Motion"}, "part_number": "R-250-AS", **fields}
    return world.create(DefineModel(name=name, declared_family_ids=family_ids, **described))


def install_in_mount(world: World, asset_id: UUID) -> UUID:
    """Install the asset in a new mount and return the mount."""
    frame_id = world.create(RegisterFrame(name="centerline"))
    place = {**dict.fromkeys(ORIGIN, 0.0), "parent_frame_id": frame_id, "reference_surface": "MountingFace"}
    mount_id = world.create(RegisterMount(slot_code="B-SAMPLE-01", placement=place))
    world.when(InstallAsset(asset_id=asset_id), on=mount_id)
    return mount_id


def fixture(world: World, *asset_ids: UUID) -> UUID:
    fixture_id = new_id()
    bindings = tuple(SlotBinding(slot_name=f"slot{index}", asset_id=id) for index, id in enumerate(asset_ids))
    world.given(
        fixture_id,
        FixtureRegistered(
            assembly_id=new_id(),
            assembly_content_hash="0" * 64,
            surface_id=world.surface_id,
            slot_asset_bindings=bindings,
            parameter_overrides={},
        ),
    )
    return fixture_id
