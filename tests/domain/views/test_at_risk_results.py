"""Which datasets rest on a value that was replaced."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.calibration.calibration import Calibration
from baton.domain.data.dataset import DemoteDataset, DiscardDataset
from baton.domain.run.run import RunCompleted
from baton.domain.shared.listing import Page
from baton.domain.views import at_risk_results
from baton.domain.views.at_risk_results import CalibrationAtRiskResult, ListCalibrationAtRiskResults
from tests.support.domain.assets import requested_reads
from tests.support.domain.calibrations import append_revision, rotation_center
from tests.support.domain.datasets import data_world, promoted_dataset, registered_dataset, run_with
from tests.support.domain.world import World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return data_world()


class Suspects:
    """A calibration, its revisions, and datasets that rest on them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.id = rotation_center(world)

    def revision(self, **fields: Any) -> UUID:
        return append_revision(self.world, self.id, **fields)

    def user(self, *revision_ids: UUID, **fields: Any) -> UUID:
        run = run_with(self.world, RunCompleted(actuation_kind=None), pins=revision_ids)
        return registered_dataset(self.world, producing_run_id=run, used_calibration_ids=revision_ids, **fields)

    def ask(self, **fields: Any) -> Page[CalibrationAtRiskResult]:
        answer: Page[CalibrationAtRiskResult] = self.world.ask(ListCalibrationAtRiskResults(**fields), on=self.id)
        return answer

    def exposures(self, **fields: Any) -> list[tuple[UUID, UUID, str]]:
        return [(row.dataset_id, row.revision_id, row.exposure) for row in self.ask(**fields).items]


@pytest.fixture
def suspects(world: World) -> Suspects:
    return Suspects(world)


