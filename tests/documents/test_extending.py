"""What `docs/extending.md` shows is run: a site's package is installed from its blocks."""

import importlib
import inspect
import tomllib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from baton.application.conduct.actions import ActionCall, FindableAction, InvalidActionParametersError, perform
from baton.application.control import ControlNotConnectedError, ControlTimeoutError, ControlWriteRejectedError
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.infrastructure.control.routes import configured_control
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.plugins import installed_actions, plugin_objections
from tests.infrastructure.control import test_control_contract as control_contract
from tests.support.documents.fenced_blocks import code_of
from tests.support.documents.line_controller import LineController
from tests.support.fast_clock import SimulatedTime
from tests.support.infrastructure.control_plants import WiredPlant
from tests.support.infrastructure.site_package import install_site_package
from tests.support.workflows.conduct_stack import open_conduct_stack
from tests.support.workflows.step_json import capture, setpoint, steered_value

BLOCKS = code_of(Path("docs/extending.md"))
MODULES = {
    "An action": "actions",
    "An action that can be found again": "kiln",
    "A control adapter": "control",
    "A decider": "deciders",
    "A minter": "minters",
}


def test_every_block_is_run_below() -> None:
    counted = {heading: len(blocks) for heading, blocks in BLOCKS.items()}
    assert counted == {"A package": 2, **dict.fromkeys(MODULES, 1), "Checking your plugins": 1}


def test_a_site_needs_baton_plugin_and_the_contracts_only() -> None:
    imported = {
        line.split()[1]
        for blocks in BLOCKS.values()
        for block in blocks
        for line in block.splitlines()
        if line.startswith(("from baton", "import baton"))
    }
    assert imported == {"baton.plugin", "baton.testing.contracts"}


def test_everything_that_the_surface_lists_is_there() -> None:
    surface = importlib.import_module("baton.plugin")
    assert all(hasattr(surface, name) for name in surface.__all__)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, ModuleType]:
    """The package of the page, installed; its modules by name."""
    groups = tomllib.loads(BLOCKS["A package"][0])["project"]["entry-points"]
    sources = {name: BLOCKS[heading][0] for heading, name in MODULES.items()}
    install_site_package(tmp_path, monkeypatch, "bl7_baton", sources, groups)
    return {name: importlib.import_module(f"bl7_baton.{name}") for name in sources}


async def test_the_findable_action_is_one(package: Mapping[str, ModuleType]) -> None:
    class Kiln:
        firings: ClassVar[dict[str, float]] = {}

        def begin(self, key: str, temperature: float) -> str:
            self.firings[key] = temperature
            return key

        def knows(self, key: str) -> bool:
            return key in self.firings

        def is_done(self, key: str) -> bool:
            return True

        def end(self, key: str) -> None:
            del self.firings[key]

    fire = package["kiln"].Fire(Kiln())
    call = ActionCall(key=uuid4(), params={"temperature": 1200}, control=Simulator(), time=SimulatedTime())
    assert isinstance(fire, FindableAction)
    assert await fire.find(call) is None
    job_id = await fire.submit(call)
    assert (await fire.find(call), (await fire.collect(call, job_id)).data) == (job_id, {"fired": True})
    await fire.stop(call, job_id)
    assert not Kiln.firings


@pytest.fixture
async def controller(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LineController]:
    """The controller that the page's adapter speaks to, where its environment says."""
    async with LineController.open_controller() as controller:
        monkeypatch.setenv("BL7_CONTROLLER_HOST", "127.0.0.1")
        monkeypatch.setenv("BL7_CONTROLLER_PORT", str(controller.port))
        yield controller


