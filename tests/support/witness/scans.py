"""A RunEngine and plans of its own devices, for tests of what stands beside it."""

import time
from collections.abc import Generator
from typing import Any

from bluesky import plan_stubs
from bluesky.preprocessors import run_decorator
from bluesky.run_engine import RunEngine
from bluesky.utils import Msg

Messages = Generator[Msg, Any, Any]
Documents = list[tuple[str, dict[str, Any]]]


class Diode:
    """A readable device that counts how often it is read."""

    parent = None

    def __init__(self, name: str = "diode") -> None:
        self.name = name
        self.readings = 0

    def describe(self) -> dict[str, Any]:
        return {self.name: {"source": f"ca://BL7:{self.name}", "dtype": "number", "shape": [], "units": "nA"}}

    def read(self) -> dict[str, Any]:
        self.readings += 1
        return {self.name: {"value": float(self.readings), "timestamp": time.time()}}

    def describe_configuration(self) -> dict[str, Any]:
        return {}

    def read_configuration(self) -> dict[str, Any]:
        return {}


def make_engine() -> tuple[RunEngine, Documents]:
    """Return a RunEngine that may be called from any thread, and the documents that it emits."""
    engine, documents = RunEngine({}, context_managers=[]), Documents()
    engine.subscribe(lambda name, document: documents.append((name, document)))
    return engine, documents


def steps(
    diode: Diode, num: int = 3, pause: float = 0.0, checkpoints: bool = True, **metadata: Any
) -> Generator[Msg, Any, Any]:
    """A scan that reads a diode, with a checkpoint before each reading."""

    @run_decorator(md={"plan_name": "steps", "num_points": num, **metadata})
    def inner() -> Messages:
        for _ in range(num):
            if checkpoints:
                yield from plan_stubs.checkpoint()
            yield from plan_stubs.create()
            yield from plan_stubs.read(diode)
            yield from plan_stubs.save()
            yield from plan_stubs.sleep(pause)

    return (yield from inner())


def documents_of(documents: Documents, name: str) -> list[dict[str, Any]]:
    """Return the documents of a kind."""
    return [document for kind, document in documents if kind == name]


def rewound_steps(diode: Diode) -> Messages:
    """A scan that pauses behind an event: when it is resumed, what came since the checkpoint comes again."""

    @run_decorator(md={"plan_name": "rewound"})
    def inner() -> Messages:
        for point in range(2):
            yield from plan_stubs.checkpoint()
            yield from plan_stubs.create()
            yield from plan_stubs.read(diode)
            yield from plan_stubs.save()
            if point == 0:
                yield from plan_stubs.pause()

    return (yield from inner())
