"""The kinds of equipment besides assets: facilities, enclosures, roles, families, models, assemblies, supplies."""

from collections.abc import Iterator
from typing import Any

from baton.beamline.file import (
    AssemblyEntry,
    EnclosureEntry,
    FacilityEntry,
    FamilyEntry,
    RoleEntry,
    SlotEntry,
    SupplyEntry,
    VendorModelEntry,
)
from baton.beamline.kinds.kind import (
    REASON,
    Kind,
    Names,
    Obstacle,
    Pin,
    RecordedThing,
    Ref,
    Step,
    Update,
    given,
    members_changed,
    path_of,
    plain,
    ref,
    refs,
    shown_change,
)
from baton.domain.equipment.model import UNIDENTIFIED
from baton.domain.facility.facility import FacilityKind
from baton.domain.shared.schema import changed_units
from baton.domain.shared.text import name_key

NO_VERB = "no command changes it"


class FacilitySection(Kind[FacilityEntry]):
    section, label, lists, gets, id_name = "facilities", "facility", "list_facilities", "get_facility", "facility_id"

    def texts(self, entry: FacilityEntry) -> tuple[str, ...]:
        return (entry.code,)

    def identity(self, row: Any, names: Names) -> FacilityEntry:
        return FacilityEntry(code=row.code)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> FacilityEntry:
        return FacilityEntry(
            code=view.code,
            display_name=view.display_name,
            kind=view.kind,
            alternate_identifiers=view.alternate_identifiers,
            **given(parent=names.optional(view.parent_id)),
        )

    def creation(self, entry: FacilityEntry) -> tuple[str, dict[str, Any]]:
        own = given(parent_id=ref("facilities", entry.parent), alternate_identifiers=plain(entry.alternate_identifiers))
        kind = entry.kind or (FacilityKind.SITE if entry.parent is None else FacilityKind.AREA)
        return "register_facility", {
            "code": entry.code,
            "display_name": entry.display_name or entry.code,
            "kind": kind,
            **own,
        }

    def differences(self, old: FacilityEntry, new: FacilityEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new, ("display_name", "kind", "parent", "alternate_identifiers"), NO_VERB)


class EnclosureSection(Kind[EnclosureEntry]):
    section, label, lists, id_name, axis = "enclosures", "enclosure", "list_enclosures", "enclosure_id", "lifecycle"

    def texts(self, entry: EnclosureEntry) -> tuple[str, ...]:
        return path_of(entry.name), path_of(entry.facility, entry.name)

    def identity(self, row: Any, names: Names) -> EnclosureEntry:
        return EnclosureEntry(name=row.name, facility=row.facility_code)

    def entry(self, view: object, thing: RecordedThing, names: Names) -> EnclosureEntry:
        return self.identity(view, names)

    def creation(self, entry: EnclosureEntry) -> tuple[str, dict[str, Any]]:
        return "register_enclosure", {"name": entry.name, "facility_code": entry.facility}

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "decommission_enclosure", {"reason": REASON}


class RoleSection(Kind[RoleEntry]):
    section, label, lists, id_name = "roles", "role", "list_roles", "role_id"

    def texts(self, entry: RoleEntry) -> tuple[str, ...]:
        return (name_key(entry.name),)

    def normal(self, text: str) -> str:
        return name_key(text)

    def identity(self, row: Any, names: Names) -> RoleEntry:
        return RoleEntry(name=row.name)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> RoleEntry:
        own = {name: tuple(sorted(getattr(view, name))) for name in SETS_OF_ROLES}
        return RoleEntry(name=view.name, description=view.description, **own)

    def creation(self, entry: RoleEntry) -> tuple[str, dict[str, Any]]:
        own = {name: list(getattr(entry, name) or ()) for name in SETS_OF_ROLES}
        return "define_role", {"name": entry.name, "description": entry.description or entry.name, **own}

    def differences(self, old: RoleEntry, new: RoleEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new, ("description", *SETS_OF_ROLES), NO_VERB)


SETS_OF_ROLES = ("required_affordances", "optional_affordances", "produces", "consumes")


