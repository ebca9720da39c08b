"""What every declaration owes: its place among the specified operations, its documentation, its refusals, its payload."""

import ast
import inspect
import json
import re
import types
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, JsonValue, PlainSerializer

import baton.application.identity
from baton.domain.access.actor import CONTACT_BOUNDS
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, Command, Event, State
from baton.domain.registry import Operation
from baton.domain.shared.refusals import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Refusal,
    UnauthorizedError,
    Unavailable,
    Unprocessable,
)
from tests.support.tables import for_each

DATA = Path(__file__).parents[1] / "data" / "operations.json"
ROWS: dict[str, dict[str, Any]] = {row["name"]: row for row in json.loads(DATA.read_text())}
BEYOND: dict[str, str] = {name: row.pop("beyond") for name, row in ROWS.items() if "beyond" in row}
"""Operations that exceed the specification, each with the reason it is offered for."""
COMMANDS = [operation for operation in REGISTRY if operation.kind == "command"]
EVENTS = [event for aggregate in REGISTRY.aggregates.values() for event in aggregate.events.values()]
FAMILIES = {
    Invalid,
    Forbidden,
    NotFound,
    Conflict,
    Unprocessable,
    Unavailable,
    baton.application.identity.ProviderUnavailable,
}
"""Classes of refusals that are never raised themselves."""


def shape(path: str) -> str:
    """A path without the names of its placeholders."""
    return re.sub(r"\{[^}]+\}", "{}", path)


@for_each("name", [one.name for one in COMMANDS if re.match("hold_|abort_|stop_run$", one.name)])
def test_who_holds_or_aborts_does_not_lose_to_a_rival_at_once(name: str) -> None:
    assert REGISTRY.operations[name].attempts == 3


@for_each("name", sorted(ROWS))
def test_a_specified_operation_is_declared_as_specified(name: str) -> None:
    assert name in REGISTRY.operations, f"{name} is not declared"
    row, operation = ROWS[name], REGISTRY.operations[name]
    declared = {
        "context": operation.context,
        "aggregate": operation.aggregate.name if operation.aggregate else None,
        "name": operation.name,
        "kind": operation.kind,
        "command_name": operation.command_name,
        "method": operation.method,
        "path": shape(operation.path),
        "mcp": operation.mcp,
    }
    assert declared == {**row, "path": shape(row["path"])}


def test_no_operation_is_declared_that_nobody_specified() -> None:
    undeclared = {operation.name for operation in REGISTRY} - ROWS.keys()
    assert undeclared == set(), f'add them to {DATA.name}; what exceeds the specification has a reason under "beyond"'


@for_each("name", sorted(BEYOND))
def test_what_exceeds_the_specification_says_why_it_is_offered(name: str) -> None:
    assert BEYOND[name].endswith("."), name
    assert len(BEYOND[name]) > 20, name


def test_no_two_operations_share_a_route() -> None:
    routes = Counter((operation.method, shape(operation.path)) for operation in REGISTRY)
    assert [route for route, count in routes.items() if count > 1] == []


def test_no_literal_path_hides_behind_an_id() -> None:
    """A literal segment where another operation has an id would be read as that id by some clients' tools."""
    for one in REGISTRY:
        for other in REGISTRY:
            if one is not other and one.method == other.method and matches(one.path, other.path):
                assert one.path.count("{") < other.path.count("{"), f"{one.name} and {other.name} cannot be told apart"


def matches(path: str, pattern: str) -> bool:
    """Whether a path, taken as a literal request, would also fit the pattern."""
    segments, wanted = path.split("/"), pattern.split("/")
    return len(segments) == len(wanted) and all(
        want.startswith("{") or want == segment for segment, want in zip(segments, wanted, strict=True)
    )


@for_each("operation", list(REGISTRY))
def test_an_operation_says_in_one_line_what_it_does(operation: Operation) -> None:
    assert operation.input.__doc__, f"{operation.input.__name__} has no documentation"
    assert 10 <= len(operation.summary) <= 200
    assert operation.summary.endswith("."), operation.summary


