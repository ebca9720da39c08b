"""Documents of Bluesky for tests: those of a plain scan, and hostile ones that no RunEngine would emit."""

import math
from typing import Any

from hypothesis import strategies as st

BEGAN = 1_790_000_000.0
Document = tuple[Any, Any]


def scan_documents(
    uid: str = "scan-1", events: int = 5, began: float = BEGAN, period: float = 1.0, channels: int = 2, **start: Any
) -> list[tuple[str, dict[str, Any]]]:
    """Return the documents of a scan of some events with some channels."""
    keys = [f"channel_{number}" for number in range(channels)]
    data_keys = {key: {"source": f"ca://BL7:{key}", "dtype": "number", "shape": [], "units": "mm"} for key in keys}
    said = {"plan_name": "scan", "scan_id": 7, "num_points": events, "plan_args": {"num": events}, **start}
    descriptor = {
        "uid": f"{uid}-primary",
        "run_start": uid,
        "time": began + 0.01,
        "name": "primary",
        "data_keys": data_keys,
        "object_keys": {"stage": keys},
        "configuration": {
            "stage": {"data": {"velocity": 2.5, "mode": "fast"}, "timestamps": {"velocity": began}, "data_keys": {}}
        },
    }
    documents: list[tuple[str, dict[str, Any]]] = [
        ("start", {"uid": uid, "time": began, **said}),
        ("descriptor", descriptor),
    ]
    for number in range(events):
        at = began + 0.1 + number * period
        data = {key: float(number) + place for place, key in enumerate(keys)}
        event = {"descriptor": f"{uid}-primary", "uid": f"{uid}-{number}", "seq_num": number + 1, "time": at}
        documents.append(("event", {**event, "data": data, "timestamps": dict.fromkeys(keys, at), "filled": {}}))
    at = began + 0.2 + events * period
    stop = {"uid": f"{uid}-stop", "run_start": uid, "time": at, "exit_status": "success", "reason": ""}
    return [*documents, ("stop", {**stop, "num_events": {"primary": events}})]


class RaisingLength:
    """An object without a length."""

    shape = property(lambda self: 1 / 0)

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class RaisingMapping(dict[str, Any]):
    """A mapping that nobody can look into by its own methods."""

    def items(self) -> Any:
        raise RuntimeError("no items")

    def get(self, key: Any, default: Any = None) -> Any:
        raise RuntimeError("no value")


class LyingNumber(float):
    """A number that says that it is none."""

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("no order")


def cyclic() -> list[Any]:
    """Return a list that holds itself, many times."""
    found: list[Any] = []
    found.extend([found] * 50)
    return found


def oddities() -> st.SearchStrategy[Any]:
    """Values that no document should have."""
    made = st.builds(RaisingLength) | st.builds(RaisingMapping, st.just({"a": 1})) | st.builds(cyclic)
    numbers = st.floats() | st.integers() | st.sampled_from([10**400, -(2**63), LyingNumber(2), complex(1, 2), 1e308 * 10])
    texts = st.text(max_size=20) | st.sampled_from(["x" * 2_000_000, "\x00\ud800", "\u202eabc", " "])
    return st.none() | st.booleans() | numbers | texts | st.binary(max_size=20) | made | st.just(object) | st.just({1, 2})


def values() -> st.SearchStrategy[Any]:
    """Anything, to some depth."""
    keys = st.text(max_size=8) | st.integers() | st.sampled_from(["uid", "time", "data", "run_start", "descriptor", "name"])
    return st.recursive(
        oddities(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5) | st.tuples(inner, inner),
        max_leaves=12,
    )


KNOWN_KINDS = [
    "start",
    "descriptor",
    "event",
    "event_page",
    "resource",
    "stream_resource",
    "stream_datum",
    "datum",
    "datum_page",
    "stop",
]
KINDS = [*KNOWN_KINDS, "bulk_events", "", None, 7, ("event",)]


@st.composite
def hostile_streams(draw: st.DrawFn) -> list[Document]:
    """The documents of a good scan, with hostile ones among them: broken, doubled, out of order, of other kinds."""
    good: list[Document] = list(scan_documents("good", events=3))
    stream: list[Document] = []
    for name, document in good:
        stream += [*draw(st.lists(hostile_documents(), max_size=2)), (name, document)]
    stream.extend(draw(st.lists(hostile_documents(), max_size=3)))
    return stream


def hostile_documents() -> st.SearchStrategy[Document]:
    """A document that is anything, or one of another scan with a field that is anything or missing."""
    others = scan_documents("other", events=2)
    places = st.integers(0, 20)

    def with_field(one: Document, place: int, value: Any) -> Document:
        return one[0], {**one[1], list(one[1])[place % len(one[1])]: value}

    def without_field(one: Document, place: int) -> Document:
        name = list(one[1])[place % len(one[1])]
        return one[0], {key: value for key, value in one[1].items() if key != name}

    broken = st.builds(with_field, st.sampled_from(others), places, values())
    cut = st.builds(without_field, st.sampled_from(others), places)
    strange = st.tuples(st.sampled_from(KINDS), values())
    times = st.builds(
        lambda one, time: (one[0], {**one[1], "time": time}),
        st.sampled_from(others),
        st.sampled_from([BEGAN + 86_400, -5.0, 1e300, math.nan, math.inf, "now", None, 10**30]),
    )
    return broken | cut | strange | times
