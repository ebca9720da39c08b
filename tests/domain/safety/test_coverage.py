"""The clearance gate: who covers a run, what is in force when, and what the refusal will say."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.safety.clearance import ActivateClearance, AmendClearance, Clearance, ClearanceStatus, ExpireClearance
from baton.domain.safety.coverage import clearance_finding, clearance_window, covering_clearances, is_in_force
from baton.domain.shared.gates import GateWindow
from tests.support.domain.clearances import (
    binding,
    clearance_fields,
    clearance_in_status,
    clearance_of,
    day,
    proposal,
    register_clearance,
    site_world,
)
from tests.support.domain.world import START, World, new_id
from tests.support.tables import for_each

MICROSECOND = timedelta(microseconds=1)
STATUSES = list(ClearanceStatus)


def covering_ids(world: World, run_id: UUID | None = None, subject_id: UUID | None = None, *asset_ids: UUID) -> list[UUID]:
    clearances: tuple[Clearance, ...] = world.fulfil(covering_clearances(run_id, subject_id, asset_ids, world.now))
    return [clearance.id for clearance in clearances]


def clearance(status: str = "Active", **fields: Any) -> Clearance:
    world = site_world()
    base = clearance_of(world, register_clearance(world))
    return replace(base, id=new_id(), status=ClearanceStatus(status), **fields)


ANY = clearance()


class TestCovering:
    @pytest.mark.parametrize("status", STATUSES)
    def test_a_form_covers_a_run_by_its_subject_an_asset_or_itself_in_any_status(self, world: World, status: str) -> None:
        subject, asset, run = new_id(), new_id(), new_id()
        bindings = [binding("Subject", subject), binding("Asset", asset), binding("Run", run)]
        id = clearance_in_status(world, status, bindings=bindings)
        assert (
            covering_ids(world, run)
            == covering_ids(world, None, subject)
            == covering_ids(world, None, None, new_id(), asset)
            == [id]
        )

    def test_where_nothing_is_asked_for_nothing_covers(self, world: World) -> None:
        register_clearance(world)
        assert covering_ids(world) == []
        assert covering_ids(world, new_id(), new_id(), new_id()) == []

    def test_outside_references_and_procedures_never_cover(self, world: World) -> None:
        procedure = new_id()
        register_clearance(world, bindings=[binding("Procedure", procedure), proposal()])
        assert covering_ids(world, procedure, procedure, procedure) == []

    @pytest.mark.parametrize("kind", ["Subject", "Asset", "Run"])
    def test_an_id_bound_as_one_kind_does_not_cover_another(self, world: World, kind: str) -> None:
        id = new_id()
        register_clearance(world, bindings=[binding(kind, id)])
        asked: dict[str, tuple[Any, ...]] = {"Run": (id,), "Subject": (None, id), "Asset": (None, None, id)}
        assert {name: len(covering_ids(world, *question)) for name, question in asked.items()} == {
            name: int(name == kind) for name in asked
        }

    def test_each_covering_form_counts_once_in_order_of_registration(self, world: World) -> None:
        subject, asset = new_id(), new_id()
        first = register_clearance(world, bindings=[binding("Subject", subject), binding("Asset", asset)])
        second = register_clearance(world, bindings=[binding("Asset", asset)])
        assert covering_ids(world, None, subject, asset) == [first, second]

    def test_an_amendment_covers_what_it_binds_itself(self, world: World) -> None:
        asset, other = new_id(), new_id()
        parent = clearance_in_status(world, "Active", bindings=[binding("Asset", asset)])
        template_id = clearance_of(world, parent).template_id
        world.when(AmendClearance(**clearance_fields(template_id, bindings=[binding("Asset", other)])), on=parent)
        child = UUID(world.answer["clearance_id"])
        assert covering_ids(world, None, None, other) == [child]
        assert covering_ids(world, None, None, asset) == [parent]

    def test_ended_forms_are_named_only_where_none_is_in_force(self, world: World) -> None:
        asset = new_id()
        over = clearance_in_status(world, "Expired", bindings=[binding("Asset", asset)])
        refused = clearance_in_status(world, "Rejected", bindings=[binding("Asset", asset)])
        assert covering_ids(world, None, None, asset) == [over, refused]
        fresh = register_clearance(world, bindings=[binding("Asset", asset)])
        assert covering_ids(world, None, None, asset) == [over, refused, fresh]
        valid = clearance_in_status(world, "Active", bindings=[binding("Asset", asset)])
        assert covering_ids(world, None, None, asset) == [fresh, valid]


WINDOWS = [
    pytest.param(None, None, START, True, id="without-a-window"),
    pytest.param(day(1), None, day(1) - MICROSECOND, False, id="before-it-begins"),
    pytest.param(day(1), None, day(1), True, id="as-it-begins"),
    pytest.param(day(1), day(8), day(2), True, id="within"),
    pytest.param(None, day(8), day(8) - MICROSECOND, True, id="just-before-it-ends"),
    pytest.param(None, day(8), day(8), False, id="as-it-ends"),
    pytest.param(day(1), day(8), day(9), False, id="after-it-ended"),
]


class TestInForce:
    @for_each(("valid_from", "valid_until", "now", "expected"), WINDOWS)
    def test_an_active_form_counts_within_its_window(
        self, valid_from: Any, valid_until: Any, now: Any, expected: bool
    ) -> None:
        assert is_in_force(clearance(valid_from=valid_from, valid_until=valid_until), now) is expected

    @for_each("status", [status for status in STATUSES if status is not ClearanceStatus.ACTIVE])
    def test_no_other_status_counts_whatever_the_window(self, status: str) -> None:
        assert not is_in_force(clearance(status), START)
        assert not is_in_force(clearance(status, valid_from=day(1), valid_until=day(8)), day(2))


class TestFinding:
    def test_no_covering_form_is_a_total_finding(self) -> None:
        finding = clearance_finding((), START)
        assert finding is not None
        assert (finding.total, finding.reason) == (True, "no_clearance")
        assert finding.facts == {"clearance_count": 0, "clearances": []}

    def test_one_in_force_is_enough(self) -> None:
        others = [clearance(status) for status in STATUSES]
        assert clearance_finding([clearance()], START) is None
        assert clearance_finding([*others, clearance(valid_until=START)], START) is None

    @for_each("status", ["Approved", "Superseded"])
    def test_forms_that_are_not_active_are_counted_and_named(self, status: str) -> None:
        one = clearance(status)
        finding = clearance_finding([one], START)
        assert finding is not None
        assert (finding.total, finding.reason) == (False, "no_clearance_in_force")
        unlimited = {"valid_from": None, "valid_until": None}
        assert finding.facts == {
            "clearance_count": 1,
            "clearances": [{"clearance_id": str(one.id), "status": status, **unlimited}],
        }
        assert f"1 {status}" in finding.detail

    def test_the_detail_tells_active_forms_outside_their_window_from_the_others(self) -> None:
        early = clearance(valid_from=day(5))
        late = clearance(valid_until=day(4))
        finding = clearance_finding([clearance("Approved"), early, clearance("Approved"), late], day(4))
        assert finding is not None
        assert "(1 Active but before its window, 1 Active but past its window, 2 Approved)" in finding.detail
        assert finding.facts["clearance_count"] == 4
        assert finding.facts["clearances"][1]["valid_from"] == "2026-06-05T00:00:00Z"

    @given(
        st.lists(
            st.builds(
                dict,
                status=st.sampled_from(STATUSES),
                valid_from=st.none() | st.integers(1, 28).map(day),
                valid_until=st.none() | st.integers(1, 28).map(day),
            ),
            max_size=5,
        ),
        st.integers(1, 28).map(day),
    )
    def test_a_gate_opens_exactly_where_one_form_is_in_force(self, forms: list[dict[str, Any]], now: Any) -> None:
        clearances = [replace(ANY, **fields) for fields in forms]
        finding = clearance_finding(clearances, now)
        assert (finding is None) == any(is_in_force(one, now) for one in clearances)
        assert finding is None or finding.total == (not clearances)


def test_a_form_gained_and_lost_opens_and_closes_the_gate(world: World) -> None:
    asset = new_id()

    def verdict() -> str | None:
        finding = clearance_finding(world.fulfil(covering_clearances(new_id(), None, [asset], world.now)), world.now)
        return finding and finding.reason

    assert verdict() == "no_clearance"
    id = clearance_in_status(world, "Approved", bindings=[binding("Asset", asset)])
    assert verdict() == "no_clearance_in_force"
    world.when(ActivateClearance(), on=id)
    assert verdict() is None
    world.when(ExpireClearance(reason="beam dump"), on=id)
    assert verdict() == "no_clearance_in_force"


def test_forms_one_after_the_other_are_one_window() -> None:
    first, second = clearance(valid_until=day(10)), clearance(valid_from=day(10), valid_until=day(20))
    late = clearance(valid_from=day(21))
    assert clearance_window([late, second, first], day(1)) == GateWindow(until=day(20))
    assert clearance_window([first, second, clearance(valid_from=day(20))], day(1)) == GateWindow()


def test_the_window_of_a_closed_gate_opens_with_the_first_active_form() -> None:
    draft, later, sooner = (
        clearance("Approved", valid_from=day(2)),
        clearance(valid_from=day(9)),
        clearance(valid_from=day(8)),
    )
    assert clearance_window([draft, later, sooner], day(1)) == GateWindow(opens_at=day(8))
    assert clearance_window([clearance(valid_until=day(1))], day(1)) == GateWindow()