class FamilySection(Kind[FamilyEntry]):
    section, label, lists, gets, id_name = "families", "family", "list_families", "get_family", "family_id"
    nullable = frozenset({"settings_schema"})

    def texts(self, entry: FamilyEntry) -> tuple[str, ...]:
        return (name_key(entry.name),)

    def normal(self, text: str) -> str:
        return name_key(text)

    def identity(self, row: Any, names: Names) -> FamilyEntry:
        return FamilyEntry(name=row.name)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> FamilyEntry:
        return FamilyEntry(
            name=view.name,
            affordances=tuple(sorted(view.affordances)),
            presents=names.keys(view.presented_role_ids),
            **given(settings_schema=view.settings_schema, version=view.version_tag),
        )

    def creation(self, entry: FamilyEntry) -> tuple[str, dict[str, Any]]:
        schema = given(settings_schema=entry.settings_schema)
        return "define_family", {"name": entry.name, "affordances": list(entry.affordances or ()), **schema}

    def initial(self, entry: FamilyEntry) -> FamilyEntry:
        return entry.model_copy(update={"presents": (), "version": None})

    def differences(self, old: FamilyEntry, new: FamilyEntry, view: Any) -> Iterator[Step]:
        affordances = new.affordances if self.asks(new, "affordances") else old.affordances
        schema = new.settings_schema if self.asks(new, "settings_schema") else old.settings_schema
        presents = new.presents if self.asks(new, "presents") else old.presents
        added, removed = members_changed(old.presents, presents)
        yield from (
            Update("remove_family_role", {"role_id": Ref("roles", role)}, f"presents {role} no longer") for role in removed
        )
        content = {"affordances": list(affordances or ()), "settings_schema": schema}
        changed = [
            shown_change(name, getattr(old, name), getattr(new, name))
            for name in ("affordances", "settings_schema")
            if self.differs(old, new, name)
        ]
        in_place = changed and not self.differs(old, new, "affordances") and not self.names_version(old, new)
        if in_place and not changed_units(old.settings_schema, schema):
            yield Update("update_family_settings_schema", {"settings_schema": schema}, changed[0])
        else:
            yield from self.new_version(old, new, "version_family", content, changed)
        yield from (Update("add_family_role", {"role_id": Ref("roles", role)}, f"presents {role}") for role in added)

    def names_version(self, old: FamilyEntry, new: FamilyEntry) -> bool:
        """Return whether the file names another version than there is."""
        return self.asks(new, "version") and new.version != old.version

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_family", {"reason": REASON}


class ModelSection(Kind[VendorModelEntry]):
    section, label, lists, id_name = "models", "model", "list_models", "model_id"

    def texts(self, entry: VendorModelEntry) -> tuple[str, ...]:
        unidentified = entry.name if entry.part_number.lower() == UNIDENTIFIED else None
        return path_of(entry.name), path_of(name_key(entry.manufacturer.name), entry.part_number, unidentified)

    def normal(self, text: str) -> str:
        maker, slash, rest = text.partition("/")
        return f"{name_key(maker)}{slash}{rest}" if slash and not maker.endswith("\\") else super().normal(text)

    def identity(self, row: Any, names: Names) -> VendorModelEntry:
        return VendorModelEntry(name=row.name, manufacturer=row.manufacturer, part_number=row.part_number)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> VendorModelEntry:
        families = names.keys(view.declared_family_ids)
        own = {name: getattr(view, name) for name in ("name", "manufacturer", "part_number")}
        return VendorModelEntry(**own, families=families, **given(version=view.version_tag))

    def creation(self, entry: VendorModelEntry) -> tuple[str, dict[str, Any]]:
        return "define_model", {**self.description(entry, entry), **given(version_tag=entry.version)}

    def description(self, old: VendorModelEntry, new: VendorModelEntry) -> dict[str, Any]:
        """Return what a vendor's catalog says, with the families of either."""
        families = new.families if self.asks(new, "families") else old.families
        own = {"name": new.name, "manufacturer": plain(new.manufacturer), "part_number": new.part_number}
        return {**own, "declared_family_ids": refs("families", families)}

    def differences(self, old: VendorModelEntry, new: VendorModelEntry, view: Any) -> Iterator[Step]:
        entry = [
            shown_change(name, getattr(old, name), getattr(new, name))
            for name in ("name", "manufacturer")
            if self.differs(old, new, name)
        ]
        relabelled = self.asks(new, "version") and new.version != old.version
        if entry or relabelled:
            families = ["families"] if self.differs(old, new, "families") else []
            yield from self.new_version(old, new, "version_model", self.description(old, new), [*entry, *families])
        elif self.asks(new, "families"):
            added, removed = members_changed(old.families, new.families)
            yield from (Update("add_model_family", {"family_id": Ref("families", one)}, f"family {one}") for one in added)
            yield from (
                Update("remove_model_family", {"family_id": Ref("families", one)}, f"family {one} no longer")
                for one in removed
            )

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_model", {"reason": REASON}


