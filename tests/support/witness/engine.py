"""A RunEngine in a process of its own, with simulated devices of ophyd-async: each line it reads is a plan to run.

It is a program as a beamline has it; the line that subscribes the witness is the only one that is new.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bluesky.plan_stubs as bps
import bluesky.plans as bp
import bluesky.preprocessors as bpp
from bluesky.run_engine import RunEngine
from ophyd_async.core import StaticFilenameProvider, StaticPathProvider, TriggerInfo, init_devices
from ophyd_async.sim import PatternGenerator, SimBlobDetector, SimMotor, SimPointDetector

from baton_bluesky import BatonWitness


class Engine:
    """A RunEngine, its devices, and the documents of its last run."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.directory = Path(told["directory"])
        self.documents: list[tuple[str, dict[str, Any]]] = []
        self.states: list[str] = []
        self.engine = RunEngine({}, context_managers=[])
        pattern = PatternGenerator()
        with init_devices():
            self.motor = SimMotor(instant=True, name="stage_x")
            self.other = SimMotor(instant=True, name="stage_y")
            self.point = SimPointDetector(pattern, num_channels=1, name="point")
            self.blob = SimBlobDetector(self._paths(), pattern_generator=pattern, name="blob")
        self.engine.subscribe(lambda name, document: self.documents.append((name, dict(document))))
        self.engine.state_hook = lambda new, old: self.states.append(str(new))
        self.witness: BatonWitness | None = None
        if "address" in told:
            self.witness = BatonWitness(told["address"], told["plan"], **told.get("options", {}))
            self.witness.attach(self.engine)
        self.plans: dict[str, Callable[..., Any]] = {
            "count": lambda num=3, **md: bp.count([self.point], num, md=md),
            "scan": lambda num=5, **md: bp.scan([self.point], self.motor, -1, 1, num, md=md),
            "rel_scan": lambda num=3, **md: bp.rel_scan([self.point], self.motor, -1, 1, num, md=md),
            "grid_scan": lambda **md: bp.grid_scan([self.point], self.motor, 0, 1, 2, self.other, 0, 1, 3, md=md),
            "frames": lambda num=2, **md: bp.count([self.blob], num, md=md),
            "fly": self.fly,
            "numbered": self.count_up,
            "rewound": self.rewind,
            "stopped": self.stop_where_paused,
            "aborted": self.abort_where_paused,
            "failed": self.fail_on_stall,
        }

    def _paths(self) -> StaticPathProvider:
        number = iter(range(10**6))

        class Names(StaticFilenameProvider):
            def __call__(self, device_name: str | None = None) -> str:
                return f"frames_{next(number)}"

        return StaticPathProvider(Names("frames"), self.directory)

    def fly(self, num: int = 3, **md: Any) -> Iterator[Any]:
        """A detector takes its frames by itself, and is collected while it does."""

        @bpp.stage_decorator([self.blob])
        @bpp.run_decorator(md={"plan_name": "fly", **md})
        def take() -> Iterator[Any]:
            yield from bps.prepare(self.blob, TriggerInfo(number_of_events=num, livetime=0.01), wait=True)
            yield from bps.declare_stream(self.blob, name="primary", collect=True)
            yield from bps.kickoff(self.blob, wait=True)
            yield from bps.collect_while_completing([self.blob], [self.blob], flush_period=0.1, stream_name="primary")

        return (yield from take())

    def count_up(self, num: int = 100, delay: float = 0.01, **md: Any) -> Iterator[Any]:
        """The motor is at 0, then at 1 and so on; one frame is taken at the end."""

        @bpp.stage_decorator([self.blob])
        @bpp.run_decorator(md={"plan_name": "numbered", "num_points": num, **md})
        def take() -> Iterator[Any]:
            for number in range(num):
                yield from bps.checkpoint()
                yield from bps.mv(self.motor, number)
                yield from bps.trigger_and_read([self.motor])
                yield from bps.sleep(delay)
            yield from bps.trigger_and_read([self.blob], name="frames")

        return (yield from take())

    def rewind(self, **md: Any) -> Iterator[Any]:
        """A plan that pauses behind an event and is resumed: what came since the checkpoint comes again."""

        @bpp.run_decorator(md={"plan_name": "rewound", **md})
        def take() -> Iterator[Any]:
            paused = False
            for point in range(2):
                yield from bps.checkpoint()
                yield from bps.mv(self.motor, point)
                yield from bps.create()
                yield from bps.read(self.motor)
                yield from bps.save()
                if not paused:
                    paused = True
                    yield from bps.pause()

        return (yield from take())

    def stop_where_paused(self, **md: Any) -> Iterator[Any]:
        """A plan that is stopped where it pauses."""
        return self.rewind(**md)

    def abort_where_paused(self, **md: Any) -> Iterator[Any]:
        """A plan that is aborted where it pauses."""
        return self.rewind(**md)

    def fail_on_stall(self, **md: Any) -> Iterator[Any]:
        """A plan whose motor stalls."""

        @bpp.run_decorator(md={"plan_name": "failed", "num_points": 5, **md})
        def take() -> Iterator[Any]:
            yield from bps.trigger_and_read([self.motor])
            raise RuntimeError("the motor stalled")

        return (yield from take())

    def run(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Run a plan to its end, whatever that is, and return what its documents say."""
        self.documents.clear()
        self.states.clear()
        began = time.perf_counter()
        try:
            self.engine(self.plans[name](**given))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if self.engine.state == "paused":
                {"stopped": self.engine.stop, "aborted": self.engine.abort}.get(name, self.engine.resume)()
        else:
            said = None
        return {"error": said, "seconds": time.perf_counter() - began, "states": self.states, "documents": self.documents}


def main() -> None:
    """Answer each line of standard input, `{"run": plan, ...}`, with a line of what came of it."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the RunEngine prints what a person reads
    engine = Engine(json.loads(sys.argv[1]))
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked.pop("run")
        if name == "standing":
            assert engine.witness is not None
            answer: dict[str, Any] = engine.witness.standing()._asdict()
        else:
            answer = engine.run(name, asked)
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
