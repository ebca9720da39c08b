"""A model: a vendor's catalog entry, that is manufacturer, part number and the families its units belong to."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, assert_never
from uuid import UUID

from pydantic import AfterValidator, Field

from baton.domain.equipment.family import Family
from baton.domain.kernel import (
    Aggregate,
    Call,
    Event,
    IdSet,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    State,
    Value,
    Verb,
    copy_with,
)
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.listing import Hidden, NamedListQuery, Summary
from baton.domain.shared.reads import Reads, require, require_all
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, OptionalReason, Text, name_key
from baton.domain.shared.writes import Claim, Release

VENDOR_KEY = "model-vendor-key"  # Claim kind: the model that holds a manufacturer's part number.
UNIDENTIFIED = "unknown-pending-confirmation"  # The part number of units nobody has identified: any number of models.


class ModelStatus(StrEnum):
    DEFINED = "Defined"
    VERSIONED = "Versioned"
    DEPRECATED = "Deprecated"


DEFINED, VERSIONED, DEPRECATED = ModelStatus
CURRENT = (DEFINED, VERSIONED)


class ManufacturerIdentifierType(StrEnum):
    ROR = "ROR"
    GRID = "GRID"
    ISNI = "ISNI"


class InvalidModelError(Invalid, context="equipment"):
    """A text is blank, the manufacturer's identifier stands without its type or the reverse, or no family is declared."""


class Manufacturer(Value):
    """Who makes a model; the identifier and its type go together."""

    name: Annotated[str, Text(200, InvalidModelError, "manufacturer name")]
    """What the manufacturer is called."""
    identifier: Annotated[str, Text(200, InvalidModelError, "manufacturer identifier")] | None = None
    identifier_type: ManufacturerIdentifierType | None = None


@dataclass(frozen=True, kw_only=True)
class Model(State):
    """A model is a vendor's catalog entry: manufacturer, part number and the families its units belong to."""

    name: str
    manufacturer: Manufacturer
    part_number: str
    declared_family_ids: IdSet
    version_tag: str | None
    status: ModelStatus = DEFINED

    @property
    def manufacturer_key(self) -> str:
        return name_key(self.manufacturer.name)


model = Aggregate(Model, "/models", context="equipment")


class ModelEntry(Event):
    """The whole entry of a model, as it stands from now on."""

    name: str
    manufacturer: Manufacturer
    part_number: str
    declared_family_ids: IdSet


class ModelDefined(ModelEntry, of=model):
    """The model was entered in the catalog."""

    version_tag: str | None


class ModelVersioned(ModelEntry, of=model):
    """The whole entry was replaced under a new version tag."""

    version_tag: str


class ModelFamilyAdded(Event, of=model):
    """The model was said to be of a further family."""

    family_id: UUID


class ModelFamilyRemoved(Event, of=model):
    """The model was said not to be of a family any more."""

    family_id: UUID


class ModelDeprecated(Event, of=model, leads_to=DEPRECATED):
    """The model was marked as no longer to be bought."""

    reason: FreeText | None


@model.evolve
def evolve(model: Model, event: ModelVersioned | ModelFamilyAdded | ModelFamilyRemoved) -> Model:
    match event:
        case ModelVersioned():
            return copy_with(model, status=VERSIONED, **dict(event))
        case ModelFamilyAdded():
            return copy_with(model, declared_family_ids=model.declared_family_ids | {event.family_id})
        case ModelFamilyRemoved():
            return copy_with(model, declared_family_ids=model.declared_family_ids - {event.family_id})
        case _:
            assert_never(event)


class ModelDescription(Value):
    """What a vendor's catalog says about a model."""

    name: Annotated[str, Text(200, InvalidModelError, "name")]
    manufacturer: Manufacturer
    part_number: Annotated[str, Text(100, InvalidModelError, "part number")]
    declared_family_ids: Annotated[IdSet, Field(max_length=1000)]

    def gather(self, *_: Model | Call) -> Reads[dict[UUID, Family]]:
        return (yield from require_all(Family, self.declared_family_ids))

    def check(self) -> None:
        """Refuse half an identifier and a model of no family."""
        if (self.manufacturer.identifier is None) != (self.manufacturer.identifier_type is None):
            detail = "The manufacturer's identifier and identifier_type go together; give both or neither."
            raise InvalidModelError(detail, reason="half_identifier")
        if not self.declared_family_ids:
            raise InvalidModelError("A model belongs to a family; declare at least one.", reason="no_families")

    def claim(self) -> list[Claim]:
        """Return the claim of the vendor key, where the part is identified."""
        detail = f"{self.manufacturer.name} {self.part_number} is in the catalog already; use or version that model."
        taken = model.AlreadyExists(detail, reason="vendor_key_taken")
        return [Claim(VENDOR_KEY, key, taken) for key in vendor_key(self.manufacturer, self.part_number)]


