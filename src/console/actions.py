"""CommandForms: the form of any command, its rehearsal, and its submission through the command path. What is
refused comes back beside the field or the button it is about."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import orjson
from markupsafe import Markup

from baton.api.errors import RequestValidationError, RouteNotFoundError
from baton.api.http import Request, Response
from baton.api.parsing import refuse_nul
from baton.api.schemas import input_schema
from baton.client.refusals import ClientError, ProposedError
from baton.console.display import href_of, short_id, words_of
from baton.console.forms import (
    CONTROLS,
    FLAG,
    FieldFaults,
    FormField,
    FormReader,
    Option,
    belongs,
    change_rows,
    errors_by_place,
    flatten,
    read_fields,
)
from baton.console.in_process import REFUSALS, AnyRefusal, InProcessClient, entry_of, problem_of
from baton.console.page_queries import PageQueries
from baton.console.pattern_picture import pattern_picture
from baton.console.rendering import html_response, redirect
from baton.console.sessions import FORM_TOKEN, ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.units import load_units
from baton.console.verbs import HALTING, verb_label
from baton.domain.conduct.run_conduct import ConductRun, GetRunConduct
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate
from baton.domain.procedure.procedure import DEFINED
from baton.domain.registry import Operation
from baton.domain.shared.naming import name_field
from baton.domain.trust.proposal import ApproveProposal, Proposal
from baton.domain.views.hold_everything import HoldEverything
from baton.domain.views.my_access import GetHolders

KEY, BACK, CHECK = "_key", "back", "_check"
OWN_PATH = re.compile(r"/console(?:[/?][!-\[\]-~]*)?")  # visible characters alone: it stands in headers
MOST_OPTIONS = 100
SHOWN = "digest"  # what the approver of a proposal was shown
LOOKED_AT = (SHOWN, "confirmed_digest")  # the fields that say what somebody was shown who approves or confirms
LISTS_PHASES = ("phases", "procedure_ids")  # the fields of conduct_run of which one is given
STEPS = ("steps", "pattern")  # the fields of a recipe of which one is given
FROM_CONSOLE = "From the console."
REASONS = ("Sample slipped.", "Beam lost.", "Wrong parameters.")  # why people stop work, at a press
LOOK_FIRST = "What is approved is what you saw: open the proposal, and approve it there."
TOLD_BY, OF = ("choice", "uri", "quantity"), ("dataset", "asset", "subject")
"""The fields by which people tell things apart that have no name, and what such things are of."""


@dataclass(frozen=True)
class FilledForm:
    """A form as it was filled in: its fields with what was typed, and what was read from them."""

    operation: Operation
    target: str | None
    typed: Mapping[str, str]
    fields: Sequence[FormField]


class CommandForms:
    """Shows and submits the forms of commands."""

    def __init__(self, console: ConsoleShell) -> None:
        self._console = console

    async def show(self, request: Request, session: ConsoleSession) -> Response:
        """Answer `GET /console/do/{operation}`: the form, filled in as far as the address says."""
        operation, typed = command_of(request), prefilled_fields(request)
        if operation is ConductRun.operation and not any(belongs(name, one) for name in typed for one in LISTS_PHASES):
            typed |= await self._phases_left(request, session, typed)
        if is_halt(operation):
            typed = {"reason": FROM_CONSOLE, **typed}
        unseen = operation is ApproveProposal.operation and SHOWN not in typed
        problem = {"detail": LOOK_FIRST, "code": None} if unseen else None
        return await self._page(request, session, operation, typed, problem=problem)

    async def _phases_left(self, request: Request, session: ConsoleSession, typed: Mapping[str, str]) -> dict[str, str]:
        """Return the phases that the latest conduct of a run has left, as they would be typed in; none while it is live."""
        run_id, queries = typed.get("run_id"), self._console.queries_of(request, session)
        conduct = await queries.show_found(GetRunConduct, run_id) if run_id else None
        if conduct is None or conduct["result"] is None:
            return {}
        left = [one for one in conduct["phases"] if one["status"] == DEFINED]
        return self._reader(ConductRun.operation).type_in(input_schema(ConductRun.operation), {"phases": left})

    async def submit(self, request: Request, session: ConsoleSession) -> Response:
        """Answer `POST /console/do/{operation}`: give the command, rehearse it, or change the form."""
        operation = command_of(request)
        typed = {**prefilled_fields(request), **typed_in(await request.body())}
        session.check_form(typed)
        if any(control in typed for control in CONTROLS) and CHECK not in typed:
            change_rows(typed)
            return await self._page(request, session, operation, typed)
        form = self._form(operation, typed)
        await load_units()
        try:
            arguments = self._arguments(form, typed)
            if CHECK in typed:
                return await self._rehearse(request, session, form, arguments)
            return await self._give(request, session, form, arguments, typed)
        except FieldFaults as faults:
            errors = {place: [text] for place, text in faults.faults.items()}
            return await self._page(request, session, operation, typed, errors=errors, status=422)
        except REFUSALS as refusal:
            return await self._show_refusal(request, session, form, refusal)
        except ClientError as error:
            return await self._page(request, session, operation, typed, problem=problem_of(error), status=422)

    async def _give(
        self,
        request: Request,
        session: ConsoleSession,
        form: FilledForm,
        arguments: Mapping[str, object],
        typed: Mapping[str, str],
    ) -> Response:
        operation = form.operation
        client = InProcessClient.of(self._console.parts.operations, session.caller)
        try:
            answer = await client.carry_out(client.session.call(entry_of(operation), arguments, key=typed.get(KEY) or None))
        except ProposedError as error:
            return lead_to_proposal(request, session, error, self._console.zone, client.session.position)
        return lead_to(
            request, session, destination(form, answer, typed), success_message(operation, answer), client.session.position
        )

    async def _rehearse(
        self, request: Request, session: ConsoleSession, form: FilledForm, arguments: Mapping[str, object]
    ) -> Response:
        """Answer what a command would do, and give it not."""
        client = InProcessClient.of(self._console.parts.operations, session.caller)
        would = await client.carry_out(client.session.call(entry_of(form.operation), arguments, dry_run=True))
        events = [{"event": words_of(one.event_type), "stream": one.stream} for one in would.would]
        picture = pattern_picture(arguments["pattern"]) if arguments.get("pattern") else None
        return await self._page(request, session, form.operation, form.typed, would=events, picture=picture)

    async def _show_refusal(
        self, request: Request, session: ConsoleSession, form: FilledForm, refusal: AnyRefusal
    ) -> Response:
        problem = problem_of(refusal)
        errors = errors_by_place(problem, form.fields)
        if (field := named_field(form, problem.get("code", ""))) is not None:
            errors.setdefault(field, []).append(problem["detail"])
        return await self._page(
            request, session, form.operation, form.typed, errors=errors, problem=problem, status=refusal.status
        )

    def _reader(self, operation: Operation, errors: Mapping[str, Sequence[str]] | None = None) -> FormReader:
        return FormReader(input_schema(operation).get("$defs", {}), self._console.zone, errors or {})

    def _form(
        self, operation: Operation, typed: Mapping[str, str], errors: Mapping[str, Sequence[str]] | None = None
    ) -> FilledForm:
        schema, reader = input_schema(operation), self._reader(operation, errors)
        hidden = [*carried_fields(operation), *(["wait"] if operation.opens_work else [])]
        shown = reader.fields(schema, typed, operation.aggregate, hidden)
        return FilledForm(operation, typed.get(operation.target or ""), typed, shown)

    def _arguments(self, form: FilledForm, typed: Mapping[str, str]) -> dict[str, object]:
        operation = form.operation
        arguments: dict[str, object] = read_fields(form.fields, typed, self._console.zone)
        arguments |= {name: typed[name] for name in carried_fields(operation) if name in typed}
        if operation.opens_work and "wait" in operation.input.model_fields:
            arguments["wait"] = 0  # the page of long work shows how far it is
        return arguments

    async def _page(
        self,
        request: Request,
        session: ConsoleSession,
        operation: Operation,
        typed: Mapping[str, str],
        *,
        errors: Mapping[str, Sequence[str]] | None = None,
        problem: Mapping[str, Any] | None = None,
        would: Sequence[Mapping[str, str]] | None = None,
        picture: Markup | None = None,
        status: int = 200,
    ) -> Response:
        """Return the form, as a page of its own or, to a script, as the part of one."""
        console, queries = self._console, self._console.queries_of(request, session)
        form = self._form(operation, typed, errors)
        fields, asked = await with_options(form.fields, queries), prefilled_fields(request)
        if operation.input.model_fields.keys() >= set(STEPS):
            asked |= dict.fromkeys(STEPS, "")
        context = {
            "operation": operation,
            "label": words_of(operation.name) if operation.target is None else verb_label(operation),
            "about": await subject_of(form, queries),
            "fields": [one for one in fields if is_shown(one, asked)],
            "more": [one for one in fields if not is_shown(one, asked)],
            "hidden": {name: typed[name] for name in carried_fields(operation) if name in typed},
            "key": typed.get(KEY) or uuid4().hex,
            "back": safe_path(typed.get(BACK)) or referring_page(request),
            "holders": None
            if queries.may(operation)
            else await queries.show(GetHolders, command_name=operation.command_name),
            "proposed": queries.proposes(operation),
            "problem": problem,
            "is_marked": bool(errors) and all(is_placed(one, errors or {}) for one in (problem or {}).get("errors") or ()),
            "would": would,
            "picture": picture,
            "zone": console.zone.key,
            "reasons": REASONS if is_halt(operation) else (),
        }
        if request.header(b"x-fragment") is not None:
            html = console.templates.render("form.html", {**context, "form_token": session.form_token})
            return html_response(html, status)
        shell = await console.shell(request, session, None, title=words_of(operation.name))
        return html_response(console.templates.render("form_page.html", {**shell, **context}), status)


def is_halt(operation: Operation) -> bool:
    """Return whether a command stops a run or a procedure for a reason: it is given without typing."""
    about = operation.aggregate is not None and operation.aggregate.name in ("Run", "Procedure")
    return about and operation.name.partition("_")[0] in HALTING and "reason" in operation.input.model_fields


def is_placed(fault: Mapping[str, object], errors: Mapping[str, Sequence[str]]) -> bool:
    """Return whether what is wrong stands beside a field."""
    return any(fault["msg"] in texts for texts in errors.values())


def carried_fields(operation: Operation) -> tuple[str, ...]:
    """Return the fields that a form has from the page that led to it: what it is about, and what an approver was shown."""
    about = (operation.target,) if operation.target else ()
    return (*about, *operation.path_fields, *(name for name in LOOKED_AT if name in operation.input.model_fields))


def is_shown(field: FormField, asked: Mapping[str, str]) -> bool:
    """Return whether a field is shown at once: it is needed, has something to show, or is one that the address asks for."""
    given = bool(field.required or field.value or field.errors or field.children)
    return given or field.place in asked or f"{field.place}.{FLAG}" in asked


def command_of(request: Request) -> Operation:
    """Return the command that an address names."""
    operation = REGISTRY.operations.get(request.path["operation"])
    if operation is None or operation.kind != "command":
        raise RouteNotFoundError("No command has this name; /console/records leads to every thing and its actions.")
    return operation


def prefilled_fields(request: Request) -> dict[str, str]:
    """Return what an address fills into a form; what makes the form a person's own cannot come from a link."""
    return {name: value for name, value in typed_in(request.query).items() if name not in (FORM_TOKEN, KEY, CHECK)}