class AssemblySection(Kind[AssemblyEntry]):
    section, label, lists, gets, id_name = "assemblies", "assembly", "list_assemblies", "get_assembly", "assembly_id"
    nullable = frozenset({"parameter_overrides_schema", "drawing"})
    CONTENT = ("presents", "slots", "wires", "sub_assemblies", "parameter_overrides_schema", "drawing")

    def identity(self, row: Any, names: Names) -> AssemblyEntry:
        return AssemblyEntry(name=row.name)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> AssemblyEntry:
        slots = tuple(
            SlotEntry(name=one.slot_name, families=names.keys(one.required_family_ids), cardinality=one.cardinality)
            for one in view.required_slots
        )
        return AssemblyEntry(
            name=view.name,
            presents=names.keys(view.presented_role_ids),
            slots=slots,
            wires=view.required_wires,
            sub_assemblies={one.slot_name: names.key(one.sub_assembly_id) for one in view.required_sub_assemblies},
            **given(
                parameter_overrides_schema=view.parameter_overrides_schema, drawing=view.drawing, version=view.version_tag
            ),
        )

    def blueprint(self, old: AssemblyEntry, new: AssemblyEntry) -> dict[str, Any]:
        """Return the whole blueprint that the file asks for; what it leaves out stays."""
        wanted = {name: getattr(new if self.asks(new, name) else old, name) for name in self.CONTENT}
        included = (wanted["sub_assemblies"] or {}).items()
        return {
            "name": new.name,
            "presented_role_ids": refs("roles", wanted["presents"]),
            "required_slots": [
                {
                    "slot_name": slot.name,
                    "required_family_ids": refs("families", slot.families),
                    "cardinality": slot.cardinality,
                }
                for slot in wanted["slots"] or ()
            ],
            "required_wires": plain(wanted["wires"] or ()),
            "required_sub_assemblies": [
                {"slot_name": slot, "sub_assembly_id": Ref("assemblies", name), "content_hash": Pin(Ref("assemblies", name))}
                for slot, name in included
            ],
            "parameter_overrides_schema": wanted["parameter_overrides_schema"],
            "drawing": plain(wanted["drawing"]),
        }

    def creation(self, entry: AssemblyEntry) -> tuple[str, dict[str, Any]]:
        return "define_assembly", {**self.blueprint(entry, entry), **given(version_tag=entry.version)}

    def differences(self, old: AssemblyEntry, new: AssemblyEntry, view: Any) -> Iterator[Step]:
        changed = [
            shown_change(name, getattr(old, name), getattr(new, name))
            for name in self.CONTENT
            if self.differs(old, new, name)
        ]
        yield from self.new_version(old, new, "version_assembly", self.blueprint(old, new), changed)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_assembly", {"reason": REASON}


class SupplySection(Kind[SupplyEntry]):
    section, label, lists, gets, id_name = "supplies", "supply", "list_supplies", "get_supply", "supply_id"
    VERBS = {"Available": "mark_supply_available", "Degraded": "degrade_supply", "Unavailable": "mark_supply_unavailable"}

    def texts(self, entry: SupplyEntry) -> tuple[str, ...]:
        short = path_of(entry.name), path_of(entry.kind, entry.name)
        return *short, "/".join([path_of(entry.facility), *([entry.asset] if entry.asset else []), short[1]])

    def identity(self, row: Any, names: Names) -> SupplyEntry:
        place = given(asset=names.optional(row.containing_asset_id))
        return SupplyEntry(name=row.name, kind=row.kind, facility=row.facility_code, **place)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> SupplyEntry:
        own = self.identity(view, names)
        seen = str(view.status) if not view.monitored and str(view.status) in self.VERBS else None
        return SupplyEntry(**own.model_dump(exclude_unset=True), **given(status=seen))

    def creation(self, entry: SupplyEntry) -> tuple[str, dict[str, Any]]:
        own = {"name": entry.name, "kind": entry.kind, "facility_code": entry.facility}
        return "register_supply", {**own, **given(containing_asset_id=ref("assets", entry.asset))}

    def initial(self, entry: SupplyEntry) -> SupplyEntry:
        return entry.model_copy(update={"status": None})

    def differences(self, old: SupplyEntry, new: SupplyEntry, view: Any) -> Iterator[Step]:
        if not self.differs(old, new, "status"):
            return
        assert new.status is not None
        change = shown_change("status", "Unknown" if view is None else view.status, new.status)
        if view is not None and view.monitored:
            yield Obstacle(f"{change}: a monitor watches it; leave status out of the file")
        elif view is not None and str(view.status) != "Unknown":
            yield Obstacle(f"{change}: somebody has reported it since; change it by its verbs, or leave status out")
        else:
            yield Update(self.VERBS[new.status], {"reason": new.reason or REASON}, change)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deregister_supply", {"reason": REASON}
