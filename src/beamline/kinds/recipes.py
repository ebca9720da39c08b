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
    REASON,
    Kind,
    Names,
    RecordedThing,
    Ref,
    Step,
    Update,
    given,
    members_changed,
    merge_patch_to,
    normal,
    plain,
    ref,
    refs,
    shown_change,
)
from baton.domain.recipe.steps import wire_form
from baton.domain.shared.schema import changed_units

NO_VERB = "no command changes it; define another under a new name and retire this one"


class CapabilitySection(Kind[CapabilityEntry]):
    section, label, lists, gets, id_name = (
        "capabilities",
        "capability",
        "list_capabilities",
        "get_capability",
        "capability_id",
    )
    nullable = frozenset({"description", "parameters_schema"})
    CONTENT = ("required_affordances", "executor_shapes", "description", "parameters_schema")

    def texts(self, entry: CapabilityEntry) -> tuple[str, ...]:
        return normal(entry.name), normal(entry.code)

    def identity(self, row: Any, names: Names) -> CapabilityEntry:
        return CapabilityEntry(code=row.code, name=row.name)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> CapabilityEntry:
        return CapabilityEntry(
            code=view.code,
            name=view.name,
            required_affordances=tuple(sorted(view.required_affordances)),
            executor_shapes=tuple(sorted(view.executor_shapes)),
            **given(description=view.description, parameters_schema=view.parameters_schema, version=view.version_tag),
        )

    def contract(self, old: CapabilityEntry, new: CapabilityEntry) -> dict[str, Any]:
        """Return the whole contract that the file asks for; what it leaves out stays."""
        wanted = {name: getattr(new if self.asks(new, name) else old, name) for name in self.CONTENT}
        sets = {name: plain(wanted[name] or ()) for name in ("required_affordances", "executor_shapes")}
        return {**wanted, **sets}

    def creation(self, entry: CapabilityEntry) -> tuple[str, dict[str, Any]]:
        return "define_capability", {"code": entry.code, "name": entry.name, **given(**self.contract(entry, entry))}

    def initial(self, entry: CapabilityEntry) -> CapabilityEntry:
        return entry.model_copy(update={"version": None})

    def differences(self, old: CapabilityEntry, new: CapabilityEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new, ("name",), NO_VERB)
        changed = changes_of(self, old, new, self.CONTENT)
        yield from self.new_version(old, new, "version_capability", self.contract(old, new), changed)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_capability", {"reason": REASON}


def changes_of(kind: Kind[Any], old: Any, new: Any, names: tuple[str, ...]) -> list[str]:
    """Return the fields that differ, each in few words."""
    return [shown_change(name, getattr(old, name), getattr(new, name)) for name in names if kind.differs(old, new, name)]


class MethodSection(Kind[MethodEntry]):
    section, label, lists, gets, id_name = "methods", "method", "list_methods", "get_method", "method_id"
    nullable = frozenset({"parameters_schema"})

    def identity(self, row: Any, names: Names) -> MethodEntry:
        return MethodEntry.model_construct(name=row.name)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> MethodEntry:
        roles = tuple(
            RoleRequirementEntry(
                role_name=one.role_name,
                required_ports=one.required_ports,
                optional=one.optional,
                **given(family=names.optional(one.family_id), role=names.optional(one.role_id)),
            )
            for one in view.required_roles
        )
        return MethodEntry(
            name=view.name,
            capability=names.key(view.capability_id),
            needed_families=names.keys(view.needed_family_ids),
            needed_supplies=tuple(sorted(view.needed_supplies)),
            required_roles=roles,
            **given(parameters_schema=view.parameters_schema, version=view.version_tag),
        )

    def creation(self, entry: MethodEntry) -> tuple[str, dict[str, Any]]:
        return "define_method", {
            "name": entry.name,
            "capability_id": Ref("capabilities", entry.capability),
            "needed_family_ids": refs("families", entry.needed_families),
            "needed_supplies": list(entry.needed_supplies or ()),
            **given(parameters_schema=entry.parameters_schema),
        }

    def initial(self, entry: MethodEntry) -> MethodEntry:
        return entry.model_copy(update={"required_roles": (), "version": None})

    def differences(self, old: MethodEntry, new: MethodEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new, ("capability", "needed_families", "needed_supplies"), NO_VERB)
        if self.asks(new, "required_roles"):
            added, removed = members_changed(old.required_roles, new.required_roles)
            for one in removed:
                yield Update("remove_method_required_role", {"role_name": one.role_name}, f"role {one.role_name} no longer")
            for one in added:
                target = given(family_id=ref("families", one.family), role_id=ref("roles", one.role))
                ports = {"required_ports": plain(one.required_ports), "optional": one.optional}
                requirement = {"role_name": one.role_name, **target, **ports}
                yield Update("add_method_required_role", {"requirement": requirement}, f"role {one.role_name}")
        changed = changes_of(self, old, new, ("parameters_schema",))
        relabelled = self.asks(new, "version") and new.version != old.version
        if changed and not relabelled and not changed_units(old.parameters_schema, new.parameters_schema):
            yield Update("update_method_parameters_schema", {"parameters_schema": new.parameters_schema}, changed[0])
        else:
            schema = {"parameters_schema": new.parameters_schema} if changed else {}
            yield from self.new_version(old, new, "version_method", schema, changed)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_method", {"reason": REASON}


