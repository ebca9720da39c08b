"""The patterns of the client: mappings that the service takes."""

from typing import Any

from pydantic import TypeAdapter

from baton.client import patterns
from baton.domain.recipe.patterns import AnyPattern, Pattern, pattern_points
from tests.support.tables import for_each

PATTERN: TypeAdapter[AnyPattern] = TypeAdapter(Pattern)
POINT: patterns.PointOptions = {
    "at_point": [{"kind": "capture", "address": "d", "capture_name": "d_{n}"}],
    "settle_seconds": 0.5,
    "returns": True,
}
ENDS = {"start": 0, "stop": 2}


@for_each(
    ("mapping", "kind", "count"),
    [
        (patterns.line({"address": "x", **ENDS}, {"address": "y", **ENDS}, num=3, **POINT), "line", 3),
        (patterns.grid({"address": "x", **ENDS, "num": 2}, {"address": "y", **ENDS, "num": 3}, snaked=True), "grid", 6),
        (patterns.points({"address": "x", "positions": [1, 5]}, **POINT), "list", 2),
        (patterns.around({"address": "x", "centre": 5, "span": 1, "num": 5, "unit": "mm"}), "around", 5),
    ],
)
def test_a_pattern_of_the_client_is_one_of_the_service(mapping: dict[str, Any], kind: str, count: int) -> None:
    read = PATTERN.validate_python(mapping)
    assert (read.kind, len(pattern_points(read))) == (kind, count)
