"""Search of operations by words, so that an agent need not load hundreds of schemas to find one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from baton.domain.kernel import Value
from baton.domain.registry import Operation, snake_case

WORD = re.compile(r"[a-z0-9]+")


class SearchOperations(Value):
    """Find operations by words of their name, summary, path, context or refusal codes; the best match comes first.

    Call what you find with call_operation, or directly by its name.
    """

    words: Annotated[str, Field(min_length=1, max_length=200, description="For instance: hold visit")]
    kind: Literal["command", "query"] | None = Field(default=None, description="Only commands, or only queries.")
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    input_schemas: bool = Field(default=False, description="Whether to show the schema of each operation's arguments.")


class FoundOperation(Value):
    """One operation, and on request the schema of its arguments."""

    name: str
    summary: str
    kind: Literal["command", "query"]
    context: str
    input_schema: dict[str, Any] | None = None


class FoundOperations(Value):
    """The operations that match, best first."""

    operations: tuple[FoundOperation, ...]


@dataclass(frozen=True)
class Index:
    """The words of each operation with their weights."""

    weights: dict[str, dict[str, int]]

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> "Index":
        return cls({operation.name: words_of(operation) for operation in operations})

    def rank(self, text: str, among: Iterable[Operation]) -> list[Operation]:
        """Return the operations that have any of these words, those with most of them first, queries before commands."""
        wanted = stems(text)
        found = []
        for operation in among:
            hits = [hit for word in wanted if (hit := self._hit(operation.name, word))]
            if hits:
                found.append(((-len(hits), -sum(hits), operation.kind == "command", operation.name), operation))
        return [operation for _, operation in sorted(found, key=lambda entry: entry[0])]

    def _hit(self, name: str, word: str) -> int:
        weights = self.weights[name]
        exact = weights.get(word, 0)
        return 2 * exact or max((weight for other, weight in weights.items() if other.startswith(word)), default=0)


def words_of(operation: Operation) -> dict[str, int]:
    """Return the words of an operation with their weights."""
    refusals = " ".join(refusal.__name__ for refusal in operation.refusals)
    places = [
        (1, f"{refusals} {' '.join(operation.own_reasons)}"),
        (2, f"{operation.summary} {operation.path} {operation.context}"),
        (6, operation.name),
    ]
    return {word: weight for weight, text in places for word in stems(text)}


def stems(text: str) -> list[str]:
    """Return the distinct words of a text, lower case and singular, with compound names split."""
    words = WORD.findall(snake_case(text))
    return list(dict.fromkeys(w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words))
