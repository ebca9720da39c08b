"""Two runs compared over REST: what was different first, and what cannot be compared."""

from uuid import uuid4

import pytest

from tests.support.api.data_products import completed_run, revisions_of_a_centre
from tests.support.api.rest_beamline import Beamline, beamline, create_plan
from tests.support.service import Api


@pytest.fixture
async def line(api: Api) -> Beamline:
    return await beamline(api)


async def compare_run(line: Beamline, run_id: str, **asked: str) -> dict[str, object]:
    position = await line.api.runtime.store.last_position()
    answer = await line.api.get(f"/runs/{run_id}/compare", min_position=position, **asked)
    assert answer.status_code == 200, answer.text
    told: dict[str, object] = answer.json()
    return told


async def test_a_run_is_compared_with_the_last_that_completed(line: Beamline) -> None:
    _, [old, new] = await revisions_of_a_centre(line.api, 2)
    await completed_run(line, name="First", pinned_calibration_ids=[old])
    last = await completed_run(line, name="Second", pinned_calibration_ids=[old])
    changed = {"override_parameters": {"exposure": 0.4}, "pinned_calibration_ids": [new]}
    run_id = await line.start_run(name="Third", **changed)
    told = await compare_run(line, run_id)
    assert (told["with_run_id"], told["with_name"], told["remark"]) == (last, "Second", None)
    assert [(row["aspect"], row["this"], row["that"]) for row in told["rows"]] == [  # type: ignore[attr-defined]
        ("parameter", 0.4, 0.1),
        ("calibration", 1025.5, 1024.5),
    ]


async def test_twenty_runs_say_what_is_usual(line: Beamline) -> None:
    for number in range(5):
        await completed_run(line, name=f"Scan {number}")
    run_id = await line.start_run(override_parameters={"energy": 31})
    told = await compare_run(line, run_id, baseline="completed_20")
    [row] = told["rows"]  # type: ignore[misc]
    assert (told["usual_count"], row["path"], row["usual"]) == (5, "energy", 25)
    assert row["sentence"] == "The parameter energy is 31, where 25 is usual."


async def test_runs_of_different_plans_are_compared_as_far_as_they_can_be(line: Beamline) -> None:
    other_plan = await create_plan(line.api, line.rotary_id)
    this = await line.start_run()
    other = await line.start_run(plan_id=other_plan.plan_id)
    told = await compare_run(line, this, with_run_id=other)
    assert "different plans" in str(told["remark"])
    assert told["with_run_id"] == other


async def test_a_run_is_not_compared_with_itself_nor_with_nothing(line: Beamline) -> None:
    run_id = await line.start_run()
    itself = await line.api.get(f"/runs/{run_id}/compare", with_run_id=run_id)
    assert (itself.status_code, itself.json()["code"]) == (400, "InvalidComparisonError")
    assert itself.json()["reason"] == "same_run"
    alone = await line.api.get(f"/runs/{run_id}/compare")
    assert (alone.status_code, alone.json()["code"]) == (409, "NoRunToCompareError")
    unknown = await line.api.get(f"/runs/{run_id}/compare", with_run_id=str(uuid4()))
    assert (unknown.status_code, unknown.json()["code"]) == (404, "RunNotFoundError")
