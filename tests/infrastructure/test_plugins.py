"""What a site's package offers is used by its name in the settings, and refused at boot where it cannot be."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from baton.application.conduct.actions import UnknownActionError, perform
from baton.application.settings import Settings
from baton.cli.doctor.examination import examine
from baton.domain.shared.citation import Citation
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.steering.steering import AskedDecide, Decide, DecideNotAvailableError, offered_deciders, refuse_unavailable
from baton.infrastructure.control.routes import configured_control
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.decide.configured import ConfiguredDeciders
from baton.infrastructure.minting import configured_minter
from baton.infrastructure.plugins import (
    KINDS,
    MINTERS,
    PluginUnusableError,
    installed_actions,
    load_named_plugins,
    plugin_objections,
)
from baton.infrastructure.wall_clock import WallClock
from tests.support.domain.searches import FOCUS, evidence
from tests.support.infrastructure.site_package import OFFERS, install_site_package

DECIDE: TypeAdapter[AskedDecide] = TypeAdapter(Decide)
USED: dict[str, Any] = {
    "control_routes": [{"prefix": "", "substrate": "constant"}],
    "decide_substrates": ["sobol", "stop"],
    "pid_minter": "handles",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers one of each."""
    install_site_package(tmp_path, monkeypatch)


def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, name: str, place: str) -> None:
    install_site_package(tmp_path, monkeypatch, offers={group: {name: place}})


def test_without_a_package_there_is_what_is_built_in() -> None:
    assert installed_actions().names == ["collect", "continuous", "discrete", "settle", "stream"]
    assert [kind.offers() for kind in KINDS] == [{}] * len(KINDS)
    with pytest.raises(UnknownActionError, match="bake here; there are collect, continuous"):
        installed_actions().body_of("bake")


@pytest.mark.usefixtures("package")
async def test_one_of_each_is_used_through_the_settings() -> None:
    settings = Settings(**USED)
    assert plugin_objections(settings) == []
    params = {"heater": "bl7:heater", "temperature": 120}
    baked = await perform(installed_actions(), "bake", params, Simulator({"bl7:heater": 20}), WallClock(), 5)
    assert baked == {"temperature": 120}
    assert (await configured_control(settings).read("bl7:x")).value == 7
    decide = DECIDE.validate_python({"substrate": "plugin", "name": "stop", "options": {"rationale": "Enough."}})
    offered = offered_deciders(settings.decide_substrates)
    refuse_unavailable(decide, evidence(FOCUS).objective, FOCUS, offered)
    decider = await ConfiguredDeciders(offered).decider(decide)
    assert (await decider.advise_next(evidence(FOCUS))).rationale == "Enough."
    minter = configured_minter(settings)
    assert minter is not None
    page = Citation(
        landing_page="https://bl7.example", resource_type="Instrument", title="x", publisher="y", publication_year=2026
    )
    assert (await minter.mint(ExternalIdScheme.HANDLE, "rotary", page)).value == "20.500.12345/rotary"


@pytest.mark.parametrize(
    ("group", "name"),
    [("baton.actions", "collect"), ("baton.control", "epics_ca"), ("baton.deciders", "sobol"), ("baton.minters", "none")],
)
def test_the_name_of_a_built_in_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, name: str
) -> None:
    offer(tmp_path, monkeypatch, group, name, "bl7_site.plugins:bake")
    (objection,) = plugin_objections(Settings())
    assert f"{name} is offered twice, by bl7_site.plugins:bake too; rename one." in objection


def test_two_packages_that_offer_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_site_package(tmp_path, monkeypatch)
    install_site_package(tmp_path, monkeypatch, name="bl8_site", offers={"baton.actions": OFFERS["baton.actions"]})
    assert [f"{sentence[:30]}" for sentence in plugin_objections(Settings())] == ["The action bake is offered twi"]


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("bl7_site.plugins:fry", "bake cannot be loaded from bl7_site.plugins:fry"),
        ("bl9_site:bake", "bake cannot be loaded from bl9_site:bake"),
        ("bl7_site.plugins:no_coroutine", "bake at bl7_site.plugins:no_coroutine is no async function"),
    ],
)
def test_an_action_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, sentence: str
) -> None:
    offer(tmp_path, monkeypatch, "baton.actions", "bake", place)
    with pytest.raises(PluginUnusableError, match=sentence):
        installed_actions()


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("bl7_site.plugins:NUMBER", "cannot be called"),
        ("bl7_site.plugins:Stop", "cannot be made: TypeError: .*options"),
        ("bl7_site.plugins:Constant", "lacks schemes, mint, tombstone, aclose"),
    ],
)
def test_a_factory_that_makes_nothing_of_use_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, sentence: str
) -> None:
    offer(tmp_path, monkeypatch, "baton.minters", "handles", place)
    with pytest.raises(PluginUnusableError, match=f"The minter handles at {place} {sentence}"):
        MINTERS.make("handles")


def test_a_setting_that_names_nothing_installed_is_refused_at_boot() -> None:
    objections = plugin_objections(Settings(**USED))
    assert [sentence.split(",")[0] for sentence in objections] == [
        "CONTROL_ROUTES names the control adapter constant",
        "DECIDE_SUBSTRATES names the decider stop",
        "PID_MINTER names the minter handles",
    ]
    assert all(sentence.endswith("correct the name, or install the package.") for sentence in objections)


async def test_a_decider_that_is_not_offered_or_cannot_be_made_is_a_refusal(
    package: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = DECIDE.validate_python({"substrate": "plugin", "name": "stop"})
    with pytest.raises(DecideNotAvailableError, match="stop is not offered here; choose one of caller"):
        refuse_unavailable(decide, evidence(FOCUS).objective, FOCUS, offered_deciders(()))
    with pytest.raises(DecideNotAvailableError, match="cannot be made: KeyError: 'rationale'") as refused:
        await ConfiguredDeciders(offered_deciders(["stop"])).decider(decide)
    assert (refused.value.reason, refused.value.facts) == ("not_offered", {"substrate": "stop"})


@pytest.mark.parametrize("used", USED)
def test_a_plugin_that_settings_name_and_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: str
) -> None:
    broken = {group: dict.fromkeys(points, "bl7_site.plugins:missing") for group, points in OFFERS.items()}
    install_site_package(tmp_path, monkeypatch, offers=broken)
    assert plugin_objections(Settings(**USED)) == []
    with pytest.raises(PluginUnusableError, match="cannot be loaded"):
        load_named_plugins(Settings(**{used: USED[used]}))


def test_a_worker_does_not_start_with_what_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    offer(tmp_path, monkeypatch, "baton.actions", "bake", "bl7_site.plugins:missing")
    settings = {"PYTHONPATH": str(tmp_path), "DATABASE_URL": database_url, "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    command = [sys.executable, "-m", "baton.cli", "worker"]
    ended = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "baton: The action bake cannot be loaded from bl7_site.plugins:missing" in ended.stderr


def test_the_doctor_lists_what_is_installed(
    tmp_path: Path, package: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PID_MINTER", "handles")
    assert examine("plugins", tmp_path / "nothing") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown == (
        "ok plugins Installed packages offer action bake of bl7-site 1.0; control adapter constant of bl7-site 1.0; "
        "decider stop of bl7-site 1.0; minter handles of bl7-site 1.0."
    )
    monkeypatch.setenv("PID_MINTER", "other")
    assert examine("plugins", tmp_path / "nothing") == 1
