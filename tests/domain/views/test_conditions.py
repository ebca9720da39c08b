"""The conditions of a start: each of them now and at a later time, at the very second of its end, and in their order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.estimates import StepDuration, walk_of
from baton.domain.conduct.pins import pinned_steps
from baton.domain.equipment.asset import FaultAsset
from baton.domain.procedure.procedure import ProcedureStepsResolved
from baton.domain.recipe.plan import ReschedulePlan
from baton.domain.registry import REGISTRY
from baton.domain.shared.outages import PlannedOutage
from baton.domain.views.conditions import CHANGES, Condition, Holding, Row
from tests.support.domain.assets import LUMEN
from tests.support.domain.calibrations import append_revision, rotation_center
from tests.support.domain.cautions import on_asset, register_caution
from tests.support.domain.clearances import binding, clearance_in_status, template
from tests.support.domain.conducts import STEPS, open_conduct, register_procedure
from tests.support.domain.queues import add_items, open_queue
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.schedules import darks, define_schedule, recipe
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


def conditions_at(line: Beamline, at: datetime, **fields: Any) -> list[Condition]:
    """The conditions of the line's run; lists of visits are tested against a projection."""
    line.world.denied.add("ListVisits")
    return list(line.preflight(at=at, **fields).conditions)


def condition(line: Beamline, name: str, at: datetime, **fields: Any) -> Condition:
    (found,) = (one for one in conditions_at(line, at, **fields) if one.condition == name)
    return found


def at_end(line: Beamline, name: str, ends: datetime, **fields: Any) -> list[str]:
    """What a condition says of the second before its end, and of its end."""
    return [str(condition(line, name, at, **fields).holds_then) for at in (ends - SECOND, ends)]


def with_form(**fields: Any) -> Beamline:
    """A beamline whose only clearance has these fields."""
    line = beamline("clearance_present")
    form = {"template_id": template(line.world, facility_code=LUMEN), "facility_code": LUMEN}
    clearance_in_status(line.world, "Active", bindings=[binding("Asset", line.hutch.beamline)], **form, **fields)
    return line


def test_a_preflight_without_a_time_has_no_conditions() -> None:
    assert beamline().preflight().conditions == ()


@for_each(("after", "reason"), [(-SECOND, "past"), (timedelta(days=366, seconds=1), "too_far")])
def test_a_time_that_is_over_or_too_far_ahead_is_refused(after: timedelta, reason: str) -> None:
    line = beamline()
    with expect_refusal("InvalidPreflightTimeError", reason):
        line.preflight(at=line.world.now + after)


def test_a_clearance_holds_until_the_second_of_its_end() -> None:
    ends = beamline().world.now + 2 * HOUR
    line = with_form(valid_until=ends)
    assert at_end(line, "clearance_active", ends) == ["yes", "no"]
    lapsed = condition(line, "clearance_active", ends)
    assert (lapsed.holds_now, lapsed.until, lapsed.about.type) == ("yes", ends, "Clearance")
    assert lapsed.change
    assert lapsed.rests_on == "record"


def test_a_clearance_that_begins_later_holds_then() -> None:
    begins = beamline().world.now + 2 * HOUR
    line = with_form(valid_from=begins)
    assert at_end(line, "clearance_active", begins) == ["no", "yes"]
    assert condition(line, "clearance_active", begins).holds_now == "no"
    assert condition(line, "clearance_active", begins).opens_at == begins


@pytest.mark.parametrize("zone_hour", [datetime(2026, 10, 25, hour, tzinfo=UTC) for hour in (0, 1, 2)])
def test_an_end_in_the_night_of_a_clock_change_is_one_moment(zone_hour: datetime) -> None:
    assert at_end(with_form(valid_until=zone_hour), "clearance_active", zone_hour) == ["yes", "no"]


def test_a_plans_window_informs_to_the_second() -> None:
    line = beamline()
    begins, ends = line.world.now + HOUR, line.world.now + 2 * HOUR
    line.world.when(ReschedulePlan(window_starts_at=begins, window_ends_at=ends), on=line.plan_id)
    assert at_end(line, "plan_window", begins) == ["no", "yes"]
    assert at_end(line, "plan_window", ends) == ["yes", "no"]
    assert not condition(line, "plan_window", ends).required


def test_a_permit_is_an_observation_and_not_known_ahead() -> None:
    for gates, now in (((), "yes"), (("enclosure_permitted",), "no")):
        line = beamline(*gates)
        found = condition(line, "enclosure_permitted", line.world.now + HOUR)
        assert (found.holds_now, found.holds_then, found.about.id) == (now, "unknown", line.enclosure_id)