def test_the_settings_of_the_page_name_what_the_package_offers(
    package: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in BLOCKS["A package"][1].splitlines():
        name, _, value = line.partition("=")
        monkeypatch.setenv(name, value.strip("'"))
    assert plugin_objections(Settings()) == []


async def test_a_package_offers_the_action_and_the_plant_is_baked(package: Mapping[str, ModuleType]) -> None:
    actions, time = installed_actions(), SimulatedTime()
    plant = Simulator({"bl7:heater": 20}, time=time)
    params = {"heater": "bl7:heater", "temperature": 120}
    assert await perform(actions, "bake", params, plant, time, 7200) == {"temperature": 120}
    assert time.elapsed_seconds >= 3600
    assert plant.writes["bl7:heater"] == 2
    assert (await plant.read("bl7:heater")).value == 20
    with pytest.raises(InvalidActionParametersError, match="up to 200"):
        await perform(actions, "bake", {**params, "temperature": 900}, plant, time, 7200)


@pytest.fixture
async def wired_plant(package: Mapping[str, ModuleType], controller: LineController) -> WiredPlant:
    """The control adapter of the page, and a controller that speaks its language."""
    control = package["control"].line_control()
    return WiredPlant(control, control, controller, tells_silence=False, counts=False)


KEPT_PROMISES = [
    (control_contract.TestReading, "test_a_time_the_source_does_not_give_is_not_invented"),
    (control_contract.TestReading, "test_an_unknown_address_is_not_connected"),
    (control_contract.TestReading, "test_a_lost_signal_has_no_value_any_more"),
    (control_contract.TestReading, "test_a_blank_address_is_malformed"),
    (control_contract.TestWriting, "test_what_was_written_is_read"),
    (control_contract.TestWriting, "test_an_unconfirmed_write_arrives_too"),
    (control_contract.TestWriting, "test_a_signal_that_is_not_there_cannot_be_written"),
    (control_contract.TestWriting, "test_a_lost_signal_cannot_be_written"),
    (control_contract.TestWriting, "test_those_who_follow_hear_what_was_written"),
    (control_contract.TestFences, "test_a_write_whose_fence_is_closed_sends_nothing"),
    (control_contract.TestFences, "test_it_is_asked_once_for_a_write_that_arrives"),
    (control_contract.TestFollowing, "test_the_present_value_comes_first_and_then_the_changes"),
    (control_contract.TestFollowing, "test_an_unknown_address_raises_at_the_first_item"),
    (control_contract.TestFollowing, "test_a_disconnect_raises_and_is_never_a_silent_pause"),
    (control_contract.TestFollowing, "test_a_signal_that_is_back_can_be_followed_again"),
    (control_contract.TestFollowing, "test_everybody_who_follows_hears_everything"),
    (control_contract.TestFollowing, "test_signals_do_not_touch_each_other"),
    (control_contract.TestClosing, "test_closing_may_be_repeated"),
]
"""What the page's adapter keeps of our own contract; it polls, so what comes and goes between two polls is lost."""


@pytest.mark.parametrize(("promises", "name"), KEPT_PROMISES, ids=lambda part: getattr(part, "__name__", part))
async def test_the_control_adapter_keeps_promises_of_the_port(
    wired_plant: WiredPlant, promises: type[Any], name: str
) -> None:
    promise = getattr(promises(), name)
    known = {
        "control": wired_plant.control,
        "impatient_control": wired_plant.impatient,
        "plant": wired_plant.plant,
        "wired_plant": wired_plant,
        "signal": wired_plant.signal,
        "other_signal": wired_plant.other_signal,
    }
    for case in cases_of(promise):
        given = {
            parameter: value for parameter, value in known.items() if parameter in inspect.signature(promise).parameters
        }
        await promise(**given, **case)


def cases_of(promise: Any) -> list[Mapping[str, Any]]:
    """Return the values that a test of the contract is parametrized by."""
    for mark in getattr(promise, "pytestmark", ()):
        names, cases = mark.args
        if isinstance(names, str):
            return [{names: case} for case in cases]
        return [dict(zip(names, case, strict=True)) for case in cases]
    return [{}]


async def test_the_control_adapter_serves_a_route(package: Mapping[str, ModuleType], controller: LineController) -> None:
    routed = configured_control(Settings(control_routes=[{"prefix": "bl7:", "substrate": "bl7_lines"}]))
    controller.offer("bl7:m1.RBV", 2.5)
    assert (await routed.read("bl7:m1.RBV")).value == 2.5
    with pytest.raises(ControlWriteRejectedError, match="it is a readback"):
        await routed.write("bl7:m1.RBV", 3)


async def test_the_control_adapter_tells_a_controller_that_is_gone_from_one_that_is_slow(wired_plant: WiredPlant) -> None:
    shown = type(wired_plant.control)
    with pytest.raises(ControlNotConnectedError, match="does not answer"):
        await shown("127.0.0.1", 1).read("bl7:m1")
    with pytest.raises(ControlTimeoutError, match="within 0 s"):
        await wired_plant.control.write("bl7:m1", 1, timeout=0)


async def test_the_plugins_keep_the_contracts(package: Mapping[str, ModuleType], controller: LineController) -> None:
    controller.offer("bl7:test:ao", 0.0)
    names: dict[str, Any] = {}
    exec(BLOCKS["Checking your plugins"][0], names)
    await names["check_plugins"]()


async def test_a_conduct_is_steered_by_the_decider_of_the_package(
    package: Mapping[str, ModuleType], database_url: str, temporal: EmbeddedTemporal
) -> None:
    search = ConductUntilAdvised(
        objective={"kind": "Maximize", "target_measurement_name": "sharpness"},
        space={"axes": [{"name": "focus", "lower": -2.0, "upper": 4.0}]},
        objective_capture_name="sharpness",
        decide={"substrate": "plugin", "name": "centre", "options": {"rationale": "Enough."}},
        wait=60,
    )
    steps = [setpoint("a", steered_value("focus")), capture("a", "sharpness")]
    settings = {"simulated_signals": {"a": 0.0}, "decide_substrates": ["centre"]}
    async with open_conduct_stack(database_url, temporal.address, **settings) as stage:
        result = await stage.conduct(search, await stage.register_from_recipe(steps))
    assert result["succeeded"], result
    assert stage.control.writes == [("a", -2.0), ("a", 1.0)]
