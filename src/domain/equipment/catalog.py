"""The starter catalog of an imaging beamline, as plain data: roles seeded at startup; families, models and assemblies
an operator may load through the normal commands. Entries refer to each other by name; ids exist only once loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.domain.equipment.affordance import Affordance, AffordanceKind
from baton.domain.equipment.role import DefineRole
from baton.domain.shared.schema import DIALECT, Schema


@dataclass(frozen=True, kw_only=True)
class CatalogFamily:
    """A family to define, and the roles it is to present."""

    name: str
    affordances: frozenset[Affordance]
    presents: tuple[str, ...]
    settings_schema: Schema


@dataclass(frozen=True, kw_only=True)
class CatalogModel:
    """A model to define, and the settings every unit of it has."""

    name: str
    manufacturer: str
    part_number: str
    families: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CatalogSlot:
    """A slot of an assembly, and the families whose assets may fill it."""

    slot_name: str
    families: tuple[str, ...]
    cardinality: str


@dataclass(frozen=True, kw_only=True)
class CatalogAssembly:
    """An assembly to define; `sub_assemblies` pins each named slot to the content another catalog assembly then has."""

    name: str
    presents: tuple[str, ...]
    slots: tuple[CatalogSlot, ...]
    sub_assemblies: Mapping[str, str] = field(default_factory=dict)


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def affordances(text: str) -> frozenset[Affordance]:
    """The affordances of this spelling."""
    return frozenset(map(Affordance, text.split()))


def role(name: str, description: str, *, required: str, optional: str, produces: str, consumes: str) -> DefineRole:
    """A role of the catalog."""
    return DefineRole(
        name=name,
        description=description,
        required_affordances=affordances(required),
        optional_affordances=affordances(optional),
        produces=words(produces),
        consumes=words(consumes),
    )


SEEDED_ROLES = (
    role(
        "Detector",
        "Takes images of what the beam leaves behind the sample.",
        required="Imageable",
        optional="Binnable Coolable Triggerable Streamable",
        produces="Image Frame",
        consumes="TriggerIn",
    ),
    role(
        "Positioner",
        "Moves something to a commanded position, within limits and from a known reference.",
        required="Homeable Limitable",
        optional="Rotatable Translatable Posable Indexable Capturable Leading Following",
        produces="EncoderPosition",
        consumes="PositionCommand",
    ),
    role(
        "Controller",
        "Drives other devices and says who it is.",
        required="Identifiable",
        optional="Reportable Pulsing",
        produces="ControlOut",
        consumes="ControlIn",
    ),
    role(
        "Sensor",
        "Reports readings of a quantity it does not influence.",
        required="Reportable",
        optional="Triggerable Streamable",
        produces="Reading",
        consumes="TriggerIn",
    ),
    role(
        "Regulator",
        "Drives a continuous quantity to a setpoint and keeps it there.",
        required="Settable",
        optional="PIDControllable Coolable Reportable",
        produces="Reading",
        consumes="Setpoint",
    ),
)
"""The roles every deployment starts with."""


def number(
    quantity: str,
    unit: str | None = None,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    type: str = "number",
) -> Schema:
    """A numeric setting; its description gives quantity, range and unit."""
    bounds = {"minimum": minimum, "maximum": maximum}
    given = {keyword: bound for keyword, bound in bounds.items() if bound is not None}
    match minimum, maximum:
        case None, None:
            reach = "any value"
        case _, None:
            reach = f"{minimum} or more"
        case _:
            reach = f"{minimum} to {maximum}"
    schema: Schema = {"type": type, "description": f"{quantity}, {reach}, {f'in {unit}' if unit else 'no unit'}.", **given}
    return {**schema, "unit": {"system": "udunits", "code": unit}} if unit else schema


def integer(quantity: str, *, minimum: int, maximum: int | None = None) -> Schema:
    """A count."""
    return number(quantity, minimum=minimum, maximum=maximum, type="integer")


def size(quantity: str, unit: str | None = None) -> Schema:
    """A quantity that is never negative."""
    return number(quantity, unit, minimum=0)


def text(quantity: str) -> Schema:
    """A text setting."""
    return {"type": "string", "description": f"{quantity}, any text, no unit."}


def choice(quantity: str, *options: str) -> Schema:
    """A text setting with fixed values."""
    return {"type": "string", "enum": list(options), "description": f"{quantity}, {' or '.join(options)}, no unit."}


def several(quantity: str, items: Schema) -> Schema:
    """A list of settings."""
    return {"type": "array", "items": items, "description": f"{quantity}, any number of entries, units as each entry says."}


def closed(properties: Mapping[str, Schema]) -> Schema:
    """An object that has these keys and no others."""
    return {"type": "object", "additionalProperties": False, "unevaluatedProperties": False, "properties": dict(properties)}


def family(name: str, affords: str, presents: str | None, **settings: Schema) -> CatalogFamily:
    """A family of the catalog; what can be commanded also has a serial number and a firmware version."""
    offered = affordances(affords)
    if any(affordance.kind is AffordanceKind.OPERATIONAL for affordance in offered):
        settings["serial_number"] = text("Serial number given by the manufacturer")
        settings["firmware_version"] = text("Version of the firmware in the device")
    return CatalogFamily(
        name=name,
        affordances=offered,
        presents=(presents,) if presents else (),
        settings_schema={"$schema": DIALECT, **closed(settings)},
    )


STARTER_FAMILIES = (
    family(
        "RotaryStage",
        "Rotatable Homeable Limitable Marking Leading Following Identifiable Reportable",
        "Positioner",
        min_position=number("Lowest angle the stage may take", "degree"),
        max_position=number("Highest angle the stage may take", "degree"),
        encoder_resolution=size("Smallest angle the encoder tells apart", "degree"),
        homing_offset=number("Angle of the home mark", "degree"),
        max_speed=size("Highest angular speed", "degree/s"),
        encoder_counts_per_turn=integer("Encoder counts in one full turn", minimum=0),
    ),
    family(
        "LinearStage",
        "Translatable Homeable Limitable Leading Reportable",
        "Positioner",
        min_position=number("Lowest position the stage may take", "mm"),
        max_position=number("Highest position the stage may take", "mm"),
        encoder_resolution=size("Smallest displacement the encoder tells apart", "mm"),
        max_speed=size("Highest speed", "mm/s"),
    ),
    family(
        "TiltStage",
        "Rotatable Homeable Limitable Reportable",
        "Positioner",
        min_position=number("Lowest tilt the stage may take", "degree"),
        max_position=number("Highest tilt the stage may take", "degree"),
        max_speed=size("Highest angular speed", "degree/s"),
    ),
    family(
        "Hexapod",
        "Posable Homeable Limitable Identifiable Reportable",
        "Positioner",
        pivot_x=number("Pivot point across the beam", "mm"),
        pivot_y=number("Pivot point along the beam", "mm"),
        pivot_z=number("Pivot point in height", "mm"),
        travel_x=size("Travel across the beam, to either side", "mm"),
        travel_y=size("Travel along the beam, to either side", "mm"),
        travel_z=size("Travel in height, to either side", "mm"),
        travel_u=size("Rotation about the first axis, to either side", "degree"),
        travel_v=size("Rotation about the second axis, to either side", "degree"),
        travel_w=size("Rotation about the third axis, to either side", "degree"),
        max_load=size("Heaviest load on the platform", "kg"),
    ),
    family(
        "Table",
        "Posable Translatable Homeable Limitable Reportable",
        "Positioner",
        axes=several("Names of the driven axes", text("Name of an axis")),
        travel_x=size("Travel across the beam, to either side", "mm"),
        travel_y=size("Travel along the beam, to either side", "mm"),
        travel_z=size("Travel in height, to either side", "mm"),
        max_load=size("Heaviest load on the table", "kg"),
    ),
    family(
        "Camera",
        "Imageable Capturing Binnable Triggerable Gateable Coolable Streamable Bufferable Compressible Recording "
        "Identifiable Reportable",
        "Detector",
        sensor_width=integer("Pixels in one sensor row", minimum=1),
        sensor_height=integer("Pixels in one sensor column", minimum=1),
        pixel_size=size("Edge length of one pixel", "um"),
        bit_depth=integer("Bits of one pixel value", minimum=8, maximum=16),
        max_frame_rate=size("Highest frame rate of the full sensor", "Hz"),
        min_exposure=size("Shortest exposure time", "s"),
        max_exposure=size("Longest exposure time", "s"),
        sensor_temperature_setpoint=number("Temperature the sensor is cooled to", "degC", minimum=-273.15),
        shutter_mode=choice("Way the sensor is exposed", "rolling", "global"),
    ),
    family(
        "Scintillator",
        "Consumable",
        None,
        material=text("Scintillating material"),
        thickness=size("Thickness of the active layer", "um"),
        decay_time=size("Time in which the light decays to 1/e", "us"),
        lot=text("Production lot"),
    ),
    family(
        "Objective",
        "Consumable",
        None,
        magnification=size("Magnification at the design conjugate"),
        numerical_aperture=number("Numerical aperture", minimum=0, maximum=1),
        working_distance=size("Working distance", "mm"),
    ),
    family(
        "Shutter",
        "Shutterable Triggerable Reportable",
        None,
        kind=choice("What the shutter is for", "photon", "fast"),
        open_time=size("Time from command to fully open", "ms"),
        close_time=size("Time from command to fully closed", "ms"),
        max_rate=size("Highest rate of opening", "Hz"),
    ),
    family(
        "Slit",
        "Translatable Homeable Limitable Reportable",
        "Positioner",
        blade_material=text("Material of the blades"),
        max_gap_horizontal=size("Widest horizontal opening", "mm"),
        max_gap_vertical=size("Widest vertical opening", "mm"),
    ),
    family(
        "Filter",
        "Indexable Attenuable Homeable Limitable",
        "Positioner",
        positions=several(
            "Foils that can be put in the beam",
            closed(
                {
                    "index": integer("Place of the foil in the holder", minimum=0),
                    "material": text("Material of the foil"),
                    "thickness": size("Thickness of the foil", "um"),
                }
            ),
        ),
    ),
    family(
        "Mirror",
        "Posable Indexable Bendable Homeable Limitable Reportable",
        "Positioner",
        stripes=several("Coatings side by side on the mirror", text("Material of a coating")),
        length=size("Optical length along the beam", "mm"),
        nominal_angle=number("Grazing angle the mirror is made for", "mrad"),
        min_radius=size("Smallest radius the mirror may be bent to", "km"),
    ),
    family(
        "Monochromator",
        "Rotatable Translatable Indexable Homeable Limitable Coolable Reportable",
        "Positioner",
        type=choice("What diffracts", "crystal", "multilayer"),
        d_spacing=size("Distance of the diffracting planes", "nm"),
        min_energy=size("Lowest photon energy", "keV"),
        max_energy=size("Highest photon energy", "keV"),
    ),
    family(
        "InsertionDevice",
        "Settable Limitable Reportable",
        "Regulator",
        type=choice("Way the light is made", "undulator", "wiggler"),
        period=size("Length of one magnetic period", "mm"),
        min_gap=size("Smallest magnetic gap", "mm"),
        max_gap=size("Largest magnetic gap", "mm"),
    ),
    family(
        "FluxMonitor",
        "Reportable Triggerable Streamable",
        "Sensor",
        placement=choice("Side of the sample it measures on", "incident", "transmitted"),
        gain=size("Gain of the current amplifier", "V/A"),
        active_length=size("Length of beam path it measures over", "mm"),
    ),
    family(
        "TemperatureController",
        "Settable PIDControllable Coolable Reportable",
        "Regulator",
        min_setpoint=number("Lowest temperature that may be set", "degC", minimum=-273.15),
        max_setpoint=number("Highest temperature that may be set", "degC", minimum=-273.15),
        ramp_rate=size("Fastest change of temperature", "K/min"),
    ),
    family(
        "MotionController",
        "Identifiable Reportable",
        "Controller",
        axis_count=integer("Axes it can drive", minimum=1),
        protocol=text("Command language of the controller"),
    ),
    family(
        "TimingController",
        "Identifiable Reportable Pulsing Marking Capturable Synchronizable",
        "Controller",
        channel_count=integer("Output channels", minimum=1),
        clock_frequency=size("Frequency of the internal clock", "MHz"),
        min_pulse_width=size("Shortest pulse it can make", "us"),
    ),
    family(
        "PseudoAxis",
        "Settable Limitable",
        "Regulator",
        min_value=number("Lowest value of the quantity"),
        max_value=number("Highest value of the quantity"),
        quantity=text("Name of the quantity the axis stands for"),
    ),
    family("Housing", "", None, description=text("What the housing holds and shields")),
)

STARTER_MODELS = (
    CatalogModel(name="acme_r250", manufacturer="Acme Motion", part_number="R-250-AS", families=("RotaryStage",)),
    CatalogModel(name="acme_hex300", manufacturer="Acme Motion", part_number="HEX-300", families=("Hexapod",)),
    CatalogModel(
        name="acme_drive4",
        manufacturer="Acme Motion",
        part_number="DRIVE-4",
        families=("MotionController",),
        settings={"axis_count": 4},
    ),
    CatalogModel(
        name="orbis_cam5",
        manufacturer="Orbis Imaging",
        part_number="CAM-5",
        families=("Camera",),
        settings={"sensor_width": 2448, "sensor_height": 2048, "pixel_size": 3.45, "bit_depth": 12},
    ),
    CatalogModel(
        name="lumicryst_luag",
        manufacturer="Lumicryst",
        part_number="LUAG-100",
        families=("Scintillator",),
        settings={"material": "LuAG:Ce", "thickness": 100, "decay_time": 0.07},
    ),
)
"""Vendors are fictional."""

STARTER_ASSEMBLIES = (
    CatalogAssembly(
        name="Optics",
        presents=(),
        slots=(
            CatalogSlot(slot_name="turret", families=("LinearStage",), cardinality="Exactly1"),
            CatalogSlot(slot_name="objectives", families=("Objective",), cardinality="OneOrMore"),
            CatalogSlot(slot_name="objective_selector", families=("PseudoAxis",), cardinality="Exactly1"),
            CatalogSlot(slot_name="propagation_distance", families=("LinearStage",), cardinality="ZeroOrOne"),
        ),
    ),
    CatalogAssembly(
        name="Microscope",
        presents=("Detector",),
        slots=(
            CatalogSlot(slot_name="camera", families=("Camera",), cardinality="ZeroOrOne"),
            CatalogSlot(slot_name="scintillator", families=("Scintillator",), cardinality="Exactly1"),
        ),
        sub_assemblies={"optics": "Optics"},
    ),
)
"""In the order in which they can be defined."""