class PracticeSection(Kind[PracticeEntry]):
    section, label, lists, id_name = "practices", "practice", "list_practices", "practice_id"

    def identity(self, row: Any, names: Names) -> PracticeEntry:
        return PracticeEntry.model_construct(name=row.name)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> PracticeEntry:
        return PracticeEntry(
            name=view.name,
            method=names.key(view.method_id),
            families=names.keys(view.family_ids),
            **given(site=names.optional(view.site_id), version=view.version_tag),
        )

    def creation(self, entry: PracticeEntry) -> tuple[str, dict[str, Any]]:
        own = {"name": entry.name, "method_id": Ref("methods", entry.method)}
        families = refs("families", entry.families)
        return "define_practice", {**own, "family_ids": families, **given(site_id=ref("facilities", entry.site))}

    def initial(self, entry: PracticeEntry) -> PracticeEntry:
        return entry.model_copy(update={"version": None})

    def differences(self, old: PracticeEntry, new: PracticeEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new, ("method", "site", "families"), NO_VERB)
        yield from self.new_version(old, new, "version_practice", {}, [])

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_practice", {"reason": REASON}


class PlanSection(Kind[PlanEntry]):
    section, label, lists, gets, id_name = "plans", "plan", "list_plans", "get_plan", "plan_id"
    nullable = frozenset({"window_starts_at", "window_ends_at", "data_registration"})

    def identity(self, row: Any, names: Names) -> PlanEntry:
        return PlanEntry.model_construct(name=row.name)

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
        return PlanEntry(
            name=view.name,
            practice=names.key(view.practice_id),
            assets=names.keys(view.asset_ids),
            default_parameters=dict(view.default_parameters),
            wires=wires,
            roles={one.role_name: names.key(one.asset_id) for one in view.role_bindings},
            **given(
                window_starts_at=view.window_starts_at,
                window_ends_at=view.window_ends_at,
                data_registration=self.registration(view.data_registration, names),
                version=view.version_tag,
            ),
        )

    def registration(self, recorded: Any, names: Names) -> DataRegistrationEntry | None:
        """Return how files become datasets, as a file says it."""
        if recorded is None:
            return None
        captured = given(capturing_asset=names.optional(recorded.capturing_asset_id))
        outputs = tuple(sorted(recorded.raw_outputs))
        return DataRegistrationEntry(supply=names.key(recorded.supply_id), raw_outputs=outputs, **captured)

    def creation(self, entry: PlanEntry) -> tuple[str, dict[str, Any]]:
        return "define_plan", {
            "name": entry.name,
            "practice_id": Ref("practices", entry.practice),
            "asset_ids": refs("assets", entry.assets),
            **given(window_starts_at=entry.window_starts_at, window_ends_at=entry.window_ends_at),
        }

    def initial(self, entry: PlanEntry) -> PlanEntry:
        bare: dict[str, object] = {
            "default_parameters": {},
            "wires": (),
            "roles": {},
            "data_registration": None,
            "version": None,
        }
        return entry.model_copy(update=bare)

    def differences(self, old: PlanEntry, new: PlanEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new, ("practice", "assets"), NO_VERB)
        if self.differs(old, new, "window_starts_at") or self.differs(old, new, "window_ends_at"):
            ends = {
                name: getattr(new if self.asks(new, name) else old, name) for name in ("window_starts_at", "window_ends_at")
            }
            sentence = shown_change("window", [old.window_starts_at, old.window_ends_at], list(ends.values()))
            yield Update("reschedule_plan", ends, sentence, repeatable=False)
        if self.asks(new, "default_parameters"):
            before = old.default_parameters or {}
            if patch := merge_patch_to(before, new.default_parameters or {}):
                sentence = shown_change("default_parameters", {name: before.get(name) for name in patch}, patch)
                yield Update("update_plan_default_parameters", {"default_parameters_patch": patch}, sentence)
        yield from self.parts(old, new)
        if self.differs(old, new, "data_registration"):
            yield self.data(old, new)
        yield from self.new_version(old, new, "version_plan", {}, [])

    def parts(self, old: PlanEntry, new: PlanEntry) -> Iterator[Step]:
        """Yield the wires and roles that differ."""
        if self.asks(new, "wires"):
            added, removed = members_changed(old.wires, new.wires)
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
            captured = given(capturing_asset_id=ref("assets", wanted.capturing_asset))
            registration = {"supply_id": Ref("supplies", wanted.supply), "raw_outputs": list(wanted.raw_outputs), **captured}
        sentence = shown_change("data_registration", old.data_registration, wanted)
        return Update("set_plan_data_registration", {"data_registration": registration}, sentence)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_plan", {"reason": REASON}