def test_users_come_first_then_all_that_was_derived_from_them(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    first = suspects.user(r1)
    child = registered_dataset(world, derived_from=[first])
    second = suspects.user(r1)
    grandchild = registered_dataset(world, derived_from=[child, second])
    registered_dataset(world)
    suspects.revision(supersedes_revision_id=r1)
    used, derived = [(one, r1, "Used") for one in (first, second)], [(one, r1, "Derived") for one in (child, grandchild)]
    assert suspects.exposures() == [*used, *derived]
    assert suspects.exposures(order="desc") == [*used[::-1], *derived[::-1]]


def test_who_used_it_and_was_derived_from_a_user_is_named_once(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    first = suspects.user(r1)
    second = suspects.user(r1, derived_from=[first])
    suspects.revision(supersedes_revision_id=r1)
    assert suspects.exposures() == [(first, r1, "Used"), (second, r1, "Used")]


def test_a_dataset_is_named_for_each_revision_that_it_rests_on(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    r2 = suspects.revision(supersedes_revision_id=r1)
    r3 = suspects.revision(supersedes_revision_id=r2)
    both, late = suspects.user(r1, r2, r3), suspects.user(r2)
    child = registered_dataset(world, derived_from=[both, late])
    assert suspects.exposures() == [
        (both, r1, "Used"),
        (both, r2, "Used"),
        (late, r2, "Used"),
        (child, r1, "Derived"),
        (child, r2, "Derived"),
    ]


def test_only_superseded_revisions_are_suspect_unless_one_is_named(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    user = suspects.user(r1)
    child = registered_dataset(world, derived_from=[user])
    assert suspects.exposures() == []
    rows = suspects.ask(revision_id=r1).items
    assert [(row.dataset_id, row.at_risk, row.superseded_by_revision_id) for row in rows] == [
        (user, False, None),
        (child, False, None),
    ]
    r2 = suspects.revision(supersedes_revision_id=r1)
    assert suspects.exposures(revision_id=r2) == []
    assert [row.at_risk for row in suspects.ask(revision_id=r1).items] == [True, True]


def test_the_revisions_of_another_calibration_are_none_of_its_own(world: World, suspects: Suspects) -> None:
    other = Suspects(world)
    other.user(foreign := other.revision())
    other.revision(supersedes_revision_id=foreign)
    assert suspects.exposures() == []
    for unknown in (foreign, new_id()):
        with expect_refusal("CalibrationRevisionNotFoundError") as caught:
            suspects.ask(revision_id=unknown)
        assert caught.value.facts == {"missing_ids": [str(unknown)]}


def test_discarded_datasets_are_not_shown_and_what_was_derived_from_them_is(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    user = suspects.user(r1)
    child = registered_dataset(world, derived_from=[user])
    grandchild = registered_dataset(world, derived_from=[child])
    suspects.revision(supersedes_revision_id=r1)
    for discarded, left in ((child, [user, grandchild]), (user, [grandchild]), (grandchild, [])):
        world.when(DiscardDataset(reason="wrong sample"), on=discarded)
        assert [id for id, _, _ in suspects.exposures()] == left


def test_asking_changes_nothing_and_a_demoted_dataset_stays_in_the_list(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    run = run_with(world, RunCompleted(actuation_kind=None), pins=[r1])
    user = promoted_dataset(world, producing_run_id=run, used_calibration_ids=[r1])
    suspects.revision(supersedes_revision_id=r1)
    assert [row.intent for row in suspects.ask().items] == ["Production"]
    world.when(DemoteDataset(reason="wrong centre"), on=user)
    assert [row.intent for row in suspects.ask().items] == ["Retracted"]


def test_the_list_is_read_page_by_page_in_either_order(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    users = [suspects.user(r1) for _ in range(3)]
    gone = [registered_dataset(world, derived_from=[users[0]]) for _ in range(4)]
    for id in gone[1:3]:
        world.when(DiscardDataset(reason="wrong sample"), on=id)
    suspects.revision(supersedes_revision_id=r1)
    for order in ("asc", "desc"):
        whole = suspects.exposures(order=order)
        assert len(whole) == 5
        for limit in (1, 2, 4):
            found, cursor = [], None
            while True:
                page = suspects.ask(order=order, limit=limit, cursor=cursor)
                assert len(page.items) <= limit
                found += [(row.dataset_id, row.revision_id, row.exposure) for row in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert found == whole


def test_a_cursor_belongs_to_its_order_and_to_this_list(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    for _ in range(2):
        suspects.user(r1)
    cursor = suspects.ask(revision_id=r1, limit=1).next_cursor
    with expect_refusal("InvalidCursorError", "other_order"):
        suspects.ask(revision_id=r1, cursor=cursor, order="desc")
    for nonsense in ("x", "YXNjfFVzZWR8eHx4"):
        with expect_refusal("InvalidCursorError", "malformed"):
            suspects.ask(cursor=nonsense)


def test_the_number_of_reads_does_not_depend_on_the_number_of_datasets(world: World, suspects: Suspects) -> None:
    r1 = suspects.revision()
    counts = []
    for more in (1, 60):
        last = suspects.user(r1)
        for _ in range(more):
            last = registered_dataset(world, derived_from=[last])
        query = ListCalibrationAtRiskResults(revision_id=r1)
        calibration = world.state(Calibration, suspects.id)
        assert world.call is not None
        counts.append(len(requested_reads(world, query.answer(calibration, world.call))))
    assert counts == [3, 3]


def test_more_than_can_be_followed_is_refused_and_not_cut_off(
    world: World, suspects: Suspects, monkeypatch: pytest.MonkeyPatch
) -> None:
    r1 = suspects.revision()
    user = suspects.user(r1)
    registered_dataset(world, derived_from=[user])
    monkeypatch.setattr(at_risk_results, "MAX_LINEAGE", 1)
    with expect_refusal("TooManyAtRiskResultsError", "too_many") as caught:
        suspects.ask(revision_id=r1)
    assert (caught.value.status, caught.value.facts) == (409, {"revision_ids": [str(r1)]})
