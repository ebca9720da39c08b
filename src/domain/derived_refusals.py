"""Which refusals a command can raise, read from the source of its rules; nothing has to be listed twice. A rule is parsed
when somebody asks for the refusals of a command that it judges; no process needs them to start."""

import ast
from collections.abc import Iterator
from functools import cache
from inspect import isfunction
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeGuard

from baton.domain.shared.refusals import Refusal
from baton.domain.shared.source_text import module_source

RULES = "baton.domain."  # The package whose functions are followed: what adapters raise is declared by the operation.
PLUMBING = (
    "baton.domain.shared.reads",
    "baton.domain.shared.further_commands",
    "baton.domain.kernel",
)  # Their functions pass refusals on and choose none.
REFERENCES = ("require", "require_all", "require_if_given")
"""The reads that refuse a missing target by its aggregate's own class unless another one is named."""


def refusals_of(command: type[object]) -> tuple[type[Refusal], ...]:
    """Return the refusal classes that the rules of a command name, in the order they are met."""
    return tuple(dict.fromkeys(one for rule in _rules_of(command) for one in rule.refusals))


def reasons_of(command: type[object]) -> tuple[str, ...]:
    """Return the literal reasons by which the rules of a command refuse with its own class."""
    return tuple(dict.fromkeys(reason for rule in _rules_of(command) for reason in rule.reasons))


class Rule(NamedTuple):
    """What a function that judges a command names, in the order it is written."""

    called: tuple[FunctionType, ...]
    refusals: tuple[type[Refusal], ...]
    reasons: tuple[str, ...]


def _rules_of(command: type[object]) -> list[Rule]:
    """Return the functions that judge a command: its own methods and the domain functions they call."""
    methods = (getattr(command, name) for name in dir(command) if not name.startswith("__"))
    pending = [rule for method in methods if _is_rule(rule := getattr(method, "__func__", method))]
    rules = {function: _read(function) for function in pending}
    while pending:
        for called in rules[pending.pop()].called:
            if called not in rules:
                rules[called] = _read(called)
                pending.append(called)
    return [*rules.values()]


def _is_rule(value: object) -> TypeGuard[FunctionType]:
    return isfunction(value) and value.__module__.startswith(RULES) and value.__module__ not in PLUMBING


def _is_refusal(value: object) -> TypeGuard[type[Refusal]]:
    return isinstance(value, type) and issubclass(value, Refusal) and value.__name__.endswith("Error")


@cache
def _read(function: FunctionType) -> Rule:
    """Return what a function names: rules of its own module or of one it names, those of a tuple of gates, refusal classes,
    the not-found class of each bare `require(State, id)`, and the reasons given to `cannot`."""
    called: list[object] = []
    refusals: list[type[Refusal]] = []
    reasons: list[str] = []
    for node in _nodes_of(function):
        match node:
            case ast.Name() | ast.Attribute():
                value = _value(function, node)
                if _is_refusal(value):
                    refusals.append(value)
                elif isinstance(node, ast.Name) or isinstance(_value(function, node.value), ModuleType):
                    called += [getattr(gate, "rule", None) for gate in value] if isinstance(value, tuple) else [value]
            case ast.Call(ast.Name(name), [target, *_]) if name in REFERENCES:
                if not any(_is_refusal(_value(function, part)) for part in ast.walk(node)):
                    refusals.append(_value(function, target).aggregate.NotFound)
            case ast.Call(ast.Attribute(attr="cannot"), [ast.Constant(str() as reason), *_]):
                reasons.append(reason)
    return Rule(tuple(one for one in called if _is_rule(one)), tuple(refusals), tuple(reasons))


def _nodes_of(function: FunctionType) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body in the order they are written, each after its parts."""
    text = module_source(function.__module__).definition(function.__qualname__)
    if text is None:
        raise TypeError(f"{function.__module__} has no text of {function.__qualname__}; its refusals cannot be read")
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef), text
    for statement in definition.body:
        yield from _parts_first(statement)


def _parts_first(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.iter_child_nodes(node):
        yield from _parts_first(part)
    yield node


def _value(function: FunctionType, node: ast.AST) -> Any:
    """Return what a dotted name stands for where the function is written, or None."""
    match node:
        case ast.Name(name):
            return function.__globals__.get(name)
        case ast.Attribute(of, name):
            return getattr(_value(function, of), name, None)
    return None
