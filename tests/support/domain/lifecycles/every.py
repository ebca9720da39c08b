"""The lives of the aggregates as the specification tabulates them, written down apart from the code that must obey."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from baton.domain.equipment.asset import AssetAttachedToFixture, AssetRelocated
from baton.domain.equipment.mount import INSTALLED
from tests.domain.equipment.test_placement import form
from tests.support.domain.assets import facility_world, family, fixture, install_in_mount, part, root
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, command, no_fields, reason_fields
from tests.support.domain.lifecycles import agent as agent
from tests.support.domain.lifecycles import calibration as calibration
from tests.support.domain.lifecycles import campaign as campaign
from tests.support.domain.lifecycles import caution as caution
from tests.support.domain.lifecycles import data as data
from tests.support.domain.lifecycles import decision as decision
from tests.support.domain.lifecycles import enclosure as enclosure
from tests.support.domain.lifecycles import federation as federation
from tests.support.domain.lifecycles import operation as operation
from tests.support.domain.lifecycles import plan as plan_lifecycles
from tests.support.domain.lifecycles import recipe as recipe_lifecycles
from tests.support.domain.lifecycles import run as run
from tests.support.domain.lifecycles import safety as safety
from tests.support.domain.lifecycles import subject as subject
from tests.support.domain.lifecycles import supply as supply
from tests.support.domain.lifecycles import template as ladder_lifecycles
from tests.support.domain.lifecycles import trust as trust
from tests.support.domain.world import START, World, new_id


def actor_begins(world: World) -> tuple[UUID, Scene]:
    world.ports["identity_provider"] = SimpleNamespace(known=True, bound=False)
    return world.create(command("register_actor", {"name": "Mira Okafor"})), Scene()


def token(scene: Scene) -> dict[str, Any]:
    return {"issuer": "https://id.example.org", "subject": "mira-77"}


ACTOR = Lifecycle(
    "Actor",
    "register_actor",
    actor_begins,
    {"status": {"active": "", "deactivated": "deactivate_actor"}},
    {
        "deactivate_actor": Verb("active", at("deactivated"), "ActorCannotDeactivateError"),
        "reactivate_actor": Verb("deactivated", at("active"), "ActorCannotReactivateError"),
        "update_actor_profile": Verb(given=lambda scene: {"email": "m.okafor@example.org"}),
        "forget_actor": Verb(),
        "bind_actor_subject": Verb(given=token),
        "unbind_actor_subject": Verb(given=token, before=(("bind_actor_subject", token),)),
    },
)


def visit_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(surface_id=new_id())
    plan = {"policy_id": new_id(), "surface_id": scene.surface_id, "type": "user", "planned_start_at": START}
    return world.create(command("register_visit", {**plan, "planned_end_at": START + timedelta(days=2)})), scene


def physical_mode(scene: Scene) -> dict[str, Any]:
    return {"mode": "physical"}


def own_surface(scene: Scene) -> dict[str, Any]:
    return {"surface_id": scene.surface_id}


VISIT = Lifecycle(
    "Visit",
    "register_visit",
    visit_begins,
    {
        "status": {
            "Planned": "",
            "Arrived": "record_visit_arrival",
            "InProgress": "record_visit_arrival start_visit",
            "OnHold": "record_visit_arrival start_visit hold_visit",
            "Completed": "record_visit_arrival start_visit complete_visit",
            "Cancelled": "cancel_visit",
            "Aborted": "record_visit_arrival start_visit abort_visit",
            "Voided": "void_visit",
        }
    },
    {
        "record_visit_arrival": Verb("Planned", at("Arrived"), "VisitCannotArriveError"),
        "start_visit": Verb("Arrived", at("InProgress"), "VisitCannotStartError"),
        "hold_visit": Verb("InProgress", at("OnHold"), "VisitCannotHoldError", given=reason_fields),
        "resume_visit": Verb("OnHold", at("InProgress"), "VisitCannotResumeError"),
        "complete_visit": Verb("InProgress OnHold", at("Completed"), "VisitCannotCompleteError"),
        "cancel_visit": Verb("Planned Arrived", at("Cancelled"), "VisitCannotCancelError", given=reason_fields),
        "abort_visit": Verb("InProgress OnHold", at("Aborted"), "VisitCannotAbortError", given=reason_fields),
        "void_visit": Verb("Planned Arrived InProgress OnHold", at("Voided"), "VisitCannotVoidError", given=reason_fields),
        "check_in_visit": Verb(
            "Arrived InProgress OnHold", {}, "VisitCannotCheckInError", "status_not_eligible", given=physical_mode
        ),
        # Nobody is present before arrival, and everybody leaves with the end.
        "check_out_visit": Verb(
            "Arrived InProgress OnHold",
            {},
            "VisitCannotCheckOutError",
            "not_checked_in",
            before=(("check_in_visit", physical_mode),),
        ),
        "take_control_of_surface": Verb(
            "Arrived InProgress OnHold", {}, "VisitCannotTakeControlError", "status_not_eligible", given=own_surface
        ),
        # Nobody drives before arrival, and the end releases.
        "release_control_of_surface": Verb(
            "Arrived InProgress OnHold",
            {},
            "VisitCannotReleaseControlError",
            "not_holder",
            given=own_surface,
            before=(("take_control_of_surface", own_surface),),
        ),
    },
)


def asset_world() -> World:
    world = facility_world()
    world.ports["mint"] = lambda scheme, suffix, metadata: SimpleNamespace(scheme=scheme, value=f"10.5072/{suffix}")
    return world


def asset_begins(world: World) -> tuple[UUID, Scene]:
    family_id, other_family_id = family(world, "RotaryStage", {}), family(world, "LinearStage")
    beamline, bench = root(world), root(world, name="Bench")
    asset_id = part(
        world,
        beamline,
        family_ids=[family_id],
        alternate_identifiers=[{"kind": "EPICS_PV", "value": "lum:m102"}],
        owners=[{"name": "Lumen Light Source"}],
    )
    world.when(command("add_asset_port", {"port_name": "trigger", "direction": "Input", "signal_type": "TTL"}), on=asset_id)
    return asset_id, Scene(
        family_id=family_id, other_family_id=other_family_id, bench=bench, fixture_id=fixture(world, asset_id)
    )


def attach_to_fixture(world: World, id: UUID, scene: Scene) -> None:
    world.given(id, AssetAttachedToFixture(fixture_id=scene.fixture_id))


def in_a_mount(world: World, id: UUID, scene: Scene) -> None:
    world.claims[INSTALLED, str(id)] = new_id()


def without_parent(world: World, id: UUID, scene: Scene) -> None:
    enclosures = dict.fromkeys(("from_enclosure_id", "to_enclosure_id"))
    world.given(
        id, AssetRelocated(from_parent_id=scene.bench, to_parent_id=None, reason="a beamline of its own", **enclosures)
    )


def watched_signals(scene: Scene) -> dict[str, Any]:
    return {"signals": [{"name": "Rotation", "address": "lum:m102"}]}


def wear_reason(scene: Scene) -> dict[str, Any]:
    return {"reason": "runout above 1 micron"}


def in_service_verb(
    verb: str, given: Callable[[Scene], Mapping[str, Any]], *, reason: str = "decommissioned", leads_to: str = ""
) -> Verb:
    """A verb that every asset but a Decommissioned one allows."""
    standing = {"lifecycle": leads_to} if leads_to else {}
    return Verb("Commissioned Active Maintenance", standing, f"AssetCannot{verb}Error", reason, given=given)


def condition(state: str) -> Verb:
    return Verb(leads_to={"condition": state}, quiet=True, given=wear_reason)


ASSET = Lifecycle(
    "Asset",
    "register_asset",
    asset_begins,
    {
        "lifecycle": {
            "Commissioned": "",
            "Active": "activate_asset",
            "Maintenance": "activate_asset enter_asset_maintenance",
            "Decommissioned": "decommission_asset",
        },
        "condition": {"Nominal": "", "Degraded": "degrade_asset", "Faulted": "fault_asset"},
    },
    {
        "rename_asset": in_service_verb("Rename", lambda scene: {"name": "Sample rotary"}),
        "activate_asset": Verb("Commissioned", {"lifecycle": "Active"}, "AssetCannotActivateError"),
        "enter_asset_maintenance": Verb("Active", {"lifecycle": "Maintenance"}, "AssetCannotEnterMaintenanceError"),
        "exit_asset_maintenance": Verb("Maintenance", {"lifecycle": "Active"}, "AssetCannotExitMaintenanceError"),
        "decommission_asset": in_service_verb(
            "Decommission", no_fields, reason="already_decommissioned", leads_to="Decommissioned"
        ),
        "relocate_asset": in_service_verb("Relocate", lambda scene: {"to_parent_id": scene.bench, "reason": "moved"}),
        "degrade_asset": condition("Degraded"),
        "fault_asset": condition("Faulted"),
        "restore_asset": condition("Nominal"),
        "add_asset_family": in_service_verb("AddFamily", lambda scene: {"family_id": scene.other_family_id}),
        "remove_asset_family": in_service_verb("RemoveFamily", lambda scene: {"family_id": scene.family_id}),
        "update_asset_settings": in_service_verb("UpdateSettings", lambda scene: {"settings_patch": {"gain": 2}}),
        "add_asset_port": in_service_verb(
            "AddPort", lambda scene: {"port_name": "encoder", "direction": "Output", "signal_type": "quadrature"}
        ),
        "remove_asset_port": in_service_verb("RemovePort", lambda scene: {"port_name": "trigger"}),
        "add_asset_alternate_identifier": in_service_verb(
            "AddAlternateIdentifier", lambda scene: {"kind": "InventoryNumber", "value": "INV-7"}
        ),
        "remove_asset_alternate_identifier": in_service_verb(
            "RemoveAlternateIdentifier", lambda scene: {"kind": "EPICS_PV", "value": "lum:m102"}
        ),
        "set_asset_signal_limits": in_service_verb(
            "SetSignalLimits", lambda scene: {"address": "lum:m102.VAL", "low": -5, "high": 5, "reason": "its travel"}
        ),
        "set_asset_overview": replace(in_service_verb("SetOverview", watched_signals), arranged=without_parent),
        "add_asset_owner": in_service_verb("AddOwner", lambda scene: {"name": "Acme University"}),
        "remove_asset_owner": in_service_verb("RemoveOwner", lambda scene: {"name": "Lumen Light Source"}),
        "update_asset_partition_rule": in_service_verb(
            "UpdatePartitionRule", lambda scene: {"partition_rule": {"kind": "Affine", "gain": 2.0}}
        ),
        "attach_asset_to_fixture": replace(
            in_service_verb("AttachToFixture", lambda scene: {"fixture_id": scene.fixture_id}), arranged=in_a_mount
        ),
        "detach_asset_from_fixture": Verb(given=lambda scene: {"fixture_id": scene.fixture_id}, arranged=attach_to_fixture),
        "assign_asset_external_id": in_service_verb("AssignExternalId", lambda scene: {"external_id_scheme": "DOI"}),
    },
    asset_world,
)


def role(world: World, name: str) -> UUID:
    return world.create(
        command("define_role", {"name": name, "description": "Turns things.", "required_affordances": ["Rotatable"]})
    )


def family_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(role_id=role(world, "Positioner"), other_role_id=role(world, "Spinner"))
    family_id = family(world, "RotaryStage", None, "Rotatable")
    world.when(command("add_family_role", {"role_id": scene.role_id}), on=family_id)
    return family_id, scene


CURRENT = "Defined Versioned"

FAMILY = Lifecycle(
    "Family",
    "define_family",
    family_begins,
    {"status": {"Defined": "", "Versioned": "version_family", "Deprecated": "deprecate_family"}},
    {
        "version_family": Verb(
            CURRENT,
            at("Versioned"),
            "FamilyCannotVersionError",
            "deprecated",
            given=lambda scene: {"version_tag": "2", "affordances": ["Rotatable", "Homeable"]},
        ),
        "deprecate_family": Verb(CURRENT, at("Deprecated"), "FamilyCannotDeprecateError"),
        "update_family_settings_schema": Verb(
            CURRENT, {}, "FamilyCannotUpdateSettingsSchemaError", "deprecated", given=lambda scene: {"settings_schema": {}}
        ),
        "add_family_role": Verb(
            CURRENT, {}, "FamilyCannotAddRoleError", "deprecated", given=lambda scene: {"role_id": scene.other_role_id}
        ),
        "remove_family_role": Verb(given=lambda scene: {"role_id": scene.role_id}),
    },
)


def model_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(rotary=family(world, "RotaryStage"), linear=family(world, "LinearStage"), tilt=family(world, "Tilt"))
    return world.create(command("define_model", catalog_entry(scene))), scene


def catalog_entry(scene: Scene) -> dict[str, Any]:
    described = {"name": "acme_r250", "manufacturer": {"name": "Acme Motion"}, "part_number": "R-250-AS"}
    return {**described, "declared_family_ids": [scene.rotary, scene.linear]}


MODEL = Lifecycle(
    "Model",
    "define_model",
    model_begins,
    {"status": {"Defined": "", "Versioned": "version_model", "Deprecated": "deprecate_model"}},
    {
        "version_model": Verb(
            CURRENT,
            at("Versioned"),
            "ModelCannotVersionError",
            given=lambda scene: {**catalog_entry(scene), "version_tag": "2"},
        ),
        "deprecate_model": Verb(CURRENT, at("Deprecated"), "ModelCannotDeprecateError"),
        "add_model_family": Verb(
            CURRENT, {}, "ModelCannotAddFamilyError", "deprecated", given=lambda scene: {"family_id": scene.tilt}
        ),
        "remove_model_family": Verb(
            CURRENT, {}, "ModelCannotRemoveFamilyError", "deprecated", given=lambda scene: {"family_id": scene.rotary}
        ),
    },
)


def frame_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(parent_id=world.create(command("register_frame", {"name": "centerline"})))
    bench = {"name": "bench", "parent_id": scene.parent_id, "placement": form(parent_frame_id=scene.parent_id)}
    return world.create(command("register_frame", bench)), scene


FRAME = Lifecycle(
    "Frame",
    "register_frame",
    frame_begins,
    {"status": {"Active": "", "Decommissioned": "decommission_frame"}},
    {
        "update_frame_placement": Verb(
            "Active",
            {},
            "FrameCannotUpdatePlacementError",
            "decommissioned",
            given=lambda scene: {"placement": form(parent_frame_id=scene.parent_id, x=1.5)},
        ),
        "decommission_frame": Verb(
            "Active", at("Decommissioned"), "FrameCannotDecommissionError", "already_decommissioned", given=reason_fields
        ),
    },
)


def mount_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(frame_id=world.create(command("register_frame", {"name": "centerline"})), asset_id=root(world))
    world.when(command("activate_asset", {}), on=scene.asset_id)
    slot = {"slot_code": "B-SAMPLE-01", "placement": form(parent_frame_id=scene.frame_id)}
    return world.create(command("register_mount", slot)), scene


def rotary(scene: Scene) -> dict[str, Any]:
    return {"asset_id": scene.asset_id}


MOUNT = Lifecycle(
    "Mount",
    "register_mount",
    mount_begins,
    {"status": {"Active": "", "Decommissioned": "decommission_mount"}},
    {
        "update_mount_placement": Verb(
            "Active",
            {},
            "MountCannotUpdatePlacementError",
            "decommissioned",
            given=lambda scene: {"placement": form(parent_frame_id=scene.frame_id, x=1.5)},
        ),
        "install_asset": Verb("Active", {}, "MountCannotInstallAssetError", "decommissioned", given=rotary),
        "uninstall_asset": Verb(
            "Active",
            {},
            "MountCannotUninstallAssetError",
            "decommissioned",
            given=reason_fields,
            before=(("install_asset", rotary),),
        ),
        "decommission_mount": Verb(
            "Active", at("Decommissioned"), "MountCannotDecommissionError", "already_decommissioned", given=reason_fields
        ),
    },
    facility_world,
)


def assembly_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(command("define_assembly", {"name": "Optics"})), Scene()


ASSEMBLY = Lifecycle(
    "Assembly",
    "define_assembly",
    assembly_begins,
    {"status": {"Defined": "", "Versioned": "version_assembly", "Deprecated": "deprecate_assembly"}},
    {
        "version_assembly": Verb(
            CURRENT,
            at("Versioned"),
            "AssemblyCannotVersionError",
            "deprecated",
            given=lambda scene: {"name": "Optics", "version_tag": "2"},
        ),
        "deprecate_assembly": Verb(CURRENT, at("Deprecated"), "AssemblyCannotDeprecateError"),
    },
)


def facility_begins(world: World) -> tuple[UUID, Scene]:
    lumen = {"code": "lumen", "display_name": "Lumen Light Source", "kind": "Site"}
    facility_id = world.create(command("register_facility", lumen))
    root = {"facility_id": facility_id, "audience": "registry.example", "purpose": "SealOfflineRoot"}
    credential_id = world.create(command("register_credential", {**root, "secret_ref": "vault://root"}))
    return facility_id, Scene(credential_id=credential_id)


def anchor(scene: Scene) -> dict[str, Any]:
    return {"credential_id": scene.credential_id}


FACILITY = Lifecycle(
    "Facility",
    "register_facility",
    facility_begins,
    {"status": {"Active": "", "Decommissioned": "decommission_facility"}},
    {
        "decommission_facility": Verb("Active", at("Decommissioned"), "FacilityCannotDecommissionError"),
        "add_facility_trust_anchor_credential": Verb(
            "Active", {}, "FacilityCannotAddTrustAnchorCredentialError", given=anchor
        ),
        "remove_facility_trust_anchor_credential": Verb(
            "Active",
            {},
            "FacilityCannotRemoveTrustAnchorCredentialError",
            given=anchor,
            before=(("add_facility_trust_anchor_credential", anchor),),
        ),
    },
)

BROUGHT = (
    supply,
    enclosure,
    safety,
    caution,
    subject,
    ladder_lifecycles,
    plan_lifecycles,
    recipe_lifecycles,
    run,
    operation,
    campaign,
    calibration,
    data,
    decision,
    agent,
    federation,
    trust,
)
"""The contexts that bring their tables themselves."""
LIVES = (
    *(ACTOR, VISIT, ASSET, FAMILY, MODEL, FRAME, MOUNT, ASSEMBLY, FACILITY),
    *(life for context in BROUGHT for life in context.LIVES),
)


def role_begins(world: World) -> tuple[UUID, Scene]:
    return role(world, "Positioner"), Scene()


def fixture_begins(world: World) -> tuple[UUID, Scene]:
    family_id = family(world)
    asset_id = root(world, family_ids=[family_id])
    world.when(command("activate_asset", {}), on=asset_id)
    install_in_mount(world, asset_id)
    slot = {"slot_name": "stage", "required_family_ids": [family_id], "cardinality": "Exactly1"}
    assembly_id = world.create(command("define_assembly", {"name": "Sample tower", "required_slots": [slot]}))
    bindings = [{"slot_name": "stage", "asset_id": asset_id}]
    made = {"assembly_id": assembly_id, "slot_asset_bindings": bindings}
    return world.create(command("register_fixture", made)), Scene()


STATELESS = (
    Lifecycle("Role", "define_role", role_begins, {}, {}),
    Lifecycle(
        "Fixture",
        "register_fixture",
        fixture_begins,
        {},
        {"assign_fixture_external_id": Verb(given=lambda scene: {"external_id_scheme": "Handle"})},
        asset_world,
    ),
    *(life for context in BROUGHT for life in context.STATELESS),
)
"""Aggregates without states, and all the verbs they have."""
OF_NO_STREAM = {"mint_missing_asset_external_ids", "attest_distributions", "hold_everything", "set_up_plan"}
"""Commands about no aggregate in particular, or about several."""
