"""Which refusals a command can raise, derived from the compiled code of its rules; nothing has to be listed twice."""

import dis
from collections.abc import Iterator
from functools import cache
from inspect import isfunction
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeGuard

from baton.domain.shared.refusals import Refusal

RULES = "baton.domain."  # The package whose functions are followed: what adapters raise is declared by the operation.
PLUMBING = ("baton.domain.shared.reads", "baton.domain.kernel")  # Their functions pass refusals on and choose none.
ATTRIBUTE_LOADS = ("LOAD_ATTR", "LOAD_METHOD")
REFERENCES = ("require", "require_all", "require_if_given")
"""The reads that refuse a missing target by its aggregate's own class unless another one is named."""


def refusals_of(command: type[Any]) -> tuple[type[Refusal], ...]:
    """Return the refusal classes that the rules of a command name, in the order they are met."""
    return tuple(dict.fromkeys(one for rule in _rules_of(command) for one in _named_refusals(rule)))


def reasons_of(command: type[Any]) -> tuple[str, ...]:
    """Return the literal reasons by which the rules of a command refuse with its own class."""
    return tuple(dict.fromkeys(reason for rule in _rules_of(command) for reason in _literal_reasons(rule)))


def _rules_of(command: type[Any]) -> Iterator[FunctionType]:
    """Yield the functions that judge a command: its own methods and the domain functions they call."""
    methods = (getattr(command, name) for name in dir(command) if not name.startswith("__"))
    pending = [rule for method in methods if _is_rule(rule := getattr(method, "__func__", method))]
    rules = dict.fromkeys(pending)
    while pending:
        for called in _globals_named(pending.pop()):
            if _is_rule(called) and called not in rules:
                rules[called] = None
                pending.append(called)
    yield from rules


def _is_rule(value: Any) -> TypeGuard[FunctionType]:
    return isfunction(value) and value.__module__.startswith(RULES) and value.__module__ not in PLUMBING


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _globals_named(function: FunctionType) -> Iterator[Any]:
    """Yield the globals that a function names; of a tuple of gates, their rules; of a module, what is named of it."""
    for code in _codes(function.__code__):
        known = {name: function.__globals__.get(name) for name in code.co_names}
        modules = [value for value in known.values() if isinstance(value, ModuleType)]
        for value in (place for name in known for place in (known[name], *(getattr(one, name, None) for one in modules))):
            yield from (getattr(gate, "rule", None) for gate in value) if isinstance(value, tuple) else (value,)


@cache
def _named_refusals(function: FunctionType) -> tuple[type[Refusal], ...]:
    return tuple(one for code in _codes(function.__code__) for one in _refusals_in(function, code))


def _refusals_in(function: FunctionType, code: CodeType) -> Iterator[type[Refusal]]:
    """Yield the refusal classes that code loads by name, and the not-found class of each bare `required(State, id)`."""
    value: Any = None
    target: Any = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            if step.argval in REFERENCES:
                target = REFERENCES
            value = function.__globals__.get(step.argval)
        elif step.opname in ATTRIBUTE_LOADS:
            value = getattr(value, step.argval, None)
        else:
            if step.opname == "GET_YIELD_FROM_ITER" and hasattr(target, "aggregate"):
                yield target.aggregate.NotFound
                target = None
            value = None
        if isinstance(value, type) and issubclass(value, Refusal) and value.__name__.endswith("Error"):
            target = None
            yield value
        elif target is REFERENCES and value is not None and step.argval not in REFERENCES:
            target = value


@cache
def _literal_reasons(function: FunctionType) -> tuple[str, ...]:
    named = (code for code in _codes(function.__code__) if "cannot" in code.co_names)
    return tuple(reason for code in named for reason in _reasons_in(code))


def _reasons_in(code: CodeType) -> Iterator[str]:
    for step, following in pairwise(dis.get_instructions(code)):
        if step.opname in ATTRIBUTE_LOADS and step.argval == "cannot":
            first = following.argval[0] if isinstance(following.argval, tuple) else following.argval  # with `**facts`
            if isinstance(first, str):
                yield first
