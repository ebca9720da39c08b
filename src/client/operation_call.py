"""An operation bound to a client, which says what it takes and answers to whatever asks the object: a notebook, `help`."""

from inspect import Parameter, Signature
from typing import Any

from baton.client.index import OperationEntry

OWN_OPTIONS = {"idempotency_key": None, "dry_run": False}


class OperationCall:
    """An operation of a client as a function; the first places of its path may be given already."""

    def __init__(self, client: Any, operation: OperationEntry, *places: Any) -> None:
        self.client, self.operation, self.places = client, operation, places
        self.__name__ = self.__qualname__ = operation.name
        self.__doc__ = (
            f"{operation.summary}\n\n{operation.method} {operation.path}, with the permission {operation.permission}."
        )

    def __call__(self, *places: Any, **fields: Any) -> Any:
        return self.client.call_method(self.operation, *self.places, *places, **fields)

    def __repr__(self) -> str:
        return f"<{self.__name__}{self.__signature__}>"

    @property
    def __signature__(self) -> Signature:
        operation = self.operation
        placed = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in operation.placeholders[len(self.places) :]]
        own = OWN_OPTIONS if operation.kind == "command" else {}
        arguments = {name: Parameter.empty if one.required else None for name, one in operation.arguments.items()} | own
        named = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in arguments.items()]
        return Signature([*placed, *(one for one in named if one.name not in operation.placeholders)])
