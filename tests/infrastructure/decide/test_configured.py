"""Which deciders a deployment has, and how the first one is had."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import TypeAdapter

from baton.domain.agent.language_model import ModelRef
from baton.domain.steering.steering import (
    AskedDecide,
    Decide,
    DecideNotAvailableError,
    DecideSubstrate,
    SteeringVerdict,
    offered_deciders,
)
from baton.infrastructure.decide.configured import ConfiguredDeciders, GridWalkDecider, LanguageModelDecider, SeededDecider
from baton.infrastructure.decide.optimizing import GaussianProcessDecider, SobolDecider, StagedDecider
from tests.support.domain.searches import FOCUS, evidence, run_search
from tests.support.infrastructure.canned_model import CannedModel
from tests.support.tables import for_each

DECIDE: TypeAdapter[AskedDecide] = TypeAdapter(Decide)
EVERYTHING = offered_deciders(DecideSubstrate)
MEASURE = {"verdict": "Measure", "next_point": {"focus": 0.5}}


def setup(substrate: str, **fields: Any) -> AskedDecide:
    return DECIDE.validate_python({"substrate": substrate, **fields})


@for_each(
    ("substrate", "made"),
    [
        ("in_memory", SeededDecider),
        ("grid_walk", GridWalkDecider),
        ("sobol", SobolDecider),
        ("botorch", GaussianProcessDecider),
        ("staged", StagedDecider),
        ("llm", LanguageModelDecider),
    ],
)
async def test_every_decider_that_is_asked_has_an_adapter(substrate: str, made: type) -> None:
    deciders = ConfiguredDeciders(EVERYTHING, (CannedModel(), ModelRef(provider="canned", model="m-1")))
    assert type(await deciders.decider(setup(substrate))) is made


@for_each("substrate", ["sobol", "botorch", "staged", "llm"])
async def test_what_a_deployment_does_not_offer_is_not_available(substrate: str) -> None:
    with pytest.raises(DecideNotAvailableError, match=f"{substrate} cannot be asked: it is not offered"):
        await ConfiguredDeciders(offered_deciders(())).decider(setup(substrate))


async def test_without_a_language_model_none_can_be_asked() -> None:
    with pytest.raises(DecideNotAvailableError, match="no language model is configured"):
        await ConfiguredDeciders(EVERYTHING).decider(setup("llm"))


async def test_a_decider_is_set_up_as_it_was_asked_for() -> None:
    decider = await ConfiguredDeciders(EVERYTHING).decider(setup("grid_walk", points_per_axis=3))
    found = await run_search(decider.advise_next, FOCUS, lambda _: 1.0, 10)
    assert [item.point["focus"] for item in found] == [-2, 0, 2]


async def test_advice_given_beforehand_is_replayed_by_iteration_and_then_it_stops() -> None:
    advice = [MEASURE, {**MEASURE, "next_point": {"focus": 1.5}}]
    decider = await ConfiguredDeciders(EVERYTHING).decider(setup("in_memory", advice=advice))
    answers = [await decider.advise_next(evidence(FOCUS, iteration_index=index)) for index in (1, 2, 3, 2)]
    assert [answer.next_point for answer in answers] == [{"focus": 0.5}, {"focus": 1.5}, None, {"focus": 1.5}]
    assert answers[2].verdict is SteeringVerdict.STOP


@pytest.mark.server
def test_numerical_libraries_are_loaded_where_needed_only_and_named_where_they_are_missing() -> None:
    program = (
        "import asyncio, sys\n"
        "from pydantic import TypeAdapter\n"
        "from baton.domain.steering.steering import Decide, DecideNotAvailableError, DecideSubstrate\n"
        "from baton.infrastructure.decide.configured import ConfiguredDeciders\n"
        "print([name for name in ('numpy', 'scipy') if name in sys.modules])\n"
        "sys.modules['scipy'] = sys.modules['numpy'] = None\n"
        "for substrate in ('sobol', 'botorch', 'staged'):\n"
        "    decide = TypeAdapter(Decide).validate_python({'substrate': substrate})\n"
        "    try:\n"
        "        asyncio.run(ConfiguredDeciders(DecideSubstrate).decider(decide))\n"
        "    except DecideNotAvailableError as error:\n"
        "        print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded, *refusals = run.stdout.splitlines()
    assert loaded == "[]"
    assert ["install baton-facility[optimize]" in refusal for refusal in refusals] == [True] * 3
