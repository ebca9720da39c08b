"""Approvals over MCP: where a client can ask the person behind it, that person confirms an approval before it is given. It
protects people from what their own agents do; who may approve at all is decided by policies, as on every surface."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import mcp_types
from mcp.server import ServerRequestContext
from mcp_types import CallToolRequestParams, ElicitRequest, ElicitResult
from mcp_types import ElicitRequestFormParams as Form
from mcp_types.version import is_version_at_least

from baton.application.caller import Caller
from baton.application.service import Service
from baton.domain.shared.refusals import Forbidden, Refusal
from baton.domain.trust.proposal import ApproveProposal, GetProposal, ProposalView

ASKED = "approval"  # the key of the question, where the client sends its answer with the call
ASKED_WITHIN_CALLS = "2026-07-28"  # the first protocol whose answers ask for what is missing
APPROVING = ApproveProposal.operation
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Approve", "description": "Carry it out now, as its proposer."},
        "reason": {"type": "string", "title": "Reason", "maxLength": 500, "description": "Goes on record; may be left out."},
    },
    "required": ["approve"],
}
Context = ServerRequestContext[Any, Any]


class ApprovalNotConfirmedError(Forbidden):
    """The person behind the client was asked to approve, and did not."""


async def confirm(
    context: Context, params: CallToolRequestParams, service: Service, caller: Caller
) -> CallToolRequestParams | mcp_types.InputRequiredResult:
    """Return the call to carry out: an approval with what the person said to it, any other as it came. Return the question
    where the client is to ask it and call again; raise ApprovalNotConfirmedError where the person does not approve."""
    arguments = approval_arguments(params)
    if arguments is None or arguments.get("dry_run") or not can_ask(context):
        return params
    asks_within_calls = is_version_at_least(context.protocol_version, ASKED_WITHIN_CALLS)
    given = (params.input_responses or {}).get(ASKED)
    if asks_within_calls and not isinstance(given, ElicitResult):
        form = Form(message=await question(arguments, service, caller), requested_schema=SCHEMA)
        return mcp_types.InputRequiredResult(input_requests={ASKED: ElicitRequest(params=form)})
    if not asks_within_calls:
        given = await context.session.elicit_form(await question(arguments, service, caller), SCHEMA, context.request_id)
    content = given.content if isinstance(given, ElicitResult) and given.action == "accept" else None
    if content is None or content.get("approve") is not True:
        detail = "The person who was asked did not approve; the proposal stays as it is, and reject_proposal closes it."
        raise ApprovalNotConfirmedError(detail, reason="not_confirmed")
    return with_reason(params, content.get("reason"))


def can_ask(context: Context) -> bool:
    """Return whether the client says that it shows forms to a person; one that names no form of asking means these."""
    able = context.session.client_capabilities
    asking = None if able is None else able.elicitation
    return asking is not None and (asking.form is not None or asking.url is None)


def approval_arguments(params: CallToolRequestParams) -> Mapping[str, Any] | None:
    """Return the arguments of an approval, called by its own name or through another tool; None for any other call."""
    arguments = params.arguments or {}
    if params.name == APPROVING.name:
        return arguments
    named = params.name == "call_operation" and arguments.get("name") == APPROVING.name
    own = arguments.get("arguments", {})
    return own if named and isinstance(own, Mapping) else None


def with_reason(params: CallToolRequestParams, reason: Any) -> CallToolRequestParams:
    """Return the call with the reason that the person gave, where they gave one."""
    if not isinstance(reason, str) or not reason.strip():
        return params
    own = {**(approval_arguments(params) or {}), "reason": reason}
    arguments = own if params.name == APPROVING.name else {**(params.arguments or {}), "arguments": own}
    return params.model_copy(update={"arguments": arguments})


async def question(arguments: Mapping[str, Any], service: Service, caller: Caller) -> str:
    """Return what the person is asked: the command, and what it would do now as far as the caller may know."""
    try:
        proposal_id = UUID(str(arguments.get("proposal_id")))
        view: ProposalView = await service.ask(GetProposal(), caller, target_id=proposal_id)
    except (Refusal, ValueError):
        return "Your agent asks to approve a proposal. Approve it?"
    rehearsal = view.rehearsal
    if rehearsal is None:
        return f"Your agent asks to approve {view.command_name}, which is {view.status.value}. Approve it?"
    if rehearsal.refusal is not None:
        return f"Your agent asks to approve {view.command_name}. It would be refused now: {rehearsal.refusal['detail']}"
    events = ", ".join(event.event_type for event in rehearsal.would or ()) or "nothing"
    return f"Your agent asks to approve {view.command_name}. It would record {events} for its proposer. Approve it?"
