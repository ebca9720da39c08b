"""A decision has no states: registered is final, and everything after it only adds."""

from uuid import UUID

from baton.domain.decision.decision import Decision
from tests.support.domain.agents import agent_world, drafter, register_decision
from tests.support.domain.caution_proposals import proposal_fields
from tests.support.domain.cautions import ensure_target_exists, on_asset
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb
from tests.support.domain.world import START, World, new_id


def decision_begins(world: World) -> tuple[UUID, Scene]:
    """A decision that proposes a caution, so that every verb can succeed."""
    stage = new_id()
    ensure_target_exists(world, on_asset(stage))
    return register_decision(world, drafter(world), **proposal_fields("ProposeNotice", stage)), Scene()


def one_call(scene: Scene) -> dict[str, object]:
    span = {"event_id": new_id(), "occurred_at": START, "operation_name": "chat"}
    return {"entries": [{**span, "provider_name": "acme", "request_model": "m-1"}]}


LIVES = ()
STATELESS = (
    Lifecycle(
        Decision.__name__,
        "register_decision",
        decision_begins,
        {},
        {
            "rate_decision": Verb(given=lambda scene: {"rating": "useful"}),
            "append_inferences": Verb(given=one_call),
            # What it writes is on the stream of the caution.
            "promote_caution_proposal": Verb(quiet=True),
        },
        agent_world,
        also_by=("dismiss_event_in_reaction",),
    ),
)
