"""What lies in the beam: a round bar of alloy with pores and inclusions.

Lengths are in halves of the camera's field of view, so that the rotation axis is at 0 and the field ends at -1 and 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float64]

ROWS, COLUMNS = 24, 192
"""The pixels of the camera."""


@dataclass(frozen=True)
class Ellipse:
    """A region with a centre, half axes, a tilt in degrees, and how much denser it is than what surrounds it."""

    x: float
    y: float
    a: float
    b: float
    tilt: float
    density: float


BAR = (
    Ellipse(0.0, 0.0, 0.68, 0.68, 0, 1.0),
    Ellipse(0.0, 0.0, 0.60, 0.60, 0, -0.35),
    Ellipse(-0.22, 0.18, 0.20, 0.11, 35, -0.55),
    Ellipse(0.27, 0.12, 0.09, 0.23, -20, -0.45),
    Ellipse(0.05, -0.30, 0.24, 0.10, 10, 0.45),
    Ellipse(-0.34, -0.18, 0.07, 0.07, 0, 0.80),
    Ellipse(0.33, -0.25, 0.05, 0.05, 0, 0.95),
    Ellipse(0.06, 0.40, 0.05, 0.05, 0, -0.60),
    Ellipse(-0.05, 0.02, 0.035, 0.035, 0, 0.90),
    Ellipse(0.14, 0.02, 0.025, 0.025, 0, -0.60),
)
"""The bar, its core, two pores, a band, and grains and holes of all sizes."""


def positions(count: int) -> Image:
    """Where the pixels of a row are."""
    return (np.arange(count) - (count - 1) / 2) / (count / 2)


def cut() -> Image:
    """The bar cut across, as a perfect tomogram would show it."""
    across = positions(COLUMNS)
    x, y = np.meshgrid(across, -across)
    density = np.zeros_like(x)
    for part in BAR:
        tilt = np.radians(part.tilt)
        along = (x - part.x) * np.cos(tilt) + (y - part.y) * np.sin(tilt)
        beside = (y - part.y) * np.cos(tilt) - (x - part.x) * np.sin(tilt)
        density[(along / part.a) ** 2 + (beside / part.b) ** 2 <= 1] += part.density
    return density


def shadow(angle: float, axis: float) -> Image:
    """How much matter each pixel of a row looks through, with the bar turned by so many degrees about an axis at `axis`."""
    turned = np.radians(angle)
    across = positions(COLUMNS) - axis
    matter = np.zeros(COLUMNS)
    for part in BAR:
        leaning = turned - np.radians(part.tilt)
        reach = (part.a * np.cos(leaning)) ** 2 + (part.b * np.sin(leaning)) ** 2
        beside = across - (part.x * np.cos(turned) + part.y * np.sin(turned))
        chord = np.sqrt(np.clip(reach - beside**2, 0, None))
        matter += 2 * part.density * part.a * part.b * chord / reach
    return matter
