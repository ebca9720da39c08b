"""Passing over overwritten events leads to the same state as folding every one of them."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.access.actor import (
    ActorDeactivated,
    ActorProfileForgotten,
    ActorProfileUpdated,
    ActorReactivated,
    ActorRegistered,
)
from baton.domain.agent.agent import AgentBudgetUpdated, AgentDefined, AgentResumed, AgentSuspended, AgentToolGranted
from baton.domain.contexts import REGISTRY
from baton.domain.enclosure.enclosure import EnclosureDecommissioned, EnclosurePermitObserved, EnclosureRegistered
from baton.domain.equipment.asset import (
    AssetDegraded,
    AssetFamilyAdded,
    AssetFamilyRemoved,
    AssetFaulted,
    AssetMaintenanceEntered,
    AssetMaintenanceExited,
    AssetOverviewSet,
    AssetPartitionRuleUpdated,
    AssetRegistered,
    AssetRelocated,
    AssetRenamed,
    AssetRestored,
    AssetSettingsUpdated,
)
from baton.domain.equipment.partition import Affine
from baton.domain.kernel import Event, StoredEvent, UnknownEventError
from baton.domain.queue.queue import QueueHeld, QueueResumed, QueueRetired
from baton.domain.recipe.plan import (
    DataRegistration,
    PlanDataRegistrationSet,
    PlanDefaultParametersUpdated,
    PlanDefined,
    PlanRescheduled,
    PlanRoleBound,
    PlanRoleUnbound,
    PlanVersioned,
)
from baton.domain.schedule.schedule import (
    Schedule,
    ScheduleFired,
    ScheduleFiringRefused,
    ScheduleHeld,
    ScheduleResumed,
    ScheduleTriggered,
)
from baton.domain.supply.supply import (
    SupplyDegraded,
    SupplyDeregistered,
    SupplyMarkedAvailable,
    SupplyMarkedRecovering,
    SupplyMarkedUnavailable,
    SupplyRegistered,
    SupplyRestored,
)
from baton.domain.trust.subject_binding import ActorSubjectBound, ActorSubjectUnbound
from tests.support.domain.assets import facility_world
from tests.support.domain.queues import add_items, block_item, end_item, open_queue, start_item
from tests.support.domain.schedules import define_schedule
from tests.support.domain.world import START, World, new_id
from tests.support.stored_events import StoredStream, specimens
from tests.support.tables import for_each

TIMES = st.sampled_from([START, None])
FAMILIES = st.sampled_from([new_id(), new_id()])
PLACES = st.sampled_from([new_id(), new_id(), None])
TEXTS = st.sampled_from(["a", "b", "c"])
ASSET_LIFE = st.lists(
    st.one_of(
        st.builds(AssetRenamed, name=TEXTS),
        st.builds(AssetDegraded, reason=TEXTS),
        st.builds(AssetFaulted, reason=TEXTS),
        st.builds(AssetRestored, reason=TEXTS),
        st.builds(AssetMaintenanceEntered),
        st.builds(AssetMaintenanceExited),
        st.builds(AssetOverviewSet, signals=st.just(()), camera=TEXTS),
        st.builds(AssetFamilyAdded, family_id=FAMILIES),
        st.builds(AssetFamilyRemoved, family_id=FAMILIES),
        st.builds(AssetPartitionRuleUpdated, partition_rule=st.sampled_from([None, Affine(kind="Affine", gain=2.0)])),
        st.builds(AssetSettingsUpdated, settings=st.dictionaries(TEXTS, st.integers()), schema_revisions=st.just({})),
        st.builds(
            AssetRelocated,
            from_parent_id=PLACES,
            to_parent_id=PLACES,
            from_enclosure_id=PLACES,
            to_enclosure_id=PLACES,
            reason=TEXTS,
        ),
    ),
    max_size=30,
)
ACTOR_LIFE = st.lists(
    st.one_of(
        st.builds(ActorDeactivated),
        st.builds(ActorReactivated),
        st.builds(ActorProfileUpdated, updated_fields=st.tuples(TEXTS)),
        st.builds(ActorProfileForgotten),
        st.builds(ActorSubjectBound, issuer=TEXTS),
        st.builds(ActorSubjectUnbound, issuer=TEXTS),
    ),
    max_size=20,
)
SUPPLY_EVENTS = (
    SupplyMarkedAvailable,
    SupplyDegraded,
    SupplyMarkedUnavailable,
    SupplyMarkedRecovering,
    SupplyRestored,
    SupplyDeregistered,
)
BY = {"trigger": st.just("Monitor"), "triggered_by": st.uuids()}
SUPPLY_LIFE = st.lists(
    st.one_of(*(st.builds(event, from_status=st.just("Unknown"), reason=TEXTS, **BY) for event in SUPPLY_EVENTS)),
    max_size=30,
)
PERMITS = st.sampled_from(["Permitted", "NotPermitted", "Unknown"])
ENCLOSURE_LIFE = st.lists(
    st.one_of(
        st.builds(
            EnclosurePermitObserved,
            from_status=PERMITS,
            to_status=PERMITS,
            reason=TEXTS,
            monitor_ref=TEXTS.map(lambda text: f"{text}:{text}"),
            observed_at=st.sampled_from([None, START]),
            **BY,
        ),
        st.builds(EnclosureDecommissioned, reason=TEXTS, triggered_by=st.uuids()),
    ),
    max_size=30,
)
BORN = AssetRegistered.model_validate(
    {
        "name": "Stage",
        "tier": "Device",
        "parent_id": None,
        "facility_code": "lumen",
        "family_ids": [],
        "model_id": None,
        "controller_id": None,
        "located_in_enclosure_id": None,
        "drawing": None,
        "alternate_identifiers": [],
        "owners": [],
    }
)


def stored_events(id: UUID, events: list[Event]) -> list[StoredEvent]:
    return [
        StoredEvent(id, version, version, type(event).__name__, event.stamp(id, START).payload(), START)
        for version, event in enumerate(events, 1)
    ]


@given(ASSET_LIFE)
def test_an_asset_replays_to_what_it_folds_to(life: list[Event]) -> None:
    rows = stored_events(new_id(), [BORN, *life])
    asset = REGISTRY.aggregates["Asset"]
    every = asset.fold(asset.decode(row.event_type, row.payload, row.stream_id, row.occurred_at) for row in rows)
    assert asset.replay(rows) == every


@given(ACTOR_LIFE)
def test_an_actor_replays_to_what_it_folds_to(life: list[Event]) -> None:
    rows = stored_events(new_id(), [ActorRegistered(kind="human"), *life])
    actor = REGISTRY.aggregates["Actor"]
    every = actor.fold(actor.decode(row.event_type, row.payload, row.stream_id, row.occurred_at) for row in rows)
    assert actor.replay(rows) == every


@given(SUPPLY_LIFE)
def test_a_supply_replays_to_what_it_folds_to(life: list[Event]) -> None:
    by = {"trigger": "Operator", "triggered_by": new_id()}
    born = SupplyRegistered(kind="cryogen", name="Drop", facility_code="lumen", containing_asset_id=None, **by)
    assert_replays("Supply", [born, *life])


@given(ENCLOSURE_LIFE)
def test_an_enclosure_replays_to_what_it_folds_to(life: list[Event]) -> None:
    born = EnclosureRegistered(name="Hutch", facility_code="lumen", registered_by=new_id())
    assert_replays("Enclosure", [born, *life])


PLAN_LIFE = st.lists(
    st.one_of(
        st.builds(PlanRescheduled, window_starts_at=TIMES, window_ends_at=TIMES),
        st.builds(
            PlanDefaultParametersUpdated,
            default_parameters=st.dictionaries(TEXTS, st.integers()),
            parameters_schema_revision=st.integers(0, 3),
        ),
        st.builds(PlanDataRegistrationSet, data_registration=st.none() | st.builds(DataRegistration, supply_id=FAMILIES)),
        st.builds(PlanVersioned, version_tag=TEXTS),
        st.builds(PlanRoleBound, role_name=TEXTS, asset_id=FAMILIES),
        st.builds(PlanRoleUnbound, role_name=TEXTS),
    ),
    max_size=20,
)


@given(PLAN_LIFE)
def test_a_plan_replays_to_what_it_folds_to(life: list[Event]) -> None:
    bound = {"practice_id": new_id(), "method_id": new_id(), "asset_ids": [new_id()]}
    snapshots = {"method_needed_family_ids_snapshot": [], "asset_families_snapshot": {}}
    window = {"window_starts_at": None, "window_ends_at": None}
    assert_replays("Plan", [PlanDefined(name="Spring block", **bound, **snapshots, **window), *life])


SCHEDULE_LIFE = st.lists(
    st.one_of(
        st.builds(
            ScheduleFired, scheduled_at=st.just(START), run_id=st.none(), procedure_id=FAMILIES, count=st.integers(1, 9)
        ),
        st.builds(ScheduleFiringRefused, scheduled_at=st.just(START), code=TEXTS, detail=TEXTS, count=st.integers(1, 9)),
        st.builds(ScheduleHeld, reason=TEXTS),
        st.builds(ScheduleResumed),
        st.builds(ScheduleTriggered),
    ),
    max_size=20,
)
QUEUE_LIFE = st.lists(
    st.one_of(
        st.builds(QueueHeld, reason=TEXTS, item_id=st.none()),
        st.builds(QueueResumed, reason=st.none() | TEXTS),
        st.builds(QueueRetired, reason=TEXTS),
    ),
    max_size=20,
)
AGENT_LIFE = st.lists(
    st.one_of(
        st.builds(AgentSuspended, reason=TEXTS, suspended_by=st.uuids()),
        st.builds(AgentResumed, resumed_by=st.uuids()),
        st.builds(AgentToolGranted, tool_name=TEXTS),
        st.builds(
            AgentBudgetUpdated,
            monthly_cost_cap=st.sampled_from([None, 0.0, 40.0]),
            daily_token_cap=st.sampled_from([None, 0, 200_000]),
        ),
    ),
    max_size=20,
)


@given(SCHEDULE_LIFE)
def test_a_schedule_replays_to_what_it_folds_to(life: list[Event]) -> None:
    world = World()
    (born,) = world.streams[Schedule.__name__, define_schedule(world)]
    assert_replays("Schedule", [born, *life])


@given(QUEUE_LIFE, st.integers(0, 3), st.booleans())
def test_a_queue_replays_to_what_it_folds_to(life: list[Event], ended: int, blocked: bool) -> None:
    world = facility_world()
    id = open_queue(world, on_failure="continue")
    items = add_items(world, id, *"abcd")
    for item_id in items[:ended]:
        start_item(world, id, item_id)
        end_item(world, id, item_id)
    if blocked:
        block_item(world, id, items[ended])
    assert_replays("Queue", [*world.streams["Queue", id], *life])


@given(AGENT_LIFE)
def test_an_agent_replays_to_what_it_folds_to(life: list[Event]) -> None:
    model = {"provider": "acme", "model": "large-4"}
    unsaid = {"description": None, "canonical_uri": None, "prompt_template_id": None, "capabilities": []}
    assert_replays("Agent", [AgentDefined(kind="RunDebriefer", name="D", version="1", model_ref=model, **unsaid), *life])


def assert_replays(name: str, life: list[Event]) -> None:
    rows, aggregate = stored_events(new_id(), life), REGISTRY.aggregates[name]
    decoded = (aggregate.decode(row.event_type, row.payload, row.stream_id, row.occurred_at) for row in rows)
    assert aggregate.replay(rows) == aggregate.fold(decoded)


def test_every_overwriting_event_is_among_those_tried() -> None:
    tried = {
        *(event for event in SUPPLY_EVENTS if event.overwrites),
        *(EnclosurePermitObserved, AgentBudgetUpdated),
        *(PlanRescheduled, PlanDefaultParametersUpdated, PlanDataRegistrationSet),
        *(ScheduleFired, ScheduleFiringRefused),
        *(AssetRenamed, AssetDegraded, AssetFaulted, AssetRestored, AssetMaintenanceEntered, AssetMaintenanceExited),
        *(AssetSettingsUpdated, AssetRelocated, ActorDeactivated, ActorReactivated, AssetPartitionRuleUpdated),
        AssetOverviewSet,
    }
    declared = {
        event for aggregate in REGISTRY.aggregates.values() for event in aggregate.events.values() if event.overwrites
    }
    assert {event.__name__ for event in declared} == {event.__name__ for event in tried}


def test_an_unknown_event_fails_the_load_even_where_it_would_be_passed_over() -> None:
    rows = stored_events(new_id(), [BORN, AssetRenamed(name="a"), AssetRenamed(name="b")])
    rows[1] = rows[1]._replace(event_type="AssetForgotten")
    with pytest.raises(UnknownEventError):
        REGISTRY.aggregates["Asset"].replay(rows)


@for_each("stream", specimens())
def test_a_state_is_folded_on_from_any_version_and_stays_as_it_was(stream: StoredStream) -> None:
    aggregate: Any = REGISTRY.aggregates[stream.stream_type]
    rows = stream.stored_rows()
    whole = aggregate.replay(rows)
    for place in range(1, len(rows) + 1):
        known = aggregate.replay(rows[:place])
        before = repr(known)
        assert aggregate.replay(rows[place:], known) == whole
        assert repr(known) == before