@for_each("aggregate", REGISTRY.aggregates.values())
def test_an_aggregate_and_each_of_its_events_say_in_a_sentence_what_they_are(aggregate: Aggregate[Any]) -> None:
    for model in (aggregate.state, *aggregate.events.values()):
        assert (vars(model)["__doc__"] or "").strip().endswith("."), model


def refusals() -> Iterator[type[Refusal]]:
    """Every class that says no, but for those of tests."""
    pending = [Refusal]
    while pending:
        family = pending.pop()
        pending += family.__subclasses__()
        if family is not Refusal and family not in FAMILIES and family.__module__.startswith("baton."):
            yield family


def test_every_refusal_is_named_as_an_error_and_says_what_it_means() -> None:
    for refusal in refusals():
        assert refusal.__name__.endswith("Error"), refusal
        assert (refusal.__doc__ or "").strip().endswith("."), refusal


def test_a_refusal_has_a_name_of_its_own_in_its_context() -> None:
    names = Counter((refusal.context, refusal.__name__) for refusal in refusals())
    assert [name for name, count in names.items() if count > 1] == []


def test_the_name_of_a_refusal_agrees_with_its_status() -> None:
    patterns = {r"Invalid\w+Error": {400, 401, 422}, r"\w+AlreadyExistsError": {409}}
    patterns |= {r"(?!PlanWirePort|ProcedureExpansionRecord)\w+NotFoundError": {404}}
    patterns |= {r"(?!FacilitySite)\w+Cannot\w+Error": {409}}
    for refusal in refusals():
        for pattern, statuses in patterns.items():
            if re.fullmatch(pattern, refusal.__name__):
                assert refusal.status in statuses, refusal


@for_each("operation", COMMANDS)
def test_a_command_documents_every_class_it_can_be_refused_with(operation: Operation) -> None:
    mentioned = {refusal for function in functions_of(operation.input) for refusal in refusals_in(function)}
    documented = {UnauthorizedError, *operation.refusals}  # what every command can be refused with is said once for all
    assert sorted(refusal.__name__ for refusal in mentioned - documented) == []


@for_each("operation", COMMANDS)
def test_a_command_documents_every_reason_it_can_be_refused_for(operation: Operation) -> None:
    cannot = operation.input.Cannot  # type: ignore[union-attr]
    reasons = {reason for function in functions_of(operation.input) for reason in reasons_in(function, cannot)}
    assert reasons == set(operation.own_reasons) - {operation.state_reason}


def functions_of(command: type[Any]) -> Iterator[Callable[..., Any]]:
    """The functions a command's judgement consists of, and the ones of the domain they call, each once."""
    own = [
        getattr(value, "__func__", value)
        for name, value in inspect.getmembers(command, inspect.isroutine)
        if (getattr(value, "__module__", None) or "").startswith("baton.domain.")
        and value.__module__ != "baton.domain.kernel"
        and name not in vars(Command)
    ]
    pending, seen = list(own), set(own)
    while pending:
        function = pending.pop()
        yield function
        for called in called_in(function):
            if called not in seen:
                seen.add(called)
                pending.append(called)


@cache
def functions_in(file: str) -> dict[int, ast.AST]:
    """The functions that are written in a file, by the line each begins in."""
    found = (node for node in ast.walk(ast.parse(Path(file).read_text())) if isinstance(node, ast.FunctionDef))
    return {min([node.lineno, *(mark.lineno for mark in node.decorator_list)]): node for node in found}


def tree_of(function: Callable[..., Any]) -> ast.AST:
    code = inspect.unwrap(function).__code__
    return functions_in(code.co_filename)[code.co_firstlineno]


def named_in(function: Any, node: ast.expr) -> Any:
    """What a dotted name stands for where the function is written, or None."""
    match node:
        case ast.Name(name):
            return function.__globals__.get(name)
        case ast.Attribute(value, name):
            return getattr(named_in(function, value), name, None)
    return None