def typed_in(content: bytes) -> dict[str, str]:
    """Return what a form or an address holds; several values of one field stand on lines of their own."""
    found: dict[str, str] = {}
    try:
        pairs = parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=5000, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise RequestValidationError.at("body", msg="The form cannot be read", type="form_parsing") from None
    for name, value in pairs:
        found[name] = f"{found[name]}\n{value}" if found.get(name) else value
    refuse_nul(found, "body")
    return found


async def with_options(fields: Sequence[FormField], queries: PageQueries) -> list[FormField]:
    """Return the fields with what can be chosen for those that refer to other things."""
    shown = []
    for one in fields:
        children = tuple(await with_options(one.children, queries))
        options = one.options
        if one.refers_to is not None:
            options = await options_of(one.refers_to, queries)
        shown.append(replace(one, children=children, options=options))
    return shown


async def options_of(aggregate_name: str, queries: PageQueries) -> tuple[Option, ...]:
    """Return the newest things of a kind as options; none where they have no list that the person may read."""
    aggregate = REGISTRY.aggregates[aggregate_name]
    column = name_field(aggregate)
    listing = REGISTRY.operations.get(f"list_{aggregate.path.rsplit('/', 1)[-1].replace('-', '_')}")
    if listing is None or not queries.may(listing):
        return ()
    page = await queries.show(listing.input, limit=MOST_OPTIONS, order="desc")  # type: ignore[arg-type]
    named = (
        (item[aggregate.id_name], item.get(column or "") or thing_label(aggregate, item), item) for item in page["items"]
    )
    return tuple(Option(str(id), label_with_state(str(name), aggregate.axis, item)) for id, name, item in named)


