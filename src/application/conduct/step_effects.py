"""The effect of each kind of step, through the ports to plant and programs; the ledger is not involved."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar, assert_never

from baton.application.conduct.actions import ActionCall, Actions, FindableAction, UnknownActionError, perform
from baton.application.conduct.compute import Compute, ComputeError, JobSpec, provide_result, submission_key
from baton.application.control import (
    Control,
    ControlAccessDeniedError,
    ControlError,
    Fence,
    FencedControl,
    LimitCheck,
    Reading,
    Standstill,
    Timekeeper,
    allow_any_value,
    always_open,
    never_still,
)
from baton.domain.conduct.messages import WRITE_TIMEOUT, StepPlace
from baton.domain.recipe import steps
from baton.domain.recipe.steps import CaptureRef, OutputRef, RecipeStep, Verification
from baton.domain.shared.deployment import DeclaredRoute
from baton.domain.shared.units import UnitPolicy, unit_registry
from baton.domain.step import signal_rules, step_values
from baton.domain.step.plain_values import plain
from baton.domain.step.results import ActuationKind, touched_kind
from baton.domain.step.signal_rules import UnitEdge
from baton.domain.step.step_values import Memory, StepFault, reference_field

T = TypeVar("T")
MAX_SENT = 10  # unconfirmed values per address that a row holds: the last ones


@dataclass(frozen=True)
class EffectResult:
    """What an effect adds to its row, and the slot it fills."""

    says: Mapping[str, Any] = field(default_factory=dict)
    slot: str | None = None


async def result_of(work: Awaitable[T]) -> T:
    """Return the result of any awaitable, as a coroutine."""
    return await work


async def withdraw_nothing() -> None:
    """Do nothing: most effects need no withdrawal."""


@dataclass(frozen=True)
class Effect(Generic[T]):
    """A step that is ready to run: what its rows say, its body, and what it has touched so far."""

    says: Mapping[str, Any]
    body: Callable[[], Coroutine[Any, Any, T]]
    kind: Callable[[], ActuationKind | None]
    marked: bool  # whether it may change something, so that the ledger must know before
    repeatable: bool = True  # whether it may run again although it may have had its effect
    remains: Callable[[], Mapping[str, Any]] = dict  # what its row says it has left behind so far, even if it fails
    withdraw: Callable[[], Coroutine[Any, Any, None]] = withdraw_nothing  # how it is taken back where it was cut off


class DetailedFault(StepFault):
    """A fault with more for its row: the reading that did not satisfy."""

    def __init__(self, fault: StepFault, says: Mapping[str, object]) -> None:
        super().__init__(fault.label, str(fault), fault.facts)
        self.says = says


@dataclass(frozen=True)
class StepEffects:
    """Makes steps ready to run on this deployment's plant."""

    control: Control
    actions: Actions
    time: Timekeeper
    routes: tuple[DeclaredRoute, ...]
    action_timeout: float
    check_limits: LimitCheck = allow_any_value
    stood_still: Standstill = never_still
    unit_policy: UnitPolicy = UnitPolicy.CONVERT

    def prepare(self, step: RecipeStep, memory: Memory, fence: Fence, deadline: datetime | None) -> Effect[EffectResult]:
        """Return the effect of a step with everything resolved; raise StepFault where that fails."""
        match step:
            case steps.RecipeSetpointStep():
                return self.setpoint(step, memory, fence)
            case steps.RecipeActionStep():
                return self.action(step, fence)
            case steps.RecipeCheckStep():
                return self.check(step, memory, deadline)
            case steps.RecipeCaptureStep():
                return self.capture(step, memory)
            case steps.RecipeComputeStep():
                raise AssertionError("a program is submitted and collected")
            case _:
                assert_never(step)

    def setpoint(self, step: steps.RecipeSetpointStep, memory: Memory, fence: Fence) -> Effect[EffectResult]:
        """Write a value within its limits, as its signal counts it, and wait until it is confirmed; then read back, as
        evidence or as a condition."""
        value, witness = memory.value(step.value), FencedControl(self.control, fence, self.check_limits, self.stood_still)
        edge, converted = signal_rules.setpoint_edge(step, value, self.unit_policy), dict[str, Any]()

        async def write() -> EffectResult:
            stated = await read_unit(witness, step.address, edge)
            written = edge.to_signal(value, stated.units, step.address)
            converted.update(converted_field(written, stated.units) if edge.differs(stated.units) else {})
            await witness.write(step.address, written, timeout=WRITE_TIMEOUT)
            asked = Asked(value, edge)
            if isinstance(step.verify, Verification):
                return await self._await_value(witness, step.verify.address or step.address, asked, step.verify)
            return await self._read_evidence(witness, step.address, asked) if step.verify else EffectResult()

        def remains() -> Mapping[str, Any]:
            if witness.unconfirmed:
                return {"sent": True, **converted, **repeats_of(witness)}
            return {**({"confirmed": True} if step.verify and witness.written else {}), **converted, **repeats_of(witness)}

        verify = step.model_dump(mode="json")["verify"]
        says = {"address": step.address, "value": plain(value), "verify": verify, **edge.unit_field()}
        says |= reference_field(step.value)
        return Effect(says, write, lambda: self._kind(witness), marked=True, remains=remains)

    async def _read_evidence(self, control: Control, address: str, asked: "Asked") -> EffectResult:
        """Read once what was written; a reading that differs marks the step, and one that fails changes nothing."""
        try:
            reading = await control.read(address)
        except ControlError as error:
            return EffectResult({"post_read_error": plain(f"{type(error).__name__}: {error}")})
        says = {"post_reading": reading_document(reading)}
        took = step_values.is_reached(await asked.of(reading, address), reading.value, reading.index)
        return EffectResult(says if took else {**says, "deviates": True})

    async def _await_value(self, control: Control, address: str, wanted: "Asked", verify: Verification) -> EffectResult:
        """Read until the signal is as near to what was written as is wanted; raise a fault where the time is up before."""

        def is_near(reading: Reading) -> bool:
            return signal_rules.is_near(asked, reading.value, reading.quality.value, reading.index, tolerance)

        began = self.time.now()
        reading = await control.read(address)
        asked = await wanted.of(reading, address)
        edge = UnitEdge(verify.unit, self.unit_policy)
        await load_units_of(edge, reading)
        tolerance = edge.difference(verify.tolerance, reading.units, address)
        if not is_near(reading) and verify.timeout is not None:
            deadline = began + timedelta(seconds=verify.timeout)
            reading = await self._follow(control, address, reading, is_near, deadline)
        says = {"post_reading": reading_document(reading), "waited": (self.time.now() - began).total_seconds()}
        if is_near(reading):
            return EffectResult(says)
        quality = reading.quality.value
        fault = signal_rules.not_reached(address, asked, reading.value, reading.units, quality, tolerance)
        raise DetailedFault(fault, says)

    def action(self, step: steps.RecipeActionStep, fence: Fence) -> Effect[EffectResult]:
        """Perform a registered action."""
        witness = FencedControl(self.control, fence, self.check_limits, self.stood_still)
        params = step.model_dump(mode="json")["params"]

        async def act() -> EffectResult:
            result = await perform(self.actions, step.name, params, witness, self.time, self.action_timeout)
            return EffectResult({"result_data": plain(result)})

        def remains() -> Mapping[str, Any]:
            sent = [[address, plain(value)] for address, tried in witness.unconfirmed.items() for value in tried[-MAX_SENT:]]
            written = [[address, plain(value)] for address, value in witness.written.items()]
            return {"writes": written, **({"unconfirmed": sent} if sent else {}), **repeats_of(witness)}

        says = {"name": step.name, "params": plain(params)}
        return Effect(says, act, lambda: self._kind(witness), marked=True, repeatable=False, remains=remains)

    def findable_action(self, step: RecipeStep) -> FindableAction | None:
        """Return the action of a step where it can be found again; None for everything else."""
        if not isinstance(step, steps.RecipeActionStep):
            return None
        try:
            body = self.actions.body_of(step.name)
        except UnknownActionError:
            return None
        return body if isinstance(body, FindableAction) else None

    def action_call(self, step: steps.RecipeActionStep, place: StepPlace, fence: Fence) -> ActionCall:
        """Return the call of an action that can be found again."""
        control = FencedControl(self.control, fence, self.check_limits, self.stood_still)
        key = submission_key(place.conduct_id, place.iteration_index, place.closing, place.step_index)
        params = step.model_dump(mode="json")["params"]
        return ActionCall(key=key, params=params, control=control, time=self.time, fence=fence)

    def check(self, step: steps.RecipeCheckStep, memory: Memory, deadline: datetime | None) -> Effect[EffectResult]:
        """Read, follow the signal until it satisfies or the deadline comes, and judge the last reading."""
        criterion, witness = step.criterion, FencedControl(self.control, always_open, stood_still=self.stood_still)
        expected, edge = memory.value(criterion.expected), UnitEdge(step.unit, self.unit_policy)

        def satisfies(reading: Reading) -> bool:
            value = edge.from_signal(reading.value, reading.units, step.address)
            return signal_rules.satisfies(step, expected, value, reading.quality.value, reading.index)

        async def judge() -> EffectResult:
            began = self.time.now()
            reading = await witness.read(step.address)
            await load_units_of(edge, reading)
            if not satisfies(reading) and deadline is not None:
                reading = await self._follow(witness, step.address, reading, satisfies, deadline)
            says = {"reading": reading_document(reading), "waited": (self.time.now() - began).total_seconds()}
            if edge.differs(reading.units):
                says |= converted_field(edge.from_signal(reading.value, reading.units, step.address), step.unit)
            if satisfies(reading):
                return EffectResult(says)
            raise DetailedFault(signal_rules.unmet(step.address, reading.value, reading.quality.value), says)

        judged = {**criterion.model_dump(mode="json", exclude={"expected"}), "expected": plain(expected)}
        says = {"address": step.address, "criterion": judged, **edge.unit_field(), **reference_field(criterion.expected)}
        return Effect(says, judge, lambda: self._kind(witness), marked=False, remains=partial(repeats_of, witness))

    async def _follow(
        self, control: Control, address: str, reading: Reading, satisfies: Callable[[Reading], bool], deadline: datetime
    ) -> Reading:
        """Return the reading that satisfies, or the last one before the deadline; where this process stood still then, one
        of now, since what came meanwhile was not looked at."""
        left, stood_still = max(0.0, (deadline - self.time.now()).total_seconds()), self.stood_still()
        try:
            async with asyncio.timeout(left) as limit, aclosing(control.subscribe(address)) as readings:
                async for reading in readings:
                    if satisfies(reading):
                        break
        except TimeoutError:
            if not limit.expired():
                raise
            if stood_still():
                return await control.read(address)
        return reading

    def capture(self, step: steps.RecipeCaptureStep, memory: Memory) -> Effect[EffectResult]:
        """Read a number into a slot."""
        witness = FencedControl(self.control, always_open, stood_still=self.stood_still)
        edge = UnitEdge(step.unit, self.unit_policy)

        async def read() -> EffectResult:
            step_values.refuse_refill(step.capture_name, memory.captures)
            reading = await witness.read(step.address)
            await load_units_of(edge, reading)
            says = {"reading": reading_document(reading)}
            try:
                quality = reading.quality.value
                number = signal_rules.captured_number(step.address, reading.value, quality, edge, reading.units)
            except StepFault as fault:
                raise DetailedFault(fault, says) from fault
            unit = {"captured_unit": step.unit} if edge.is_asked else {}
            return EffectResult({**says, "captured_value": number, **unit}, slot=step.capture_name)

        says = {"address": step.address, "capture_name": step.capture_name, **edge.unit_field()}
        return Effect(says, read, lambda: self._kind(witness), marked=False, remains=partial(repeats_of, witness))

    def _kind(self, witness: FencedControl) -> ActuationKind | None:
        return touched_kind(witness.touched, self.routes)