def vendor_key(manufacturer: Manufacturer, part_number: str) -> list[str]:
    """Return the key one model may hold: manufacturer's name and part number as spelled; none while unidentified."""
    if part_number.lower() == UNIDENTIFIED:
        return []
    return [canonical_json([name_key(manufacturer.name), part_number]).decode()]


VersionTag = Annotated[str, Text(50, InvalidModelError, "version tag")]


@model.creation()
class DefineModel(ModelDescription, JudgedCreation[dict[UUID, Family]]):
    """Enter a vendor's model in the catalog."""

    version_tag: VersionTag | None = None

    def decide(self, call: Call, families: dict[UUID, Family]) -> Outcome:
        self.check()
        return [ModelDefined(**dict(self)), *self.claim()]


@model.command(post="/{model_id}/version", allowed=CURRENT, leads_to=VERSIONED)
class VersionModel(ModelDescription, JudgedVerb[Model, dict[UUID, Family]]):
    """Replace the whole entry under a new version tag; existing assets are not touched."""

    version_tag: VersionTag

    def decide(self, model: Model, call: Call, families: dict[UUID, Family]) -> Outcome:
        self.check()
        held = vendor_key(model.manufacturer, model.part_number)
        if held == vendor_key(self.manufacturer, self.part_number):
            return [ModelVersioned(**dict(self))]
        return [ModelVersioned(**dict(self)), *(Release(VENDOR_KEY, key) for key in held), *self.claim()]


@model.command(post="/{model_id}/add-family", allowed=CURRENT)
class AddModelFamily(JudgedVerb[Model, Family]):
    """Declare a further family of this model; assets registered from now on get it."""

    family_id: UUID

    def gather(self, model: Model, call: Call) -> Reads[Family]:
        return (yield from require(Family, self.family_id))

    def decide(self, model: Model, call: Call, family: Family) -> Outcome:
        if family.id in model.declared_family_ids:
            raise self.cannot("already_present", f"The model declares {family.name} already; nothing to add.")
        return [ModelFamilyAdded(family_id=family.id)]


@model.command(post="/{model_id}/remove-family", allowed=CURRENT)
class RemoveModelFamily(Verb[Model]):
    """Declare a family no longer; assets that have it keep it."""

    family_id: UUID

    def decide(self, model: Model, call: Call) -> Outcome:
        if self.family_id not in model.declared_family_ids:
            raise self.cannot("not_present", "The model does not declare this family; read the model for those it does.")
        if len(model.declared_family_ids) == 1:
            raise self.cannot("last_family", "A model keeps at least one family; add another before removing this one.")
        return [ModelFamilyRemoved(family_id=self.family_id)]


@model.command(post="/{model_id}/deprecate", allowed=CURRENT, records=ModelDeprecated, destructive=True)
class DeprecateModel(Verb[Model]):
    """Mark a model as no longer to be bought; it can still be bound to assets."""

    reason: OptionalReason = None


GetModel = model.get()


class ModelSummary(Summary):
    model_id: UUID
    name: str
    manufacturer: Manufacturer
    part_number: str
    declared_family_ids: IdSet
    status: ModelStatus
    version_tag: str | None
    created_at: datetime
    manufacturer_key: Hidden[str]


@model.listing(ModelSummary)
class ListModels(NamedListQuery[ModelSummary]):
    """Models in order of definition; a manufacturer's name matches whatever its case."""

    filters: ClassVar[dict[str, str]] = {"family_id": "declared_family_id", "manufacturer_name": "manufacturer_key"}
    status: ModelStatus | None = None
    family_id: UUID | None = None
    manufacturer_name: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(name_key)] | None = None
    part_number: Annotated[str, Field(min_length=1, max_length=100)] | None = None
