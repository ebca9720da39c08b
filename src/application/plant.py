"""The settings of the plant: which control system serves which signals, what is simulated, what is monitored."""

from enum import StrEnum
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from baton.domain.shared.identifiers import InvalidFacilityCodeError, check_facility_code


def _facility_code(code: str) -> str:
    try:
        check_facility_code(code)
    except InvalidFacilityCodeError as refusal:
        raise ValueError(refusal.detail) from refusal
    return code


SignalAddress = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
MonitoredName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
FacilityCode = Annotated[str, AfterValidator(_facility_code)]
SignalValue = bool | int | float | str
PluginName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]  # by which a package offers a plugin


class Substrate(StrEnum):
    """The control systems that have a built-in adapter."""

    IN_MEMORY = "in_memory"
    EPICS_CA = "epics_ca"
    EPICS_PVA = "epics_pva"
    OPHYD = "ophyd"
    TANGO = "tango"


class ControlRoute(BaseModel):
    """The control system that serves every address with this prefix: a built-in one, or that of an installed package."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    prefix: Annotated[str, Field(max_length=200)]
    substrate: Annotated[Substrate | PluginName, Field(union_mode="left_to_right")]
    simulated: bool = False  # declared, never inferred
    read_only: bool = False


SIMULATOR_ONLY = (ControlRoute(prefix="", substrate=Substrate.IN_MEMORY, simulated=True),)  # Where CONTROL_ROUTES is empty.


class SimulatedComponent(BaseModel):
    """A part of a simulated plant, at its address."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    address: SignalAddress


class SimulatedMeasurement(SimulatedComponent):
    """A part that reads a number, which scatters by `noise`, its standard deviation."""

    noise: Annotated[float, Field(ge=0)] = 0
    units: str | None = None


class SimulatedSignal(SimulatedMeasurement):
    """A signal that keeps what is written to it; with labels, a choice among them."""

    kind: Literal["signal"] = "signal"
    value: SignalValue
    labels: tuple[str, ...] = ()
    read_only: bool = False

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.labels and self.value not in self.labels:
            raise ValueError("give a value that is one of the labels")
        if self.noise and not (isinstance(self.value, int | float) and not isinstance(self.value, bool)):
            raise ValueError("noise is for numbers; give a number, or leave it out")
        return self


class SimulatedMotor(SimulatedMeasurement):
    """An axis that takes time: written at its address, read back at `readback`, with the fields of a motor record."""

    kind: Literal["motor"] = "motor"
    readback: SignalAddress | None = None  # where the position is read; unset, at the address with `.RBV`
    position: float = 0
    velocity: Annotated[float, Field(gt=0)] = 1
    lower: float | None = None
    upper: float | None = None


class SimulatedDetector(SimulatedComponent):
    """A camera with the signals of areaDetector, and a file writer beside it."""

    kind: Literal["detector"] = "detector"
    readout: Annotated[float, Field(ge=0)] = 0  # seconds that each image takes beyond its exposure
    directory: str = "/tmp"  # where its files are said to be


class SimulatedPeak(SimulatedMeasurement):
    """A signal that is highest where other signals have these values, and falls off around them."""

    kind: Literal["peak"] = "peak"
    centres: Annotated[dict[SignalAddress, float], Field(min_length=1)]
    width: Annotated[float, Field(gt=0)] = 1
    height: float = 1
    background: float = 0


class SimulatedPlane(SimulatedMeasurement):
    """A signal that rises in proportion to other signals."""

    kind: Literal["plane"] = "plane"
    slopes: Annotated[dict[SignalAddress, float], Field(min_length=1)]
    offset: float = 0


SimulatedDevice = Annotated[
    SimulatedSignal | SimulatedMotor | SimulatedDetector | SimulatedPeak | SimulatedPlane, Field(discriminator="kind")
]


class ReadingRule(BaseModel):
    """The status a signal stands for while it reads one of `values`, or a number below and above these bounds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    status: Literal["Degraded", "Unavailable", "Recovering"]
    values: tuple[SignalValue, ...] = ()
    below: float | None = None
    above: float | None = None

    @model_validator(mode="after")
    def _one_test(self) -> Self:
        if bool(self.values) == (self.below is not None or self.above is not None):
            raise ValueError("give either values, or below or above or both of these")
        return self


class MonitoredSupply(BaseModel):
    """A supply by its address, its signal, and the rules of its readings, of which the first that fits counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: MonitoredName
    kind: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=50)]
    signal: SignalAddress
    readings: Annotated[tuple[ReadingRule, ...], Field(min_length=1)]
    facility_code: FacilityCode | None = None
    containing_asset_id: UUID | None = None

    @property
    def code(self) -> str:
        """The key of this supply among the configured ones."""
        address = (self.facility_code, self.containing_asset_id, self.kind, self.name)
        return "/".join(str(part) for part in address if part is not None)