@dataclass(frozen=True)
class Asked:
    """A value that was asked of a signal, as the step counts it."""

    value: Any
    edge: UnitEdge

    async def of(self, reading: Reading, address: str) -> Any:
        """Return the value as a signal that was read counts it."""
        await load_units_of(self.edge, reading)
        return self.edge.to_signal(self.value, reading.units, address)


async def load_units_of(edge: UnitEdge, reading: Reading) -> None:
    """Have the units loaded where they will be needed, while other steps run."""
    if edge.differs(reading.units):
        await asyncio.to_thread(unit_registry)


async def read_unit(control: Control, address: str, edge: UnitEdge) -> Reading:
    """Return a reading of a signal for what it counts in, where that matters; without a unit where it may not be read."""
    if not edge.is_asked:
        return Reading(value=None)
    try:
        reading = await control.read(address)
    except ControlAccessDeniedError:
        return Reading(value=None)
    await load_units_of(edge, reading)
    return reading


def converted_field(value: object, unit: str | None) -> dict[str, object]:
    """Return what a row says of a value in its other unit."""
    return {"converted": {"value": plain(value), "unit": plain(unit)}}


def repeats_of(control: FencedControl) -> dict[str, object]:
    """Return how often something was asked again because this process stood still, if it was."""
    return {"repeats": control.repeats} if control.repeats else {}


