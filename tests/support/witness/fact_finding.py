"""Plays what the witness rests on with the installed Bluesky and ophyd-async, and prints what came of it as JSON."""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import bluesky.plan_stubs as bps
import bluesky.plans as bp
import bluesky.preprocessors as bpp
from bluesky.run_engine import RunEngine
from bluesky.suspenders import SuspendFloor
from bluesky.utils import RunEngineInterrupted
from ophyd_async.core import StrictEnum, init_devices, soft_signal_rw
from ophyd_async.sim import PatternGenerator, SimMotor, SimPointDetector

from tests.support.witness.engine import Engine


class Colour(StrictEnum):
    """An enum of two labels."""

    RED = "Red"
    BLUE = "Blue"


class Recorder:
    """The documents of a RunEngine and its states."""

    def __init__(self) -> None:
        self.engine = RunEngine({}, context_managers=[])
        self.documents: list[tuple[str, dict[str, Any]]] = []
        self.states: list[str] = []
        self.engine.subscribe(lambda name, document: self.documents.append((name, dict(document))))
        self.engine.state_hook = lambda new, old: self.states.append(str(new))
        with init_devices():
            self.motor = SimMotor(instant=True, name="stage_x")
            self.point = SimPointDetector(PatternGenerator(), num_channels=1, name="point")

    def kinds(self) -> dict[str, int]:
        return dict(Counter(name for name, _ in self.documents))

    def stop(self) -> dict[str, Any]:
        return next(document for name, document in self.documents if name == "stop")

    def run(self, plan: Any) -> str | None:
        """Run a plan, and return the name of its error."""
        self.documents.clear()
        self.states.clear()
        try:
            self.engine(plan)
        except Exception as error:
            return type(error).__name__
        return None


