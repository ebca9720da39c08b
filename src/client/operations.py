"""Every operation as a method of a client, every kind of thing as its collection; `operations.pyi`, made from the
declarations when the package is built, has their types."""

from typing import Any

from baton.client.answers import AnsweredDocument, ServiceAnswer, form_class
from baton.client.index import AGGREGATES, FORMS, OPERATIONS, OperationEntry, collections
from baton.client.operation_call import OperationCall
from baton.client.things import KINDS, Collection, Thing

__all__ = ["AnsweredDocument", "ServiceAnswer"]


class Operations:
    """The operations of the service as methods: what stands in the path comes first, fields follow by name."""

    def __getattr__(self, name: str) -> Any:
        if (operation := OPERATIONS.get(name)) is not None and not operation.streams:
            return OperationCall(self, operation)
        if (kind := collections().get(name)) is not None:
            return Collection(self, AGGREGATES[kind])
        raise AttributeError(f"There is no operation or collection {name}; `baton where` and the reference list them.")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in OPERATIONS if not OPERATIONS[name].streams), *collections()]

    def call_method(
        self,
        operation: OperationEntry,
        *places: Any,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        **fields: Any,
    ) -> Any:
        """Call an operation with the values of its path by their places."""
        named = dict(zip(operation.placeholders, places, strict=False))
        if len(places) > len(operation.placeholders) or named.keys() & fields.keys():
            raise TypeError(
                f"{operation.name} takes {', '.join(operation.placeholders) or 'nothing'} by place, the rest by name"
            )
        return self.invoke(operation, {**named, **fields}, idempotency_key, dry_run)


class AsyncOperations(Operations):
    """The same methods, whose answers are awaited."""


def __getattr__(name: str) -> Any:
    """Return what `operations.pyi` names and no module declares: forms of answers, and kinds of things."""
    if not name.startswith("__"):
        if name in FORMS:
            return form_class(name)
        kind = name.removeprefix("Async")
        if kind.removesuffix("Collection") in AGGREGATES:
            return Collection
        if (thing := kind.removesuffix("Thing")) in AGGREGATES:
            return KINDS.get(thing, Thing)
    raise AttributeError(f"module {__name__} has no {name}")
