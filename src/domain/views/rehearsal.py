"""A rehearsal: commands that would be given one after the other, each decided on the record as those before it would leave
it; nothing is written. What a beamline file asks for is judged so before it is applied."""

import json
from typing import Annotated, Any, ClassVar, cast
from uuid import UUID

from pydantic import Field, JsonValue, ValidationError

from baton.domain.conduct.rehearsal import InvalidRehearsalError
from baton.domain.kernel import Call, Command, Query, Value
from baton.domain.registry import REGISTRY, Operation, standalone_query
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.further_commands import give
from baton.domain.shared.reads import Reads, holder_of, permitted_commands
from baton.domain.shared.refusals import Refusal, UnauthorizedError
from baton.domain.shared.writes import Also, Claim
from baton.domain.trust.authorization import own_access

MOST_COMMANDS = 1000


class RehearsedCommand(Value):
    """A command that would be given; `new_id` is the id by which later ones name what it creates."""

    operation: Annotated[str, Field(min_length=1, max_length=200)]
    """The name of the command, such as register_asset."""
    arguments: dict[str, JsonValue] = {}
    """Its fields, by their names."""
    target_id: UUID | None = None
    """The thing that it is about."""
    new_id: UUID | None = None
    """The id that stands for what it creates, made up by the caller."""


class RehearsedOutcome(AnswerForm):
    """The refusal that a command would meet; all is null where it would be carried out."""

    code: str | None = None
    """The class name of the refusal."""
    reason: str | None = None
    """The machine-readable cause of the refusal."""
    detail: str | None = None


class CommandRehearsal(AnswerForm):
    """The outcomes of the commands, in the order they were given."""

    outcomes: tuple[RehearsedOutcome, ...]
    """What each command would come to."""


@standalone_query(
    "/rehearsals/commands",
    context="edge",
    method="POST",
    returns=CommandRehearsal,
    mcp=False,
    refuses=[InvalidRehearsalError],
)
class RehearseCommands(Query[CommandRehearsal]):
    """Judge commands as if they were given one after the other, as the caller; nothing is recorded.

    A command is judged on what those before it would leave; where one is refused, it leaves nothing.
    """

    rehearses: ClassVar[bool] = True
    commands: Annotated[tuple[RehearsedCommand, ...], Field(min_length=1, max_length=MOST_COMMANDS)]
    """The commands, in their order."""

    def answer(self, call: Call) -> Reads[CommandRehearsal]:
        operations = [rehearsed_operation(one) for one in self.commands]
        access = yield from own_access()
        permitted = (yield from permitted_commands()).union(*(one.permitted_commands for one in access.policies))
        outcomes = []
        for one, operation in zip(self.commands, operations, strict=True):
            try:
                yield from try_command(one, operation, permitted, call)
                outcomes.append(RehearsedOutcome())
            except ValidationError as error:
                outcomes.append(RehearsedOutcome(code="RequestValidationError", detail=sentence_of(error)))
            except Refusal as refusal:
                outcomes.append(RehearsedOutcome(code=refusal.code, reason=refusal.reason, detail=refusal.detail))
        return CommandRehearsal(outcomes=tuple(outcomes))


def rehearsed_operation(given: RehearsedCommand) -> Operation:
    """Return the operation of a command; refuse what is none, what opens work, and what has no target that it needs."""
    operation = REGISTRY.operations.get(given.operation)
    if operation is None or operation.kind != "command" or operation.aggregate is None or operation.opens_work:
        detail = f"There is no command {given.operation[:100]!r} that can be rehearsed; name one that changes one thing."
        raise InvalidRehearsalError(detail, reason="no_command")
    if (operation.target is None) != (given.target_id is None):
        says = "has no target" if operation.target is None else "needs a target"
        raise InvalidRehearsalError(f"{operation.name} {says}; correct target_id.", reason="target")
    return operation


def try_command(given: RehearsedCommand, operation: Operation, permitted: frozenset[str], call: Call) -> Reads[None]:
    """Decide a command, and have what it writes count as written; raise its refusal."""
    if not (operation.open or operation.command_name in permitted):
        detail = f"{operation.command_name} was refused. Your policies do not permit it here; ask an administrator for it."
        raise UnauthorizedError(detail, reason="command_not_permitted")
    command = cast("Command", operation.input.model_validate_json(json.dumps(given.arguments)))
    yield from give(command, call, given.new_id or call.new_id, given.target_id, check=refuse_claimed)


def refuse_claimed(also: Also) -> Reads[None]:
    """Refuse an outcome with a key that another stream holds."""
    for effect in also.outcome:
        if isinstance(effect, Claim) and (yield from holder_of(effect.kind, effect.key)) is not None:
            raise effect.rival


def sentence_of(error: ValidationError) -> str:
    """Return the first fault of arguments that do not fit, in a sentence."""
    first: Any = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "the input"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}."
