"""Many procedures conducted at once, each on signals, actions and programs of its own.

The end of each is compared with that of the reference interpreter.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import Client

from baton.application.conduct import signal_limits
from baton.application.conduct.actions import InvalidActionParametersError
from baton.application.conduct.compute import ComputeNotAvailableError, ComputeSubmitRejectedError, JobSpec, JobStatus
from baton.application.control import Reading
from baton.application.plant import ControlRoute
from baton.cli.worker import reconcile_in_background
from baton.domain.conduct.conduct import (
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
)
from baton.domain.conduct.endings import AbortProcedure, CompleteProcedure, HoldProcedure
from baton.domain.conduct.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom
from baton.domain.kernel import Event
from baton.domain.procedure import procedure as record
from baton.domain.shared.refusals import Refusal
from baton.domain.step.results import Measured
from baton.infrastructure.compute.in_memory import SimulatedOutcome
from baton.infrastructure.control.routes import RoutedControl
from baton.infrastructure.control.simulator import SimulatedFault, Simulator
from baton.infrastructure.plugins import ActionRegistry
from tests.support.waiting import until
from tests.support.workflows.conduct_cases import CaseAction, ConductCase
from tests.support.workflows.conduct_moments import ConductMoment
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.conduct_watch import (
    SIGNAL_TIMEOUT_SECONDS,
    ConductWatch,
    WatchedCompute,
    WatchedControl,
    WatchedLedger,
)
from tests.support.workflows.reference_plant import ROUTES

ROUTED = tuple(ControlRoute(prefix=prefix, substrate="in_memory", **route) for prefix, route in ROUTES.items())
ENDED = ConductMoment("after", "end_conduct")
TIMEOUT_SECONDS = 180
"""Seconds that anything may take here, on a busy machine."""
REFUSALS = {
    "ComputeSubmitRejectedError": ComputeSubmitRejectedError("it cannot be run"),
    "ComputeNotAvailableError": ComputeNotAvailableError("nothing can be run"),
    "RuntimeError": RuntimeError("the scheduler has a fault"),
}


class ManyConducts:
    """The plant, the actions and the programs of everything that is conducted here; stacks come and go."""

    def __init__(self) -> None:
        self.watch = ConductWatch()
        self.plant = Simulator(read_timeout=SIGNAL_TIMEOUT_SECONDS)
        adapters = {route.substrate: self.plant for route in ROUTED}
        self.control = WatchedControl(RoutedControl(ROUTED, adapters), self.plant, self.watch)
        self.compute = WatchedCompute(self.watch, self._submit_refusal)
        self.actions = ActionRegistry({"work": self._work})
        self.performed: list[str] = []
        """The jobs that actions were begun for, in order."""
        self._answers: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}

    @asynccontextmanager
    async def open_stack(self, database_url: str, temporal_address: str, **settings: Any) -> AsyncIterator[ConductStack]:
        """A stack with a watched worker, and a comparison of the record with the engine."""
        chosen = {"actions": self.actions, "compute": self.compute, "control_routes": ROUTED, **settings}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(signal_limits, "REREAD_SECONDS", -1.0)  # what a write meets does not hang on when the last one was
            async with open_conduct_stack(database_url, temporal_address, **chosen) as stack:
                await stack.stop_worker()
                stack.client = Client(**{**stack.client.config(), "interceptors": [self.watch]})
                stack.plant, stack.control = self.plant, self.control
                stack.used_ledger = WatchedLedger(stack.runtime.store, self.watch)
                await stack.start_worker()
                async with reconcile_in_background(stack.runtime):
                    yield stack

    def provide(self, argv: str, answers: Sequence[Mapping[str, Any]]) -> None:
        """Have a program end like this, time after time."""
        self._answers[tuple(argv.split(" "))] = list(answers)

    async def _work(self, control: Any, time: Any, params: Mapping[str, Any]) -> Any:
        self.performed.append(params["job"])
        await self.watch.tell_effect()
        if params["then"] == "refuse":
            raise InvalidActionParametersError("such work is not done here")
        for address, value in params["writes"]:
            await control.write(address, value)
        match params["then"]:
            case "break":
                raise RuntimeError("the action has a fault")
            case "time out":
                raise TimeoutError
            case "mumble":
                return ["done"]
        return {"job": params["job"]}

    def _submit_refusal(self, job: JobSpec) -> Exception | None:
        answers = self._answers[job.command]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        end = SimulatedOutcome(
            status=JobStatus(answer["status"]),
            measurements=tuple(Measured(**item) for item in answer["measurements"]),
            writes_nothing=answer["writes_nothing"],
        )
        self.compute.seed(job.command, end)
        return None if answer["submit"] is None else REFUSALS[answer["submit"]]


class CaseConduct:
    """A case while it is conducted."""

    def __init__(self, case: ConductCase, many_conducts: ManyConducts) -> None:
        self.case = case
        self.many_conducts = many_conducts
        self.refusals: list[str] = []
        self.script: dict[ConductMoment, list[str]] = {}
        self.over = asyncio.Event()
        """That a conduct has come to its end."""

    async def register(self, stack: ConductStack, **fields: Any) -> None:
        """Furnish the plant for this case, and register its procedure."""
        self.stack = stack
        self._set_up_plant()
        described = self.case.described
        fields["max_consecutive_unconverged_iterations"] = described["cap"]
        if described["literal"]:
            self.id = await stack.register_procedure(**fields)
        else:
            self.id = await stack.register_from_recipe(described["steps"], described["closing_steps"], **fields)

    async def perform(self, act: CaseAction, stack: ConductStack) -> None:
        """Do what is done in this act, until nothing of it goes on any more."""
        self.stack = stack
        if act.mends:
            self._mend()
        self.script = {moment: list(asked) for moment, asked in act.script.items()}
        self.many_conducts.watch.watchers[self.id] = self.watcher
        self.over.clear()
        refused = await self._try_command(act)
        assert refused == act.refused, f"{act} was refused by {refused}"
        if not await self.has_ended():
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self.over.wait()
        await until(self.has_ended, within=TIMEOUT_SECONDS)

    async def has_ended(self) -> bool:
        return (await self.stack.procedure(self.id)).live_conduct_id is None

    async def _try_command(self, act: CaseAction) -> str | None:
        """The class by which an act was refused, if it was."""
        try:
            await self.stack.do(self.command(act), self.id)
        except Refusal as refusal:
            return refusal.code
        return None

    def _set_up_plant(self) -> None:
        """Give the plant the signals of this case, and the programs their answers."""
        control, plant = self.many_conducts.control, self.many_conducts.plant
        for address, signal in self.case.described["plant"].items():
            plant.set_reading(address, Reading(value=signal["value"]))
            if "fault" in signal:
                plant.simulate_fault(address, SimulatedFault(signal["fault"]))
            if not signal.get("connected", True):
                control.lose(address)
            if "series" in signal:
                control.series[address] = list(signal["series"])
            if "arrives" in signal:
                control.arrives[address] = signal["arrives"][0]
            if signal.get("breaks"):
                control.breaks.add(address)
        for argv, answers in self.case.described["programs"].items():
            self.many_conducts.provide(argv, answers)

    def _mend(self) -> None:
        control, plant = self.many_conducts.control, self.many_conducts.plant
        for address, signal in self.case.described["plant"].items():
            if address in control.lost:
                control.lost.discard(address)
                plant.set_reading(address, Reading(value=signal["value"]))
            plant.simulate_fault(address, None)
            control.breaks.discard(address)

    def command(self, act: CaseAction) -> Any:
        match act.verb:
            case "begin" | "resume":
                return self._opening_command(act)
            case "hold by hand":
                return HoldProcedure(reason="settled by hand")
            case "complete by hand":
                return CompleteProcedure()
        return AbortProcedure(reason="given up", **act.given)

    def _opening_command(self, act: CaseAction) -> Any:
        begins, described = act.verb == "begin", self.case.described
        steps = {"steps": tuple(described["steps"])} if described["literal"] and begins else {}
        match described["command"]:
            case "ConductUntilConverged":
                wanted = described["convergence"]
                return ConductUntilConverged(
                    convergence_capture_name=wanted["name"],
                    criterion=wanted["criterion"],
                    max_consecutive_unconverged_iterations=wanted["cap"],
                    wait=0,
                    **steps,
                )
            case "ConductUntilAdvised":
                search = described["search"]
                return (ConductUntilAdvised if begins else ConductUntilAdvisedFrom)(
                    objective=search["objective"],
                    space={"axes": search["axes"]},
                    objective_capture_name=search["objective_capture_name"],
                    decide=search["decide"],
                    budget=search["budget"] if begins else act.given["budget"],
                    wait=0,
                )
            case "ConductOrHoldProcedure" if begins:
                return ConductOrHoldProcedure(wait=0, **steps)
            case _ if begins:
                return ConductProcedure(wait=0, **steps)
        boundary = act.given["boundary"]
        return ConductFromProcedure(re_establishment_boundary=boundary, skip=True, skip_reason="settled by hand", wait=0)

    async def watcher(self, moment: ConductMoment) -> None:
        """Ask for what is asked for at this moment; an abort of a step in progress waits until that is stopped."""
        asked = self.script.pop(moment, [])
        for request in asked:
            await self.ask(request)
        if moment.when == "during" and "abort" in asked:
            await asyncio.Event().wait()
        if moment == ENDED:
            self.over.set()

    async def ask(self, request: str) -> None:
        """Ask for a hold or an abort."""
        command = HoldProcedure(reason="shift change") if request == "hold" else AbortProcedure(reason="sample lost")
        try:
            await self.stack.do(command, self.id)
        except Refusal as refusal:
            self.refusals.append(refusal.code)

    async def results(self) -> list[dict[str, Any]]:
        """Return the result of every conduct, as the reference interpreter has it."""
        events = await self.stack.events(self.id)
        return [result_of(event) for event in events if isinstance(event, record.ProcedureConducted)]

    async def differences(self) -> dict[str, Any]:
        """Return where the case differs from its expected end: by name, first what is expected."""
        expected, procedure = self.case.expected, await self.stack.procedure(self.id)
        events, rows = await self.stack.events(self.id), await self.stack.ledger(self.id)
        conducts = [event.conduct_id for event in events if isinstance(event, record.ProcedureConducted)]
        streak = procedure.consecutive_unconverged_iterations
        compared = {
            "status": (expected.status, procedure.status.value),
            "hold_cause": (expected.hold_cause, procedure.hold_cause and procedure.hold_cause.value),
            "actuation_kind": (expected.kind, procedure.actuation_kind and procedure.actuation_kind.value),
            "iterations": ((expected.iteration_count, expected.streak), (procedure.iteration_count, streak)),
            "left open": ((None, None), (procedure.current_iteration_index, procedure.pending_request)),
            "stream": (expected.stream, [event_fields(event) for event in events]),
            "ledger": (
                [row.compared_fields() for row in expected.ledger],
                [row_of(row, conducts) for row in rows if row["result"] != "skipped"],
            ),
            "writes": (expected.plant.attempts, self.writes),
            "performed": (expected.performed, self.performed_jobs),
            "refusals": (expected.refusals, self.refusals),
        }
        found: dict[str, Any] = {name: pair for name, pair in compared.items() if pair[0] != pair[1]}
        results = await self.results()
        if len(results) != len(expected.results):
            found["results"] = (len(expected.results), len(results))
        for number, (must, has) in enumerate(zip(expected.results, results, strict=False)):
            differing = {name: (must[name], has[name]) for name in must if must[name] != has[name]}
            if list(must["substrate_writes"]) != list(has["substrate_writes"]):
                differing["order of substrate_writes"] = list(must["substrate_writes"]), list(has["substrate_writes"])
            if differing:
                found[f"result of conduct {number}"] = differing
        return found

    @property
    def writes(self) -> list[tuple[str, Any]]:
        """What was written to the signals of this case, or tried to be."""
        seed = str(self.case.seed)
        return [
            (address, as_list(value))
            for address, value in self.many_conducts.control.writes
            if address.split(":")[1] == seed
        ]

    @property
    def performed_jobs(self) -> list[str]:
        return [job for job in self.many_conducts.performed if job.startswith(f"{self.case.seed}:")]


def as_list(value: Any) -> Any:
    return list(map(as_list, value)) if isinstance(value, list | tuple) else value


UNPLAYED = {"procedure_id", "conduct_id", "skipped_count", "captures", "objective", "best"}
"""What the reference interpreter does not say of a result."""


def result_of(event: record.ProcedureConducted) -> dict[str, Any]:
    """Return a result as the reference interpreter has it: without ids, sentences and checksums."""
    told = event.result.model_dump(mode="json", exclude=UNPLAYED)
    return {
        **told,
        "failure": told["failure"] and without(told["failure"], "message"),
        "closing_failures": [without(failure, "message") for failure in told["closing_failures"]],
        "measurements": [{**without(item, "units"), "value": shown_value(item["value"])} for item in told["measurements"]],
        "artifacts": [item["uri"] for item in told["artifacts"]],
        "outputs": {name: item["uri"] for name, item in told["outputs"].items()},
        "substrate_writes": {address: shown_value(value) for address, value in told["substrate_writes"].items()},
    }


def without(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != name}


def shown_value(value: Any) -> Any:
    """A value that is told by its ledger row, without the row."""
    if isinstance(value, dict):
        return {name: shown_value(item) for name, item in value.items() if name != "entry_id"}
    return [shown_value(item) for item in value] if isinstance(value, list) else value


def event_fields(event: Event) -> tuple[Any, ...]:
    """Return an event as the reference interpreter has it."""
    name = type(event).__name__
    match event:
        case record.ProcedureIterationStarted(point=None):
            return name, event.iteration_index
        case record.ProcedureIterationStarted():
            return name, event.iteration_index, event.point
        case record.ProcedureIterationEnded():
            return name, event.iteration_index, event.converged, event.advised_stop, event.reason == "held"
        case record.ProcedureOutcomeRecorded():
            measured = [(item.name, shown_value(item.value)) for item in event.measurements]
            return name, event.iteration_index, event.point, measured
        case record.ProcedureAbortRequested():
            return name, event.run_closing
        case record.ProcedureHeld():
            return name, event.cause.value
        case record.ProcedureResumed():
            return name, event.re_establishment_boundary
        case record.ProcedureCompleted():
            return name, event.termination_reason and event.termination_reason.value
    return (name,)


def row_of(row: Mapping[str, Any], conducts: Sequence[UUID]) -> tuple[Any, ...]:
    """Return a row of the ledger as the reference interpreter has it; of what was begun again, the attempt besides."""
    place = (conducts.index(UUID(row["conduct_id"])), row.get("iteration_index", 0), row["is_closing"], row["step_index"])
    again = () if row["attempt"] == 1 else (row["attempt"],)
    return (*place, row["kind"], row["mark"], row["result"], row.get("error_class"), *again)
