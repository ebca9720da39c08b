"""The starter catalog: what is seeded and shipped obeys the authoring rules and loads through the normal commands."""

import re

from baton.beamline.catalog import starter_catalog
from baton.beamline.file import FamilyEntry
from baton.domain.equipment.affordance import Affordance, AffordanceKind
from baton.domain.equipment.family import InvalidFamilySettingsSchemaError
from baton.domain.equipment.seeded_roles import SEEDED_ROLES
from baton.domain.shared.schema import check_declaration, declared_units
from tests.support.domain.schemas import schema_levels
from tests.support.tables import for_each

CATALOG = starter_catalog().content
STARTER_FAMILIES, STARTER_MODELS, STARTER_ASSEMBLIES = CATALOG.families, CATALOG.models, CATALOG.assemblies
FAMILIES = {family.name: family for family in STARTER_FAMILIES}
ROLES = {role.name: role for role in SEEDED_ROLES}

SEEDED = [
    ("Detector", "Imageable", "Binnable Coolable Triggerable Streamable", "Image Frame", "TriggerIn"),
    (
        "Positioner",
        "Homeable Limitable",
        "Rotatable Translatable Posable Indexable Capturable Leading Following",
        "EncoderPosition",
        "PositionCommand",
    ),
    ("Controller", "Identifiable", "Reportable Pulsing", "ControlOut", "ControlIn"),
    ("Sensor", "Reportable", "Triggerable Streamable", "Reading", "TriggerIn"),
    ("Regulator", "Settable", "PIDControllable Coolable Reportable", "Reading", "Setpoint"),
]

KEY_SETTINGS = [
    ("RotaryStage", "min_position max_position encoder_resolution homing_offset", "number", "degree"),
    ("RotaryStage", "max_speed", "number", "degree/s"),
    ("RotaryStage", "encoder_counts_per_turn", "integer", None),
    ("LinearStage", "min_position max_position encoder_resolution", "number", "mm"),
    ("LinearStage", "max_speed", "number", "mm/s"),
    ("TiltStage", "min_position max_position", "number", "degree"),
    ("TiltStage", "max_speed", "number", "degree/s"),
    ("Hexapod", "pivot_x pivot_y pivot_z travel_x travel_y travel_z", "number", "mm"),
    ("Hexapod", "travel_u travel_v travel_w", "number", "degree"),
    ("Hexapod", "max_load", "number", "kg"),
    ("Table", "axes", "array", None),
    ("Table", "travel_x travel_y travel_z", "number", "mm"),
    ("Table", "max_load", "number", "kg"),
    ("Camera", "sensor_width sensor_height bit_depth", "integer", None),
    ("Camera", "pixel_size", "number", "um"),
    ("Camera", "max_frame_rate", "number", "Hz"),
    ("Camera", "min_exposure max_exposure", "number", "s"),
    ("Camera", "sensor_temperature_setpoint", "number", "degC"),
    ("Camera", "shutter_mode", "string", None),
    ("Scintillator", "material lot", "string", None),
    ("Scintillator", "thickness", "number", "um"),
    ("Scintillator", "decay_time", "number", "us"),
    ("Objective", "magnification numerical_aperture", "number", None),
    ("Objective", "working_distance", "number", "mm"),
    ("Shutter", "kind", "string", None),
    ("Shutter", "open_time close_time", "number", "ms"),
    ("Shutter", "max_rate", "number", "Hz"),
    ("Slit", "blade_material", "string", None),
    ("Slit", "max_gap_horizontal max_gap_vertical", "number", "mm"),
    ("Filter", "positions", "array", None),
    ("Mirror", "stripes", "array", None),
    ("Mirror", "length", "number", "mm"),
    ("Mirror", "nominal_angle", "number", "mrad"),
    ("Mirror", "min_radius", "number", "km"),
    ("Monochromator", "type", "string", None),
    ("Monochromator", "d_spacing", "number", "nm"),
    ("Monochromator", "min_energy max_energy", "number", "keV"),
    ("InsertionDevice", "type", "string", None),
    ("InsertionDevice", "period min_gap max_gap", "number", "mm"),
    ("FluxMonitor", "placement", "string", None),
    ("FluxMonitor", "gain", "number", "V/A"),
    ("FluxMonitor", "active_length", "number", "mm"),
    ("TemperatureController", "min_setpoint max_setpoint", "number", "degC"),
    ("TemperatureController", "ramp_rate", "number", "K/min"),
    ("MotionController", "axis_count", "integer", None),
    ("MotionController", "protocol", "string", None),
    ("TimingController", "channel_count", "integer", None),
    ("TimingController", "clock_frequency", "number", "MHz"),
    ("TimingController", "min_pulse_width", "number", "us"),
    ("PseudoAxis", "min_value max_value", "number", None),
    ("PseudoAxis", "quantity", "string", None),
    ("Housing", "description", "string", None),
]

each_family = for_each("family", STARTER_FAMILIES)


