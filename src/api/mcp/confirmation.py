"""Approvals over MCP: where a client can ask the person behind it, that person confirms an approval before it is given. It
protects people from what their own agents do; who may approve at all is decided by policies, as on every surface."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

import mcp_types
from mcp.server import ServerRequestContext
from mcp_types import CallToolRequestParams, ElicitRequest, ElicitResult
from mcp_types import ElicitRequestFormParams as Form
from mcp_types.version import is_version_at_least

from baton.api.mcp.sentences import DATA_BEGINS, DATA_ENDS
from baton.application.caller import Caller
from baton.application.service import Service
from baton.domain.contexts import REGISTRY
from baton.domain.shared.naming import name_field
from baton.domain.shared.refusals import Forbidden, Refusal
from baton.domain.shared.text import UNNAMEABLE, shorten
from baton.domain.trust.proposal import ApproveProposal, GetProposal

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
MOST_LINES = 20  # of the fields, and of what would be recorded
LONGEST_VALUE = 160  # characters
Context = ServerRequestContext[Any, Any]


class ApprovalNotConfirmedError(Forbidden):
    """The person behind the client was asked to approve, and did not."""


async def confirm(
    context: Context, params: CallToolRequestParams, service: Service, caller: Caller
) -> CallToolRequestParams | mcp_types.InputRequiredResult:
    """Return the call to carry out: an approval with what the person said to it, any other as it came. Return the question
    where the client is to ask it and call again; raise ApprovalNotConfirmedError where the person does not approve. The
    person's answer counts for the digest of what they were shown."""
    arguments = approval_arguments(params)
    if arguments is None or arguments.get("dry_run") or not can_ask(context):
        return params
    asked = f"{ASKED}:{arguments.get('digest')}"
    given = (params.input_responses or {}).get(asked)
    if not isinstance(given, ElicitResult):
        if (message := await question(arguments, service, caller)) is None:
            return params
        if is_version_at_least(context.protocol_version, ASKED_WITHIN_CALLS):
            form = Form(message=message, requested_schema=SCHEMA)
            return mcp_types.InputRequiredResult(input_requests={asked: ElicitRequest(params=form)})
        given = await context.session.elicit_form(message, SCHEMA, context.request_id)
    content = given.content if given.action == "accept" else None
    if content is None or content.get("approve") is not True:
        detail = "The person who was asked did not approve; the proposal stays as it is, and reject_proposal closes it."
        raise ApprovalNotConfirmedError(detail, reason="not_confirmed")
    return with_reason(params, content.get("reason"))


def can_ask(context: Context) -> bool:
    """Return whether the client says that it shows forms to a person; one that names no form of asking means these."""
    able = context.session.client_capabilities
    asking = None if able is None else able.elicitation
    return asking is not None and (asking.form is not None or asking.url is None)


def approval_arguments(params: CallToolRequestParams) -> Mapping[str, object] | None:
    """Return the arguments of an approval, called by its own name or through another tool; None for any other call."""
    arguments = params.arguments or {}
    if params.name == APPROVING.name:
        return arguments
    named = params.name == "call_operation" and arguments.get("name") == APPROVING.name
    own = arguments.get("arguments", {})
    return own if named and isinstance(own, Mapping) else None


def with_reason(params: CallToolRequestParams, reason: object) -> CallToolRequestParams:
    """Return the call with the reason that the person gave, where they gave one."""
    if not isinstance(reason, str) or not reason.strip():
        return params
    own = {**(approval_arguments(params) or {}), "reason": reason}
    arguments = own if params.name == APPROVING.name else {**(params.arguments or {}), "arguments": own}
    return params.model_copy(update={"arguments": arguments})


async def question(arguments: Mapping[str, Any], service: Service, caller: Caller) -> str | None:
    """Return what the person is asked: which proposal, whose, about what, with which fields and values, and what it would
    record. Return None where the approval is refused anyhow: of something else than what the proposal shows now."""
    try:
        proposal_id = UUID(str(arguments.get("proposal_id")))
    except ValueError:
        return None
    view: Mapping[str, Any] = (await service.show(GetProposal(include="names"), caller, target_id=proposal_id)).shown
    rehearsal = view["rehearsal"]
    if rehearsal is None or view["digest"] != arguments.get("digest"):
        return None
    would = [(event["event_type"], event["payload"]) for event in rehearsal["would"] or ()]
    fields = data_lines((name, value) for name, value in (view["request"] or {}).items() if name != "wait")
    payloads = ((f"{name}.{field}", value) for name, payload in would for field, value in payload.items())
    events = data_lines((place, value) for place, value in payloads if not place.endswith(".occurred_at"))
    refusal = rehearsal["refusal"]
    outcome = f"It would be refused now: {data_text(refusal['detail'])}" if refusal else "It would record:"
    return "\n".join(
        [
            f"Your agent asks you to approve the proposal {proposal_id}.",
            DATA_BEGINS,
            f"Command: {view['command_name']}",
            f"Proposed by: {name_with_id(view.get('proposed_by_name'), view['proposed_by'])}",
            f"About: {await describe_target(view, service, caller)}",
            "Fields:" if fields else "Fields: none",
            *fields,
            outcome,
            *([] if refusal else events or ["  nothing"]),
            DATA_ENDS,
            "Approve it? It is carried out at once, as its proposer.",
        ]
    )


async def describe_target(view: Mapping[str, Any], service: Service, caller: Caller) -> str:
    """Return what a proposed command is about: its kind, its id, and its name as far as the caller may see it."""
    operation = next((one for one in REGISTRY if one.command_name == view["command_name"]), None)
    aggregate, id = None if operation is None else operation.aggregate, view["target_id"]
    if aggregate is None or id is None:
        return "something new, or several things"
    getting = REGISTRY.operations.get(f"get_{aggregate.label.replace(' ', '_')}")
    try:
        found = None if getting is None else await service.ask(getting.input(), caller, target_id=UUID(id))  # type: ignore[arg-type]
    except Refusal:
        found = None
    return f"{aggregate.label} {name_with_id(getattr(found, name_field(aggregate) or '', None), id)}"


def name_with_id(name: str | None, id: str) -> str:
    """Return somebody or something by name and id; where the caller may not see the name, by id."""
    return f"{data_text(name)} ({id})" if name else id


def data_lines(fields: Iterable[tuple[str, object]]) -> list[str]:
    """Return values with their places, a line each; the first of them, and how many more there are."""
    lines = [f"  {data_text(place)}: {data_text(value)}" for name, one in fields for place, value in leaves(name, one)]
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"  and {more} more, which get_proposal shows"] if more > 0 else lines


def leaves(place: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield every single value in plain data with its place."""
    match value:
        case dict() if value:
            for name, part in value.items():
                yield from leaves(f"{place}.{name}", part)
        case list() if value:
            for index, part in enumerate(value):
                yield from leaves(f"{place}[{index}]", part)
        case _:
            yield place, value


def data_text(value: object) -> str:
    """Return a value as JSON on one line, not too long, without characters that would pass for the text around it."""
    text = shorten(json.dumps(value, ensure_ascii=False), LONGEST_VALUE)
    return UNNAMEABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