def test_a_supply_is_not_known_ahead_unless_an_outage_is_announced() -> None:
    line = beamline()
    begins, ends = line.world.now + HOUR, line.world.now + 2 * HOUR
    outage = PlannedOutage(kind="photon_beam", starts_at=begins, ends_at=ends)
    line.world.ports["deployment"].planned_outages = (outage,)
    assert at_end(line, "supply_available", begins) == ["unknown", "no"]
    assert at_end(line, "supply_available", ends) == ["no", "unknown"]
    found = condition(line, "supply_available", begins)
    assert (found.holds_now, found.rests_on, found.opens_at) == ("yes", "forecast", ends)


def test_a_supply_that_is_gone_now_is_not_known_ahead() -> None:
    line = beamline("supply_available")
    found = condition(line, "supply_available", line.world.now + HOUR)
    assert (found.holds_now, found.holds_then) == ("no", "unknown")


def test_a_pinned_revision_is_valid_until_the_second_of_its_end() -> None:
    line = beamline()
    ends = line.world.now + HOUR
    pins = [append_revision(line.world, rotation_center(line.world), valid_until=ends)]
    assert at_end(line, "calibrations_valid", ends, pinned_calibration_ids=pins) == ["yes", "no"]
    found = condition(line, "calibrations_valid", ends, pinned_calibration_ids=pins)
    assert (found.required, found.until) == (False, ends)
    line.world.ports["deployment"].lapsed_calibrations_refused = True
    assert condition(line, "calibrations_valid", ends, pinned_calibration_ids=pins).required


def test_a_pinned_revision_without_an_end_is_as_old_as_it_will_be() -> None:
    line = beamline()
    pins = [append_revision(line.world, rotation_center(line.world))]
    found = condition(line, "calibrations_valid", line.world.now + timedelta(days=30), pinned_calibration_ids=pins)
    assert (found.holds_then, found.until) == ("yes", None)
    assert "30 days" in found.why


AS_NOW = {
    "plan_current": "plan_current",
    "assets_in_service": "assets_in_service",
    "families_covered": "families_covered",
    "parameters_valid": "parameters_valid",
    "wires_connected": "wires_connected",
    "roles_played": "roles_played",
    "campaign_open": "campaign_open",
    "subject_mounted": "subject_mounted",
}


@for_each("gate", list(AS_NOW))
def test_what_the_record_alone_decides_is_then_as_it_is_now(gate: str) -> None:
    for broken, holds in (((), "yes"), ((gate,), "no")):
        line = beamline(*broken)
        found = condition(line, gate, line.world.now + HOUR)
        assert (found.holds_now, found.holds_then, found.rests_on) == (holds, holds, "record")
        assert found.required


def test_a_faulted_asset_holds_the_conduct() -> None:
    line = beamline()
    assert condition(line, "assets_ready", line.world.now + HOUR).holds_then == "yes"
    line.world.when(FaultAsset(reason="sticks"), on=line.hutch.camera)
    found = condition(line, "assets_ready", line.world.now + HOUR)
    assert (found.holds_now, found.holds_then) == ("no", "no")
    assert "restore_asset" in [one.command for one in found.change]


def claimed_beamline() -> tuple[Beamline, datetime]:
    """A beamline whose camera a conduct has to itself, and when that is expected to end."""
    line = beamline()
    line.world.ports["step_durations"] = lambda keys: dict.fromkeys(keys, StepDuration(count=3, median=600.0, p90=700.0))
    rival = register_procedure(line.world, target_asset_ids=[line.hutch.camera])
    open_conduct(line.world, ConductProcedure(steps=STEPS), on=rival)
    pinned = next(one for one in line.world.streams["Procedure", rival] if isinstance(one, ProcedureStepsResolved))
    steps = line.world.fulfil(pinned_steps(pinned))
    line.world.ports["conduct_walk"] = walk_of(steps.steps, steps.closing_steps)
    ends = condition(line, "targets_unclaimed", line.world.now + HOUR).opens_at
    assert ends is not None
    return line, ends


def test_a_plan_becomes_possible_because_a_claim_ends() -> None:
    line, ends = claimed_beamline()
    assert at_end(line, "targets_unclaimed", ends) == ["no", "yes"]
    found = condition(line, "targets_unclaimed", ends)
    assert (found.holds_now, found.rests_on, found.about.type) == ("no", "forecast", "Procedure")
    assert all(one.holds_then != "no" for one in conditions_at(line, ends))


def test_a_claim_of_unknown_end_is_not_known_ahead() -> None:
    line, _ = claimed_beamline()
    line.world.ports["step_durations"] = lambda keys: {}
    found = condition(line, "targets_unclaimed", line.world.now + HOUR)
    assert (found.holds_then, found.opens_at) == ("unknown", None)


def test_assets_that_nothing_has_are_free_then_by_forecast() -> None:
    line = beamline()
    found = condition(line, "targets_unclaimed", line.world.now + HOUR)
    assert (found.holds_then, found.rests_on) == ("yes", "forecast")


