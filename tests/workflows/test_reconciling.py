"""What happens to conducts that the engine does not know of: never begun, lost, or stuck in it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from baton.application.conduct.conduct_work import ConductWork, ProcedureConductWork, Reconciler
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductFromProcedure, ConductProcedure
from baton.domain.conduct.endings import AbortProcedure, TruncateProcedure
from baton.domain.conduct.messages import conduct_workflow_id
from baton.domain.conduct.progress import ConductPhase, ConductProgress
from baton.domain.procedure.procedure import ProcedureStatus
from baton.domain.shared.refusals import Refusal
from baton.infrastructure.wall_clock import clock
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import check, setpoint

FOREVER = check("gate", 1, timeout=3600)


SIGNALS = {"a": 0, "gate": 0}


@pytest.fixture(scope="module")
async def module_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[ConductStack]:
    async with open_conduct_stack(database, temporal.address, simulated_signals=SIGNALS) as stack:
        yield stack


@pytest.fixture
def stack(module_stack: ConductStack) -> ConductStack:
    module_stack.reset_plant(SIGNALS)
    return module_stack


def reconciler(stack: ConductStack, restart_limit: float = 300) -> Reconciler:
    runtime, limit = stack.runtime, timedelta(seconds=restart_limit)
    return Reconciler(runtime.works.all_of(ConductWork), runtime.engine, clock, limit)


async def start_waiting_conduct(stack: ConductStack) -> UUID:
    """A procedure whose conduct has come to a check that will not be satisfied."""
    id = await stack.register_procedure()
    await stack.do(ConductProcedure(steps=(setpoint("a", 1), FOREVER), wait=0), id)

    async def is_waiting() -> bool:
        return (await phase_of(stack, id)) == ConductPhase.WALKING and (await progress_of(stack, id)).step_index == 1

    await until(is_waiting)
    return id


async def progress_of(stack: ConductStack, id: UUID) -> ConductProgress:
    async with stack.runtime.store.session() as session:
        (row,) = await session.records(ConductProgress, {"procedure_id": id})
    assert isinstance(row, ConductProgress)
    return row


async def phase_of(stack: ConductStack, id: UUID) -> ConductPhase:
    return ConductPhase((await progress_of(stack, id)).phase)


async def test_a_conduct_that_the_engine_has_lost_is_said_to_be_lost_and_can_be_taken_up_from_where_it_was(
    stack: ConductStack,
) -> None:
    id = await start_waiting_conduct(stack)
    await reconciler(stack).compare()
    assert (await stack.procedure(id)).live_conduct_id is not None, "the engine knows it"
    await stack.client.get_workflow_handle(conduct_workflow_id(id)).terminate()
    await reconciler(stack).compare()
    procedure = await stack.procedure(id)
    assert (procedure.status, procedure.live_conduct_id) == (ProcedureStatus.RUNNING, None)
    ended = (await stack.events(id))[-1]
    assert ended.result.failure.error_class == "ConductLost"  # type: ignore[attr-defined]
    await reconciler(stack).compare()
    assert (await stack.events(id))[-1] == ended, "it is lost once"
    assert procedure.lost
    await stack.plant.write("gate", 1)
    await stack.do(ConductFromProcedure(wait=60), id)
    procedure = await stack.procedure(id)
    assert (procedure.status, procedure.lost) == (ProcedureStatus.COMPLETED, False)
    assert stack.control.writes == [("a", 1)], "what was done is not done again"


async def test_a_conduct_that_nobody_began_in_time_is_aborted_untouched(stack: ConductStack) -> None:
    await stack.stop_worker()
    id = await stack.register_procedure()
    await stack.do(ConductProcedure(steps=(setpoint("a", 1),), wait=0), id)
    await reconciler(stack).compare()
    assert (await phase_of(stack, id)) is ConductPhase.OPENED
    await reconciler(stack, restart_limit=0).compare()
    procedure = await stack.procedure(id)
    assert (procedure.status, procedure.live_conduct_id) == (ProcedureStatus.ABORTED, None)
    assert "ConductStartExpired" in (procedure.last_status_reason or "")
    await stack.start_worker()
    handle = stack.client.get_workflow_handle(conduct_workflow_id(id))
    await handle.result()
    assert (stack.control.writes, await stack.ledger(id)) == ([], [])


async def test_a_silent_conduct_can_be_truncated_and_cannot_go_on(stack: ConductStack) -> None:
    id = await start_waiting_conduct(stack)
    with pytest.raises(Refusal) as refused:
        await stack.do(TruncateProcedure(reason="power cut"), id)
    assert refused.value.reason == "conduct_live"
    await stack.stop_worker()
    async with stack.runtime.pool.connection() as connection:
        await connection.execute("UPDATE conduct_progress SET heartbeat_at = heartbeat_at - interval '61 s'")
    await stack.do(TruncateProcedure(reason="power cut"), id)
    assert (await stack.procedure(id)).status is ProcedureStatus.TRUNCATED
    assert (await stack.event_types(id))[-2:] == ["ProcedureConducted", "ProcedureTruncated"]
    described = await stack.client.get_workflow_handle(conduct_workflow_id(id)).describe()
    assert described.status is not None
    assert described.status.name == "TERMINATED"
    await stack.start_worker()


async def test_a_conduct_with_which_the_engine_fails_is_said_to_be_stalled_until_it_is_heard_of(stack: ConductStack) -> None:
    id = await start_waiting_conduct(stack)
    await stack.stop_worker()
    conduct_id = (await progress_of(stack, id)).conduct_id
    await stack.runtime.works.of(ProcedureConductWork).stall(conduct_id)
    stalled = await progress_of(stack, id)
    assert (stalled.shown_phase, stalled.phase) == (ConductPhase.STALLED, ConductPhase.WALKING.value)
    await stack.start_worker()

    async def is_heard_of() -> bool:
        return (await progress_of(stack, id)).shown_phase is ConductPhase.WALKING

    await until(is_heard_of)
    await stack.do(AbortProcedure(reason="enough"), id)
    await stack.client.get_workflow_handle(conduct_workflow_id(id)).result()
    await stack.runtime.works.of(ProcedureConductWork).stall(conduct_id)
    assert (await progress_of(stack, id)).shown_phase is ConductPhase.ENDED
