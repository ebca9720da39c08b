"""Every operation as a method of a client, every kind of thing as its collection; `operations.pyi`, written from the
registry, has their types."""

import typing
from functools import cache, partial
from typing import Any

from baton.client.things import KINDS, Collection, Thing, collections
from baton.domain.contexts import REGISTRY

STREAMS = (
    "stream_events",
    "stream_procedure_conduct",
)  # What never answers as a whole: `follow_events` and `watch` read them.


class Operations:
    """The operations of the service as methods: what stands in the path comes first, fields follow by name."""

    def __getattr__(self, name: str) -> Any:
        if (operation := REGISTRY.operations.get(name)) is not None and name not in STREAMS:
            return partial(self.call_method, operation)
        if (aggregate := collections().get(name)) is not None:
            return Collection(self, aggregate)
        raise AttributeError(f"There is no operation or collection {name}; `baton where` and the reference list them.")

    def call_method(
        self, operation: Any, *places: Any, idempotency_key: str | None = None, dry_run: bool = False, **fields: Any
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


@cache
def type_names() -> dict[str, Any]:
    """Return what `operations.pyi` names and no module declares: forms of answers, and kinds of things."""
    answers = (one for operation in REGISTRY for one in (operation.returns, operation.accepted))
    forms = {one.__name__: one for form in answers for one in (form, *typing.get_args(form)) if isinstance(one, type)}
    for name in REGISTRY.aggregates:
        for prefix in ("", "Async"):
            forms |= {f"{prefix}{name}Thing": KINDS.get(name, Thing), f"{prefix}{name}Collection": Collection}
    return forms


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return type_names()[name]
    except KeyError:
        raise AttributeError(f"module {__name__} has no {name}") from None
