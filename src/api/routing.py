"""The route tree: paths are matched segment by segment, so hundreds of routes cost as much as one."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

E = TypeVar("E")


@dataclass
class _Node(Generic[E]):
    literal: dict[str, "_Node[E]"] = field(default_factory=dict)
    parameter: "_Node[E] | None" = None
    methods: dict[str, tuple[E, tuple[str, ...]]] = field(default_factory=dict)


class Routes(Generic[E]):
    """Maps method and path to endpoints; a literal segment is preferred to a parameter."""

    def __init__(self) -> None:
        self._root: _Node[E] = _Node()

    def add(self, method: str, path: str, endpoint: E) -> None:
        node, names = self._root, []
        for segment in path.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literal.setdefault(segment, _Node())
        if method in node.methods:
            raise TypeError(f"{method} {path} is routed twice")
        node.methods[method] = (endpoint, tuple(names))

    def match(self, method: str, path: str) -> tuple[E, dict[str, str]] | frozenset[str]:
        """Return the endpoint and its path parameters, or the methods of the path (empty where it does not exist)."""
        segments = path[1:].split("/")
        for node, values in self._reach(self._root, segments, 0):
            if method in node.methods:
                endpoint, names = node.methods[method]
                return endpoint, dict(zip(names, values, strict=True))
            if node.methods:
                return frozenset(node.methods)
        return frozenset()

    def _reach(self, node: _Node[E], segments: list[str], depth: int) -> Iterator[tuple[_Node[E], list[str]]]:
        if depth == len(segments):
            yield node, []
            return
        segment = segments[depth]
        if (literal := node.literal.get(segment)) is not None:
            yield from self._reach(literal, segments, depth + 1)
        if node.parameter is not None and segment:
            for reached, values in self._reach(node.parameter, segments, depth + 1):
                yield reached, [segment, *values]