def error_of(call: Callable[[], Any]) -> str | None:
    """Return the name of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return None


def points(recorder: Recorder, number: int = 3, *, checkpoints: bool = True, delay: float = 0) -> Iterator[Any]:
    """A scan of some points."""

    @bpp.run_decorator(md={"num_points": number})
    def take() -> Iterator[Any]:
        for _ in range(number):
            if checkpoints:
                yield from bps.checkpoint()
            yield from bps.trigger_and_read([recorder.motor])
            if delay:
                yield from bps.sleep(delay)

    return take()


def of_signals(recorder: Recorder) -> dict[str, Any]:
    """F 1."""
    engine = recorder.engine

    def ask(work: Callable[[], Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(), engine.loop).result(5)

    with init_devices():
        level = soft_signal_rw(float, 2.5, name="level")
        colour = soft_signal_rw(Colour, Colour.RED, name="colour")
    seen: list[Any] = []

    async def follow() -> None:
        level.subscribe_reading(lambda reading: seen.append(reading["level"]["value"]))
        await asyncio.sleep(0)

    reading = ask(lambda: level.read())["level"]
    ask(follow)
    return {
        "reading": sorted(reading),
        "enum_by_number": error_of(lambda: ask(lambda: _set(colour, 1))),
        "enum_by_label": error_of(lambda: ask(lambda: _set(colour, "Blue"))),
        "text_for_number": error_of(lambda: ask(lambda: _set(level, "high"))),
        "first_value": seen[:1],
    }


async def _set(signal: Any, value: Any) -> None:
    await signal.set(value)


def of_callbacks(recorder: Recorder) -> dict[str, Any]:
    """F 3."""
    found: dict[str, Any] = {}

    def refuse(name: str, document: Any) -> None:
        if name == "event":
            raise RuntimeError("the callback failed")

    token = recorder.engine.subscribe(refuse)
    found["raising_error"] = recorder.run(points(recorder))
    found["raising_stop"] = {key: recorder.stop()[key] for key in ("exit_status", "reason")}
    recorder.engine.unsubscribe(token)
    began = time.perf_counter()
    recorder.run(points(recorder))
    quick = time.perf_counter() - began
    token = recorder.engine.subscribe(lambda *_: time.sleep(0.05))
    began = time.perf_counter()
    recorder.run(points(recorder))
    found["delay_of_six_documents"] = time.perf_counter() - began - quick
    recorder.engine.unsubscribe(token)
    return found


def of_endings(recorder: Recorder) -> dict[str, Any]:
    """F 4."""
    found: dict[str, Any] = {}

    def pause_once() -> Iterator[Any]:
        @bpp.run_decorator()
        def take() -> Iterator[Any]:
            yield from bps.checkpoint()
            yield from bps.trigger_and_read([recorder.motor])
            yield from bps.pause()
            yield from bps.trigger_and_read([recorder.motor])

        return take()

    engine = recorder.engine
    for name, end in (
        ("stop", lambda: engine.stop()),
        ("abort", lambda: engine.abort("the beam was lost")),
        ("halt", lambda: engine.halt()),
    ):
        recorder.run(pause_once())
        end()
        found[name] = {key: recorder.stop()[key] for key in ("exit_status", "reason")}
        found[f"{name}_states"] = list(recorder.states)
    recorder.run(pause_once())
    engine.resume()
    found["kinds_with_pause"] = recorder.kinds()
    engine.record_interruptions = True
    recorder.run(pause_once())
    engine.resume()
    engine.record_interruptions = False
    names = {d["uid"]: d["name"] for name, d in recorder.documents if name == "descriptor"}
    found["interruptions"] = [
        d["data"]["interruption"]
        for name, d in recorder.documents
        if name == "event" and names[d["descriptor"]] == "interruptions"
    ]

    def without_checkpoint() -> Iterator[Any]:
        @bpp.run_decorator()
        def take() -> Iterator[Any]:
            yield from bps.clear_checkpoint()
            yield from bps.pause()

        return take()

    found["pause_without_checkpoint"] = recorder.run(without_checkpoint())
    found["pause_without_checkpoint_stop"] = recorder.stop()["exit_status"]

    def suspend_once(checkpoints: bool) -> Iterator[Any]:
        @bpp.run_decorator()
        def take() -> Iterator[Any]:
            yield from bps.checkpoint() if checkpoints else bps.clear_checkpoint()
            engine.request_suspend(lambda: asyncio.sleep(0.1), justification="the run is Held")
            yield from bps.sleep(0.3)

        return take()

    for name, checkpoints in (("suspended", True), ("suspended_without_checkpoint", False)):
        recorder.run(suspend_once(checkpoints))
        found[name] = recorder.stop()["exit_status"]
        found[f"{name}_states"] = list(recorder.states)
    with init_devices():
        level = soft_signal_rw(float, 2.5, name="level")
    found["suspender_of_a_signal"] = error_of(lambda: engine.install_suspender(SuspendFloor(level, 1.0)))

    def refuse(message: Any) -> Any:
        if message.command == "open_run":
            raise PermissionError("closed")
        return None, None

    engine.preprocessors.append(lambda plan: bpp.plan_mutator(plan, refuse))
    found["refused_before"] = [recorder.run(bp.count([recorder.motor], 1)), recorder.kinds()]
    engine.preprocessors.clear()

    def interleave() -> Iterator[Any]:
        for key in ("a", "b"):
            yield from bpp.set_run_key_wrapper(bps.open_run(), key)
        for key in ("a", "b"):
            yield from bpp.set_run_key_wrapper(bps.trigger_and_read([recorder.motor]), key)
        for key in ("a", "b"):
            yield from bpp.set_run_key_wrapper(bps.close_run(), key)

    recorder.run(interleave())
    found["interleaved"] = len({d["uid"] for name, d in recorder.documents if name == "start"})
    found["interleaved_order"] = [name for name, _ in recorder.documents]
    return found


def of_rewinding(recorder: Recorder) -> dict[str, Any]:
    """F 8."""

    def twice() -> Iterator[Any]:
        @bpp.run_decorator()
        def take() -> Iterator[Any]:
            paused = False
            yield from bps.checkpoint()
            for _ in range(2):
                yield from bps.create()
                yield from bps.read(recorder.motor)
                yield from bps.save()
                if not paused:
                    paused = True
                    yield from bps.pause()

        return take()

    try:
        recorder.documents.clear()
        recorder.engine(twice())
    except RunEngineInterrupted:
        recorder.engine.resume()
    events = [document for name, document in recorder.documents if name == "event"]
    return {
        "seq_nums": [event["seq_num"] for event in events],
        "uids": len({event["uid"] for event in events}),
        "times": len({event["time"] for event in events}),
        "announced": recorder.stop()["num_events"]["primary"],
    }


def of_subscribing(recorder: Recorder) -> dict[str, Any]:
    """What a state hook sees, and where callbacks run."""
    import threading

    threads: set[str] = set()
    token = recorder.engine.subscribe(lambda *_: threads.add(threading.current_thread().name))
    recorder.run(points(recorder))
    recorder.engine.unsubscribe(token)
    return {"states": list(recorder.states), "threads": sorted(threads)}


def main() -> None:
    """Print everything."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    recorder = Recorder()
    found = {
        "signals": of_signals(recorder),
        "callbacks": of_callbacks(recorder),
        "endings": of_endings(recorder),
        "rewinding": of_rewinding(recorder),
        "subscribing": of_subscribing(recorder),
        "scan": Engine({"directory": sys.argv[1]}).run("scan", {})["documents"],
        "frames": Engine({"directory": sys.argv[1]}).run("frames", {})["documents"],
    }
    print(json.dumps(found, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
