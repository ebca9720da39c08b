"""The physics of the beamline: a round bar of alloy in the beam, and what the camera sees of it. Lengths are in halves of
the camera's field of view, which ends at -1 and 1."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float64]
Picture = NDArray[np.uint16]

ROWS, COLUMNS = 24, 192  # the pixels of the camera
PIXEL = 0.010  # millimetres of the sample that one pixel shows
AXIS_AT = -0.23  # position of the hexapod, in millimetres, at which the rotation axis is in the middle of the picture
FOCUS_AT = 0.63  # the position of the camera, in millimetres, at which the picture is sharp
BLUR = 5.0  # pixels by which a picture is blurred for each millimetre that the camera is off
FULL_CURRENT = 100.0  # milliamperes in the storage ring after a refill
BRIGHTNESS = 1.5e6  # counts of a pixel in a second of full beam
DARK = 100.0
ABSORPTION = 1.4  # how strongly the sample absorbs


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


@dataclass
class Beamline:
    angle: float = 0.0
    hexapod: float = 0.0
    focus: float = -0.8
    sample_in: bool = True
    shutter_open: bool = False
    current: float = FULL_CURRENT

    def picture(self, exposure: float, generator: np.random.Generator) -> Picture:
        """Return what the camera sees in `exposure` seconds, with photon and readout noise."""
        light = np.zeros((ROWS, COLUMNS))
        if self.shutter_open:
            axis = (self.hexapod - AXIS_AT) / PIXEL / (COLUMNS / 2)
            passing = np.exp(-ABSORPTION * projection(self.angle, axis)) if self.sample_in else np.ones(COLUMNS)
            light = blur(passing * beam_profile(), BLUR * abs(self.focus - FOCUS_AT))
            light *= BRIGHTNESS * exposure * self.current / FULL_CURRENT
        counts = DARK + light + generator.normal(size=light.shape) * np.sqrt(light + 9)
        return np.clip(counts, 0, 65535).astype(np.uint16)


def positions(count: int) -> Image:
    return np.asarray((np.arange(count) - (count - 1) / 2) / (count / 2), dtype=np.float64)


def cross_section() -> Image:
    across = positions(COLUMNS)
    x, y = np.meshgrid(across, -across)
    density = np.zeros_like(x)
    for part in BAR:
        tilt = np.radians(part.tilt)
        along = (x - part.x) * np.cos(tilt) + (y - part.y) * np.sin(tilt)
        beside = (y - part.y) * np.cos(tilt) - (x - part.x) * np.sin(tilt)
        density[(along / part.a) ** 2 + (beside / part.b) ** 2 <= 1] += part.density
    return density


def projection(angle: float, axis: float) -> Image:
    """Return how much matter each pixel of a row looks through, with the bar turned by `angle` degrees about `axis`."""
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


def beam_profile() -> Image:
    """Return the beam itself, brighter in the middle and not quite even."""
    up, across = np.linspace(-1, 1, ROWS)[:, None], np.linspace(-1, 1, COLUMNS)[None, :]
    return np.exp(-0.6 * up**2 - 0.15 * across**2) * (1 + 0.04 * np.sin(37 * across))


def blur(light: Image, width: float) -> Image:
    if width < 0.05:
        return light
    rows, columns = light.shape
    padded = np.pad(light, ((rows, rows), (columns, columns)), mode="edge")
    up, across = np.fft.fftfreq(padded.shape[0])[:, None], np.fft.rfftfreq(padded.shape[1])[None, :]
    spread = np.exp(-2 * (np.pi * width) ** 2 * (up**2 + across**2))
    return np.fft.irfft2(np.fft.rfft2(padded) * spread, padded.shape)[rows : 2 * rows, columns : 2 * columns]


def sharpness(picture: Picture) -> float:
    """Return how much neighbouring columns differ after averaging over the rows; 0 without light."""
    row = picture.astype(float).mean(axis=0) - DARK
    level = row.mean()
    return 0.0 if level < DARK else float(np.mean(np.diff(row / level) ** 2) * 1e4)