@cache
def called_in(function: Any) -> tuple[Callable[..., Any], ...]:
    """The functions of the domain that a function calls by name."""
    calls = (node for node in ast.walk(tree_of(function)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    called = [named_in(function, call.func) for call in calls]
    return tuple(
        one for one in called if inspect.isfunction(one) and one.__module__.startswith("baton.domain.") and not is_read(one)
    )


def is_read(function: Any) -> bool:
    return bool(function.__module__ in ("baton.domain.shared.reads", "baton.domain.kernel"))


@cache
def refusals_in(function: Any) -> frozenset[type[Refusal]]:
    """The classes a function raises or hands on, and those of the references it requires."""
    return frozenset(mentioned_in(function))


def mentioned_in(function: Any) -> Iterator[type[Refusal]]:
    for node in ast.walk(tree_of(function)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("require", "require_all"):
            yield from missing_in(function, node)
        elif isinstance(node, ast.Name | ast.Attribute):
            named = named_in(function, node)
            if isinstance(named, type) and issubclass(named, Refusal) and named not in FAMILIES | {Refusal}:
                yield named


def missing_in(function: Any, call: ast.Call) -> Iterator[type[Refusal]]:
    state = named_in(function, call.args[0])
    if len(call.args) == 2 and isinstance(state, type) and issubclass(state, State):
        yield state.aggregate.NotFound


def reasons_in(function: Any, cannot: type[Refusal]) -> Iterator[str]:
    """The literal reasons a function gives for its verb's refusal, by whichever name it calls that."""
    for node in ast.walk(tree_of(function)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        given = [*node.args[:1]] if node.func.attr == "cannot" else []
        if node.func.attr == "Cannot" and named_in(function, node.func) is cannot:
            given = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
        for reason in given:
            if isinstance(reason, ast.Constant):
                yield str(reason.value)


@for_each("operation", COMMANDS)
def test_a_command_that_states_forbid_has_a_class_of_its_own_for_it(operation: Operation) -> None:
    cannot = operation.input.Cannot  # type: ignore[union-attr]
    assert operation.aggregate is not None
    assert re.fullmatch(rf"{operation.aggregate.name}Cannot[A-Z]\w*Error", cannot.__name__)
    if operation.allowed is not None:
        assert cannot in operation.refusals


PRIMITIVES = (str, int, float, bool, UUID, datetime, AwareDatetime, types.NoneType, Any, JsonValue)


@for_each("event", EVENTS)
def test_a_payload_holds_primitives_only(event: type[Event]) -> None:
    for name, info in event.model_fields.items():
        check_primitive(info.rebuild_annotation(), f"{event.__name__}.{name}")


def check_primitive(annotation: Any, place: str, *, ordered: bool = False) -> None:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        ordered = ordered or any(isinstance(mark, PlainSerializer) for mark in parts[1:])
        check_primitive(parts[0], place, ordered=ordered)
    elif origin in (Union, types.UnionType):
        for part in parts:
            check_primitive(part, place, ordered=ordered)
    elif origin is tuple:
        assert parts[1:] in ((), (...,)), f"{place} is a tuple of mixed things"
        check_primitive(parts[0], place)
    elif origin is frozenset:
        assert ordered, f"{place} is a set without one order"
        check_primitive(parts[0], place)
    elif origin is dict:
        assert parts[0] in (str, UUID), f"{place} has keys that are no text"
        check_primitive(parts[1], place)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            check_primitive(info.rebuild_annotation(), f"{place}.{name}")
    else:
        text = origin is Literal or (isinstance(annotation, type) and issubclass(annotation, StrEnum))
        assert text or annotation in PRIMITIVES, f"{place} is {annotation}"


def test_no_event_of_an_actor_can_hold_what_is_known_of_a_person() -> None:
    personal = {"name", "subject", *CONTACT_BOUNDS}
    for event in REGISTRY.aggregates["Actor"].events.values():
        assert not personal & event.model_fields.keys(), event.__name__


@for_each("event", EVENTS)
def test_every_free_text_of_an_event_is_marked(event: type[Event]) -> None:
    texts = ("reason", "display_name", "text", "note", "title", "comment")
    free = {name for name in texts if name in event.model_fields and not is_closed(event.model_fields[name].annotation)}
    assert free <= event.personal


def is_closed(annotation: Any) -> bool:
    """Whether a value is one of a few words rather than free text."""
    return isinstance(annotation, type) and issubclass(annotation, StrEnum)
