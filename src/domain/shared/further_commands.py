"""Further commands: a decision may give others, each decided on the record as those before it leave it. All that they write
is written with the decision, in its transaction; a refusal of one is the refusal of the whole."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from baton.domain.registry import defines
from baton.domain.shared.reads import Reads, Suppose, require
from baton.domain.shared.writes import Also

if TYPE_CHECKING:
    from baton.domain.kernel import Call, Command


Check = Callable[[Also], Reads[None]]


def give(command: "Command", call: "Call", id: UUID, on: UUID | None = None, check: Check | None = None) -> Reads[Also]:
    """Decide a further command about a stream, or one that begins a stream; what it begins or opens gets this id. What it
    writes counts as written for whatever is read behind it, unless a check refuses it."""
    operation, own = command.operation, replace(call, new_id=id)
    assert operation.aggregate is not None, "a command is about an aggregate"
    if defines(type(command), "examine"):
        command.examine()
    kind = operation.aggregate.state
    state = None if on is None else (yield from require(kind, on))
    outcome = yield from operation.decision(command, state, own)
    also = Also(kind, operation.begun_stream(command, own) if on is None else on, outcome)
    if check is not None:
        yield from check(also)
    yield Suppose(also, call.now)
    return also
