"""The starter catalog of an imaging beamline, read from `catalog.json`. The roles are seeded at startup; families, models
and assemblies an operator may load through the normal commands. Entries refer to each other by name, since ids exist only
once they are loaded. Vendors are fictional."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.assembly import Cardinality
from baton.domain.equipment.role import DefineRole
from baton.domain.kernel import Value
from baton.domain.shared.schema import Schema


class CatalogFamily(Value):
    """A family to define, and the roles it is to present."""

    name: str
    affordances: frozenset[Affordance]
    presents: tuple[str, ...]
    settings_schema: Schema


class CatalogModel(Value):
    """A model to define, and the settings every unit of it has."""

    name: str
    manufacturer: str
    part_number: str
    families: tuple[str, ...]
    settings: Mapping[str, Any] = {}


class CatalogSlot(Value):
    """A slot of an assembly, and the families whose assets may fill it."""

    slot_name: str
    families: tuple[str, ...]
    cardinality: Cardinality


class CatalogAssembly(Value):
    """An assembly to define; `sub_assemblies` pins each named slot to the content another catalog assembly then has."""

    name: str
    presents: tuple[str, ...]
    slots: tuple[CatalogSlot, ...]
    sub_assemblies: Mapping[str, str] = {}


class StarterCatalog(Value):
    """Everything in `catalog.json`; assemblies stand in the order in which they can be defined."""

    roles: tuple[DefineRole, ...]
    families: tuple[CatalogFamily, ...]
    models: tuple[CatalogModel, ...]
    assemblies: tuple[CatalogAssembly, ...]


CATALOG = StarterCatalog.model_validate_json(files(__package__).joinpath("catalog.json").read_bytes())
SEEDED_ROLES = CATALOG.roles
STARTER_FAMILIES, STARTER_MODELS, STARTER_ASSEMBLIES = CATALOG.families, CATALOG.models, CATALOG.assemblies
