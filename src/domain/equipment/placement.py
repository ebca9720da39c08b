"""Placements: where a thing sits in its parent frame, within which tolerances, and how that was surveyed."""

import math
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import ConfigDict, Field, Strict

from baton.domain.kernel import Value
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text
from baton.domain.shared.times import Instant


class ReferenceSurface(StrEnum):
    """The part of the thing that the placement locates."""

    THERMAL_FACE = "ThermalFace"
    OPTIC_CENTER = "OpticCenter"
    SHIELDING_FACE = "ShieldingFace"
    MOUNTING_FACE = "MountingFace"


class InvalidPlacementError(Invalid, context="equipment"):
    """Placements and surveys have finite numbers, no negative tolerance or residual, and no blank instrument."""


Length = Annotated[float, Strict(), Field(json_schema_extra={"unit": {"system": "udunits", "code": "mm"}})]
Angle = Annotated[float, Strict(), Field(json_schema_extra={"unit": {"system": "udunits", "code": "rad"}})]


class Placement(Value):
    """A pose in the parent frame; tolerances are symmetric, 0 means exact."""

    model_config = ConfigDict(allow_inf_nan=True)
    x: Length
    y: Length
    z: Length
    rx: Angle
    ry: Angle
    rz: Angle
    tol_x: Length
    tol_y: Length
    tol_z: Length
    tol_rx: Angle
    tol_ry: Angle
    tol_rz: Angle
    parent_frame_id: UUID
    reference_surface: ReferenceSurface


class Survey(Value):
    """How a placement was measured; it names the instrument, never a person."""

    model_config = ConfigDict(allow_inf_nan=True)
    instrument: Annotated[str, Text(200, InvalidPlacementError, "instrument")] | None = None
    surveyed_at: Instant | None = None
    residual: Length | None = None


def check_measured(*measured: Placement | Survey | None) -> None:
    """Refuse numbers that are not finite, and tolerances or residuals below zero."""
    for values in measured:
        for name, value in values or ():
            if not isinstance(value, float):
                continue
            if not math.isfinite(value):
                raise InvalidPlacementError(
                    f"{name} is not a finite number; give a finite one.", reason="not_finite", facts={"field": name}
                )
            if value < 0 and name.startswith(("tol_", "residual")):
                raise InvalidPlacementError(f"{name} is negative; give 0 or more.", reason="negative", facts={"field": name})
