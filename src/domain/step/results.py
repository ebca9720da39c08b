"""The results of conducts of procedures and runs: on the stream, over REST and to agents."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.kernel import Event, Value
from baton.domain.shared.deployment import DeclaredRoute
from baton.domain.shared.text import FreeText, StateReason, TextsMayContainPersonalData


class ActuationKind(StrEnum):
    PHYSICAL = "Physical"
    SIMULATED = "Simulated"
    HYBRID = "Hybrid"


class Actuation(StrEnum):
    """What the writes of a deployment can reach, as far as its routes declare it; nobody is asked whether it answers."""

    INERT = "inert"
    SIMULATED = "simulated"
    REACHABLE = "reachable"


def merged_kind(kinds: Iterable[ActuationKind | None]) -> ActuationKind | None:
    """Return the kind of all this work taken together, or None."""
    seen = {kind for kind in kinds if kind is not None}
    if not seen:
        return None
    return seen.pop() if len(seen) == 1 else ActuationKind.HYBRID


Route = TypeVar("Route", bound=DeclaredRoute)


def route_of(address: str, routes: Iterable[Route]) -> Route | None:
    """Return the route with the longest prefix of an address, or None."""
    leading = (route for route in routes if address.startswith(route.prefix))
    return max(leading, key=lambda route: len(route.prefix), default=None)


def touched_kind(addresses: Iterable[str], routes: Collection[DeclaredRoute]) -> ActuationKind | None:
    """Return what the routes of these addresses declare, taken together."""
    found = (route_of(address, routes) for address in addresses)
    return merged_kind(ActuationKind.SIMULATED if route.simulated else ActuationKind.PHYSICAL for route in found if route)


def actuation_of(routes: Iterable[DeclaredRoute], writes_enabled: bool) -> Actuation:
    """Return what can be written to: real equipment where a writable route is not declared simulated."""
    writable = [route for route in routes if writes_enabled and not route.read_only]
    if not writable:
        return Actuation.INERT
    return Actuation.SIMULATED if all(route.simulated for route in writable) else Actuation.REACHABLE


SourceKind = Literal["setpoint", "action", "check", "capture", "compute", "lifecycle", "decide"]


class TerminationReason(StrEnum):
    """Why a steered conduct ended although its decider would have gone on."""

    ITERATIONS = "BudgetIterationsExhausted"
    WALL_CLOCK = "BudgetWallClockExhausted"


class Failure(Value):
    """What went wrong, where; a lifecycle failure has no step."""

    step_index: int | None = None
    source_kind: SourceKind
    """The kind of step that failed."""
    target: str
    """The signal, action or program that failed."""
    error_class: str
    message: FreeText
    facts: Annotated[
        dict[str, Any],
        TextsMayContainPersonalData(codes=frozenset({"kind", "reason"})),
        Field(exclude_if=lambda facts: not facts),
    ] = {}  # What programs read of it, such as what was asked and what was read.


CONDUCT_LOST = "ConductLost"  # The class of the failure of a conduct that the engine does not know of any more.


class Artifact(Value):
    """A file or tree that a compute step left, with its checksum."""

    uri: str
    checksum_algorithm: str
    """How the checksum was made."""
    checksum_value: str
    """The checksum, as hex digits."""
    byte_size: int
    media_type: str | None = None
    conforms_to: str | None = None
    entry_count: int | None = None
    """Number of files in the tree."""


def shown_value(value: object, entry_id: UUID) -> object:
    """Return a value as results show it: one that is no scalar by kind, shape and ledger row."""
    shape: list[int] = []
    inner = value
    while isinstance(inner, list | tuple):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    if shape:
        return {"kind": "Array", "shape": shape, "entry_id": str(entry_id)}
    if isinstance(value, Mapping):
        shortened = value.keys() == {"kind", "shape"}  # the row itself holds no more of it
        return {**(value if shortened else {"kind": "Tabular", "shape": [len(value)]}), "entry_id": str(entry_id)}
    return value


def left_value(confirmed: Sequence[object], tried: Sequence[object]) -> object:
    """Return the value an address was left at: the one confirmed last, or all that it may hold where one was tried since."""
    every = [*confirmed, *tried]
    possible = [value for place, value in enumerate(every) if value not in every[:place]]
    if confirmed and len(possible) == 1:
        return possible[0]
    return {"outcome": "unknown", "values": possible}


def read_back_value(written: object, reading: Mapping[str, object], entry_id: UUID) -> dict[str, object]:
    """Return what an address was left at, where that was read: what was written, what was read, and in what unit."""
    shown = {"written": shown_value(written, entry_id), "read": shown_value(reading["value"], entry_id)}
    named = {"unit": reading.get("units"), "read_from": reading.get("address")}
    return {**shown, **{name: value for name, value in named.items() if value is not None}}


class Deviation(Value):
    """A setpoint that read something else than was written, right after it was confirmed."""

    step_index: int
    closing: bool = False
    address: str
    asked: Annotated[Any, TextsMayContainPersonalData(codes=frozenset({"kind"}))]
    """The value that was written, in the unit of the signal."""
    read: Annotated[Any, TextsMayContainPersonalData(codes=frozenset({"kind"}))]
    """What was read, in the unit of the signal."""
    unit: str | None = None


class Measured(Value):
    """A named value that a step measured; one that is no scalar is given by kind, shape and ledger row."""

    name: str
    value: Annotated[Any, TextsMayContainPersonalData(codes=frozenset({"kind"}))]
    kind: str
    """What kind of value it is, such as Scalar or Array."""
    units: str | None = None
    quality: str


class CapturedValue(Value):
    """A number that a step captured: what it is counted in, where that is known, and when it was read."""

    value: float
    """The number that was captured, in the unit beside it."""
    unit: str | None = None
    time: datetime | None = None


class LastObjective(Value):
    """What a loop was judged by when it was measured last, and the band that it must come into."""

    name: str
    value: float
    """The value measured last, in the unit of what was captured."""
    iteration_index: int
    expected: Annotated[Any, TextsMayContainPersonalData()]
    """The value that it must come to, in the unit of what was captured."""
    tolerance: float | None = None
    """How far from the expected value it may be, in the unit of what was captured."""


class BestPoint(Value):
    """The best that a search has measured, in all its conducts, and where."""

    name: str
    value: float
    """The best value, in the unit of what was captured."""
    iteration_index: int
    point: Annotated[dict[str, float | str], TextsMayContainPersonalData()]


class MeasuredPass(Value):
    """Where one pass measured, and the first ten of what it measured."""

    iteration_index: int
    point: Annotated[dict[str, Any], TextsMayContainPersonalData()] = {}
    """Where it measured, as its decider chose: a coordinate for each axis."""
    measurements: tuple[Measured, ...]
    """What the pass measured or captured, of which a search has the objective and what programs measured."""


class PlacedStep(Value):
    """One step of the main list of a conduct: its pass (0 outside passes) and its index."""

    conduct_id: UUID
    iteration_index: int = 0
    step_index: int


class StepVerdict(StrEnum):
    """What a person says about a step whose outcome is unknown."""

    DONE = "done"  # The procedure continues behind the step.
    NOT_DONE = "not_done"  # The step is done again.


class ResolvedStep(PlacedStep):
    """A step whose outcome was unknown, and what a person said about it."""

    outcome: StepVerdict


class ConductResult(Value):
    """The outcome of one conduct. It succeeded exactly when nothing failed before closing.

    An address that read otherwise than written is left at {"written", "read", "unit", "read_from"}; one that may or may not
    have taken a write at {"outcome": "unknown", "values"}: the last value confirmed, then those tried since.
    """

    procedure_id: UUID
    conduct_id: UUID
    command_name: str
    succeeded: bool
    completed_count: int = 0
    skipped_count: int = 0  # Steps that were left out on request when the procedure was taken up.
    failure: Failure | None = None
    closing_failures: tuple[Failure, ...] = ()
    held: bool = False
    """Whether the conduct ended in a hold."""
    acquisition_halt: bool = False
    """Whether it halted at an action or program that an earlier conduct began; a person must decide."""
    re_establishment_boundary: int | None = None
    iteration_count: int | None = None
    termination_reason: Annotated[TerminationReason | StateReason | None, Field(union_mode="left_to_right")] = None
    """Which part of the budget was spent or, where the decider said stop, its rationale."""
    actuation_kind: ActuationKind | None = None
    captures: dict[str, CapturedValue] = {}  # What the steps captured, in the last pass where there are passes.
    """What the steps captured, by name; of a conduct with passes the last one alone, and `passes` has the others."""
    passes: tuple[MeasuredPass, ...] = ()
    """The last twenty passes that measured something, of all conducts; list_procedure_iterations has every one."""
    objective: LastObjective | None = None  # Of a loop that runs until it converges.
    best: BestPoint | None = None  # Of a search for the largest, the smallest or a wanted value.
    """The best that the search has measured, and where; null for one that explores, whose `passes` say what is known."""
    measurements: tuple[Measured, ...] = ()
    """What programs measured, in the last pass where there are passes; numbers that steps read are in `captures`."""
    artifacts: tuple[Artifact, ...] = ()
    outputs: dict[str, Artifact] = {}
    substrate_writes: Annotated[
        dict[str, Any],
        TextsMayContainPersonalData(codes=frozenset({"kind", "outcome"})),
        Field(description="What each address was left at: the value written, what was read back, or all that it may hold."),
    ] = {}
    deviations: tuple[Deviation, ...] = ()  # Setpoints of the last pass and of closing that did not read as written.
    skipped_waits: tuple[PlacedStep, ...] = ()  # Checks of this conduct whose wait a person ended as if they had come true.
    resolved_steps: tuple[ResolvedStep, ...] = ()  # Steps of earlier conducts that a person spoke for before it went on.


class PhaseResult(Value):
    """The result of one phase; one that was not reached has neither conduct nor failure."""

    procedure_id: UUID
    conduct_id: UUID | None = None
    succeeded: bool
    completed_count: int = 0
    skipped_count: int = 0  # Steps that were left out on request, whenever the phase was taken up.
    iteration_count: int | None = None
    failure: Failure | None = None
    closing_failures: tuple[Failure, ...] = ()
    captures: dict[str, CapturedValue] = {}
    """What the steps of the phase captured, by name; of a phase with passes the last one alone."""
    passes: tuple[MeasuredPass, ...] = ()
    """The last twenty passes of the phase that measured something."""


class RunConductResult(Value):
    """The outcome of one conduct of a run. It succeeded exactly when every phase and the run itself were completed."""

    run_id: UUID
    conduct_id: UUID
    succeeded: bool
    actuation_kind: ActuationKind | None = None
    failure: Failure | None = None
    phases: tuple[PhaseResult, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    outputs: dict[str, Artifact] = {}


class ConductEnded(Event):
    """A conduct ended with a result."""

    conduct_id: UUID
    succeeded: bool

    @model_validator(mode="before")
    @classmethod
    def _take_success_from_result(cls, payload: object) -> Any:
        """Add `succeeded`, which earlier events left to their result."""
        if not isinstance(payload, dict) or "succeeded" in payload or "result" not in payload:
            return payload
        result = payload["result"]
        return {**payload, "succeeded": result["succeeded"] if isinstance(result, dict) else result.succeeded}
