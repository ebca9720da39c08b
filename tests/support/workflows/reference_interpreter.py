"""How conducts must come out: the rules read step by step over a dictionary of signals, with no engine and no database.

It shares no code with the conductor. Where the two differ, one of them does not follow the rules.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, product
from typing import Any

from tests.support.workflows.conduct_moments import ConductMoment
from tests.support.workflows.reference_plant import (
    NEVER,
    ReferencePlant,
    StepFailed,
    captured_number,
    doubtful_value,
    first_point,
    is_met,
    is_number,
    is_on_axis,
    kind_of,
    merged_kind,
    shown_value,
    values_of,
)

RESUMING = {
    "ConductProcedure": "ConductFromProcedure",
    "ConductOrHoldProcedure": "ConductFromProcedure",
    "ConductFromProcedure": "ConductFromProcedure",
    "ConductUntilConverged": "ConductUntilConverged",
    "ConductUntilAdvised": "ConductUntilAdvisedFrom",
    "ConductUntilAdvisedFrom": "ConductUntilAdvisedFrom",
}
MARKED = ("setpoint", "action", "compute")
ONCE = ("action", "compute")
BREAKS = {"break": "RuntimeError", "time out": "TimeoutError", "mumble": "ActionResultError"}
"""How actions fail that have done their work."""

Step = Mapping[str, Any]
Place = tuple[int, bool, int]
"""The pass of a step, whether it closes, and its index."""
Script = Mapping[ConductMoment, Sequence[str]]
"""What is asked of a conduct, and when."""


class StepAborted(Exception):
    """A step was stopped by an abort while it went on."""


class Refused(Exception):
    """A conduct was not opened; nothing changed."""


def target_of(step: Mapping[str, Any]) -> str:
    return str(step.get("address") or step.get("name") or " ".join(step["command"]))


def failure_of(step: Mapping[str, Any], index: int, error_class: str) -> dict[str, Any]:
    return {"step_index": index, "source_kind": step["kind"], "target": target_of(step), "error_class": error_class}


def lifecycle_failure(target: str, error_class: str) -> dict[str, Any]:
    return {"step_index": None, "source_kind": "lifecycle", "target": target, "error_class": error_class}


UNASKED = {
    "held": lifecycle_failure("hold", "ProcedureHeldByOperator"),
    "aborted": lifecycle_failure("abort", "ProcedureAborted"),
    "halted": lifecycle_failure("hold", "AcquisitionResumeRequiresOperator"),
}
"""The fields of a failure in which no step failed."""

NO_MORE_ADVICE = "No more advice was given beforehand."


class MainListEnded(Exception):
    """The main list came to its end: how, and by which failure."""

    def __init__(
        self, finish: str, failure: dict[str, Any] | None = None, reason: str | None = None, rationale: str | None = None
    ) -> None:
        super().__init__(finish)
        self.finish, self.failure, self.reason, self.rationale = finish, failure, reason, rationale


@dataclass
class ReferenceRow:
    """What the ledger keeps of a step."""

    conduct: int
    iteration: int
    closing: bool
    index: int
    kind: str
    mark: str
    result: str
    error_class: str | None = None
    slot: str | None = None
    content: Any = None

    @property
    def is_output(self) -> bool:
        return isinstance(self.content, str)

    def compared_fields(self) -> tuple[Any, ...]:
        return (self.conduct, self.iteration, self.closing, self.index, self.kind, self.mark, self.result, self.error_class)


class ReferenceProcedure:
    """A procedure as the rules would have it, from registration to its end, one conduct after the other."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case = case
        self.steps: list[Any] = case["steps"]
        self.closing_steps: list[Any] = case["closing_steps"]
        self.plant = ReferencePlant(case["plant"])
        self.budget = (case["search"] or {}).get("budget")
        self.submitted: Counter[str] = Counter()
        self.performed: list[str] = []
        self.status = "Defined"
        self.hold_cause: str | None = None
        self.kind: str | None = None
        self.iteration_count = self.streak = 0
        self.iteration: int | None = None
        self.pending: str | None = None
        self.command = ""
        self.stream: list[tuple[Any, ...]] = [("ProcedureRegistered",)]
        if not case["literal"]:
            self.stream.append(("ProcedureRecipeExpanded",))
        self.ledger: list[ReferenceRow] = []
        self.results: list[dict[str, Any]] = []
        self.outcomes: list[dict[str, Any]] = []
        self.rationale: str | None = None
        self.refusals: list[str] = []
        self.passed: list[ConductMoment] = []
        """The moments that the conduct came by."""
        self.captures: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    @property
    def mode(self) -> str:
        if "Converged" in self.command:
            return "Converged"
        return "Advised" if "Advised" in self.command else "Flat"

    def begin(self, script: Script) -> None:
        """The first conduct."""
        self.command = self.case["command"]
        self.stream.append(("ProcedureStepsResolved",))
        if self.mode == "Advised":
            self.stream.append(("ProcedureSteeringDeclared",))
        self.stream += [("ProcedureActivitiesLogbookOpened",), ("ProcedureStarted",)]
        self._conduct(script, None)

    def resume(self, script: Script, boundary: int = 0, budget: Any = None) -> None:
        """A conduct that goes on after a hold; raises Refused."""
        if RESUMING[self.command] == "ConductFromProcedure":
            self._refuse_lost_captures(boundary)
        self.command = RESUMING[self.command]
        if self.mode == "Advised":
            boundary = len(self.outcomes)
            if budget != self.budget:
                self.stream.append(("ProcedureSteeringDeclared",))
            self.budget = budget
        self.stream.append(("ProcedureResumed", boundary))
        self.hold_cause = None
        self._conduct(script, boundary)

    def hold_by_hand(self) -> None:
        self.status, self.hold_cause = "Held", "Operator"
        self.stream.append(("ProcedureHeld", "Operator"))

    def complete_by_hand(self) -> None:
        self.status = "Completed"
        self.stream.append(("ProcedureCompleted", None))

    def abort(self, script: Script, run_closing: bool) -> None:
        """An abort without a live conduct, with a conduct of the closing steps alone where that is asked for."""
        if not run_closing or not self.closing_steps:
            self.status, self.hold_cause = "Aborted", None
            self.stream.append(("ProcedureAborted",))
            return
        self.stream.append(("ProcedureAbortRequested", True))
        self.command = "AbortProcedure"
        self._open(script, None)
        self.captures, _ = self._surviving_captures(len(self.steps))
        self._end(MainListEnded("completed"))

    def _refuse_lost_captures(self, boundary: int) -> None:
        """What closing needs and no step will capture must have been captured."""
        needed = {value["__capture__"] for step in self.closing_steps for value in sentinels(step) if "__capture__" in value}
        filled = {step.get("capture_name") for step in (*self.steps[boundary:], *self.closing_steps)}
        if needed - filled - set(self._surviving_captures(boundary)[0]):
            raise Refused("ProcedureClosingCaptureBeforeBoundaryError")

    def _surviving_captures(self, boundary: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The captures and outputs that the ledger holds of earlier conducts before the boundary, the last of each."""
        rows = [(row.slot, row) for row in self.ledger if not row.closing and row.index < boundary and row.slot is not None]
        captures = {slot: row.content for slot, row in rows if not row.is_output}
        outputs = {slot: row.content for slot, row in rows if row.is_output}
        return captures, outputs

    def _open(self, script: Script, boundary: int | None) -> None:
        self.conduct = len(self.results)
        self.script = {moment: list(asked) for moment, asked in script.items()}
        self.passed = []
        self.boundary = boundary
        self.captures = {}
        self.outputs = {}
        self.point: dict[str, Any] = {}
        self.measurements: list[Any] = []
        self.artifacts: list[str] = []
        self.writes: dict[str, Any] = {}
        self.kinds: list[str | None] = []
        self.closing_failures: list[dict[str, Any]] = []
        self.completed = 0
        with self._work("brief_conduct"):
            self.status = "Running" if self.command != "AbortProcedure" else self.status

    def _conduct(self, script: Script, boundary: int | None) -> None:
        self.status = "Running"
        self._open(script, boundary)
        try:
            match self.mode:
                case "Flat":
                    self.captures, self.outputs = self._surviving_captures(boundary or 0)
                    self._walk(boundary or 0)
                    over = MainListEnded("completed")
                case "Converged":
                    over = self._until_converged()
                case _:
                    over = self._until_advised()
        except MainListEnded as ended:
            over = ended
        self._end(over)

    @contextmanager
    def _work(self, what: str, iteration: int = 0, closing: bool = False, index: int | None = None) -> Iterator[None]:
        """A piece of work, with the moments before and after it."""
        self._at("before", what, iteration, closing, index)
        try:
            yield
        finally:
            self._at("after", what, iteration, closing, index)

    def _at(self, when: str, what: str, iteration: int = 0, closing: bool = False, index: int | None = None) -> None:
        """Come by a moment: what is asked for there is on the record when it is over."""
        moment = ConductMoment(when, what, iteration, closing, index)
        self.passed.append(moment)
        asked = self.script.pop(moment, [])
        for request in asked:
            if self.pending == "abort" or (request == "hold" and (self.pending or self.status != "Running")):
                self.refusals.append(f"ProcedureCannot{request.title()}Error")
                continue
            self.pending = request
            self.stream.append(("ProcedureHoldRequested",) if request == "hold" else ("ProcedureAbortRequested", False))
        if when == "during" and "abort" in asked:
            raise StepAborted

    def _serve_requests(self, *, holds: bool = True) -> None:
        """Serve what was asked for, an abort before a hold."""
        if self.pending == "abort":
            raise MainListEnded("aborted")
        if self.pending == "hold" and holds:
            raise MainListEnded("held")

    def _walk(self, begun: int = 0, iteration: int = 0) -> None:
        for index, step in enumerate(self.steps[begun:], begun):
            try:
                self._step(step, (iteration, False, index))
            except StepFailed as fault:
                raise MainListEnded("failed", failure_of(step, index, str(fault))) from fault
            except StepAborted:
                raise MainListEnded("aborted") from None
            self.completed += 1

    def _step(self, step: Step, place: Place) -> None:
        """One step: whatever was asked for is served, then it is marked, done and settled."""
        kind, (_, closing, index) = step["kind"], place
        with self._work("do_step", *place):
            self._serve_requests(holds=not closing)
            if kind in ONCE and not closing and self.command == "ConductFromProcedure" and self._was_begun(index):
                raise MainListEnded("halted")
            with self._record_failure(place, kind):
                known = self._resolve(step)
            if kind in MARKED:
                self.ledger.append(ReferenceRow(self.conduct, *place, kind, "in_flight", "in_flight"))
            with self._record_failure(place, kind):
                came = self._effect(step, known, place)
            if kind != "compute":
                self._settle(place, kind, "outcome", *came)
                return
        with self._work("collect_job", *place):
            with self._record_failure(place, kind):
                measured = self._collect(step, came, place)
            self._settle(place, kind, "outcome")
            with self._record_failure(place, kind, "deposit"):
                left = self._deposit(step, measured)
            if left is not None:
                self._settle(place, kind, "deposit", *left)

    def _was_begun(self, index: int) -> bool:
        """Whether an earlier conduct began the action or program at this index."""
        return any(
            row.index == index and row.kind in ONCE and not row.closing for row in self.ledger if row.conduct < self.conduct
        )

    @contextmanager
    def _record_failure(self, place: Place, kind: str, mark: str = "outcome") -> Iterator[None]:
        """A failure of what is done here is what the ledger says of the step."""
        try:
            yield
        except (StepFailed, StepAborted) as fault:
            label = "CancelledError" if isinstance(fault, StepAborted) else str(fault)
            self.ledger.append(ReferenceRow(self.conduct, *place, kind, mark, "failed", label))
            raise

    def _settle(self, place: Place, kind: str, mark: str, slot: str | None = None, content: Any = None) -> None:
        self.ledger.append(ReferenceRow(self.conduct, *place, kind, mark, "ok", slot=slot, content=content))

    def _resolve(self, step: Step) -> Any:
        """What the sentinels of a step stand for; the value of a setpoint, or what a check expects."""
        for uri in step.get("input_uris", ()):
            if isinstance(uri, dict) and uri["__output__"] not in self.outputs:
                raise StepFailed("UnresolvedOutputRef")
        for parameter in step.get("parameters", {}).values():
            self._known_value(parameter)
        return self._known_value(step.get("value", step.get("criterion", {}).get("expected")))

    def _known_value(self, value: Any) -> Any:
        for key, known in (("__capture__", self.captures), ("__steering__", self.point)):
            if isinstance(value, dict) and key in value:
                if value[key] not in known:
                    raise StepFailed("UnresolvedCaptureRef")
                return known[value[key]]
        return value

    def _effect(self, step: Step, known: Any, place: Place) -> Any:
        """Do a step; the slot it fills and with what, or of a program how it will end."""
        match step["kind"]:
            case "setpoint":
                self._touch(place, kind_of(step["address"]))
                self._write(step["address"], known, lambda: self._at("during", "do_step", *place))
                if step.get("verify"):
                    self._read_back(step["address"], known)
                return None, None
            case "action":
                return self._act(step, place)
            case "check":
                return self._check(step, known, place)
            case "capture":
                return self._capture(step, place)
        return self._submit(step, place)

    def _touch(self, place: Place, kind: str | None) -> None:
        """What closing touches does not count."""
        if not place[1]:
            self.kinds.append(kind)

    def _write(self, address: str, value: Any, during: Callable[[], None] = lambda: None) -> None:
        """Write, and remember what that leaves; what is not confirmed may have had its effect nevertheless."""
        try:
            self.plant.write(address, value, during)
        except StepFailed as fault:
            if str(fault) == "ControlTimeoutError":
                self.writes[address] = doubtful_value(self.writes.get(address, NEVER), shown_value(value))
            raise
        self.writes[address] = shown_value(value)

    def _read_back(self, address: str, written: Any) -> None:
        """Read what was written; what reads otherwise is told beside it, and what cannot be read changes nothing."""
        with suppress(StepFailed):
            read, _ = self.plant.read(address)
            if read != written:
                told = "nan" if isinstance(read, float) and math.isnan(read) else shown_value(read)
                self.writes[address] = {"written": shown_value(written), "read": told}

    def _act(self, step: Step, place: Place) -> tuple[None, None]:
        if step["name"] != "work":
            raise StepFailed("UnknownActionError")
        params = step["params"]
        self.performed.append(params["job"])
        self._at("during", "do_step", *place)
        if params["then"] == "refuse":
            raise StepFailed("InvalidActionParametersError")
        for address, value in params["writes"]:
            self._touch(place, kind_of(address))
            self._write(address, value)
        if (fault := BREAKS.get(params["then"])) is not None:
            raise StepFailed(fault)
        return None, None

    def _check(self, step: Step, expected: Any, place: Place) -> tuple[None, None]:
        self._touch(place, kind_of(step["address"]))
        self._at("during", "do_step", *place)

        def satisfies(value: Any, quality: str) -> bool:
            return quality == "Good" and is_met(step["criterion"], expected, value)

        if not satisfies(*self.plant.read(step["address"])) and not (
            "timeout" in step and satisfies(*self.plant.follow(step["address"]))
        ):
            raise StepFailed("CheckFailedError")
        return None, None

    def _capture(self, step: Step, place: Place) -> tuple[str, float]:
        name = step["capture_name"]
        if name in self.captures:
            raise StepFailed("DuplicateCapture")
        self._touch(place, kind_of(step["address"]))
        self._at("during", "do_step", *place)
        self.captures[name] = captured_number(*self.plant.read(step["address"]))
        return name, self.captures[name]

    def _submit(self, step: Step, place: Place) -> Mapping[str, Any]:
        self._touch(place, "Simulated")
        self._at("during", "do_step", *place)
        command = " ".join(step["command"])
        answers = self.case["programs"][command]
        answer: Mapping[str, Any] = answers[min(self.submitted[command], len(answers) - 1)]
        self.submitted[command] += 1
        if answer["submit"] is not None:
            raise StepFailed(answer["submit"])
        return answer

    def _collect(self, step: Step, answer: Mapping[str, Any], place: Place) -> Sequence[Any]:
        """What a program measured; an artifact is kept as it is."""
        self._at("during", "collect_job", *place)
        if answer["status"] != "Succeeded":
            raise StepFailed("ComputeJobFailedError")
        uri = step.get("output_uri")
        if uri is not None and answer["writes_nothing"]:
            raise StepFailed("ArtifactNotFoundError")
        measured: Sequence[Any] = answer["measurements"] if uri is None else ()
        if not place[1]:
            self.artifacts += [uri] if uri is not None else []
            self.measurements += [{**item, "value": shown_value(item["value"])} for item in measured]
        return measured

    def _deposit(self, step: Step, measured: Sequence[Any]) -> tuple[str, Any] | None:
        if (name := step.get("capture_name")) is not None:
            found = [item for item in measured if item["name"] == name]
            if len(found) != 1:
                raise StepFailed("ComputeMeasurementAmbiguous" if found else "ComputeMeasurementNotFound")
            number = captured_number(found[0]["value"], found[0]["quality"])
            if name in self.captures:
                raise StepFailed("DuplicateCapture")
            self.captures[name] = number
            return name, number
        if (name := step.get("output_ref_name")) is not None:
            if name in self.outputs:
                raise StepFailed("DuplicateOutput")
            self.outputs[name] = step["output_uri"]
            return name, step["output_uri"]
        return None

    def _start_iteration(self, **more: Any) -> None:
        self.iteration_count += 1
        self.iteration = self.iteration_count
        self.stream.append(("ProcedureIterationStarted", self.iteration, *more.values()))
        self.captures, self.outputs, self.measurements, self.artifacts = {}, {}, [], []
        self.completed = 0

    def _end_iteration(self, converged: bool | None, stop: bool | None = None, held: bool = False) -> None:
        self.stream.append(("ProcedureIterationEnded", self.iteration, converged, stop, held))
        self.iteration = None
        if self.mode == "Converged" and not (converged is None and self.pending == "hold"):
            self.streak = 0 if converged else self.streak + 1

    def _until_converged(self) -> MainListEnded:
        wanted = self.case["convergence"]
        caps = [cap for cap in (wanted["cap"], self.case["cap"]) if cap is not None]
        for passes in count():
            with self._work("start_pass", passes):
                self._serve_requests()
                if caps and self.streak >= min(caps):
                    raise MainListEnded("failed", lifecycle_failure("abort", "ConvergenceIterationCapReached"))
                self._start_iteration()
            self._walk(iteration=self.iteration_count)
            with self._work("judge_pass", self.iteration_count):
                self._serve_requests(holds=wanted["name"] not in self.captures)
                if wanted["name"] not in self.captures:
                    raise MainListEnded("failed", missing_measurement(wanted["name"]))
                value, criterion = self.captures[wanted["name"]], wanted["criterion"]
                converged = is_met(criterion, criterion["expected"], value)
                self._end_iteration(converged)
            if converged:
                break
        return MainListEnded("completed")

    def _until_advised(self) -> MainListEnded:
        passes = 0
        point: dict[str, Any] | None = {axis["name"]: first_point(axis) for axis in self.case["search"]["axes"]}
        if self.outcomes:
            with self._work("take_up_search"):
                point = self._advice(self.iteration_count + 1)
                if point is None:
                    return MainListEnded("completed")
                self._begin_pass(point, passes)
            passes += 1
        while point is not None:
            if self.iteration is None:
                with self._work("start_pass", passes):
                    self._begin_pass(point, passes)
                passes += 1
            self._walk(iteration=self.iteration_count)
            with self._work("record_outcome", self.iteration_count):
                self._record_outcome()
                self._serve_requests()
            with self._work("advise_pass", self.iteration_count):
                point = self._advice(self.iteration_count)
                self._end_iteration(None, stop=point is None)
            if point is None:
                return MainListEnded("completed", rationale=self.rationale)
        return MainListEnded("completed")

    def _begin_pass(self, point: dict[str, Any], passes: int) -> None:
        self._serve_requests()
        budget = self.budget or {}
        if "iterations_remaining" in budget and passes >= budget["iterations_remaining"]:
            raise MainListEnded("completed", reason="BudgetIterationsExhausted")
        if budget.get("wall_clock_remaining") == 0:
            raise MainListEnded("completed", reason="BudgetWallClockExhausted")
        self._start_iteration(point=point)
        self.point = point

    def _record_outcome(self) -> None:
        name = self.case["search"]["objective_capture_name"]
        if name not in self.captures:
            self._serve_requests()
            raise MainListEnded("failed", missing_measurement(name))
        measured = [(item["name"], item["value"]) for item in self.measurements]
        if name not in dict(measured):
            measured.append((name, self.captures[name]))
        self.outcomes.append({"point": self.point, "measured": measured})
        self.stream.append(("ProcedureOutcomeRecorded", self.iteration, self.point, measured))

    def _advice(self, iteration: int) -> dict[str, Any] | None:
        """Where the decider would measure next; None where it stops."""
        search = self.case["search"]
        if search["decide"]["substrate"] == "in_memory":
            seeded = search["decide"]["advice"]
            advice: Mapping[str, Any] = seeded[iteration - 1] if iteration <= len(seeded) else {"verdict": "Stop"}
            if advice["verdict"] == "Stop":
                self.rationale = advice.get("rationale") if iteration <= len(seeded) else NO_MORE_ADVICE
                return None
            self._refuse_malformed(advice["next_point"])
            return dict(advice["next_point"])
        objective = search["objective"]
        found = [dict(outcome["measured"]).get(objective["target_measurement_name"]) for outcome in self.outcomes]
        if objective["kind"] == "Satisfy" and any(is_number(one) and one == objective["target_value"] for one in found):
            self.rationale = "The target value was measured."
            return None
        names = [axis["name"] for axis in search["axes"]]
        points = list(product(*(values_of(axis, search["decide"]["points_per_axis"]) for axis in search["axes"])))
        measured = len(self.outcomes)
        self.rationale = f"All {len(points)} lattice points were measured."
        return dict(zip(names, points[measured], strict=True)) if measured < len(points) else None

    def _refuse_malformed(self, point: Mapping[str, Any]) -> None:
        search = self.case["search"]
        axes = {axis["name"]: axis for axis in search["axes"]}
        if point.keys() != axes.keys() or any(not is_on_axis(axes[name], value) for name, value in point.items()):
            failure = {"step_index": None, "source_kind": "decide", "target": search["objective_capture_name"]}
            raise MainListEnded("failed", {**failure, "error_class": "DecideAdviceMalformedError"})

    def _end(self, over: MainListEnded) -> None:
        """Close where the main list came to a real end, and put the end on the record."""
        finish, failure = over.finish, over.failure
        recoverable = failure is not None and failure["source_kind"] in ("setpoint", "check")
        faulted = finish == "failed" and recoverable and self.command == "ConductOrHoldProcedure"
        closes = finish == "completed" or (finish == "failed" and not faulted)
        if closes and self.closing_steps:
            finish = self._close(finish)
        self._at("before", "end_conduct")
        if closes and not self.closing_steps and self.pending == "hold" and not self._hold_lapses(finish):
            finish = "held"
        if self.iteration is not None:
            self._end_iteration(None, held=finish == "held")
        if self.pending == "abort":
            finish = "aborted"
        elif self.pending == "hold" and (finish == "halted" or faulted):
            finish = "held"
        held = finish == "held" or (finish == "failed" and faulted)
        failure = failure or UNASKED.get(finish)
        self.kind = merged_kind([self.kind, *self.kinds])
        self.pending = None
        self.results.append(
            {
                "command_name": self.command,
                "succeeded": failure is None,
                "completed_count": self.completed,
                "failure": failure,
                "closing_failures": self.closing_failures,
                "held": held,
                "acquisition_halt": finish == "halted",
                "re_establishment_boundary": self.boundary,
                "iteration_count": self.iteration_count if "Until" in self.command else None,
                "termination_reason": over.reason or (over.rationale if finish == "completed" else None),
                "actuation_kind": self.kind,
                "measurements": self.measurements,
                "artifacts": self.artifacts,
                "outputs": self.outputs,
                "substrate_writes": self.writes,
            }
        )
        self.stream.append(("ProcedureConducted",))
        if held:
            self.status, self.hold_cause = "Held", "Operator" if finish == "held" else "StepFault"
            self.stream.append(("ProcedureHeld", self.hold_cause))
        elif finish == "completed" and self.command != "AbortProcedure":
            self.status = "Completed"
            self.stream.append(("ProcedureCompleted", over.reason))
        elif finish != "halted":
            self.status, self.hold_cause = "Aborted", None
            self.stream.append(("ProcedureAborted",))

    def _close(self, finish: str) -> str:
        """Every closing step in turn, unless something was asked for before; an abort stops the walk."""
        with self._work("begin_closing"):
            if self.pending is not None and not self._hold_lapses(finish):
                return "aborted" if self.pending == "abort" else "held"
            if self.iteration is not None:
                self._end_iteration(None)
        for index, step in enumerate(self.closing_steps):
            try:
                self._step(step, (0, True, index))
            except StepFailed as fault:
                self.closing_failures.append(failure_of(step, index, str(fault)))
            except StepAborted:
                self.closing_failures.append(failure_of(step, index, "CancelledError"))
                return self._cut_steps(index + 1)
            except MainListEnded:
                return self._cut_steps(index)
        return finish

    def _hold_lapses(self, finish: str) -> bool:
        """Whether a hold comes too late because a loop has its result."""
        return self.pending == "hold" and finish == "completed" and self.mode != "Flat"

    def _cut_steps(self, index: int) -> str:
        """The closing steps that an abort keeps from being done."""
        left = enumerate(self.closing_steps[index:], index)
        self.closing_failures += [failure_of(step, index, "ClosingCancelled") for index, step in left]
        return "aborted"


def sentinels(step: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The sentinels that a step holds."""
    held = [step.get("value"), step.get("criterion", {}).get("expected")]
    for value in (*held, *step.get("parameters", {}).values(), *step.get("input_uris", ())):
        if isinstance(value, dict):
            yield value


def missing_measurement(name: str) -> dict[str, Any]:
    return {"step_index": None, "source_kind": "capture", "target": name, "error_class": "ComputeMeasurementNotFound"}