def test_a_caution_warns_until_the_second_of_its_expiry() -> None:
    line = beamline()
    ends = line.world.now + HOUR
    register_caution(line.world, on_asset(line.hutch.camera), expires_at=ends)
    assert at_end(line, "caution", ends) == ["no", "yes"]
    found = condition(line, "caution", ends)
    assert (found.required, found.opens_at, found.about.type) == (False, ends, "Caution")


def test_a_form_on_its_way_says_the_steps_left_and_who_may_not_take_them() -> None:
    line = beamline("clearance_present")
    form = {"template_id": template(line.world, facility_code=LUMEN), "facility_code": LUMEN}
    clearance_in_status(line.world, "UnderReview", bindings=[binding("Asset", line.hutch.beamline)], **form)
    line.world.ports["deployment"].clearance_four_eyes = True
    found = condition(line, "clearance_review", line.world.now + HOUR)
    assert (found.holds_now, found.holds_then, found.required, found.about.type) == ("no", "unknown", False, "Clearance")
    assert "left until it is in force" in found.why
    you = {one.command: one.who.you for one in found.change}
    assert (you["approve_clearance"], you["activate_clearance"]) == (False, True)
    names = {one.condition for one in conditions_at(beamline(), line.world.now + HOUR)}
    assert "clearance_review" not in names, "a form is in force"


def test_the_items_of_a_queue_are_expected_to_end() -> None:
    line = beamline()
    world, id = line.world, open_queue(line.world, asset_id=line.hutch.beamline)
    world.ports["step_durations"] = lambda keys: dict.fromkeys(keys, StepDuration(count=3, median=600.0, p90=700.0))
    add_items(world, id, "darks", target=darks(recipe(world), target_asset_ids=[line.hutch.camera]))
    ends = condition(line, "queue", world.now + HOUR).opens_at
    assert ends is not None
    assert ends > world.now
    found = condition(line, "queue", ends)
    assert (found.holds_then, found.rests_on, found.opens_at) == ("yes", "forecast", ends)
    assert condition(line, "queue", ends - SECOND).holds_then == "unknown"
    assert "darks wait in this queue, and they are expected to end" in found.why


def test_a_queue_with_items_may_have_the_assets_then() -> None:
    line = beamline()
    id = open_queue(line.world, asset_id=line.hutch.beamline)
    assert "queue" not in {one.condition for one in conditions_at(line, line.world.now + HOUR)}
    add_items(line.world, id, "darks", target=darks(recipe(line.world), target_asset_ids=[line.hutch.camera]))
    found = condition(line, "queue", line.world.now + HOUR)
    assert (found.holds_then, found.rests_on, found.about.id, found.required) == ("unknown", "forecast", id, False)


@for_each(
    ("begins", "fires"),
    [
        (datetime(2027, 3, 27, 23, tzinfo=UTC), datetime(2027, 3, 28, 20, tzinfo=UTC)),
        (datetime(2026, 10, 24, 23, tzinfo=UTC), datetime(2026, 10, 25, 21, tzinfo=UTC)),
    ],
)
def test_a_schedule_fires_by_the_clock_of_its_zone(begins: datetime, fires: datetime) -> None:
    line = beamline()
    calendar = {"cron": ["0 22 * * *"]}
    target = darks(recipe(line.world), target_asset_ids=[line.hutch.camera])
    define_schedule(line.world, target, calendar=calendar, time_zone="Europe/Berlin")
    line.world.now = begins
    assert "schedule" not in {one.condition for one in conditions_at(line, fires - SECOND)}
    assert condition(line, "schedule", fires).holds_then == "unknown"


def test_permissions_are_asked_for_as_they_are_now() -> None:
    line = beamline()
    assert condition(line, "grants_present", line.world.now + HOUR).holds_then == "yes"
    line.world.denied.add("ConductRun")
    found = condition(line, "grants_present", line.world.now + HOUR)
    assert (found.holds_then, "ConductRun" in found.why) == ("no", True)


def test_what_fails_then_comes_first_and_what_holds_last() -> None:
    ends = beamline().world.now + HOUR
    line = with_form(valid_until=ends)
    holds = [one.holds_then for one in conditions_at(line, ends)]
    assert holds == sorted(holds, key=["no", "unknown", "yes"].index)


def test_what_lapses_before_the_end_comes_before_what_is_not_known() -> None:
    line = beamline()
    ends = line.world.now + HOUR
    about = condition(line, "plan_current", ends).about
    row = Row(condition="clearance_active", about=about, now=Holding.YES, then=Holding.YES, why="", until=ends)
    assert [row.rank(end) for end in (None, ends, ends + SECOND)] == [3, 3, 1]


def test_every_command_that_changes_something_exists() -> None:
    assert {name for names in CHANGES.values() for name in names} <= REGISTRY.operations.keys()
