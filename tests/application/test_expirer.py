"""The expirer: what has run out is expired and said so of, once; whatever somebody else did is theirs."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from baton.application.agents.rule_agents import Expirer
from baton.application.queries import Queries
from baton.domain.agent.rule_agents import EXPIRY_REASON
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.safety.clearance import AmendClearance, Clearance, ClearanceStatus, ExpireClearance
from baton.domain.shared.canonical import derived_uuid7
from tests.support.application.memory_agents import MemoryAgents, memory_agents
from tests.support.domain.assets import LUMEN
from tests.support.domain.clearances import binding, clearance_fields, clearance_in_status, template
from tests.support.domain.run_beamline import beamline
from tests.support.domain.world import new_id

EXPIRER = SEEDED["ClearanceExpirer"].id
DAY = timedelta(days=1)


def expirer(facility: MemoryAgents) -> Expirer:
    people = facility.people
    queries = Queries(people.store, people.authorizer, people.clock, new_id, people.ports)
    return Expirer(facility.client, queries)


async def facility_with_clearances(*ends: datetime | None) -> tuple[MemoryAgents, list[UUID]]:
    """A facility with a clearance until each of these times."""
    line = beamline()
    sheet = {"template_id": template(line.world, code="EXP", facility_code=LUMEN), "facility_code": LUMEN}
    bindings = [binding("Asset", line.hutch.beamline)]
    ids = [clearance_in_status(line.world, "Active", bindings=bindings, valid_until=end, **sheet) for end in ends]
    facility = await memory_agents(line=line)
    return facility, ids


def clearance(facility: MemoryAgents, id: UUID) -> Clearance:
    found: Any = facility.store.state((Clearance.__name__, id))
    return found


async def due(facility: MemoryAgents) -> list[UUID]:
    """Everything that has run out, whatever page it is on."""
    found: list[UUID] = []
    page = await expirer(facility).due(None)
    while True:
        found += page.clearance_ids
        if page.next_cursor is None:
            return found
        page = await expirer(facility).due(page.next_cursor)


async def test_what_has_run_out_is_expired_with_a_decision() -> None:
    end = beamline().world.now + DAY
    facility, (id,) = await facility_with_clearances(end)
    assert await due(facility) == []
    facility.clock.now = end
    assert await due(facility) == [id], "the very moment counts"
    await expirer(facility).expire(id)
    assert clearance(facility, id).status is ClearanceStatus.EXPIRED
    assert facility.store.streams[Clearance.__name__, id][-1].principal_id == EXPIRER
    (decision,) = facility.decisions()
    assert decision.id == derived_uuid7(int(end.timestamp() * 1000), str(EXPIRER), f"expire:{id}")
    assert (decision.context, decision.choice, decision.rule) == ("ClearanceExpiry", "Expire", "agent:ClearanceExpirer:v1")
    assert decision.inputs == {"clearance_id": str(id), "valid_until": end.isoformat().replace("+00:00", "Z")}
    assert await due(facility) == []


async def test_a_clearance_without_an_end_is_never_due() -> None:
    facility, (id,) = await facility_with_clearances(None)
    facility.clock.now += 1000 * DAY
    assert await due(facility) == []
    await expirer(facility).expire(id)
    assert clearance(facility, id).status is ClearanceStatus.ACTIVE
    assert facility.decisions() == []


async def test_all_that_is_due_is_found_page_by_page() -> None:
    end = beamline().world.now + DAY
    facility, ids = await facility_with_clearances(*[end] * 101)
    facility.clock.now = end + DAY
    assert sorted(await due(facility)) == sorted(ids)


async def test_a_crash_between_expiry_and_decision_leaves_the_decision_written_once() -> None:
    end = beamline().world.now + DAY
    facility, (id,) = await facility_with_clearances(end)
    facility.clock.now = end + DAY
    await facility.people.acting_as(EXPIRER, surface_id=UUID(int=0)).do(ExpireClearance(reason=EXPIRY_REASON), id)
    assert facility.decisions() == []
    for _ in range(2):
        await expirer(facility).expire(id)
    assert [one.choice for one in facility.decisions()] == ["Expire"]


async def test_what_somebody_else_expired_is_no_decision_of_the_agent() -> None:
    end = beamline().world.now + DAY
    facility, (id,) = await facility_with_clearances(end)
    facility.clock.now = end + DAY
    await facility.do(ExpireClearance(reason="withdrawn"), id)
    await expirer(facility).expire(id)
    assert facility.decisions() == []


async def test_what_was_amended_meanwhile_is_left_alone() -> None:
    end = beamline().world.now + DAY
    facility, (id,) = await facility_with_clearances(end)
    amended = clearance_fields(clearance(facility, id).template_id, facility_code=LUMEN, valid_until=end + 10 * DAY)
    await facility.do(AmendClearance(**amended), id)
    facility.clock.now = end + DAY
    await expirer(facility).expire(id)
    assert clearance(facility, id).status is ClearanceStatus.SUPERSEDED
    assert facility.decisions() == []


async def test_what_is_not_due_yet_is_left_alone() -> None:
    end = beamline().world.now + DAY
    facility, (id,) = await facility_with_clearances(end)
    await expirer(facility).expire(id)
    assert clearance(facility, id).status is ClearanceStatus.ACTIVE
    assert facility.decisions() == []


async def test_an_agent_that_is_off_expires_nothing() -> None:
    end = beamline().world.now + DAY
    facility, (id,) = await facility_with_clearances(end)
    await facility.suspend(EXPIRER)
    facility.clock.now = end + DAY
    assert await due(facility) == []
    await expirer(facility).expire(id)
    assert clearance(facility, id).status is ClearanceStatus.ACTIVE
    assert facility.decisions() == []
