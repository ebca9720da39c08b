"""The two adapters of the authorization seam: permissive for development, and policies folded from their streams."""

from uuid import UUID

from application.ports import Caller, Store, VerdictLog
from application.unit import decoded
from domain.access.actor import Actor
from domain.kernel import NIL, SYSTEM_CONDUIT
from domain.registry import REGISTRY
from domain.trust.authorization import AuthzResult, Standing, judge, permitted_commands
from domain.trust.conduit import Decision
from domain.trust.policy import LISTENERS, Policy, look_up_key

ALLOWED = AuthzResult(Decision.ALLOW)


class PermissiveAuthorizer:
    """Allows everything and records nothing; for development and tests."""

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        return ALLOWED

    async def permitted(self, caller: Caller) -> frozenset[str]:
        return REGISTRY.command_names()


class PolicyAuthorizer:
    """Judges by the policies of the caller's conduit and surface, folded up to the very latest event.

    Folds are kept between calls and only newer events are read, so a revocation counts at once and a call costs one
    small query however many policies there are.
    """

    def __init__(self, store: Store, verdicts: VerdictLog) -> None:
        self._store = store
        self._verdicts = verdicts
        self._policies: dict[str, dict[UUID, tuple[int, Policy]]] = {}
        self._actors: dict[UUID, tuple[int, Actor]] = {}

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        surface_id = caller.surface_id if surface_id is None else surface_id
        if is_system(caller, surface_id):
            return ALLOWED
        result = judge(
            await self._standing(caller.principal_id),
            await self._applicable(caller.conduit_id, surface_id),
            caller.principal_id,
            command_name,
            caller.conduit_id,
            surface_id,
        )
        self._verdicts.record(caller, surface_id, command_name, result)
        return result

    async def permitted(self, caller: Caller) -> frozenset[str]:
        if is_system(caller, caller.surface_id):
            return REGISTRY.command_names()
        return permitted_commands(
            await self._standing(caller.principal_id),
            await self._applicable(caller.conduit_id, caller.surface_id),
            caller.principal_id,
            caller.conduit_id,
            caller.surface_id,
        )

    async def _standing(self, principal_id: UUID) -> Standing:
        version, actor = self._actors.get(principal_id, (0, None))
        for row in await self._store.newer(Actor.__name__, {principal_id: version}):
            actor = Actor.aggregate.after(actor, decoded(Actor.aggregate, row))
            self._actors[principal_id] = (row.version, actor)
        return Standing(actor)

    async def _applicable(self, conduit_id: UUID, surface_id: UUID) -> list[Policy]:
        key = look_up_key(conduit_id, surface_id)
        known = self._policies.setdefault(key, {})
        versions = {id: version for id, (version, _) in known.items()}
        for row in await self._store.newer(Policy.__name__, versions, (LISTENERS, key)):
            version, policy = known.get(row.stream_id, (0, None))
            if row.version == version + 1:
                known[row.stream_id] = (row.version, Policy.aggregate.after(policy, decoded(Policy.aggregate, row)))
        return [policy for _, policy in known.values()]


def is_system(caller: Caller, surface_id: UUID) -> bool:
    """Whether the service itself is calling; no transport can form this combination."""
    return caller.principal_id == NIL and surface_id == NIL and caller.conduit_id == SYSTEM_CONDUIT