def thing_label(aggregate: Aggregate, view: Mapping[str, object]) -> str:
    """Return what people know a thing without a name by: the command, choice, address or value of it, else its short id."""
    if command := view.get("command_name"):
        return words_of(command)
    id = str(view.get(aggregate.id_name) or view.get("id"))
    label = next((str(view[name]) for name in TOLD_BY if view.get(name)), f"{words_of(aggregate.label)} {short_id(id)}")
    about = next((one["name"] for name in OF if isinstance(one := view.get(name), Mapping) and one.get("name")), None)
    return f"{label} of {about}" if about else label


def label_with_state(name: str, axis: str, item: Mapping[str, object]) -> str:
    """Return the name of a thing with its state, as an option says it."""
    state = item.get(axis)
    return f"{name} ({words_of(state)})" if state else name


async def subject_of(form: FilledForm, queries: PageQueries) -> dict[str, object] | None:
    """Return the thing that a command is about, and which part of it: names and page, as far as the person may see it."""
    operation, target = form.operation, form.target
    aggregate = operation.aggregate
    if target is None or aggregate is None or operation.target != aggregate.id_name:
        return None
    getting = REGISTRY.operations.get(f"get_{aggregate.label.replace(' ', '_')}")
    view = None if getting is None else await queries.show_found(getting.input, target)  # type: ignore[arg-type]
    name = (view or {}).get(name_field(aggregate) or "") or thing_label(aggregate, view or {"id": target})
    return {
        "label": aggregate.label,
        "name": name,
        "href": href_of(aggregate, target),
        "state": (view or {}).get(aggregate.axis),
        "part": next((part_name(view or {}, one) for one in form.fields if one.kind == "given_id"), None),
    }