def failing_effect(fault: StepFault, says: Mapping[str, object]) -> Effect[EffectResult]:
    """Return the effect of a step that cannot be made ready: it touches nothing, and fails when its turn comes."""

    async def fail() -> EffectResult:
        raise fault

    return Effect(says, fail, lambda: None, marked=False)


def needs_memory(step: RecipeStep) -> bool:
    """Return whether a step refers to what others left, or leaves something itself."""
    leaves_something = steps.declared_capture(step) is not None or steps.declared_output(step) is not None
    return leaves_something or any(isinstance(value, CaptureRef | OutputRef) for _, value in steps.operands(step))


def job_of(step: steps.RecipeComputeStep, place: StepPlace, memory: Memory) -> JobSpec:
    """Return the job of a compute step with everything resolved; raise StepFault where that fails."""
    return JobSpec(
        submission_key=submission_key(place.conduct_id, place.iteration_index, place.closing, place.step_index),
        command=step.command,
        conduct_id=place.conduct_id,
        input_uris=tuple(memory.value(uri) for uri in step.input_uris),
        output_uri=step.output_uri,
        parameters={name: memory.value(value) for name, value in step.parameters.items()},
    )


def submission(compute: Compute, step: steps.RecipeComputeStep, job: JobSpec, fence: Fence) -> Effect[str]:
    """Return the effect that begins a job and results in its id. Cut off, it stops the job if it was begun."""

    async def withdraw() -> None:
        if (job_id := await compute.find(job.submission_key)) is not None:
            await stop_job(compute, job_id)

    says, submit = job_document(step, job), partial(compute.submit, job, fence)
    return Effect(says, submit, lambda: compute.actuation_kind, marked=True, repeatable=False, withdraw=withdraw)


