"""A decision has no states: registered is final, and whatever follows only adds."""

from uuid import UUID

from domain.decision.decision import Decision
from tests.domain.lives import Life, Scene, Verb, command
from tests.domain.world import START, World, new_id


def decision_begins(world: World) -> tuple[UUID, Scene]:
    decider = world.create(command("register_actor", {"name": "Anna Reis"}))
    choice = {"decided_by": decider, "context": "RunAbort", "choice": "abort scan, sample drifted"}
    return world.create(command("register_decision", choice)), Scene()


def one_call(scene: Scene) -> dict[str, object]:
    span = {"event_id": new_id(), "occurred_at": START, "operation_name": "chat"}
    return {"entries": [{**span, "provider_name": "acme", "request_model": "m-1"}]}


LIVES = ()
STATELESS = (
    Life(
        Decision.__name__,
        "register_decision",
        decision_begins,
        {},
        {"rate_decision": Verb(given=lambda scene: {"rating": "useful"}), "append_inferences": Verb(given=one_call)},
    ),
)
