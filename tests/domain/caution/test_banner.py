"""Which cautions are shown before work starts, in which order, and how much of them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from baton.domain.caution.caution import (
    AcknowledgedCaution,
    CautionSeverity,
    CautionTarget,
    RetireCaution,
    banner,
    cautions_in_scope,
)
from tests.support.domain.assets import run_reads
from tests.support.domain.cautions import DRIFT, WAIT, on_asset, on_procedure, register_caution, supersede_caution
from tests.support.domain.world import World, new_id

STAGE, TABLE, BEAMLINE, ALIGNMENT = (new_id() for _ in range(4))


@pytest.fixture
def world() -> World:
    return World()


def banner_cautions(
    world: World,
    bound: tuple[UUID, ...] = (STAGE,),
    above: tuple[UUID, ...] = (TABLE, BEAMLINE),
    procedures: tuple[UUID, ...] = (),
    **least: CautionSeverity,
) -> tuple[AcknowledgedCaution, ...]:
    work = {CautionTarget(kind="Procedure", id=id) for id in procedures}
    cautions = run_reads(world, cautions_in_scope(bound, above, work))
    return banner(cautions, bound, above, work, world.now, **least)


def shown_ids(world: World, *scope: Any, **least: CautionSeverity) -> list[UUID]:
    return [one.caution_id for one in banner_cautions(world, *scope, **least)]


def test_an_entry_has_seven_keys(world: World) -> None:
    id = register_caution(world, on_asset(STAGE))
    (entry,) = banner_cautions(world)
    assert entry.model_dump(mode="json") == {
        "caution_id": str(id),
        "target_kind": "Asset",
        "target_id": str(STAGE),
        "category": "OperationalWindow",
        "severity": "Caution",
        "text_excerpt": DRIFT,
        "workaround_excerpt": WAIT,
    }


def test_texts_are_cut_to_200_characters(world: World) -> None:
    register_caution(world, on_asset(STAGE), text="a" * 201, workaround="b" * 200)
    (entry,) = banner_cautions(world)
    assert (entry.text_excerpt, entry.workaround_excerpt) == ("a" * 200, "b" * 200)


def test_the_most_severe_come_first_then_the_oldest(world: World) -> None:
    severities = ["Caution", "Warning", "Caution", "Notice", "Warning"]
    ids = [register_caution(world, on_asset(STAGE), severity=severity) for severity in severities]
    assert shown_ids(world, min_severity=CautionSeverity.NOTICE) == [ids[n] for n in (1, 4, 0, 2, 3)]


def test_cautions_of_one_moment_are_ordered_by_id(world: World) -> None:
    for _ in range(5):
        register_caution(world, on_asset(STAGE))
        world.now -= timedelta(seconds=1)
    world.now += timedelta(seconds=1)
    ids = shown_ids(world)
    assert ids == sorted(ids)
    assert len(ids) == 5


@pytest.mark.parametrize(("least", "count"), [("Notice", 3), ("Caution", 2), ("Warning", 1)])
def test_weaker_cautions_are_left_out(world: World, least: str, count: int) -> None:
    for severity in ("Notice", "Caution", "Warning"):
        register_caution(world, on_asset(STAGE), severity=severity)
    assert len(banner_cautions(world, min_severity=CautionSeverity(least))) == count


def test_cautions_on_procedures_are_found_by_procedure_only(world: World) -> None:
    id = register_caution(world, on_procedure(ALIGNMENT))
    assert shown_ids(world, (), (), (ALIGNMENT,)) == [id]
    assert banner_cautions(world, (ALIGNMENT,), ()) == ()


def test_what_is_over_is_not_shown(world: World) -> None:
    expiring = register_caution(world, on_asset(STAGE), expires_at=world.now + timedelta(hours=1))
    retired, replaced = register_caution(world, on_asset(STAGE)), register_caution(world, on_asset(STAGE))
    world.when(RetireCaution(reason="Resolved"), on=retired)
    successor = supersede_caution(world, replaced, on_asset(STAGE))
    assert shown_ids(world) == [expiring, successor]
    world.now += timedelta(hours=1)
    assert shown_ids(world) == [successor]


def test_the_verdict_rests_on_the_stream_and_not_on_the_look_up(world: World) -> None:
    id = register_caution(world, on_asset(STAGE))
    cautions = run_reads(world, cautions_in_scope((STAGE,), (), ()))
    assert [one.id for one in cautions] == [id]
    world.when(RetireCaution(reason="Resolved"), on=id)
    world.members["caution-target", f"Asset {STAGE}"].add(id)
    assert banner_cautions(world) == ()


def test_an_empty_scope_has_no_cautions_and_asks_for_none(world: World) -> None:
    register_caution(world, on_asset(STAGE))
    assert list(cautions_in_scope((), (), ())) == []
    assert banner_cautions(world, (), ()) == ()


PLACED = (STAGE, TABLE, BEAMLINE)
PLACES = st.sampled_from(PLACED)
NOTES = st.lists(
    st.tuples(PLACES, st.sampled_from(["Notice", "Caution", "Warning"]), st.booleans(), st.booleans()), max_size=9
)


@example([(place, "Caution", propagates, False) for place in PLACED for propagates in (False, True)], {TABLE}, {BEAMLINE})
@example([(place, "Notice", True, False) for place in PLACED], {STAGE, TABLE}, {TABLE, BEAMLINE})
@example([(place, "Warning", False, False) for place in PLACED], {STAGE, TABLE}, {TABLE, BEAMLINE})
@given(NOTES, st.sets(PLACES), st.sets(PLACES))
def test_a_banner_shows_whatever_applies_once_and_in_order(
    notes: list[tuple[UUID, str, bool, bool]], bound: set[UUID], above: set[UUID]
) -> None:
    world = World()
    end = world.now + timedelta(hours=1)
    wanted = []
    for target, severity, propagates, over in notes:
        expiry = end if over else end + timedelta(hours=1)
        id = register_caution(
            world, on_asset(target), severity=severity, propagate_to_children=propagates, expires_at=expiry
        )
        if severity != "Notice" and not over and (target in bound or (propagates and target in above)):
            wanted.append((severity == "Caution", world.now, id))
    cautions = run_reads(world, cautions_in_scope(bound, above, ()))
    assert [one.caution_id for one in banner(cautions, bound, above, (), end)] == [id for *_, id in sorted(wanted)]
