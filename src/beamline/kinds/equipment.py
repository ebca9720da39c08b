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
    Names,
    Obstacle,
    Pin,
    RecordedThing,
    Ref,
    Section,
    Step,
    Update,
    path_of,
    plain,
    refs,
    shown_change,
)
from baton.domain.equipment.model import UNIDENTIFIED
from baton.domain.facility.facility import FacilityKind
from baton.domain.shared.schema import changed_units
from baton.domain.shared.text import name_key

NO_VERB = "no command changes it"


class FacilitySection(Section[FacilityEntry]):
    section, label, lists, gets, id_name = "facilities", "facility", "list_facilities", "get_facility", "facility_id"
    told_by = ("code",)
    domain_names = {"parent": "parent_id"}
    creates = "register_facility"
    fixed, why_fixed = ("display_name", "kind", "parent", "alternate_identifiers"), NO_VERB

    def texts(self, entry: FacilityEntry) -> tuple[str, ...]:
        return (entry.code,)

    def creation(self, entry: FacilityEntry) -> tuple[str, dict[str, Any]]:
        kind = entry.kind or (FacilityKind.SITE if entry.parent is None else FacilityKind.AREA)
        return self.creates, self.arguments(entry, display_name=entry.display_name or entry.code, kind=kind)


class EnclosureSection(Section[EnclosureEntry]):
    section, label, lists, id_name, axis = "enclosures", "enclosure", "list_enclosures", "enclosure_id", "lifecycle"
    told_by = ("name", "facility")
    creates, retires = "register_enclosure", "decommission_enclosure"

    def texts(self, entry: EnclosureEntry) -> tuple[str, ...]:
        return path_of(entry.name), path_of(entry.facility, entry.name)


class RoleSection(Section[RoleEntry]):
    section, label, lists, id_name = "roles", "role", "list_roles", "role_id"
    creates = "define_role"
    listed = ("required_affordances", "optional_affordances", "produces", "consumes")
    fixed, why_fixed = ("description", *listed), NO_VERB

    def texts(self, entry: RoleEntry) -> tuple[str, ...]:
        return (name_key(entry.name),)

    def normal(self, text: str) -> str:
        return name_key(text)

    def creation(self, entry: RoleEntry) -> tuple[str, dict[str, Any]]:
        return self.creates, self.arguments(entry, description=entry.description or entry.name)


class FamilySection(Section[FamilyEntry]):
    section, label, lists, gets, id_name = "families", "family", "list_families", "get_family", "family_id"
    nullable = frozenset({"settings_schema"})
    domain_names = {"presents": "presented_role_ids"}
    creates, retires = "define_family", "deprecate_family"
    listed = ("affordances",)
    later = {"presents": (), "version": None}

    def texts(self, entry: FamilyEntry) -> tuple[str, ...]:
        return (name_key(entry.name),)

    def normal(self, text: str) -> str:
        return name_key(text)

    def differences(self, old: FamilyEntry, new: FamilyEntry, view: Any) -> Iterator[Step]:
        added, removed = self.gained_and_lost(old, new, "presents")
        yield from (
            Update("remove_family_role", {"role_id": Ref("roles", role)}, f"presents {role} no longer") for role in removed
        )
        content = self.wanted_fields(old, new, ("affordances", "settings_schema"))
        changed = self.field_changes(old, new, content)
        in_place = changed and not self.differs(old, new, "affordances") and not self.names_version(old, new)
        if in_place and not changed_units(old.settings_schema, content["settings_schema"]):
            yield Update("update_family_settings_schema", {"settings_schema": content["settings_schema"]}, changed[0])
        else:
            content["affordances"] = list(content["affordances"] or ())
            yield from self.new_version(old, new, "version_family", content, changed)
        yield from (Update("add_family_role", {"role_id": Ref("roles", role)}, f"presents {role}") for role in added)


