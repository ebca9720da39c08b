"""Steps in the words of equipment: by the names of what owns their signals, with the units that are known."""

from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter

from baton.domain.equipment.signals import signal_identifiers
from baton.domain.equipment.values import AlternateIdentifier, AlternateIdentifierKind
from baton.domain.recipe.steps import RecipeStep
from baton.domain.step.step_words import addresses_in, name_of_signal, step_words
from tests.support.tables import for_each
from tests.support.workflows.step_json import capture, check, setpoint

STEP: TypeAdapter[Any] = TypeAdapter(RecipeStep)
NAMES = {"bl7:rot": "Rotation stage", "bl7:door": "Beamline door", "bl7:cam1": "Camera"}
EXPOSE = {"kind": "action", "name": "collect", "params": {"detector": "bl7:cam1", "dwell": 0.5}}


@for_each(
    ("step", "unit", "words"),
    [
        (setpoint("bl7:rot", 108), "deg", "Rotation stage to 108°"),
        (setpoint("bl7:rot", 1.5, unit="mm", verify=True), "deg", "Rotation stage to 1.5 mm and read it back"),
        (setpoint("x:y", 3), None, "Set x:y to 3"),
        (setpoint("bl7:rot", {"__binding__": "start"}), None, "Rotation stage to the parameter start"),
        (check("bl7:door", 1, timeout=600), None, "Wait until Beamline door is 1, 10 min at most"),
        (check("bl7:rot", 3, 0.1), "um", "Check that Rotation stage is 3 ± 0.1 µm"),
        (capture("bl7:rot", "angle"), None, "Read Rotation stage as angle"),
        (EXPOSE, None, "Do collect with detector Camera, dwell 0.5"),
        ({"kind": "compute", "command": ["focus", "-v"], "capture_name": "best"}, None, "Run focus -v for best"),
    ],
)
def test_a_step_is_told_in_the_words_of_its_equipment(step: dict[str, Any], unit: str | None, words: str) -> None:
    assert step_words(STEP.validate_python(step), NAMES, unit) == words


def test_the_addresses_of_steps_and_those_that_actions_are_given_are_asked_about() -> None:
    steps = [STEP.validate_python(one) for one in (setpoint("bl7:rot", 1), EXPOSE)]
    assert addresses_in(steps) == {"bl7:rot", "bl7:cam1"}


class Owner:
    """An asset as far as its signals have names."""

    def __init__(self, name: str, *values: str) -> None:
        self.id, self.name = uuid4(), name
        self.alternate_identifiers = tuple(
            AlternateIdentifier(kind=AlternateIdentifierKind.EPICS_PV, value=one) for one in values
        )


@for_each(
    ("address", "name"),
    [("bl7:rot", "Stage"), ("bl7:rot.VAL", "Stage"), ("bl7:rot.RBV", "Stage RBV"), ("bl7:cam:Gain", "Stage Gain")],
)
def test_a_signal_is_called_like_its_owner_and_one_of_several_by_the_rest_of_its_address(address: str, name: str) -> None:
    owner: Any = Owner("Stage", "bl7:rot", "bl7:cam:")
    assert signal_identifiers(owner.alternate_identifiers) == ["bl7:cam:", "bl7:rot"]
    assert name_of_signal(address, (owner,)) == name