def collection(compute: Compute, step: steps.RecipeComputeStep, job: JobSpec, job_id: str) -> Effect[EffectResult]:
    """Return the effect that waits for a job and fetches its results. Cut off, it stops the job."""

    async def collect() -> EffectResult:
        result = await provide_result(compute, job_id, writes_artifact=step.output_uri is not None)
        measurements = [plain(item.model_dump()) for item in result.measurements]
        artifacts = [plain(item.model_dump()) for item in result.artifacts]
        return EffectResult({"status": result.status.value, "measurements": measurements, "artifacts": artifacts})

    says = {**job_document(step, job), "job_id": job_id}
    return Effect(says, collect, lambda: compute.actuation_kind, marked=False, withdraw=lambda: stop_job(compute, job_id))


async def stop_job(compute: Compute, job_id: str) -> None:
    """Stop a job and wait until it runs no more, or nobody can tell."""
    await compute.cancel(job_id)
    with suppress(ComputeError):
        await compute.await_terminal_state(job_id)


def job_document(step: steps.RecipeComputeStep, job: JobSpec) -> Mapping[str, object]:
    """Return what the rows of a program say, with the references that its inputs and parameters came from."""
    inputs = {str(index): uri.output_name for index, uri in enumerate(step.input_uris) if isinstance(uri, OutputRef)}
    parameters = {name: found for name, value in step.parameters.items() if (found := reference_field(value))}
    refs = {**({"input_refs": inputs} if inputs else {}), **({"parameter_refs": parameters} if parameters else {})}
    says = {"command": list(job.command), "input_uris": list(job.input_uris), "output_uri": job.output_uri}
    return {**says, "parameters": plain(job.parameters), **refs}


def reading_document(reading: Reading) -> dict[str, object]:
    """Return a reading as a row holds it."""
    return {
        "value": plain(reading.value),
        "kind": reading.kind.value,
        "quality": reading.quality.value,
        "quality_detail": plain(reading.quality_detail),
        "sampled_at": reading.sampled_at and reading.sampled_at.isoformat(),
        **({} if reading.units is None else {"units": plain(reading.units)}),
    }
