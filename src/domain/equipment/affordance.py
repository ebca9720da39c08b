"""Affordances: the closed list of what a device class lets one do with it. Values are only ever added.
Selecting a parameter value (bit depth, region, energy) is a setting or a capability, never an affordance."""

from enum import StrEnum
from typing import Self


class AffordanceKind(StrEnum):
    OPERATIONAL = "operational"
    LIFECYCLE = "lifecycle"


class AffordanceGroup(StrEnum):
    MOTION = "motion"
    IMAGING = "imaging"
    TRIGGERING = "triggering"
    STREAMING = "streaming"
    OPTICS_AND_ENVIRONMENT = "optics_and_environment"
    REPORTING = "reporting"
    LIFECYCLE = "lifecycle"


MOTION, IMAGING, TRIGGERING, STREAMING, OPTICS_AND_ENVIRONMENT, REPORTING, LIFECYCLE = AffordanceGroup


class Affordance(StrEnum):
    """What a device of a family lets one do with it."""

    group: AffordanceGroup
    meaning: str

    def __new__(cls, value: str, group: AffordanceGroup = AffordanceGroup.LIFECYCLE, meaning: str = "") -> Self:
        # The members below give all three; the defaults let `Affordance(value)` look one up.
        member = str.__new__(cls, value)
        member._value_ = value
        member.group = group
        member.meaning = meaning
        return member

    ROTATABLE = "Rotatable", MOTION, "Rotary axis with position command."
    TRANSLATABLE = "Translatable", MOTION, "Linear axis with position command."
    HOMEABLE = "Homeable", MOTION, "Reference search that zeroes the encoder."
    LIMITABLE = "Limitable", MOTION, "Keeps to soft limits."
    CAPTURABLE = "Capturable", MOTION, "Latches encoder or analog values on trigger edges."
    POSABLE = "Posable", MOTION, "Coordinated multi-axis pose."
    INDEXABLE = "Indexable", MOTION, "Goes to named discrete positions."
    FOLLOWING = "Following", MOTION, "Uses an outside encoder as feedback."
    LEADING = "Leading", MOTION, "Emits its position for followers."
    IMAGEABLE = "Imageable", IMAGING, "Takes 2D frames."
    BINNABLE = "Binnable", IMAGING, "Combines sensor pixels."
    CAPTURING = "Capturing", IMAGING, "Produces a recorded data sample per capture."
    TRIGGERABLE = "Triggerable", TRIGGERING, "Starts on an edge."
    GATEABLE = "Gateable", TRIGGERING, "Integrates while a level is high."
    SYNCHRONIZABLE = "Synchronizable", TRIGGERING, "Locks its clock to a master."
    MARKING = "Marking", TRIGGERING, "Pulses at set encoder positions."
    PULSING = "Pulsing", TRIGGERING, "Makes pulse trains."
    STREAMABLE = "Streamable", STREAMING, "Pushes data without per-frame handshake."
    BUFFERABLE = "Bufferable", STREAMING, "Configurable internal buffer."
    COMPRESSIBLE = "Compressible", STREAMING, "Encodes outgoing data."
    RECORDING = "Recording", STREAMING, "Writes data to durable storage."
    COOLABLE = "Coolable", OPTICS_AND_ENVIRONMENT, "Thermal setpoint."
    PID_CONTROLLABLE = "PIDControllable", OPTICS_AND_ENVIRONMENT, "Exposes loop gains."
    SETTABLE = "Settable", OPTICS_AND_ENVIRONMENT, "Drives a continuous quantity to a setpoint."
    SHUTTERABLE = "Shutterable", OPTICS_AND_ENVIRONMENT, "Opens and closes."
    ATTENUABLE = "Attenuable", OPTICS_AND_ENVIRONMENT, "Reduces beam by a set factor."
    BENDABLE = "Bendable", OPTICS_AND_ENVIRONMENT, "Driven optical curvature."
    IDENTIFIABLE = "Identifiable", REPORTING, "Returns a hardware identity."
    REPORTABLE = "Reportable", REPORTING, "Returns health readings."
    CONSUMABLE = "Consumable", LIFECYCLE, "Passive tracked part that is swapped."

    @property
    def kind(self) -> AffordanceKind:
        """Return whether it is something done with the device, or about the part's own life."""
        return AffordanceKind.LIFECYCLE if self.group is LIFECYCLE else AffordanceKind.OPERATIONAL
