"""Actions: named pieces of work on the plant that a step can ask for, and what can become of one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from pydantic import JsonValue, TypeAdapter, ValidationError

from baton.application.clock import Timekeeper
from baton.application.control import Control

ActionBody = Callable[[Control, Timekeeper, Mapping[str, Any]], Awaitable[Mapping[str, JsonValue]]]
"""What an action does: it works the plant through the control port and the clock it is given, and returns a JSON object.

Its parameters are plain JSON data: lists, objects, texts, numbers.

Whatever it returns is a success; a soft failure is told inside. It refuses by raising ActionRefusedError before its first
write. When it is cancelled it stops what it set going, and lets the cancellation pass.
"""

_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


class UnknownActionError(Exception):
    """No action has this name here."""


class ActionRefusedError(Exception):
    """The action was not begun: nothing was written."""


class InvalidActionParametersError(ActionRefusedError):
    """The parameters are none that the action can be done with."""


class UnboundedAcquisitionError(ActionRefusedError):
    """The acquisition would never end, because nothing says how often to repeat it."""


class UnwiredExternalTriggerError(ActionRefusedError):
    """The acquisition would wait for an external trigger whose source is not named."""


class ActionTimeoutError(Exception):
    """The action took longer than ACTION_TIMEOUT_SECONDS, and was stopped."""


class ActionResultError(Exception):
    """The action was done, and what it returned is no JSON object."""


class Actions(Protocol):
    """The actions of a deployment."""

    def body_of(self, name: str) -> ActionBody:
        """The body of an action; raises UnknownActionError."""
        ...


async def perform(
    actions: Actions, name: str, params: Mapping[str, Any], control: Control, time: Timekeeper, ceiling: float
) -> dict[str, JsonValue]:
    """Do an action, for so many seconds at most, and return what it says of it."""
    body = actions.body_of(name)
    try:
        async with asyncio.timeout(ceiling) as limit:
            said = await body(control, time, params)
    except TimeoutError:
        if limit.expired():
            raise ActionTimeoutError(
                f"The action {name} was stopped after {ceiling:g} s, the longest it may take."
            ) from None
        raise
    try:
        return _OBJECT.validate_python(dict(said))
    except (TypeError, ValueError, ValidationError) as error:
        raise ActionResultError(f"The action {name} returned {type(said).__name__}, not a JSON object.") from error
