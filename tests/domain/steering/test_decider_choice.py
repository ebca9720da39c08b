"""How deciders are chosen and set up, and which are refused before anything starts."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from baton.domain.steering.steering import (
    DEFAULT_DECIDE,
    AskedDecide,
    Decide,
    DecideNotAvailableError,
    DecideSubstrate,
    SteeringObjective,
    offered_deciders,
    refuse_unavailable,
)
from tests.support.domain.searches import FOCUS, choices, evidence, interval, space
from tests.support.tables import for_each

DECIDE: TypeAdapter[Any] = TypeAdapter(Decide)
ASKED: TypeAdapter[Any] = TypeAdapter(AskedDecide)
MIXED = space(interval("focus", 0, 1), choices("filter", "Al", "Cu"))
BUILT_IN = [substrate for substrate in DecideSubstrate if substrate is not DecideSubstrate.PLUGIN]


def test_a_conduct_walks_a_grid_of_five_points_an_axis_unless_told_otherwise() -> None:
    assert DECIDE.dump_python(DEFAULT_DECIDE, mode="json") == {"substrate": "grid_walk", "points_per_axis": 5}


@for_each(
    ("substrate", "defaults"),
    [
        ("in_memory", {"advice": []}),
        ("grid_walk", {"points_per_axis": 5}),
        ("sobol", {}),
        ("botorch", {"min_observations": 5, "num_restarts": 10, "raw_samples": 256, "seed": 0}),
        ("staged", {"min_observations": 5, "num_restarts": 10, "raw_samples": 256, "seed": 0, "staged_threshold": 5}),
        ("llm", {}),
        ("caller", {"advice_timeout": 600}),
    ],
)
def test_every_decider_can_be_named_alone_and_is_kept_as_it_was_sent(substrate: str, defaults: dict[str, Any]) -> None:
    decide = DECIDE.validate_python({"substrate": substrate})
    assert DECIDE.dump_python(decide, mode="json") == {"substrate": substrate, **defaults}
    assert DECIDE.validate_json(DECIDE.dump_json(decide)) == decide


@for_each(
    "setup",
    [
        {},
        {"points_per_axis": 5},
        {"substrate": "simplex"},
        {"substrate": "grid_walk", "points_per_axis": 1},
        {"substrate": "grid_walk", "points_per_axis": 2.5},
        {"substrate": "grid_walk", "points_per_axis": True},
        {"substrate": "grid_walk", "points_per_axis": 10_001},
        {"substrate": "grid_walk", "advice_timeout": 5},
        {"substrate": "sobol", "scramble": True},
        {"substrate": "botorch", "min_observations": 1},
        {"substrate": "botorch", "raw_samples": 0},
        {"substrate": "botorch", "seed": -1},
        {"substrate": "staged", "staged_threshold": 4},
        {"substrate": "staged", "min_observations": 6},
        {"substrate": "in_memory", "advice": [{"verdict": "Pause"}]},
        {"substrate": "caller", "advice_timeout": 0},
        {"substrate": "caller", "advice_timeout": 86401},
        {"substrate": "caller", "advice_timeout": 1.5},
    ],
)
def test_a_setup_that_no_decider_has_is_refused(setup: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DECIDE.validate_python(setup)


@for_each("timeout", [1, 600, 86400])
def test_a_caller_may_take_a_second_or_a_day(timeout: int) -> None:
    assert DECIDE.validate_python({"substrate": "caller", "advice_timeout": timeout}).advice_timeout == timeout


@for_each("substrate", BUILT_IN)
def test_only_these_may_be_chosen_where_a_deployment_offers_nothing_more(substrate: DecideSubstrate) -> None:
    decide = DECIDE.validate_python({"substrate": substrate.value})
    objective = evidence(FOCUS).objective
    if substrate.value in ("in_memory", "grid_walk", "caller"):
        refuse_unavailable(decide, objective, FOCUS, offered_deciders(()))
        return
    with pytest.raises(DecideNotAvailableError, match="choose one of caller, grid_walk, in_memory") as refused:
        refuse_unavailable(decide, objective, FOCUS, offered_deciders(()))
    assert (refused.value.status, refused.value.reason) == (422, "not_offered")
    refuse_unavailable(decide, objective, FOCUS, offered_deciders([substrate]))


@for_each(
    ("substrate", "reason"),
    [
        *((name, None) for name in ("in_memory", "grid_walk", "llm", "caller")),
        *((name, "needs_bounds") for name in ("sobol", "botorch", "staged")),
    ],
)
def test_some_deciders_know_intervals_only(substrate: str, reason: str | None) -> None:
    assert _reason(substrate, evidence(MIXED).objective, MIXED) == reason


@for_each("kind", ["Minimize", "Maximize", "Satisfy", "Explore"])
@for_each("substrate", BUILT_IN)
def test_some_deciders_look_for_extrema_only(substrate: DecideSubstrate, kind: str) -> None:
    objective = evidence(FOCUS, kind=kind, target_value=1.0).objective
    unserved = substrate.value in ("botorch", "staged") and kind in ("Satisfy", "Explore")
    assert _reason(substrate.value, objective, FOCUS) == ("needs_extremum" if unserved else None)


def _reason(substrate: str, objective: SteeringObjective, within: Any) -> str | None:
    try:
        refuse_unavailable(
            DECIDE.validate_python({"substrate": substrate}), objective, within, offered_deciders(DecideSubstrate)
        )
    except DecideNotAvailableError as refused:
        return refused.reason
    return None