class ModelSection(Section[VendorModelEntry]):
    section, label, lists, id_name = "models", "model", "list_models", "model_id"
    told_by = ("name", "manufacturer", "part_number")
    domain_names = {"families": "declared_family_ids"}
    creates, retires = "define_model", "deprecate_model"

    def texts(self, entry: VendorModelEntry) -> tuple[str, ...]:
        unidentified = entry.name if entry.part_number.lower() == UNIDENTIFIED else None
        return path_of(entry.name), path_of(name_key(entry.manufacturer.name), entry.part_number, unidentified)

    def normal(self, text: str) -> str:
        maker, slash, rest = text.partition("/")
        return f"{name_key(maker)}{slash}{rest}" if slash and not maker.endswith("\\") else super().normal(text)

    def differences(self, old: VendorModelEntry, new: VendorModelEntry, view: Any) -> Iterator[Step]:
        changed = self.field_changes(old, new, ("name", "manufacturer"))
        if changed or self.names_version(old, new):
            families = ["families"] if self.differs(old, new, "families") else []
            wanted = new.model_copy(update={"version": None, **self.wanted_fields(old, new, ("families",))})
            yield from self.new_version(old, new, "version_model", self.arguments(wanted), [*changed, *families])
            return
        added, removed = self.gained_and_lost(old, new, "families")
        yield from (Update("add_model_family", {"family_id": Ref("families", one)}, f"family {one}") for one in added)
        yield from (
            Update("remove_model_family", {"family_id": Ref("families", one)}, f"family {one} no longer") for one in removed
        )


class AssemblySection(Section[AssemblyEntry]):
    section, label, lists, gets, id_name = "assemblies", "assembly", "list_assemblies", "get_assembly", "assembly_id"
    nullable = frozenset({"parameter_overrides_schema", "drawing"})
    domain_names = {"presents": "presented_role_ids", "wires": "required_wires"}
    creates, retires = "define_assembly", "deprecate_assembly"
    CONTENT = ("presents", "slots", "wires", "sub_assemblies", "parameter_overrides_schema", "drawing")

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> AssemblyEntry:
        slots = tuple(
            SlotEntry(name=one.slot_name, families=names.keys(one.required_family_ids), cardinality=one.cardinality)
            for one in view.required_slots
        )
        included = {one.slot_name: names.key(one.sub_assembly_id) for one in view.required_sub_assemblies}
        return self.read_entry(view, names, slots=slots, sub_assemblies=included)

    def blueprint(self, old: AssemblyEntry, new: AssemblyEntry) -> dict[str, Any]:
        """Return the whole blueprint that the file asks for; what it leaves out stays."""
        wanted = self.wanted_fields(old, new, self.CONTENT)
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
        tag = {} if entry.version is None else {"version_tag": entry.version}
        return self.creates, {**self.blueprint(entry, entry), **tag}

    def differences(self, old: AssemblyEntry, new: AssemblyEntry, view: Any) -> Iterator[Step]:
        changed = self.field_changes(old, new, self.CONTENT)
        yield from self.new_version(old, new, "version_assembly", self.blueprint(old, new), changed)


class SupplySection(Section[SupplyEntry]):
    section, label, lists, gets, id_name = "supplies", "supply", "list_supplies", "get_supply", "supply_id"
    told_by = ("name", "kind", "facility", "asset")
    domain_names = {"asset": "containing_asset_id"}
    creates, retires = "register_supply", "deregister_supply"
    later = {"status": None}
    unrecorded = frozenset({"reason"})
    VERBS = {"Available": "mark_supply_available", "Degraded": "degrade_supply", "Unavailable": "mark_supply_unavailable"}

    def texts(self, entry: SupplyEntry) -> tuple[str, ...]:
        short = path_of(entry.name), path_of(entry.kind, entry.name)
        return *short, "/".join([path_of(entry.facility), *([entry.asset] if entry.asset else []), short[1]])

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> SupplyEntry:
        seen = str(view.status) if not view.monitored and str(view.status) in self.VERBS else None
        return self.read_entry(view, names, status=seen)

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
