"""From pictures to a slice: what is in the beam, where the rotation axis stands, and what the sample looks like inside."""

import numpy as np

from baton.demo.phantom import Image, positions

LEAST = 1e-3
"""The least part of the beam that counts as seen."""


def absorption(pictures: Image, darks: Image, flats: Image) -> Image:
    """How much of the beam the sample took, for each picture: the logarithm of what flats show over what pictures do."""
    dark = darks.mean(axis=0)
    beam = np.clip(flats.mean(axis=0) - dark, 1, None)
    return -np.log(np.clip((pictures - dark) / beam, LEAST, None))


def axis_offset(before: Image, after: Image) -> float:
    """How many pixels the rotation axis is off the middle, from two shadows half a turn apart.

    Half a turn mirrors a shadow at the axis; so the second one, mirrored at the middle, is the first one shifted by
    twice the offset.
    """
    mirrored = after[::-1]
    size = 2 * len(before)
    spectrum = np.fft.rfft(before, size) * np.conj(np.fft.rfft(mirrored, size))
    likeness = np.fft.irfft(spectrum, size)
    best = int(np.argmax(likeness))
    low, top, high = (likeness[(best + step) % size] for step in (-1, 0, 1))
    between = 0.5 * (low - high) / (low - 2 * top + high)
    shift = best - size if best > size // 2 else best
    return float(shift + between) / 2


def slice_of(shadows: Image, angles: Image) -> Image:
    """The sample cut across, by filtered back projection; each shadow has the rotation axis in its middle."""
    count = shadows.shape[1]
    across = positions(count)
    x, y = np.meshgrid(across, -across)
    density = np.zeros((count, count))
    for shadow, angle in zip(sharpened(shadows), np.radians(angles), strict=True):
        density += np.interp(x * np.cos(angle) + y * np.sin(angle), across, shadow)
    density *= np.pi / len(angles)
    density[x**2 + y**2 > 1] = 0
    return density


def sharpened(shadows: Image) -> Image:
    """Shadows with each frequency weighed by itself, and the highest ones, which are mostly noise, let down gently."""
    count = shadows.shape[1]
    size = 2 * count
    frequencies = np.fft.rfftfreq(size, 2 / count)
    window = np.cos(np.pi * np.linspace(0, 0.5, len(frequencies)))
    return np.fft.irfft(np.fft.rfft(shadows, size, axis=1) * frequencies * window, size, axis=1)[:, :count]


def likeness(one: Image, other: Image) -> float:
    """How alike two pictures are, from -1 to 1."""
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])
