"""What was touched decides what kind of work it was."""

from dataclasses import dataclass
from itertools import permutations

from baton.domain.step.results import ActuationKind, merged_kind, route_of, touched_kind
from tests.support.tables import for_each


@dataclass(frozen=True)
class Route:
    prefix: str
    simulated: bool = False


ROUTES = [Route("bl7:"), Route("bl7:sim:", simulated=True), Route("ring:", simulated=True)]


@for_each(
    ("address", "prefix"),
    [("bl7:x", "bl7:"), ("bl7:sim:x", "bl7:sim:"), ("bl7:", "bl7:"), ("ring:current", "ring:"), ("bl8:x", None), ("", None)],
)
def test_the_longest_prefix_is_the_route_whatever_the_order(address: str, prefix: str | None) -> None:
    for routes in permutations(ROUTES):
        found = route_of(address, routes)
        assert (found and found.prefix) == prefix


@for_each(
    ("touched", "kind"),
    [
        (["bl7:x", "bl7:y"], ActuationKind.PHYSICAL),
        (["bl7:sim:x", "ring:current"], ActuationKind.SIMULATED),
        (["bl7:x", "bl7:sim:x"], ActuationKind.HYBRID),
        (["bl7:x", "bl8:x"], ActuationKind.PHYSICAL),
        (["bl8:x"], None),
        ([], None),
    ],
)
def test_the_routes_of_what_was_touched_say_what_it_was_done_on(touched: list[str], kind: ActuationKind | None) -> None:
    assert touched_kind(touched, ROUTES) is kind


def test_without_routes_no_kind_is_observed() -> None:
    assert touched_kind(["bl7:x"], []) is None


def test_kinds_of_parts_make_the_kind_of_the_whole() -> None:
    touched = ["bl7:x", "bl7:sim:x", "bl8:x"]
    parts = [touched_kind([address], ROUTES) for address in touched]
    assert merged_kind(parts) is touched_kind(touched, ROUTES)
