"""The beamline as physics: what the camera sees, given how everything stands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baton.demo.phantom import COLUMNS, ROWS, Image, shadow

Picture = NDArray[np.uint16]

PIXEL = 0.010
"""Millimetres of the sample that one pixel shows."""
AXIS_AT = -0.23
"""Where the hexapod must stand, in millimetres, for the rotation axis to be in the middle of the picture."""
FOCUS_AT = 0.63
"""Where the camera must stand, in millimetres, for the picture to be sharp."""
BLUR = 5.0
"""Pixels by which a picture is blurred for each millimetre that the camera is off."""
FULL_CURRENT = 100.0
"""Milliamperes in the storage ring after a refill."""
BRIGHTNESS = 1.5e6
"""Counts of a pixel in a second of full beam."""
DARK = 100.0
ABSORBING = 1.4
"""How strongly the sample absorbs."""


@dataclass
class Beamline:
    """How everything stands; the physics follow."""

    angle: float = 0.0
    hexapod: float = 0.0
    focus: float = -0.8
    sample_in: bool = True
    shutter_open: bool = False
    current: float = FULL_CURRENT

    def picture(self, exposure: float, chance: np.random.Generator) -> Picture:
        """What the camera sees in so many seconds, with the noise of light and of reading it out."""
        light = np.zeros((ROWS, COLUMNS))
        if self.shutter_open:
            light = blurred(self._through() * profile(), BLUR * abs(self.focus - FOCUS_AT))
            light *= BRIGHTNESS * exposure * self.current / FULL_CURRENT
        counts = DARK + light + chance.normal(size=light.shape) * np.sqrt(light + 9)
        return np.clip(counts, 0, 65535).astype(np.uint16)

    def _through(self) -> Image:
        """How much of the beam reaches each pixel of a row."""
        if not self.sample_in:
            return np.ones(COLUMNS)
        axis = (self.hexapod - AXIS_AT) / PIXEL / (COLUMNS / 2)
        return np.exp(-ABSORBING * shadow(self.angle, axis))


def profile() -> Image:
    """The beam itself, brighter in the middle and not quite even."""
    up, across = np.linspace(-1, 1, ROWS)[:, None], np.linspace(-1, 1, COLUMNS)[None, :]
    return np.exp(-0.6 * up**2 - 0.15 * across**2) * (1 + 0.04 * np.sin(37 * across))


def blurred(light: Image, width: float) -> Image:
    """A picture out of focus by so many pixels."""
    if width < 0.05:
        return light
    rows, columns = light.shape
    padded = np.pad(light, ((rows, rows), (columns, columns)), mode="edge")
    up, across = np.fft.fftfreq(padded.shape[0])[:, None], np.fft.rfftfreq(padded.shape[1])[None, :]
    spread = np.exp(-2 * (np.pi * width) ** 2 * (up**2 + across**2))
    spectrum = np.fft.rfft2(padded) * spread
    return np.fft.irfft2(spectrum, padded.shape)[rows : 2 * rows, columns : 2 * columns]


def sharpness(picture: Picture) -> float:
    """How much neighbouring pixels differ, after the noise of single ones is averaged away; no light, no sharpness."""
    row = picture.astype(float).mean(axis=0) - DARK
    level = row.mean()
    return 0.0 if level < DARK else float(np.mean(np.diff(row / level) ** 2) * 1e4)
