"""Values that several aggregates of equipment carry: drawings, owners, ports, identifiers."""

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated

from baton.domain.kernel import Event, Value
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text


class InvalidDrawingError(Invalid, context="equipment"):
    """A drawing needs a number that is not blank, and a revision that is not blank or none."""


class InvalidAssetOwnerError(Invalid, context="equipment"):
    """An owner's text is blank, its identifier stands without a type or the reverse, or two owners share a name."""


class InvalidAlternateIdentifierError(Invalid, context="equipment"):
    """An alternate identifier is blank or given twice."""


class InvalidAssetPortError(Invalid, context="equipment"):
    """A port needs a name and a signal type that are not blank."""


class InvalidAssetOverviewError(Invalid, context="equipment"):
    """A name or an address of the overview is blank, or two of its signals share a name."""


class DrawingSystem(StrEnum):
    ICMS = "ICMS"
    EDMS = "EDMS"
    DOI = "DOI"


class Drawing(Value):
    """A drawing in a document system; without a revision the latest one is meant."""

    system: DrawingSystem
    number: Annotated[str, Text(200, InvalidDrawingError, "drawing number")]
    revision: Annotated[str, Text(100, InvalidDrawingError, "drawing revision")] | None = None


class ExternalIdEvent(Event):
    """The issue of a persistent identifier."""

    external_id_scheme: ExternalIdScheme
    external_id: str


class AssignedExternalId(Value):
    """The persistent identifier that was issued."""

    external_id_scheme: ExternalIdScheme
    external_id: str


class AlternateIdentifierKind(StrEnum):
    EPICS_PV = "EPICS_PV"
    SERIAL_NUMBER = "SerialNumber"
    INVENTORY_NUMBER = "InventoryNumber"
    OTHER = "Other"


class AlternateIdentifier(Value):
    """Another name an asset goes by, in the control system or in an inventory."""

    kind: AlternateIdentifierKind
    """Where the other name is used: EPICS_PV for a process variable, or an inventory."""
    value: Annotated[str, Text(200, InvalidAlternateIdentifierError, "identifier value")]
    """The other name, such as the process variable bl7:rotary."""


class SignalLimits(Value):
    """The lowest and the highest value that a signal may be set to; None where there is no such limit."""

    low: float | None = None
    high: float | None = None

    def admits(self, value: float) -> bool:
        """Return whether a value lies within the limits, ends included."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


NO_LIMITS = SignalLimits()


def value_field(address: str) -> str:
    """Return the address of a signal with its field; an EPICS record without one stands for its VAL field."""
    return address if "." in address.rpartition(":")[2] else f"{address}.VAL"


class OverviewSignal(Value):
    """A signal that people watch at a beamline, by the name that they know it by."""

    name: Annotated[str, Text(60, InvalidAssetOverviewError, "name of a watched signal")]
    """What people call the signal, such as Ring current."""
    address: Annotated[str, Text(300, InvalidAssetOverviewError, "address of a watched signal")]
    """The signal, by its address in the control system."""


class Overview(Value):
    """What people watch at a beamline at any time: a few signals, and what a camera took last."""

    signals: tuple[OverviewSignal, ...] = ()
    """The signals that are shown, in their order."""
    camera: Annotated[str, Text(300, InvalidAssetOverviewError, "address of the camera")] | None = None
    """The camera whose latest picture is shown, by its address in the control system; null for none."""


NO_OVERVIEW = Overview()


class Owner(Value):
    """An institution that owns an asset; never a person."""

    name: Annotated[str, Text(255, InvalidAssetOwnerError, "owner name")]
    identifier: Annotated[str, Text(255, InvalidAssetOwnerError, "owner identifier")] | None = None
    identifier_type: Annotated[str, Text(64, InvalidAssetOwnerError, "owner identifier type")] | None = None


def check_owners(owners: Collection[Owner]) -> None:
    """Refuse an identifier without its type, a type without its identifier, and owners of the same name."""
    for owner in owners:
        if (owner.identifier is None) != (owner.identifier_type is None):
            detail = f"The identifier of {owner.name} and its type go together; give both or neither."
            raise InvalidAssetOwnerError(detail, reason="half_identifier")
    if len({owner.name for owner in owners}) < len(owners):
        raise InvalidAssetOwnerError("Two owners have the same name; name each owner once.", reason="duplicate")


class PortDirection(StrEnum):
    INPUT = "Input"
    OUTPUT = "Output"


class Port(Value):
    """A place where a signal enters or leaves an asset."""

    name: str
    direction: PortDirection
    """Whether the signal enters (Input) or leaves (Output)."""
    signal_type: str
