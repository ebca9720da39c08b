"""Random conducts: what is to be done on which plant, what goes wrong there, and what is asked for in the middle of it.

A case is plain data, the same for the same seed. It is made along with its expected end: whatever is asked of a conduct
is asked at a moment that the conduct comes by.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.workflows.conduct_moments import ConductMoment
from tests.support.workflows.reference_interpreter import ReferenceProcedure, Refused
from tests.support.workflows.reference_plant import is_number
from tests.support.workflows.step_json import (
    action,
    capture,
    captured_value,
    check,
    compute,
    criterion,
    setpoint,
    steered_value,
)

FAULTS = ("rejecting", "denying", "silent", "stuck", "bad")
COMMANDS = ("ConductProcedure", "ConductOrHoldProcedure") * 3 + ("ConductUntilConverged", "ConductUntilAdvised") * 2
SUBMIT_FAULTS = ("ComputeSubmitRejectedError", "ComputeNotAvailableError", "RuntimeError")
MOST_CONDUCTS = 4
OFFSET, SHARPNESS = "offset", "sharpness"


@dataclass
class CaseAction:
    """What somebody does with the procedure: how, with what is asked for while it goes on."""

    verb: str
    given: dict[str, Any] = field(default_factory=dict)
    script: dict[ConductMoment, list[str]] = field(default_factory=dict)
    mends: bool = False
    """Whether everything that was wrong with the plant is mended before."""
    refused: str | None = None

    def __str__(self) -> str:
        asked = "; ".join(f"{' and '.join(requests)} {moment}" for moment, requests in self.script.items())
        parts = [self.verb, str(self.given or ""), "on a mended plant" if self.mends else "", asked, self.refused]
        return ", ".join(part for part in parts if part)


@dataclass
class ConductCase:
    """One procedure and everything that happens to it, and how it must stand at the end."""

    seed: int
    described: dict[str, Any]
    acts: list[CaseAction]
    expected: ReferenceProcedure


def build_case(seed: int) -> ConductCase:
    """The case of this seed."""
    described = CaseBuilder(seed).description()
    random = Random(f"acts of {seed}")
    procedure = ReferenceProcedure(deepcopy(described))
    acts = [CaseAction("begin")]
    perform(procedure, acts[0], random)
    while procedure.status in ("Running", "Held") and len(acts) < MOST_CONDUCTS + 2:
        act = next_act(procedure, random)
        if act is None:
            break
        acts.append(act)
        perform(procedure, act, random)
    return ConductCase(seed, described, acts, procedure)


def next_act(procedure: ReferenceProcedure, random: Random) -> CaseAction | None:
    """What somebody may do with a procedure that was held, or whose conduct stopped before an acquisition."""
    mends = random.random() < 0.5
    enough = len(procedure.results) >= MOST_CONDUCTS
    if procedure.status == "Running":
        return CaseAction(random.choice(("hold by hand",) * 3 + ("complete by hand", "abort")), mends=mends)
    if random.random() < 0.08:
        return None
    if enough or random.random() < 0.2:
        return CaseAction("abort", {"run_closing": random.random() < 0.7}, mends=mends)
    last = procedure.results[-1]
    if procedure.mode == "Advised":
        return CaseAction("resume", {"budget": random.choice((procedure.budget, None, budget(random)))}, mends=mends)
    if procedure.mode == "Converged":
        return CaseAction("resume", mends=mends)
    reached = (last["re_establishment_boundary"] or 0) + last["completed_count"]
    after = reached + last["acquisition_halt"]
    boundary = random.choice((after, after, reached, 0, len(procedure.steps), random.randint(0, len(procedure.steps))))
    return CaseAction("resume", {"boundary": min(boundary, len(procedure.steps))}, mends=mends)


def perform(procedure: ReferenceProcedure, act: CaseAction, random: Random) -> None:
    """Perform the act in the reference interpreter, with requests at moments that the conduct comes by."""
    if act.mends:
        procedure.plant.mend()
    match act.verb:
        case "hold by hand":
            procedure.hold_by_hand()
        case "complete by hand":
            procedure.complete_by_hand()
        case _:
            rehearsed = deepcopy(procedure)
            try:
                perform_act(rehearsed, act)
            except Refused as refused:
                act.refused = str(refused)
                return
            conducted = len(rehearsed.results) > len(procedure.results)
            act.script = requests(rehearsed.passed, random, act.verb) if conducted else {}
            perform_act(procedure, act)


def perform_act(procedure: ReferenceProcedure, act: CaseAction) -> None:
    match act.verb:
        case "begin":
            procedure.begin(act.script)
        case "resume":
            procedure.resume(act.script, **act.given)
        case "abort":
            procedure.abort(act.script, **{"run_closing": False, **act.given})


def requests(passed: list[ConductMoment], random: Random, verb: str) -> dict[ConductMoment, list[str]]:
    """What is asked of a conduct that would come by these moments."""
    script: dict[ConductMoment, list[str]] = {}
    kinds = ("abort",) if verb == "abort" else ("hold", "hold", "hold", "abort")
    for _ in range(random.choice((0, 0, 0, 1, 1, 1, 1, 2, 2) if verb != "abort" else (0, 0, 0, 1))):
        what = random.choice(sorted({moment.what for moment in passed}))
        rare = random.random() < 0.4
        among = [moment for moment in passed if moment.what == what] if rare else passed
        script.setdefault(random.choice(among), []).append(random.choice(kinds))
    return script


def budget(random: Random) -> dict[str, float] | None:
    """So many passes or so much time; of the time either none, or more than anybody will need."""
    if random.random() < 0.15:
        return {"wall_clock_remaining": random.choice((0.0, 86400.0))}
    left = random.choice((None, 0, 1, 1, 2, 2, 3))
    return None if left is None else {"iterations_remaining": left}


class CaseBuilder:
    """Makes up one case."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.roughness = self.random.choice((0, 0, 0, 0.4, 0.4, 1.0))
        """How much goes wrong, from nothing at all to a bit of everything."""
        self.plant: dict[str, dict[str, Any]] = {}
        self.programs: dict[str, list[dict[str, Any]]] = {}
        self.filled: list[str] = []
        self.published: list[str] = []
        self.axes: list[dict[str, Any]] = []
        self.left: dict[str, tuple[Any, ...]] = {}
        """What was last written to an address, as far as that is known."""
        self.jobs = 0

    def description(self) -> dict[str, Any]:
        random = self.random
        command = random.choice(COMMANDS)
        advised, converged = command == "ConductUntilAdvised", command == "ConductUntilConverged"
        self.literal = not advised and random.random() < (0.3 if converged else 0.5)
        self.addresses = [self.address(letter) for letter in "abcde"[: random.randint(2, 5)]]
        search = self.search() if advised else None
        steps = [self.steered_step(axis["name"]) for axis in self.axes]
        steps += [self.step() for _ in range(random.choice((0, 1, 2, 3, 4, 5) if self.literal else (1, 2, 3, 3, 4)))]
        if advised or converged:
            self.measure(steps, SHARPNESS if advised else OFFSET)
        closing = [] if self.literal else [self.step(closing=True) for _ in range(random.choice((0, 0, 1, 1, 2, 3)))]
        cap = random.choice((None, 1, 2, 3)) if converged else None
        return {
            "seed": self.seed,
            "command": command,
            "literal": self.literal,
            "steps": steps,
            "closing_steps": closing,
            "plant": self.plant,
            "programs": self.programs,
            "cap": cap,
            "convergence": self.convergence(cap) if converged else None,
            "search": search,
        }

    def address(self, letter: str) -> str:
        random = self.random
        prefix = random.choice(("real:", "real:", "model:"))
        if self.goes_wrong(0.12):
            prefix = random.choice(("watch:", "nowhere:"))
        address = f"{prefix}{self.seed}:{letter}"
        if not address.startswith("nowhere:"):
            signal: dict[str, Any] = {"value": self.reading()}
            if self.goes_wrong(0.2):
                signal["fault"] = random.choice(FAULTS)
            elif self.goes_wrong(0.08):
                signal["connected"] = False
            if random.random() < 0.3:
                signal["arrives"] = [self.number()]
            elif self.goes_wrong(0.15):
                signal["breaks"] = True
            self.plant[address] = signal
        return address

    def goes_wrong(self, chance: float) -> bool:
        """Whether something goes wrong here."""
        return self.random.random() < chance * self.roughness

    def number(self) -> float:
        return self.random.choice((self.random.randint(-3, 3), self.random.randint(-6, 6) / 2))

    def value(self) -> Any:
        odd = self.random.choice((True, False, "open", [1, 2.5], [[1, 2], [3, 4]], []))
        return odd if self.goes_wrong(0.4) else self.number()

    def reading(self) -> Any:
        return self.random.choice((float("nan"), float("inf"))) if self.goes_wrong(0.1) else self.value()

    def step(self, closing: bool = False) -> dict[str, Any]:
        """A step of any kind."""
        random = self.random
        kinds = ("setpoint", "setpoint", "check", "capture", "action", "capture" if self.literal else "compute")
        match random.choice(kinds):
            case "setpoint":
                more = {"verify": True} if random.random() < 0.2 else {}
                address, value = random.choice(self.addresses), self.value()
                self.left[address] = (value,)
                return setpoint(address, self.operand(value, closing), **more)
            case "check":
                return self.check(closing)
            case "capture":
                return capture(random.choice(self.addresses), self.slot())
            case "action":
                return self.action()
        return self.compute(closing)

    def operand(self, value: Any, closing: bool) -> Any:
        """A value, or something that will stand for one."""
        random = self.random
        if random.random() < 0.35:
            names = ["m", "n"] if self.literal and self.goes_wrong(0.4) else self.filled
            if names:
                return captured_value(random.choice(names))
        if self.axes and not closing and random.random() < 0.3:
            return steered_value(random.choice(self.axes)["name"])
        return steered_value("x") if not closing and not self.axes and self.goes_wrong(0.05) else value

    def slot(self) -> str:
        """A slot to fill; where nobody looks beforehand, perhaps one that is filled already."""
        twice = self.literal and self.random.random() < 0.2 + 0.8 * self.roughness
        name = self.random.choice(("m", "n")) if twice else f"s{len(self.filled)}"
        self.filled.append(name)
        return name

    def check(self, closing: bool) -> dict[str, Any]:
        """A check that asks for what the signal may come to read, often enough."""
        random = self.random
        address = random.choice(self.addresses)
        signal = self.plant.get(address, {"value": 0})
        more = {"timeout": 0.05} if random.random() < 0.5 else {}
        expected = random.choice((*self.left.get(address, (signal["value"],))[-1:], *signal.get("arrives", ())))
        if self.goes_wrong(0.3) or not is_number(expected):
            expected = self.value()
        tolerance = random.choice((None, 0.5, 20.0)) if is_number(expected) else None
        return check(address, self.operand(expected, closing), tolerance, **more)

    def action(self) -> dict[str, Any]:
        random = self.random
        self.jobs += 1
        writes = [[random.choice(self.addresses), self.value()] for _ in range(random.choice((0, 1, 1, 2)))]
        then = random.choice(("refuse", "break", "time out", "mumble")) if self.goes_wrong(0.4) else "return"
        name = "play" if self.goes_wrong(0.1) else "work"
        return action(name, job=f"{self.seed}:{self.jobs}", writes=writes, then=then)

    def compute(self, closing: bool, slot: str | None = None) -> dict[str, Any]:
        """A program that measures something, or writes a file that the next one reads."""
        random = self.random
        number = len(self.programs)
        more: dict[str, Any] = {}
        if random.random() < 0.4:
            more["parameters"] = {"p": self.operand(self.number(), closing)}
        arm = "measures" if slot is not None else random.choice(("measures", "measures", "writes", "publishes"))
        if arm == "measures":
            if slot is not None or random.random() < 0.7:
                more["capture_name"] = slot or self.slot()
        else:
            more["output_uri"] = f"file:///{self.seed}/{number}"
            if arm == "publishes" and not closing:
                more["input_uris"] = ["file:///raw", *({"__output__": name} for name in self.published[-1:])]
                more["output_ref_name"] = f"o{number}"
                self.published.append(more["output_ref_name"])
        argv = ("program", str(self.seed), str(number))
        answers = [self.answer(more.get("capture_name", "extra")) for _ in range(random.choice((1, 1, 2, 3)))]
        self.programs[" ".join(argv)] = answers
        return compute(*argv, **more)

    def answer(self, name: str) -> dict[str, Any]:
        """How a program ends, mostly well."""
        random = self.random
        names: tuple[str, ...] = random.choice(((name,), (name, "extra")))
        if self.goes_wrong(0.3):
            names = random.choice(((), (name, name), ("extra",)))
        return {
            "status": random.choice(("Failed", "TimedOut", "Cancelled")) if self.goes_wrong(0.2) else "Succeeded",
            "measurements": [self.measurement(one) for one in names],
            "writes_nothing": self.goes_wrong(0.2),
            "submit": random.choice(SUBMIT_FAULTS) if self.goes_wrong(0.15) else None,
        }

    def measurement(self, name: str) -> dict[str, Any]:
        quality = self.random.choice(("Uncertain", "Bad")) if self.goes_wrong(0.2) else "Good"
        value = self.random.choice((True, [1.0, 2.0], "much")) if self.goes_wrong(0.2) else self.number()
        kind = "Array" if isinstance(value, list) else "Scalar"
        return {"name": name, "value": value, "kind": kind, "quality": quality}

    def measure(self, steps: list[dict[str, Any]], name: str) -> None:
        """Have the steps bring what passes are judged by, mostly; other values in every pass."""
        random = self.random
        if name == OFFSET and self.goes_wrong(0.1):
            return
        if not self.literal and random.random() < 0.4:
            steps.append(self.compute(closing=False, slot=name))
            self.filled.append(name)
            return
        address = f"{random.choice(('real:', 'model:'))}{self.seed}:measured"
        series = [random.choice((self.number(), self.number(), 0)) for _ in range(random.randint(0, 4))]
        self.plant[address] = {"value": self.number(), "series": series}
        if self.goes_wrong(0.15):
            self.plant[address]["fault"] = random.choice(("silent", "stuck", "bad"))
        steps.append(capture(address, name))
        self.filled.append(name)

    def convergence(self, cap: int | None) -> dict[str, Any]:
        """A loop always has an end: patience is limited by one of the two caps at least."""
        own = self.random.choice((1, 2, 3)) if cap is None else self.random.choice((None, 1, 2))
        wanted = criterion(0, self.random.choice((None, 0.5, 1.0)))
        return {"name": OFFSET, "criterion": wanted, "cap": own}

    def search(self) -> dict[str, Any]:
        random = self.random
        names, points = random.choice((("x", 2), ("x", 3), ("xy", 2)))
        for name in names:
            lower = float(random.randint(-2, 2))
            bounded = {"name": name, "lower": lower, "upper": lower + random.choice((1.0, 2.0, 4.0))}
            self.axes.append(random.choice((bounded, bounded, {"name": name, "choices": [1.0, "in", 3.5][:points]})))
        kind = random.choice(("Maximize", "Minimize", "Satisfy", "Explore"))
        objective: dict[str, Any] = {"kind": kind, "target_measurement_name": None if kind == "Explore" else SHARPNESS}
        objective["target_value"] = float(self.number()) if kind == "Satisfy" else None
        seeded = {"substrate": "in_memory", "advice": [self.advice() for _ in range(random.randint(0, 3))]}
        walk = {"substrate": "grid_walk", "points_per_axis": points}
        return {
            "axes": self.axes,
            "objective": objective,
            "objective_capture_name": SHARPNESS,
            "decide": random.choice((walk, seeded)),
            "budget": budget(random),
        }

    def advice(self) -> dict[str, Any]:
        random = self.random
        if random.random() < 0.15:
            return {"verdict": "Stop"}
        point = {axis["name"]: random.choice(axis.get("choices") or (axis["lower"], axis["upper"])) for axis in self.axes}
        if self.goes_wrong(0.6):
            point[random.choice((self.axes[0]["name"], "elsewhere"))] = 1e6
        return {"verdict": "Measure", "next_point": point}

    def steered_step(self, axis: str) -> dict[str, Any]:
        """A step that follows an axis of the search."""
        if self.random.random() < 0.2:
            step = self.compute(closing=False)
            return {**step, "parameters": {"at": steered_value(axis)}}
        return setpoint(self.random.choice(self.addresses), steered_value(axis))
