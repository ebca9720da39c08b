"""A group with a member, a policy that permits with approval, and what somebody proposes under it.

Where no policies are enforced, no call becomes a proposal; there it is proposed in process, as the service would do it.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx

from baton.application.authorization import PermissiveAuthorizer, PrincipalStatuses
from baton.application.caller import Caller
from baton.domain.kernel import NIL, Command
from baton.domain.trust.authorization import ApprovalRequiredError
from baton.domain.trust.group_members import AddGroupMember
from baton.domain.trust.proposal import ExpireProposal, RecordProposalOutcome
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.service import Api

Ids = dict[str, str]
NOT_SHOWN = "0" * 64
GONE = {"code": "GroupNotFoundError", "reason": None, "detail": "There is no such group.", "facts": {}}


async def create_samples(api: Api, ids: Ids, mark: str) -> None:
    ids["group_id"] = await api.create("/groups", {"name": f"Operators {mark}"})
    await api.execute(f"/groups/{ids['group_id']}/add-member", {"actor_id": ids["actor_id"]})
    grant = {"conduit_id": ids["conduit_id"], "surface_id": ids["surface_id"], "permitted_principal_ids": []}
    groups = {"permitted_group_ids": [ids["group_id"]], "permitted_commands": ["AddGroupMember", "RenameGroup"]}
    approval = {"principals": [caller_of(api)], "groups": [ids["group_id"]], "expires_after": 3600}
    ids["approval_policy_id"] = await api.create("/policies", {"name": "Crew", **grant, **groups, "approval": approval})
    command = AddGroupMember(actor_id=UUID(ids["actor_id"]))
    ids["proposal_id"] = await propose(api, ids, command, ids["group_id"], by=ids["actor_id"])


def caller_of(api: Api) -> str:
    """Return as whom a client calls."""
    return api.headers.get("X-Principal-Id", str(NIL))


async def propose(api: Api, ids: Ids, command: Command, target_id: str, *, by: str) -> str:
    """Propose a command as somebody who holds it only with the approval of the caller, and return the proposal's id."""
    needed = ApprovalRequiredError.for_command(type(command).__name__, (UUID(ids["approval_policy_id"]),))
    caller = Caller(UUID(by), SYSTEM_HTTP, new_id())
    permissive = PermissiveAuthorizer(PrincipalStatuses(api.runtime.store))
    commands = replace(api.runtime.commands, authorizer=permissive)
    result = await commands.propose(command, caller, needed, UUID(target_id), None)
    assert result.body is not None
    return str(result.body["proposal_id"])


async def approve(api: Api, proposal_id: str, **fields: Any) -> httpx.Response:
    """Approve a proposal as it is shown now."""
    shown = (await api.get(f"/proposals/{proposal_id}")).json().get("digest")
    return await api.post(f"/proposals/{proposal_id}/approve", {"digest": shown or NOT_SHOWN, **fields})


async def settle(api: Api, proposal_id: str, refusal: Mapping[str, Any] | None = None) -> None:
    """Approve a proposal, and record that its command was carried out, or refused, as its workflow does."""
    approved = await approve(api, proposal_id, reason="as discussed", wait=0)
    assert approved.status_code == 202, approved.text
    outcome = RecordProposalOutcome(status=204) if refusal is None else RecordProposalOutcome(refusal=dict(refusal))
    await api.runtime.commands.execute(outcome, Caller.system(new_id()), target_id=UUID(proposal_id))


async def expire(api: Api, proposal_id: str) -> None:
    """Record that nobody approved a proposal, as its workflow does when the time is over."""
    tomorrow = replace(api.runtime.commands, clock=lambda: clock() + timedelta(days=1))
    await tomorrow.execute(ExpireProposal(), Caller.system(new_id()), target_id=UUID(proposal_id))