def part_name(view: Mapping[str, object], given: FormField) -> str | None:
    """Return the name of the part of a thing that a form is about; none where it has no name, or is not seen."""
    parts = (part for parts in view.values() if isinstance(parts, list) for part in parts if isinstance(part, dict))
    found = next((part for part in parts if part.get(given.name) == given.value), {})
    return found.get("title") or found.get("name")


def named_field(form: FilledForm, code: str) -> str | None:
    """Return the field that a class of refusal is named for: `InvalidRunHoldReasonError` is about `reason`."""
    aggregate = form.operation.aggregate
    if aggregate is None or not code.startswith(f"Invalid{aggregate.name}"):
        return None
    stem = code.removeprefix(f"Invalid{aggregate.name}").removesuffix("Error")
    fitting = [one for one in flatten(form.fields) if stem.endswith(one.name.title().replace("_", "")) and one.name]
    return max(fitting, key=lambda one: len(one.name)).place if fitting else None


def success_message(operation: Operation, answer: Any) -> str:
    """Return what to say when a command was accepted."""
    if operation is HoldEverything.operation:
        return str(answer.message)
    if operation is ApproveProposal.operation:
        return "Approved; it is being carried out"
    return f"{words_of(operation.name)}: done"


def destination(form: FilledForm, answer: object, typed: Mapping[str, str]) -> str:
    """Return where a person goes after a command: to what it made, or back."""
    operation, to = form.operation, safe_path(typed.get(BACK))
    made = getattr(answer, operation.aggregate.id_name, None) if operation.creates and operation.aggregate else None
    if isinstance(made, UUID) and operation.aggregate is not None and to is None:
        to = href_of(operation.aggregate, made)
    elif to is None and form.target and operation.aggregate is not None:
        to = href_of(operation.aggregate, form.target)
    return to or "/console"


def lead_to(request: Request, session: ConsoleSession, to: str, said: str, position: int) -> Response:
    """Lead to a page with a message, and have it show everything up to a position; to a script, say where it is."""
    path, _, query = to.partition("?")
    kept = [(name, value) for name, value in parse_qsl(query) if name not in ("said", "position")]
    to = f"{path}?{urlencode([*kept, ('said', session.sign_message(said)), ('position', str(position))])}"
    if request.header(b"x-fragment") is not None:
        return Response(200, orjson.dumps({"to": to, "said": said}), [(b"cache-control", b"no-store")])
    return redirect(to)


def lead_to_proposal(
    request: Request, session: ConsoleSession, error: ProposedError, zone: ZoneInfo, position: int
) -> Response:
    """Lead to the page of what a command became that takes an approval, and say until when it waits."""
    proposed = error.proposed
    return lead_to_waiting(request, session, proposed.proposal_id, proposed.expires_at.astimezone(zone), position)


def lead_to_waiting(
    request: Request, session: ConsoleSession, proposal_id: UUID, until: datetime, position: int
) -> Response:
    """Lead to the page of a proposal, and say until when it waits."""
    said = f"Proposed; it waits for approval until {until:%Y-%m-%d %H:%M %Z}."
    return lead_to(request, session, href_of(Proposal.aggregate, proposal_id), said, position)


def safe_path(path: str | None) -> str | None:
    """Return a path of the console that a form may lead back to; anything else is none."""
    return path if path and OWN_PATH.fullmatch(path) else None


def referring_page(request: Request) -> str | None:
    """Return the page of the console that a person came from."""
    referrer = request.header(b"referer") or ""
    host = request.header(b"host") or ""
    _, found, path = referrer.partition(f"://{host}")
    return safe_path(path) if found and not path.startswith("/console/do/") else None
