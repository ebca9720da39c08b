"""Actions by name: the built-in ones, and those that a site's packages offer."""

from pathlib import Path

import pytest

from baton.application.conduct.actions import UnknownActionError, perform
from baton.infrastructure.actions.registry import ActionUnusableError, installed_actions
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.wall_clock import WallClock
from tests.infrastructure.actions.packages import installed

BAKE = """
async def bake(control, time, params):
    await control.write(params["heater"], params["temperature"])
    return {"temperature": (await control.read(params["heater"])).value}

def no_coroutine(control, time, params):
    return {}
"""


def test_four_actions_are_built_in() -> None:
    assert installed_actions().names == ["collect", "continuous", "discrete", "stream"]


def test_an_unknown_action_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownActionError, match="bake here; there are collect, continuous"):
        installed_actions().body_of("bake")


async def test_an_installed_package_adds_actions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, BAKE, "bake = bl7_actions:bake")
    actions = installed_actions()
    assert actions.names == ["bake", "collect", "continuous", "discrete", "stream"]
    params = {"heater": "bl7:heater", "temperature": 120}
    assert await perform(actions, "bake", params, Simulator({"bl7:heater": 20}), WallClock(), 5) == {"temperature": 120}


@pytest.mark.parametrize(
    ("offer", "sentence"),
    [
        ("collect = bl7_actions:bake", "collect is offered twice, by bl7_actions:bake too"),
        ("bake = bl7_actions:fry", "bake cannot be loaded from bl7_actions:fry"),
        ("bake = bl9_actions:bake", "bake cannot be loaded from bl9_actions:bake"),
        ("bake = bl7_actions:no_coroutine", "bake at bl7_actions:no_coroutine is no async function"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offer: str, sentence: str) -> None:
    installed(tmp_path, monkeypatch, BAKE, offer)
    with pytest.raises(ActionUnusableError, match=sentence):
        installed_actions()
