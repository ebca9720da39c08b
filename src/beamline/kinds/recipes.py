"""The ladder from what can be done to how it is done here: capabilities, methods, practices, plans, recipes."""

from collections.abc import Iterator
from typing import Any

from baton.beamline.file import (
    CapabilityEntry,
    DataRegistrationEntry,
    MethodEntry,
    PlanEntry,
    PlanWireEntry,
    PracticeEntry,
    RecipeEntry,
    RoleRequirementEntry,
)
from baton.beamline.kinds.kind import (
    Names,
    RecordedThing,
    Ref,
    Section,
    Step,
    Update,
    normal,
    plain,
    ref,
    shown_change,
    without_none,
)
from baton.domain.recipe.steps import wire_form
from baton.domain.shared.schema import changed_units

NO_VERB = "no command changes it; define another under a new name and retire this one"


class CapabilitySection(Section[CapabilityEntry]):
    section, label, id_name = "capabilities", "capability", "capability_id"
    lists, gets = "list_capabilities", "get_capability"
    told_by = ("code", "name")
    nullable = frozenset({"description", "parameters_schema"})
    creates, retires = "define_capability", "deprecate_capability"
    listed = ("required_affordances", "executor_shapes")
    later = {"version": None}
    fixed, why_fixed = ("name",), NO_VERB

    def texts(self, entry: CapabilityEntry) -> tuple[str, ...]:
        return normal(entry.name), normal(entry.code)

    def differences(self, old: CapabilityEntry, new: CapabilityEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        contract = self.wanted_fields(old, new, (*self.listed, "description", "parameters_schema"))
        changed = self.field_changes(old, new, contract)
        sets = {name: plain(contract[name] or ()) for name in self.listed}
        yield from self.new_version(old, new, "version_capability", {**contract, **sets}, changed)


class MethodSection(Section[MethodEntry]):
    section, label, lists, gets, id_name = "methods", "method", "list_methods", "get_method", "method_id"
    nullable = frozenset({"parameters_schema"})
    domain_names = {"capability": "capability_id", "needed_families": "needed_family_ids"}
    creates, retires = "define_method", "deprecate_method"
    listed = ("needed_supplies",)
    later = {"required_roles": (), "version": None}
    fixed, why_fixed = ("capability", "needed_families", "needed_supplies"), NO_VERB

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> MethodEntry:
        roles = tuple(
            RoleRequirementEntry(
                role_name=one.role_name,
                required_ports=one.required_ports,
                optional=one.optional,
                **without_none(family=names.optional(one.family_id), role=names.optional(one.role_id)),
            )
            for one in view.required_roles
        )
        return self.read_entry(view, names, required_roles=roles)

    def differences(self, old: MethodEntry, new: MethodEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        added, removed = self.gained_and_lost(old, new, "required_roles")
        for one in removed:
            yield Update("remove_method_required_role", {"role_name": one.role_name}, f"role {one.role_name} no longer")
        for one in added:
            target = without_none(family_id=ref("families", one.family), role_id=ref("roles", one.role))
            ports = {"required_ports": plain(one.required_ports), "optional": one.optional}
            requirement = {"role_name": one.role_name, **target, **ports}
            yield Update("add_method_required_role", {"requirement": requirement}, f"role {one.role_name}")
        changed = self.field_changes(old, new, ("parameters_schema",))
        if changed and not self.names_version(old, new) and not changed_units(old.parameters_schema, new.parameters_schema):
            yield Update("update_method_parameters_schema", {"parameters_schema": new.parameters_schema}, changed[0])
        else:
            schema = {"parameters_schema": new.parameters_schema} if changed else {}
            yield from self.new_version(old, new, "version_method", schema, changed)


class PracticeSection(Section[PracticeEntry]):
    section, label, lists, id_name = "practices", "practice", "list_practices", "practice_id"
    domain_names = {"method": "method_id", "site": "site_id", "families": "family_ids"}
    creates, retires = "define_practice", "deprecate_practice"
    later = {"version": None}
    fixed, why_fixed = ("method", "site", "families"), NO_VERB

    def differences(self, old: PracticeEntry, new: PracticeEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        yield from self.new_version(old, new, "version_practice", {}, [])


class PlanSection(Section[PlanEntry]):
    section, label, lists, gets, id_name = "plans", "plan", "list_plans", "get_plan", "plan_id"
    nullable = frozenset({"window_starts_at", "window_ends_at", "data_registration"})
    domain_names = {"practice": "practice_id", "assets": "asset_ids"}
    creates, retires = "define_plan", "deprecate_plan"
    later = {"default_parameters": {}, "wires": (), "roles": {}, "data_registration": None, "version": None}
    fixed, why_fixed = ("practice", "assets"), NO_VERB

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> PlanEntry:
        wires = tuple(
            PlanWireEntry(
                source=names.key(one.source_asset_id),
                source_port=one.source_port_name,
                target=names.key(one.target_asset_id),
                target_port=one.target_port_name,
            )
            for one in view.wires
        )
        roles = {one.role_name: names.key(one.asset_id) for one in view.role_bindings}
        registration = self.registration(view.data_registration, names)
        return self.read_entry(view, names, wires=wires, roles=roles, data_registration=registration)

    def registration(self, recorded: Any, names: Names) -> DataRegistrationEntry | None:
        """Return how files become datasets, as a file says it."""
        if recorded is None:
            return None
        captured = without_none(capturing_asset=names.optional(recorded.capturing_asset_id))
        outputs = tuple(sorted(recorded.raw_outputs))
        return DataRegistrationEntry(supply=names.key(recorded.supply_id), raw_outputs=outputs, **captured)

    def differences(self, old: PlanEntry, new: PlanEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        window = self.wanted_fields(old, new, ("window_starts_at", "window_ends_at"))
        if any(self.differs(old, new, name) for name in window):
            sentence = shown_change("window", [old.window_starts_at, old.window_ends_at], list(window.values()))
            yield Update("reschedule_plan", window, sentence, repeatable=False)
        yield from self.patch("update_plan_default_parameters", old, new, "default_parameters")
        yield from self.parts(old, new)
        if self.differs(old, new, "data_registration"):
            yield self.data(old, new)
        yield from self.new_version(old, new, "version_plan", {}, [])

    def parts(self, old: PlanEntry, new: PlanEntry) -> Iterator[Step]:
        """Yield the wires and roles that differ."""
        added, removed = self.gained_and_lost(old, new, "wires")
        for verb, wires in (("remove_plan_wire", removed), ("add_plan_wire", added)):
            for wire in wires:
                ends = f"wire {wire.source}.{wire.source_port} to {wire.target}.{wire.target_port}"
                yield Update(verb, wire_fields(wire), ends if verb == "add_plan_wire" else f"{ends} no longer")
        if self.asks(new, "roles"):
            before, after = old.roles or {}, new.roles or {}
            for name in sorted(before):
                if after.get(name) != before[name]:
                    yield Update("unbind_plan_role", {"role_name": name}, f"role {name} is {before[name]} no longer")
            for name in sorted(after):
                if after[name] != before.get(name):
                    bound = {"role_name": name, "asset_id": Ref("assets", after[name])}
                    yield Update("bind_plan_role", bound, f"role {name} is {after[name]}")

    def data(self, old: PlanEntry, new: PlanEntry) -> Update:
        """Return the command that says how files become datasets."""
        wanted, registration = new.data_registration, None
        if wanted is not None:
            captured = without_none(capturing_asset_id=ref("assets", wanted.capturing_asset))
            registration = {"supply_id": Ref("supplies", wanted.supply), "raw_outputs": list(wanted.raw_outputs), **captured}
        sentence = shown_change("data_registration", old.data_registration, wanted)
        return Update("set_plan_data_registration", {"data_registration": registration}, sentence)


def wire_fields(wire: PlanWireEntry) -> dict[str, Any]:
    """Return a wire as its verbs name it."""
    return {
        "source_asset_id": Ref("assets", wire.source),
        "source_port_name": wire.source_port,
        "target_asset_id": Ref("assets", wire.target),
        "target_port_name": wire.target_port,
    }


class RecipeSection(Section[RecipeEntry]):
    section, label, lists, gets, id_name = "recipes", "recipe", "list_recipes", "get_recipe", "recipe_id"
    nullable = frozenset({"watch", "on_unknown_outcome", "plot"})
    ordered = frozenset({"steps", "closing_steps"})
    domain_names = {"capability": "capability_id"}
    creates, retires = "define_recipe", "deprecate_recipe"
    later = {"version": None}
    fixed, why_fixed = ("capability",), NO_VERB
    CONTENT = ("steps", "pattern", "closing_steps", "watch", "on_unknown_outcome", "plot")

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> RecipeEntry:
        recorded = self.read_entry(view, names)
        pattern, closing_steps = recorded.pattern, recorded.closing_steps or ()
        if pattern is None:
            return recorded
        own = len(closing_steps) - pattern.returns * len(pattern.axes)
        return recorded.model_copy(update={"steps": None, "closing_steps": closing_steps[:own]})

    def content(self, old: RecipeEntry, new: RecipeEntry) -> dict[str, Any]:
        """Return the whole content that the file asks for; what it leaves out stays, but for steps beside a pattern."""
        wanted = self.wanted_fields(old, new, self.CONTENT)
        for name, other in (("steps", "pattern"), ("pattern", "steps")):
            if self.asks(new, name) and not self.asks(new, other):
                wanted[other] = None
        steps = {name: wire_form(wanted[name] or ()) for name in ("steps", "closing_steps")}
        options = {name: plain(wanted[name]) for name in ("pattern", "watch", "on_unknown_outcome", "plot")}
        return {**steps, **without_none(**options)}

    def creation(self, entry: RecipeEntry) -> tuple[str, dict[str, Any]]:
        return self.creates, {**self.arguments(entry), **self.content(entry, entry)}

    def differences(self, old: RecipeEntry, new: RecipeEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        changed = self.field_changes(old, new, self.CONTENT)
        yield from self.new_version(old, new, "version_recipe", self.content(old, new), changed)