@for_each(("name", "required", "optional", "produces", "consumes"), SEEDED)
def test_the_five_roles_are_seeded(name: str, required: str, optional: str, produces: str, consumes: str) -> None:
    role = ROLES[name]
    assert role.required_affordances == set(required.split())
    assert role.optional_affordances == set(optional.split())
    assert (role.produces, role.consumes) == (set(produces.split()), set(consumes.split()))
    assert len(ROLES) == len(SEEDED_ROLES) == len(SEEDED)


def test_every_family_is_in_the_catalog_once() -> None:
    assert len(FAMILIES) == len(STARTER_FAMILIES) == 20
    assert {name for name, *_ in KEY_SETTINGS} == set(FAMILIES)


@for_each(("name", "keys", "type", "unit"), KEY_SETTINGS)
def test_settings_have_their_type_and_unit(name: str, keys: str, type: str, unit: str | None) -> None:
    schema = FAMILIES[name].settings_schema
    for key in keys.split():
        assert schema["properties"][key]["type"] == type
        assert declared_units(schema).get(key) == (("udunits", unit) if unit else None)


@each_family
def test_a_family_has_its_listed_settings_and_no_others(family: FamilyEntry) -> None:
    listed = {key for name, keys, *_ in KEY_SETTINGS if name == family.name for key in keys.split()}
    identity = {"serial_number", "firmware_version"}
    commandable = any(affordance.kind is AffordanceKind.OPERATIONAL for affordance in family.affordances)
    assert set(family.settings_schema["properties"]) == (listed | identity if commandable else listed)


@each_family
def test_a_shipped_schema_may_be_declared(family: FamilyEntry) -> None:
    check_declaration(family.settings_schema, InvalidFamilySettingsSchemaError)


@each_family
def test_every_object_level_is_closed_twice(family: FamilyEntry) -> None:
    for level in schema_levels(family.settings_schema):
        if level["type"] == "object":
            assert (level["additionalProperties"], level["unevaluatedProperties"]) == (False, False)


@each_family
def test_descriptions_give_quantity_range_and_unit(family: FamilyEntry) -> None:
    for level in schema_levels(family.settings_schema):
        if level["type"] == "object":
            continue
        description = level["description"]
        assert re.fullmatch(r"[A-Z].+, .+, .+\.", description)
        for bound in ("minimum", "maximum"):
            assert str(level.get(bound, "")) in description
        assert all(option in description for option in level.get("enum", ()))
        assert description.endswith(f", in {level['unit']['code']}." if "unit" in level else ".")
        if level["type"] in ("number", "integer") and "unit" not in level:
            assert description.endswith(", no unit.")


@each_family
def test_descriptions_name_no_transport_driver_or_control_system(family: FamilyEntry) -> None:
    forbidden = re.compile(
        r"\b(epics|tango|pv|ioc|ophyd|opc|ethernet|serial port|tcp|udp|usb|rs-?232|modbus|driver|zmq|gige|camera ?link)\b",
        re.I,
    )
    for level in schema_levels(family.settings_schema):
        assert not forbidden.search(level.get("description", ""))


@each_family
def test_no_setting_carries_a_unit_in_its_name(family: FamilyEntry) -> None:
    suffix = re.compile(r"_(mm|um|nm|km|deg|degree|rad|mrad|s|ms|us|hz|mhz|kev|kg|degc|k)$")
    assert not [
        name
        for level in schema_levels(family.settings_schema)
        for name in level.get("properties", {})
        if suffix.search(name)
    ]


@each_family
def test_a_family_keeps_the_contract_of_the_role_it_presents(family: FamilyEntry) -> None:
    for name in family.presents or ():
        assert ROLES[name].required_affordances <= set(family.affordances or ())


def test_only_passive_parts_are_consumable() -> None:
    consumable = {family.name for family in STARTER_FAMILIES if Affordance.CONSUMABLE in family.affordances}
    assert consumable == {"Scintillator", "Objective"}


def test_models_are_of_families_of_the_catalog() -> None:
    assert {model.name: model.families for model in STARTER_MODELS} == {
        "acme_r250": ("RotaryStage",),
        "acme_hex300": ("Hexapod",),
        "acme_drive4": ("MotionController",),
        "orbis_cam5": ("Camera",),
        "lumicryst_luag": ("Scintillator",),
    }


def test_assemblies_refer_to_what_the_catalog_has() -> None:
    for assembly in STARTER_ASSEMBLIES:
        assert {name for slot in assembly.slots or () for name in slot.families} <= set(FAMILIES)
        assert set(assembly.presents or ()) <= set(ROLES)
        assert set((assembly.sub_assemblies or {}).values()) <= {one.name for one in STARTER_ASSEMBLIES}
    assert {assembly.name for assembly in STARTER_ASSEMBLIES} == {"Optics", "Microscope"}


def test_slot_names_of_an_assembly_and_its_children_do_not_clash() -> None:
    own: dict[str, list[str]] = {}
    for assembly in STARTER_ASSEMBLIES:
        names = [slot.name for slot in assembly.slots or ()]
        own[assembly.name] = names
        flat = [
            *names,
            *(assembly.sub_assemblies or {}),
            *(name for child in (assembly.sub_assemblies or {}).values() for name in own[child]),
        ]
        assert len(set(flat)) == len(flat)
