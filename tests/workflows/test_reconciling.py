"""What happens to conducts that the engine does not know of: never begun, lost, or stuck in it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from baton.application.conduct.conduct_work import workflow_id
from baton.application.conduct.reconciliation import Reconciler
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.operation.conduct.conduct import ConductProcedure
from baton.domain.operation.conduct.progress import ConductPhase, ConductProgress
from baton.domain.operation.procedure.endings import AbortProcedure, TruncateProcedure
from baton.domain.operation.procedure.procedure import ProcedureStatus
from baton.domain.shared.refusals import Refusal
from baton.infrastructure.runtime import clock
from tests.waiting import until
from tests.workflows.stage import Stage, staged
from tests.workflows.steps import check, setpoint

FOREVER = check("gate", 1, timeout=3600)


@pytest.fixture
async def stage(database_url: str, temporal: EmbeddedTemporal) -> AsyncIterator[Stage]:
    async with staged(database_url, temporal.address, simulated_signals={"a": 0, "gate": 0}) as stage:
        yield stage


def reconciler(stage: Stage, restart_limit: float = 300) -> Reconciler:
    runtime = stage.runtime
    return Reconciler([runtime.conducts, runtime.run_conducts], runtime.engine, clock, timedelta(seconds=restart_limit))


async def waiting(stage: Stage) -> UUID:
    """A procedure whose conduct has come to a check that will not be satisfied."""
    id = await stage.registered()
    await stage.do(ConductProcedure(steps=(setpoint("a", 1), FOREVER), wait=0), id)

    async def waits() -> bool:
        return (await phase_of(stage, id)) == ConductPhase.WALKING and (await progress_of(stage, id)).step_index == 1

    await until(waits)
    return id


async def progress_of(stage: Stage, id: UUID) -> ConductProgress:
    async with stage.runtime.store.session() as session:
        (row,) = await session.records(ConductProgress, {"procedure_id": id})
    assert isinstance(row, ConductProgress)
    return row


async def phase_of(stage: Stage, id: UUID) -> ConductPhase:
    return ConductPhase((await progress_of(stage, id)).phase)


async def test_a_conduct_that_the_engine_has_lost_is_said_to_be_lost_and_keeps_its_status(stage: Stage) -> None:
    id = await waiting(stage)
    await reconciler(stage).compare()
    assert (await stage.procedure(id)).live_conduct_id is not None, "the engine knows it"
    await stage.client.get_workflow_handle(workflow_id("conduct", id)).terminate()
    await reconciler(stage).compare()
    procedure = await stage.procedure(id)
    assert (procedure.status, procedure.live_conduct_id) == (ProcedureStatus.RUNNING, None)
    ended = (await stage.events(id))[-1]
    assert ended.result.failure.error_class == "ConductLost"  # type: ignore[attr-defined]
    await reconciler(stage).compare()
    assert (await stage.events(id))[-1] == ended, "it is lost once"
    await stage.do(AbortProcedure(reason="lost"), id)


async def test_a_conduct_that_nobody_began_in_time_is_aborted_untouched(stage: Stage) -> None:
    await stage.stop_worker()
    id = await stage.registered()
    await stage.do(ConductProcedure(steps=(setpoint("a", 1),), wait=0), id)
    await reconciler(stage).compare()
    assert (await phase_of(stage, id)) is ConductPhase.OPENED
    await reconciler(stage, restart_limit=0).compare()
    procedure = await stage.procedure(id)
    assert (procedure.status, procedure.live_conduct_id) == (ProcedureStatus.ABORTED, None)
    assert "ConductStartExpired" in (procedure.last_status_reason or "")
    await stage.start_worker()
    handle = stage.client.get_workflow_handle(workflow_id("conduct", id))
    await handle.result()
    assert (stage.control.writes, await stage.ledger(id)) == ([], [])


async def test_a_silent_conduct_can_be_truncated_and_cannot_go_on(stage: Stage) -> None:
    id = await waiting(stage)
    with pytest.raises(Refusal) as refused:
        await stage.do(TruncateProcedure(reason="power cut"), id)
    assert refused.value.reason == "conduct_live"
    await stage.stop_worker()
    async with stage.runtime.pool.connection() as connection:
        await connection.execute("UPDATE conduct_progress SET heartbeat_at = heartbeat_at - interval '61 s'")
    await stage.do(TruncateProcedure(reason="power cut"), id)
    assert (await stage.procedure(id)).status is ProcedureStatus.TRUNCATED
    assert (await stage.happened(id))[-2:] == ["ProcedureConducted", "ProcedureTruncated"]
    described = await stage.client.get_workflow_handle(workflow_id("conduct", id)).describe()
    assert described.status is not None
    assert described.status.name == "TERMINATED"


async def test_a_conduct_with_which_the_engine_fails_is_said_to_be_stalled_until_it_is_heard_of(stage: Stage) -> None:
    id = await waiting(stage)
    await stage.stop_worker()
    conduct_id = (await progress_of(stage, id)).conduct_id
    await stage.runtime.conducts.stall(conduct_id)
    stalled = await progress_of(stage, id)
    assert (stalled.standing, stalled.phase) == (ConductPhase.STALLED, ConductPhase.WALKING.value)
    await stage.start_worker()

    async def heard_of() -> bool:
        return (await progress_of(stage, id)).standing is ConductPhase.WALKING

    await until(heard_of)
    await stage.do(AbortProcedure(reason="enough"), id)
    await stage.client.get_workflow_handle(workflow_id("conduct", id)).result()
    await stage.runtime.conducts.stall(conduct_id)
    assert (await progress_of(stage, id)).standing is ConductPhase.ENDED
