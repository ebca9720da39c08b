"""What the camera sees is what a tomogram can be made of."""

import numpy as np
import pytest

from baton.demo.focus_agent import MOST_POINTS, next_advice
from baton.demo.optics import AXIS_AT, FOCUS_AT, PIXEL, Beamline, Image, cross_section, sharpness
from baton.demo.programs import absorption, axis_offset, likeness, reconstruct_slice

EXPOSURE = 0.02


def pictures(beamline: Beamline, count: int, chance: np.random.Generator) -> Image:
    return np.array([beamline.picture(EXPOSURE, chance) for _ in range(count)], float)


def reference(chance: np.random.Generator, **stands: float) -> tuple[Image, Image]:
    """Darks and flats."""
    beamline = Beamline(sample_in=False, **stands)
    darks = pictures(beamline, 5, chance)
    beamline.shutter_open = True
    return darks, pictures(beamline, 5, chance)


def reconstructed_slice(**stands: float) -> Image:
    chance = np.random.default_rng(3)
    darks, flats = reference(chance, **stands)
    beamline, angles = Beamline(shutter_open=True, **stands), np.linspace(0, 180, 90, endpoint=False)
    seen = []
    for beamline.angle in angles:
        seen.append(beamline.picture(EXPOSURE, chance))
    return reconstruct_slice(absorption(np.array(seen, float), darks, flats).mean(axis=1), angles)


def test_a_slice_of_an_aligned_beamline_is_like_the_sample() -> None:
    assert likeness(reconstructed_slice(hexapod=AXIS_AT, focus=FOCUS_AT), cross_section()) > 0.98


@pytest.mark.parametrize("off", [{"hexapod": AXIS_AT + 0.2, "focus": FOCUS_AT}, {"hexapod": AXIS_AT, "focus": FOCUS_AT - 2}])
def test_a_slice_of_one_that_is_not_is_not(off: dict[str, float]) -> None:
    assert likeness(reconstructed_slice(**off), cross_section()) < 0.9


@pytest.mark.parametrize("pixels", [-20.0, -3.0, 0.0, 0.4, 12.0])
def test_the_axis_is_found_where_it_is(pixels: float) -> None:
    chance = np.random.default_rng(5)
    stands = {"hexapod": AXIS_AT + pixels * PIXEL, "focus": FOCUS_AT}
    darks, flats = reference(chance, **stands)
    half_a_turn = [pictures(Beamline(angle=angle, shutter_open=True, **stands), 1, chance) for angle in (0, 180)]
    before, after = (absorption(seen, darks, flats)[0].mean(axis=0) for seen in half_a_turn)
    assert axis_offset(before, after) == pytest.approx(pixels, abs=0.25)


def test_there_is_no_light_without_beam_or_behind_a_closed_shutter() -> None:
    chance = np.random.default_rng(1)
    for dark in (Beamline(shutter_open=False), Beamline(shutter_open=True, current=0.0)):
        assert dark.picture(EXPOSURE, chance).max() < 130
    assert Beamline(shutter_open=True).picture(EXPOSURE, chance).max() > 10_000


@pytest.mark.parametrize("seed", range(5))
def test_the_agent_leaves_the_camera_in_focus(seed: int) -> None:
    chance, seen = np.random.default_rng(seed), []
    while (advice := next_advice(seen))["verdict"] == "Measure":
        point = advice["next_point"]
        beamline = Beamline(hexapod=AXIS_AT, shutter_open=True, focus=point["focus"])
        value = sharpness(beamline.picture(EXPOSURE, chance))
        seen.append({"point": point, "measurements": [{"name": "sharpness", "value": value}]})
    assert seen[-1]["point"]["focus"] == pytest.approx(FOCUS_AT, abs=0.05)
    assert len(seen) <= MOST_POINTS
