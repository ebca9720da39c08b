"""The expirer's rule: which clearances are due, and what is put on record of one."""

from datetime import timedelta
from uuid import UUID

from baton.domain.agent.conclusions import decision_id_of
from baton.domain.agent.rule_agents import EXPIRY_REASON, expiry_decision, expiry_decision_id, is_due
from baton.domain.kernel import instant
from baton.domain.safety.clearance import Clearance, ClearanceStatus
from tests.support.domain.clearances import clearance_in_status, site_world
from tests.support.domain.world import START, new_id
from tests.support.tables import for_each

END = START + timedelta(days=2)


def clearance(status: str, **fields: object) -> Clearance:
    world = site_world()
    state: Clearance = world.state(Clearance, clearance_in_status(world, status, **fields))
    assert state.status == status
    return state


@for_each(("now", "due"), [(END - timedelta(microseconds=1), False), (END, True), (END + timedelta(days=100), True)])
def test_a_clearance_is_due_from_the_very_end_of_its_validity(now: object, due: bool) -> None:
    assert is_due(clearance("Active", valid_until=END), now) == due  # type: ignore[arg-type]


def test_a_clearance_without_an_end_is_never_due() -> None:
    assert not is_due(clearance("Active", valid_until=None), END + timedelta(days=36500))


@for_each("status", [status for status in ClearanceStatus if status is not ClearanceStatus.ACTIVE])
def test_only_an_active_clearance_is_due(status: ClearanceStatus) -> None:
    assert not is_due(clearance(status.value, valid_until=END), END)


def test_the_decision_is_that_of_the_agent_about_this_validity() -> None:
    clearance_id, agent_id = new_id(), new_id()
    id: UUID = expiry_decision_id(clearance_id, END, agent_id)
    assert id == decision_id_of(END, agent_id, f"expire:{clearance_id}")
    choice = expiry_decision(clearance_id, END, agent_id)
    assert (choice.decided_by, choice.context, choice.choice) == (agent_id, "ClearanceExpiry", "Expire")
    assert (choice.rule, choice.confidence) == ("agent:ClearanceExpirer:v1", None)
    assert choice.inputs == {"clearance_id": str(clearance_id), "valid_until": instant(END)}
    assert 1 <= len(EXPIRY_REASON) <= 500
