"""A ledger to test, with conducts on it that nobody works on but the test."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from baton.application.conduct.ledger import BeginRequest, Ledger
from baton.application.ports import Batch, StreamAppend
from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.messages import Mark, StepPlace
from baton.domain.conduct.progress import ConductProgress
from baton.domain.kernel import Call, Event
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.start.registration import RegisterProcedure
from baton.domain.steering.steering import SELECTABLE
from baton.domain.step.results import ConductResult
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.application.command_paths import OPERATOR, CommandCaller
from tests.support.application.ports import ports_of
from tests.support.domain.lifecycles.run import run_started
from tests.support.domain.world import LENIENT, START, new_id
from tests.support.workflows.step_json import PROGRAMS

STEPS = tuple({"kind": "setpoint", "address": f"bl7:m{number}", "value": number} for number in range(10))
LOGBOOK = new_id()


async def deployment() -> Any:
    return SimpleNamespace(
        **LENIENT,
        self_facility_code="facility",
        enclosure_observation_ttl=timedelta(seconds=120),
        monitored_permit_ttl=timedelta(seconds=10),
        deciders=SELECTABLE,
        action_timeout=3600.0,
        compute_timeout=3600.0,
        monitored_supplies=frozenset(),
        compute_programs=frozenset(PROGRAMS),
    )


async def nothing_done(conduct_id: UUID) -> None:
    """What conducts were done on that have done nothing."""


async def no_step_done(conduct_id: UUID) -> int:
    """How many steps conducts have done that have done nothing."""
    return 0


async def stated_limits(addresses: object) -> Mapping[str, None]:
    """A control system that states no limits."""
    return {}


PORTS: Any = ports_of(
    deployment=deployment, actuation_kind=nothing_done, completed_step_count=no_step_done, stated_limits=stated_limits
)


@dataclass(frozen=True)
class LedgerConduct:
    """A conduct of a procedure, and the places of its steps."""

    procedure_id: UUID
    conduct_id: UUID

    def at(self, step_index: int, iteration_index: int = 0, closing: bool = False) -> StepPlace:
        return StepPlace(
            procedure_id=self.procedure_id,
            conduct_id=self.conduct_id,
            iteration_index=iteration_index,
            closing=closing,
            step_index=step_index,
        )

    @property
    def result(self) -> ConductResult:
        return ConductResult(
            procedure_id=self.procedure_id, conduct_id=self.conduct_id, command_name="ConductProcedure", succeeded=True
        )


@dataclass
class LedgerCase:
    """A ledger, the command path on the same store, and how time passes for both."""

    client: CommandCaller
    ledger: Ledger
    let_pass: Callable[[float], Awaitable[None]]
    begin_term: Callable[[int | None], Awaitable[None]] | None = None

    async def lead(self, term: int | None) -> None:
        """Have a monitor lead in this term, or nobody."""
        assert self.begin_term is not None, "no monitor is of interest here"
        await self.begin_term(term)

    async def open_conduct(self) -> LedgerConduct:
        """A conduct that has just been opened."""
        procedure_id = await self.client.create(RegisterProcedure(name="Alignment", kind="alignment"))
        executed = await self.client.do(ConductProcedure(steps=STEPS), on=procedure_id)
        return LedgerConduct(procedure_id, UUID((executed.body or {})["conduct_id"]))

    async def resume_conduct(self, earlier: LedgerConduct, boundary: int = 0) -> LedgerConduct:
        """The conduct that goes on after an earlier one was held."""
        await self.client.do(HoldProcedure(reason="shift change", conducted=earlier.result), on=earlier.procedure_id)
        again = ConductFromProcedure(re_establishment_boundary=boundary, skip=True, skip_reason="done by hand")
        executed = await self.client.do(again, on=earlier.procedure_id)
        return LedgerConduct(earlier.procedure_id, UUID((executed.body or {})["conduct_id"]))

    async def run(self, *events: Event) -> UUID:
        """A run to which these things happened after its start."""
        run_id = new_id()
        await self.append_events(run_id, run_started(), *events)
        return run_id

    async def append_events(self, stream_id: UUID, *events: Event) -> None:
        """Put events on a stream, whatever commands would say to that."""
        now, name = self.client.clock.now, events[0].aggregate.name
        stamped = [(new_id(), event.stamp(stream_id, now)) for event in events]
        call = Call(OPERATOR, SYSTEM_HTTP, now, new_id(), new_id())
        async with self.client.store.session() as session:
            version = len(await session.history(name, stream_id, 0, 1000))
            await session.append(Batch(call, "Rehearse", [StreamAppend(name, stream_id, version, stamped)]))

    async def version(self, aggregate: type[Any], stream_id: UUID) -> tuple[str, UUID, int]:
        """A stream to watch, up to its last event."""
        async with self.client.store.session() as session:
            return aggregate.__name__, stream_id, len(await session.history(aggregate.__name__, stream_id, 0, 1000))

    async def progress(self, conduct: LedgerConduct) -> ConductProgress:
        async with self.client.store.session() as session:
            (progress,) = await session.records(ConductProgress, {"procedure_id": conduct.procedure_id})
        assert isinstance(progress, ConductProgress)
        return progress

    async def begin_step(self, place: StepPlace, **how: Any) -> None:
        """Mark a step that nothing stands in the way of."""
        assert (await self.ledger.begin(begin_request(place, **how))).marked

    async def capture_value(self, place: StepPlace, slot: str, value: float) -> None:
        """Have a step capture a number."""
        await self.ledger.settle(row(place, Mark.OUTCOME, kind="capture", slot=slot, captured_value=value))

    async def publish_artifact(self, place: StepPlace, slot: str, uri: str) -> None:
        """Have a program publish what it wrote."""
        artifact = {"uri": uri, "checksum_algorithm": "sha256", "checksum_value": "0" * 64, "byte_size": 1}
        said = {"output_ref_name": slot, "artifact": artifact}
        await self.ledger.settle(row(place, Mark.DEPOSIT, kind="compute", slot=slot, **said))


def row(
    place: StepPlace, mark: Mark, attempt: int = 1, kind: str = "setpoint", slot: str | None = None, **says: Any
) -> Activity:
    """A row that says this of a step."""
    return Activity(
        event_id=place.row_id(mark, attempt),
        logbook_id=LOGBOOK,
        actor_id=OPERATOR,
        command_name="ConductProcedure",
        correlation_id=LOGBOOK,
        causation_id=place.conduct_id,
        occurred_at=START,
        procedure_id=place.procedure_id,
        step_kind=kind,
        payload={"result": "in_flight" if mark is Mark.IN_FLIGHT else "ok", "worker": "here", **says},
        sampled_at=START,
        conduct_id=place.conduct_id,
        iteration_index=place.iteration_index,
        closing=place.closing,
        step_index=place.step_index,
        mark=mark.value,
        attempt=attempt,
        slot=slot,
    )


def begin_request(place: StepPlace, attempt: int = 1, kind: str = "setpoint", **how: Any) -> BeginRequest:
    """A step that is to begin."""
    return BeginRequest(place=place, **{"marker": row(place, Mark.IN_FLIGHT, attempt, kind), "first": None, **how})
