"""The way from the state that a thing is in to what was asked for: the verbs between, as calls that can be made. It is found
from the declarations of verbs: the states each is allowed from, and the state that it leads to."""

from collections import deque
from collections.abc import Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from baton.domain.shared.refusals import NextCall

if TYPE_CHECKING:
    from baton.domain.kernel import Aggregate, Command, State
    from baton.domain.registry import Operation


def steps_to_command(command: "Command", state: "State") -> tuple[NextCall, ...]:
    """Return the calls by which a thing comes to what a command asks for; none where nothing leads there, where it is so
    already, and where the command takes something away."""
    wanted = command.operation
    if (
        wanted not in state.aggregate.operations
        or wanted.destructive
        or (wanted.allowed is None and wanted.leads_to is None)
    ):
        return ()
    current = state.aggregate.axis_value(state)
    if wanted.leads_to is current:
        return ()
    given = command.model_dump(mode="json", by_alias=True, exclude_unset=True)
    way = () if wanted.allowed is None or current in wanted.allowed else _way(state.aggregate, current, wanted.allowed)
    through = None if way is None else (*_calls(way, state), *_calls([wanted], state, given))
    direct = None if wanted.leads_to is None else _way(state.aggregate, current, [wanted.leads_to])
    if direct is not None and (through is None or len(direct) < len(through)):
        return _calls(direct, state)
    return () if through is None or len(through) == 1 else through


def steps_to_state(state: "State", wanted: Enum) -> tuple[NextCall, ...]:
    """Return the calls that bring a thing to a state."""
    return _calls(_way(state.aggregate, state.aggregate.axis_value(state), [wanted]) or (), state)


def steps_from_nothing(
    creation: "Operation", first: Enum, wanted: Enum, known: Mapping[str, object]
) -> tuple[NextCall, ...]:
    """Return the calls that make a thing, of which this is known, and bring it from its first state to another one."""
    aggregate = creation.aggregate
    way = None if aggregate is None else _way(aggregate, first, [wanted])
    return () if way is None else (next_call(creation, None, known), *_calls(way, None))


def next_call(operation: "Operation", state: "State | None", known: Mapping[str, object]) -> NextCall:
    """Return the call of a verb on this thing, or on one that is still to be made, with what is known of its arguments, and
    those that it needs besides."""
    required = [info.alias or name for name, info in operation.input.model_fields.items() if info.is_required()]
    target = () if operation.target is None else (operation.target,)
    given = dict(known) if state is None else {**dict.fromkeys(target, str(state.id)), **known}
    return NextCall(operation.name, given, tuple(name for name in (*target, *required) if name not in given))


def _calls(
    way: "Collection[Operation]", state: "State | None", given: Mapping[str, object] | None = None
) -> tuple[NextCall, ...]:
    """Return the calls of these verbs in their order, each behind those that must come before it."""
    calls: list[NextCall] = []
    for operation in way:
        if (preparation := getattr(operation.input, "preparation", None)) is not None:
            calls += preparation(state)
        calls.append(next_call(operation, state, given or {}))
    return tuple(calls)


def _way(aggregate: "Aggregate", current: Enum, wanted: Collection[Enum]) -> "tuple[Operation, ...] | None":
    """Return the fewest verbs that lead from one state to any of these, and take nothing away; None where none do."""
    verbs = [one for one in aggregate.operations if one.leads_to and one.allowed and not one.destructive]
    ways: dict[Enum, tuple[Operation, ...]] = {current: ()}
    pending = deque([current])
    while pending:
        at = pending.popleft()
        if at in wanted:
            return ways[at]
        for verb in verbs:
            if at in (verb.allowed or ()) and verb.leads_to is not None and verb.leads_to not in ways:
                ways[verb.leads_to] = (*ways[at], verb)
                pending.append(verb.leads_to)
    return None