def wire_fields(wire: PlanWireEntry) -> dict[str, Any]:
    """Return a wire as its verbs name it."""
    return {
        "source_asset_id": Ref("assets", wire.source),
        "source_port_name": wire.source_port,
        "target_asset_id": Ref("assets", wire.target),
        "target_port_name": wire.target_port,
    }


class RecipeSection(Kind[RecipeEntry]):
    section, label, lists, gets, id_name = "recipes", "recipe", "list_recipes", "get_recipe", "recipe_id"
    nullable = frozenset({"watch", "on_unknown_outcome"})
    ordered = frozenset({"steps", "closing_steps"})
    CONTENT = ("steps", "closing_steps", "watch", "on_unknown_outcome")

    def identity(self, row: Any, names: Names) -> RecipeEntry:
        return RecipeEntry.model_construct(name=row.name)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> RecipeEntry:
        return RecipeEntry(
            name=view.name,
            capability=names.key(view.capability_id),
            steps=view.steps,
            closing_steps=view.closing_steps,
            **given(watch=view.watch, on_unknown_outcome=view.on_unknown_outcome, version=view.version_tag),
        )

    def content(self, old: RecipeEntry, new: RecipeEntry) -> dict[str, Any]:
        """Return the whole content that the file asks for; what it leaves out stays."""
        wanted = {name: getattr(new if self.asks(new, name) else old, name) for name in self.CONTENT}
        steps = {name: wire_form(wanted[name] or ()) for name in ("steps", "closing_steps")}
        return {**steps, **given(watch=plain(wanted["watch"]), on_unknown_outcome=plain(wanted["on_unknown_outcome"]))}

    def creation(self, entry: RecipeEntry) -> tuple[str, dict[str, Any]]:
        own = {"name": entry.name, "capability_id": Ref("capabilities", entry.capability)}
        return "define_recipe", {**own, **self.content(entry, entry)}

    def initial(self, entry: RecipeEntry) -> RecipeEntry:
        return entry.model_copy(update={"version": None})

    def differences(self, old: RecipeEntry, new: RecipeEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new, ("capability",), NO_VERB)
        changed = changes_of(self, old, new, self.CONTENT)
        yield from self.new_version(old, new, "version_recipe", self.content(old, new), changed)

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]]:
        return "deprecate_recipe", {"reason": REASON}
