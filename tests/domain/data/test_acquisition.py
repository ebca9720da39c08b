"""The birth of a dataset: which asset captured it, when, and under which run."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.data.acquisition import ACQUISITIONS, Acquisition, RecordAcquisition
from baton.domain.data.dataset import DiscardDataset
from baton.domain.equipment.asset_tree import DecommissionAsset
from tests.support.domain.assets import family, part, root
from tests.support.domain.datasets import data_world, run_with
from tests.support.domain.lifecycles.data import capture_fields
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return data_world()


@pytest.fixture
def fields(world: World) -> dict[str, Any]:
    return capture_fields(world)


def nested(levels: int) -> dict[str, Any]:
    """An object of so many levels, objects and lists in turn."""
    made: Any = "bottom"
    for level in range(levels - 1):
        made = [made] if level % 2 else {"inner": made}
    return {"outer": made}


def test_two_clocks_stay_apart(world: World, fields: dict[str, Any]) -> None:
    run, captured = run_with(world), START - timedelta(days=400)
    evidence = {"projection_count": 1500, "modes": ["step", None, True, 0.5]}
    given = {**fields, "captured_at": captured, "producing_run_id": run, "evidence": evidence, "settings": {"gain": 2}}
    id = world.create(RecordAcquisition(**given))
    [event] = world.streams["Acquisition", id]
    payload = json.loads(event.payload())
    assert payload == {
        "acquisition_id": str(id),
        **{name: str(fields[name]) for name in ("dataset_id", "producing_asset_id")},
        "producing_run_id": str(run),
        "captured_at": captured.isoformat().replace("+00:00", "Z"),
        "settings": {"gain": 2},
        "evidence": evidence,
        "recorded_by": str(OPERATOR),
        "occurred_at": payload["occurred_at"],
    }
    state: Acquisition = world.state(Acquisition, id)
    assert (state.captured_at, state.recorded_at) == (captured, event.occurred_at)
    assert world.members[ACQUISITIONS, str(fields["dataset_id"])] == {id}


def test_the_same_capture_may_be_recorded_again(world: World, fields: dict[str, Any]) -> None:
    assert world.create(RecordAcquisition(**fields)) != world.create(RecordAcquisition(**fields))


def test_neither_a_discarded_dataset_nor_a_scrapped_asset_stands_against_it(world: World, fields: dict[str, Any]) -> None:
    world.when(DiscardDataset(reason="wrong sample"), on=fields["dataset_id"])
    world.when(DecommissionAsset(), on=fields["producing_asset_id"])
    world.create(RecordAcquisition(**fields))


def test_what_it_refers_to_must_exist_in_the_order_it_is_given(world: World, fields: dict[str, Any]) -> None:
    missing: dict[str, Any] = {name: new_id() for name in ("dataset_id", "producing_asset_id", "producing_run_id")}
    missing |= {"captured_at": START + timedelta(days=1)}
    for name, code in {
        "dataset_id": "DatasetNotFoundError",
        "producing_asset_id": "AcquisitionAssetNotFoundError",
        "producing_run_id": "AcquisitionRunNotFoundError",
    }.items():
        with expect_refusal(code) as caught:
            world.create(RecordAcquisition(**missing))
        assert caught.value.facts == {"missing_ids": [str(missing[name])]}
        missing[name] = fields.get(name)
    with expect_refusal("InvalidAcquisitionCapturedAtError"):
        world.create(RecordAcquisition(**missing))


def test_an_instrument_is_at_most_a_minute_ahead_and_says_its_offset(world: World, fields: dict[str, Any]) -> None:
    soon = world.now + timedelta(seconds=1 + 60)  # The call is a second from now.
    world.copy().create(RecordAcquisition(**{**fields, "captured_at": soon}))
    with expect_refusal("InvalidAcquisitionCapturedAtError", "in_the_future"):
        world.create(RecordAcquisition(**{**fields, "captured_at": soon + timedelta(milliseconds=1)}))
    with pytest.raises(ValidationError):
        RecordAcquisition(**{**fields, "captured_at": "2026-07-01T08:00:00"})


@for_each("name", ["settings", "evidence"])
def test_particulars_are_plain_and_not_too_deep(name: str) -> None:
    world = data_world()
    fields = capture_fields(world)
    code = f"InvalidAcquisition{name.title()}Error"
    world.create(RecordAcquisition(**{**fields, name: nested(32)}))
    with expect_refusal(code, "too_deep"):
        world.create(RecordAcquisition(**{**fields, name: nested(33)}))
    with expect_refusal(code, "unwritable"):
        world.create(RecordAcquisition(**{**fields, name: {"note": "a\x00b"}}))


def test_only_an_asset_that_captures_has_captured_something(world: World, fields: dict[str, Any]) -> None:
    def asset(*family_ids: UUID) -> UUID:
        return part(world, root(world, name=str(new_id())), family_ids=family_ids)

    stage, camera = family(world, "Stage"), family(world, "Detector", None, "Capturing")
    for idle in (asset(), asset(stage)):
        with expect_refusal("AcquisitionCannotRecordWithoutCapturingError", "not_capturing"):
            world.create(RecordAcquisition(**{**fields, "producing_asset_id": idle}))
    world.create(RecordAcquisition(**{**fields, "producing_asset_id": asset(stage, camera)}))
