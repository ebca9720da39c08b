"""Schedules: what may be scheduled, as whom it fires, what becomes of firings, and how all of it is shown."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.kernel import SYSTEM_CONDUIT
from baton.domain.recipe.plan import Plan
from baton.domain.schedule.messages import DueFiring
from baton.domain.schedule.schedule import (
    DefineSchedule,
    HoldSchedule,
    RecordScheduleFiring,
    RecordScheduleFiringRefusal,
    ResumeSchedule,
    RetireSchedule,
    ScheduleChange,
    ScheduleEngineState,
    ScheduleFired,
    ScheduleFiringRefused,
    ScheduleHeld,
    TakeOverSchedulePause,
    TriggerSchedule,
)
from baton.domain.schedule.views import GetSchedule
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.domain.target.targets import filled_name, with_filled_names
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.domain.calibrations import append_revision, rotation_center
from tests.support.domain.run_beamline import beamline
from tests.support.domain.schedules import (
    NIGHTLY,
    SUMMER,
    darks,
    define_schedule,
    recipe,
    record_firing,
    record_refused_firing,
    schedule_of,
    series,
)
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def plan_world() -> World:
    """A world with a plan in it."""
    return beamline().world


def plan_in(world: World) -> UUID:
    return next(id for name, id in world.streams if name == Plan.__name__)


def standing_of(world: World, id: UUID) -> ScheduleEngineState:
    row = world.records[ScheduleEngineState, id]
    assert isinstance(row, ScheduleEngineState)
    return row


def test_a_schedule_fires_as_the_principal_and_on_the_surface_that_defined_it(world: World) -> None:
    schedule = schedule_of(world, define_schedule(world, name="  Nightly darks  "))
    assert (schedule.run_as, schedule.surface_id, schedule.conduit_id) == (OPERATOR, SYSTEM_HTTP, SYSTEM_CONDUIT)
    assert (schedule.name, schedule.status, schedule.last_status_reason) == ("Nightly darks", "Active", None)
    assert (schedule.time_zone, schedule.overlap, schedule.catchup_window, schedule.jitter) == ("UTC", "Skip", 60, 0)


def test_what_a_target_leaves_out_is_filled_in_when_it_is_defined(world: World) -> None:
    recipe_id = recipe(world)
    assert schedule_of(world, define_schedule(world, darks(recipe_id))).target == {
        "kind": "ConductRecipe",
        "recipe_id": str(recipe_id),
        "name": "Darks {fired_at}",
        "bindings": {},
        "procedure_kind": "scheduled",
        "target_asset_ids": [],
        "conduct": {"command": "conduct_procedure", "steps": []},
    }


def test_a_plan_is_a_target_with_every_field_of_a_start(plan_world: World) -> None:
    target = series(
        plan_in(plan_world), recipe(plan_world), subject_id=new_id(), override_parameters={"dwell": 0.2}, raid="10.1/r"
    )
    aim: Any = schedule_of(plan_world, define_schedule(plan_world, target)).aim
    filled: Any = with_filled_names(aim, SUMMER, 12)
    start = filled.start(launch_id := new_id())
    assert start.launch_id == launch_id
    assert (start.name, start.subject_id, start.raid) == ("Survey 12", target["subject_id"], "10.1/r")
    assert start.override_parameters == {"dwell": 0.2}
    phase = filled.phases[0].registration(run_id := new_id())
    assert (phase.name, phase.kind, phase.parent_run_id) == ("Flats 12", "scheduled", run_id)
    conduct = aim.conduct((procedure_id := new_id(),))
    assert [(one.procedure_id, one.conduct["command"]) for one in conduct.listed_phases()] == [
        (procedure_id, "conduct_procedure")
    ]


def test_names_are_filled_in_with_the_time_and_the_number_of_the_firing() -> None:
    at = datetime(2027, 7, 1, 4, 0, 0, 500, tzinfo=UTC)
    assert filled_name("Darks {fired_at} no. {count}", at, 7) == "Darks 2027-07-01T04:00:00Z no. 7"


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"name": "  "}, "InvalidScheduleNameError", "blank"),
        ({"calendar": {"cron": []}}, "InvalidScheduleCalendarError", "cron"),
        ({"calendar": {"cron": ["0 2 * *"]}}, "InvalidScheduleCalendarError", "cron"),
        ({"calendar": {"cron": ["0 2 * * *", "61 2 * * *"]}}, "InvalidScheduleCalendarError", "minute"),
        ({"calendar": {"every": 9}}, "InvalidScheduleCalendarError", "every"),
        ({"time_zone": "Mars/Olympus"}, "InvalidScheduleCalendarError", "time_zone"),
        ({"time_zone": "Mars/Olympus", "calendar": {"every": 60}}, "InvalidScheduleCalendarError", "time_zone"),
    ],
)
def test_a_schedule_that_says_nothing_sensible_is_refused(
    world: World, changes: dict[str, Any], code: str, reason: str
) -> None:
    with expect_refusal(code, reason):
        define_schedule(world, **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": " "}, "blank"),
        ({"procedure_kind": " "}, "blank"),
        ({"name": "Darks {when}"}, "unknown_placeholder"),
        ({"name": "x" * 185 + "{fired_at}"}, "too_long"),
        ({"conduct": {"steps": [{"kind": "setpoint", "address": "a", "value": 1}]}}, "steps_forbidden"),
        ({"bindings": {"nothing": 1}}, "bindings_unfit"),
    ],
)
def test_a_recipe_that_could_never_be_conducted_is_refused(world: World, changes: dict[str, Any], reason: str) -> None:
    with expect_refusal("InvalidScheduleTargetError", reason):
        define_schedule(world, {**darks(recipe(world)), **changes})


def test_a_recipe_that_needs_a_binding_gets_one_or_is_refused(world: World) -> None:
    dwelling = recipe(world, [{"kind": "setpoint", "address": "bl7:dwell", "value": {"__binding__": "dwell"}}])
    with expect_refusal("InvalidScheduleTargetError", "bindings_unfit") as caught:
        define_schedule(world, darks(dwelling))
    assert caught.value.facts["cause"]["code"] in ("UnboundRecipeBindingError", "InvalidProcedureBindingsError")
    define_schedule(world, darks(dwelling, bindings={"dwell": 0.2, "repetitions": 1}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "   "}, "blank"),
        ({"name": "Survey {number}"}, "unknown_placeholder"),
        ({"phases": []}, "phases_missing"),
        ({"external_refs": {"proposal": " "}}, None),
    ],
)
def test_a_run_that_could_never_start_is_refused(plan_world: World, changes: dict[str, Any], reason: str | None) -> None:
    with expect_refusal("InvalidScheduleTargetError", reason):
        define_schedule(plan_world, {**series(plan_in(plan_world), recipe(plan_world)), **changes})


def test_a_run_that_pins_too_much_is_refused(plan_world: World) -> None:
    calibration_id = rotation_center(plan_world)
    pins = [append_revision(plan_world, calibration_id) for _ in range(65)]
    target = series(plan_in(plan_world), recipe(plan_world))
    with expect_refusal("InvalidScheduleTargetError", "too_many"):
        define_schedule(plan_world, {**target, "pinned_calibration_ids": pins})
    define_schedule(plan_world, {**target, "pinned_calibration_ids": pins[1:]})


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (lambda plan_id, recipe_id: darks(new_id()), "RecipeNotFoundError"),
        (lambda plan_id, recipe_id: series(new_id(), recipe_id), "PlanNotFoundError"),
        (lambda plan_id, recipe_id: series(plan_id, new_id()), "RecipeNotFoundError"),
        (lambda *ids: series(*ids, pinned_calibration_ids=[new_id()]), "CalibrationRevisionNotFoundError"),
        (lambda *ids: series(*ids, decided_by_decision_id=new_id()), "DecisionNotFoundError"),
    ],
)
def test_what_is_to_be_conducted_pinned_or_cited_exists(plan_world: World, target: Any, code: str) -> None:
    with expect_refusal(code):
        define_schedule(plan_world, target(plan_in(plan_world), recipe(plan_world)))


@for_each(
    "changes",
    [
        {"calendar": {"cron": ["0 2 * * *"], "every": 60}},
        {"calendar": {}},
        {"calendar": {"every": 10.5}},
        {"catchup_window": 9},
        {"jitter": -1},
        {"overlap": "Cancel"},
        {"target": {"kind": "Reboot"}},
        {"target": {**darks(new_id()), "wait": 0}},
        {"target": {**darks(new_id()), "conduct": {"command": "conduct_from_procedure"}}},
        {"target": {**darks(new_id()), "conduct": {"wait": 0}}},
        {"run_as": str(new_id())},
    ],
)
def test_what_has_not_the_form_of_a_schedule_is_malformed(changes: dict[str, Any]) -> None:
    asked = {"name": "Darks", "calendar": NIGHTLY, "target": darks(new_id())}
    DefineSchedule(**asked)
    with pytest.raises(ValidationError):
        DefineSchedule(**{**asked, **changes})


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (HoldSchedule(reason=" "), "InvalidScheduleHoldReasonError"),
        (RetireSchedule(reason=" "), "InvalidScheduleRetireReasonError"),
    ],
)
def test_a_reason_is_not_blank(world: World, command: Any, code: str) -> None:
    with expect_refusal(code, "blank"):
        world.when(command, on=define_schedule(world))


def test_resuming_clears_the_reason(world: World) -> None:
    id = define_schedule(world)
    world.when(HoldSchedule(reason="beam dump"), on=id)
    assert schedule_of(world, id).last_status_reason == "beam dump"
    world.when(ResumeSchedule(), on=id)
    assert schedule_of(world, id).last_status_reason is None


@pytest.mark.parametrize(
    ("before", "command", "engine_notified"),
    [
        ((), HoldSchedule(reason="beam dump"), True),
        ((HoldSchedule(reason="beam dump"),), ResumeSchedule(), True),
        ((), RetireSchedule(reason="over"), True),
        ((), TriggerSchedule(), False),
    ],
)
def test_every_change_of_the_calendar_is_recorded_for_the_engine(
    world: World, before: tuple[Any, ...], command: Any, engine_notified: bool
) -> None:
    id = define_schedule(world)
    for earlier in before:
        world.when(earlier, on=id)
    known = world.records[ScheduleChange, id]
    world.when(command, on=id)
    assert (world.records[ScheduleChange, id] != known) is engine_notified


def test_a_firing_has_one_outcome_however_often_it_is_recorded(world: World) -> None:
    id = define_schedule(world)
    what = {"firing_id": new_id(), "scheduled_at": SUMMER}
    procedure_id = new_id()
    (event,) = world.when(RecordScheduleFiring(**what, procedure_id=procedure_id), on=id)
    assert event == ScheduleFired(scheduled_at=SUMMER, run_id=None, procedure_id=procedure_id, count=1)
    assert event.own_id is not None
    assert world.when(RecordScheduleFiring(**what, procedure_id=procedure_id), on=id) == []
    assert world.when(RecordScheduleFiringRefusal(**what, code="UnauthorizedError", detail="no"), on=id) == []
    assert schedule_of(world, id).firing_count == 1


def test_a_refusal_keeps_so_much_of_its_sentence(world: World) -> None:
    id = define_schedule(world)
    why = {"firing_id": new_id(), "scheduled_at": SUMMER, "code": "X", "detail": "x" * 900}
    (event,) = world.when(RecordScheduleFiringRefusal(**why), on=id)
    assert event == ScheduleFiringRefused(scheduled_at=SUMMER, code="X", detail="x" * 500, count=1)


@pytest.mark.parametrize("verb", [None, HoldSchedule(reason="beam dump"), RetireSchedule(reason="over")])
def test_outcomes_are_recorded_whatever_became_of_the_schedule(world: World, verb: Any) -> None:
    id = define_schedule(world)
    if verb is not None:
        world.when(verb, on=id)
    status = schedule_of(world, id).status
    record_firing(world, id)
    record_refused_firing(world, id)
    assert (schedule_of(world, id).status, schedule_of(world, id).firing_count) == (status, 2)


def test_a_pause_in_the_engine_is_taken_over_once(world: World) -> None:
    id = define_schedule(world)
    events = world.when(TakeOverSchedulePause(), on=id)
    assert events == [ScheduleHeld(reason="paused in the engine")]
    assert standing_of(world, id).paused
    assert world.when(TakeOverSchedulePause(), on=id) == []
    world.when(ResumeSchedule(), on=id)
    assert world.when(TakeOverSchedulePause(), on=id) == [], "the engine has not been told yet that it may go on"


def test_what_no_worker_took_up_counts_as_missed_like_what_the_engine_dropped(world: World) -> None:
    id = define_schedule(world)
    world.records[ScheduleEngineState, id] = replace(standing_of(world, id), missed_count=3)
    for hour, code in enumerate(("ScheduleFiringMissedError", "UnauthorizedError", "ScheduleFiringMissedError")):
        record_refused_firing(world, id, SUMMER + timedelta(hours=hour), code=code)
    record_firing(world, id, SUMMER + timedelta(hours=3), procedure_id=register_fired_procedure(world, id))
    assert world.ask(GetSchedule(), on=id).missed_count == 5


@pytest.mark.parametrize("calendar", [{"every": 10}, {"cron": ["* * * * *"]}])
@pytest.mark.parametrize("end", ["2101-01-01T00:00:00Z", "9999-12-31T23:59:30Z"])
def test_behind_the_end_of_all_calendars_nothing_is_coming(world: World, calendar: dict[str, Any], end: str) -> None:
    id = define_schedule(world, calendar=calendar, time_zone="Pacific/Kiritimati")
    assert world.ask(GetSchedule(as_of=datetime.fromisoformat(end)), on=id).next_firings == ()


def test_a_schedule_shows_its_next_five_firings_and_its_last_ten(world: World) -> None:
    id = define_schedule(world, calendar={"every": 3600})
    for hour in range(12):
        record_firing(world, id, SUMMER + timedelta(hours=hour), procedure_id=register_fired_procedure(world, id))
    record_refused_firing(world, id, SUMMER + timedelta(hours=12))
    view = world.ask(GetSchedule(), on=id)
    hours = [world.now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=ahead) for ahead in range(1, 6)]
    assert list(view.next_firings) == hours
    assert [one.scheduled_at for one in view.last_firings] == [SUMMER + timedelta(hours=12 - ago) for ago in range(10)]
    assert [one.outcome for one in view.last_firings] == ["UnauthorizedError", *["Defined"] * 9]
    assert (view.last_firings[0].detail, view.last_firings[0].procedure_id) == ("It was refused.", None)
    assert (view.firing_count, view.missed_count, view.skipped_count) == (13, 0, 0)


def register_fired_procedure(world: World, id: UUID) -> UUID:
    """Register a procedure as a firing does."""
    aim: Any = schedule_of(world, id).aim
    command: RegisterProcedureFromRecipe = aim.registration()
    return world.create(command)


def test_what_the_engine_counted_is_shown_and_the_past_has_none_of_it(world: World) -> None:
    id = define_schedule(world)
    world.records[ScheduleEngineState, id] = replace(standing_of(world, id), missed_count=3, skipped_count=2)
    view = world.ask(GetSchedule(), on=id)
    assert (view.missed_count, view.skipped_count) == (3, 2)
    past = world.ask(GetSchedule(as_of=SUMMER), on=id)
    assert (past.missed_count, past.skipped_count) == (None, None)
    assert past.next_firings[0] == SUMMER + timedelta(days=1)


@pytest.mark.parametrize("verb", [HoldSchedule(reason="beam dump"), RetireSchedule(reason="over")])
def test_what_is_not_active_has_no_firings_ahead_and_no_pause_to_take_over(world: World, verb: Any) -> None:
    id = define_schedule(world)
    world.when(verb, on=id)
    assert world.ask(GetSchedule(), on=id).next_firings == ()
    assert world.when(TakeOverSchedulePause(), on=id) == []


DUE = DueFiring(schedule_id=new_id(), scheduled_at=SUMMER, started_at=SUMMER)
TRIGGERED = DUE.model_copy(update={"trigger_id": new_id()})


@for_each(
    ("due", "same", "other"),
    [
        (DUE, {"started_at": SUMMER + timedelta(hours=1)}, {"scheduled_at": SUMMER + timedelta(seconds=10)}),
        (DUE, {"correlation_id": new_id()}, {"schedule_id": new_id()}),
        (DUE, {}, {"trigger_id": new_id()}),
        (TRIGGERED, {"scheduled_at": SUMMER + timedelta(hours=1)}, {"trigger_id": new_id()}),
    ],
)
def test_ids_of_a_firing_follow_from_when_it_was_due_or_from_what_triggered_it(
    due: DueFiring, same: dict[str, Any], other: dict[str, Any]
) -> None:
    names: tuple[Callable[[DueFiring], UUID], ...] = (
        lambda one: one.id,
        lambda one: one.run_id,
        lambda one: one.conduct_id,
        lambda one: one.procedure_id(0),
        lambda one: one.procedure_id(1),
    )
    ids = [name(due) for name in names]
    assert len(set(ids)) == len(ids)
    assert all(id.version == 7 for id in ids)
    assert [name(due.model_copy(update=same)) for name in names] == ids
    assert not set(ids) & {name(due.model_copy(update=other)) for name in names}
    assert due.id.int >> 80 == (due.trigger_id or derived_uuid7(int(SUMMER.timestamp() * 1000), "", "")).int >> 80
