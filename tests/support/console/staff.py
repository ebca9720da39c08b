"""People of a service that enforces policies, each with the permissions they are given."""

from dataclasses import dataclass
from typing import Any

from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.service import Api

ADMIN = "019a0d00-0000-7000-8000-0000000000aa"
ENFORCED: dict[str, Any] = {"authorization_mode": "policy", "bootstrap_principal_id": ADMIN}


@dataclass(frozen=True)
class Person:
    """Somebody with a client of their own; the policy is the one that names them."""

    id: str
    api: Api
    policy_id: str | None

    async def see(self, path: str, *, after: int = 0, **query: str) -> str:
        """Return the source of a page as they see it, on one line; its lists show everything up to this position."""
        answer = await self.api.get(path, **query, position=after)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[-1000:]}"
        return " ".join(answer.text.split())


async def employ(api: Api, name: str, *commands: str, sets: tuple[str, ...] = (), kind: str = "human") -> Person:
    """Make somebody known, and permit them these commands and sets; with neither, nothing."""
    boss = api.acting_as(ADMIN)
    id, policy_id = await boss.create("/actors", {"name": name, "kind": kind}), None
    if commands or sets:
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [id]}
        held = {"permitted_commands": list(commands), "permitted_command_sets": list(sets)}
        policy_id = await boss.create("/policies", {"name": f"Work of {name}", **place, **held})
    return Person(id, api.acting_as(id), policy_id)
