"""Decisions that give further commands: each sees what those before it write, and nothing but that is supposed."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from baton.application.authorization import PermissiveAuthorizer
from baton.application.caller import Caller
from baton.application.ports import Batch
from baton.application.unit_of_work import UnitOfWork
from baton.domain.conduct.endings import CompleteProcedure
from baton.domain.kernel import Call
from baton.domain.procedure.procedure import PHASES, Procedure, ProcedureCompleted, ProcedureRegistered, ProcedureStatus
from baton.domain.shared.further_commands import give
from baton.domain.shared.reads import Holders, Reads, Suppose, events_of, find, latest_events, members_of
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.writes import Also, Claim, Enlist, Release
from baton.domain.start.procedure_start import StartProcedure
from baton.domain.start.registration import RegisterProcedure
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller
from tests.support.application.ports import ports_of
from tests.support.domain.world import LENIENT, OPERATOR, START, expect_refusal, new_id

CALL = Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id())


def task(**fields: Any) -> RegisterProcedure:
    """A procedure by hand."""
    return RegisterProcedure(name="Align", kind="alignment", **fields)


async def deployment() -> Any:
    """A deployment for development."""
    return SimpleNamespace(**LENIENT, self_facility_code="test", monitored_supplies=())


PORTS = ports_of(deployment=deployment)


async def fulfil(store: MemoryStore, reads: Reads[Any]) -> tuple[Any, UnitOfWork]:
    """Fulfil reads in a unit of work of their own."""
    async with store.session() as session:
        unit = UnitOfWork(session, Caller(OPERATOR, SYSTEM_HTTP, new_id()), PermissiveAuthorizer(), PORTS)
        return await unit.fulfil(reads), unit


async def test_a_later_command_is_decided_on_what_an_earlier_one_writes() -> None:
    id = new_id()

    def decide() -> Reads[Any]:
        registered = yield from give(task(), CALL, id)
        begun = yield from give(StartProcedure(), CALL, new_id(), on=id)
        ended = yield from give(CompleteProcedure(), CALL, new_id(), on=id)
        return [registered, begun, ended], (yield from find(Procedure, id))

    (written, procedure), unit = await fulfil(MemoryStore(), decide())
    assert procedure.status is ProcedureStatus.COMPLETED
    assert [one.id for one in written] == [id, id, id]
    batch = Batch(CALL, "Test")
    batch.add(written, id, unit.version, new_id)
    assert [(one.stream_type, one.after, len(one.events)) for one in batch.appends] == [
        ("Procedure", 0, 1),
        ("Procedure", 1, 1),
        ("Procedure", 2, 1),
    ]
    store = MemoryStore()
    async with store.session() as session:
        await session.append(batch)
    assert [row.version for row in store.streams["Procedure", id]] == [1, 2, 3]


async def test_a_refusal_of_a_later_command_is_that_of_the_whole() -> None:
    def decide() -> Reads[Any]:
        id = new_id()
        yield from give(task(), CALL, id)
        yield from give(CompleteProcedure(), CALL, new_id(), on=id)

    with expect_refusal("ProcedureCannotCompleteError", "defined"):
        await fulfil(MemoryStore(), decide())


async def test_supposed_events_follow_on_the_stored_ones_and_the_facts_stay_those_of_the_store() -> None:
    store = MemoryStore()
    client = CommandCaller(store, ports=PORTS)
    run_id = new_id()
    id = await client.create(task())
    await client.do(StartProcedure(), on=id)
    assert (yes := await client.versions("Procedure", id)) == [1, 2], yes

    def decide() -> Reads[Any]:
        yield from find(Procedure, id)
        yield from give(CompleteProcedure(), CALL, new_id(), on=id)
        phase = yield from give(task(), CALL, new_id())
        yield Suppose(Also(Procedure, phase.id, [Enlist(PHASES, str(run_id))]), START)
        every = yield from events_of(id, ProcedureRegistered, ProcedureCompleted)
        last = yield from latest_events(id, ProcedureRegistered, ProcedureCompleted, count=1)
        return every, last, phase.id, (yield from members_of(PHASES, run_id))

    (every, last, phase_id, phases), unit = await fulfil(store, decide())
    assert [type(one) for one in every] == [ProcedureRegistered, ProcedureCompleted]
    assert [type(one) for one in last] == [ProcedureCompleted]
    assert phases == (phase_id,)
    assert unit.facts.streams == (("Procedure", id, 2),)
    assert unit.facts.members == ((PHASES, (str(run_id),), []),)
    assert unit.version("Procedure", id) == 2


async def test_supposed_claims_and_releases_are_seen_by_who_asks_for_the_holder() -> None:
    store, first, second = MemoryStore(), new_id(), new_id()
    store.claims["asset", "a"] = first
    rival = Conflict("taken")

    def decide() -> Reads[dict[str, UUID]]:
        yield Suppose(Also(Procedure, first, [Release("asset", "a")]), START)
        yield Suppose(Also(Procedure, second, [Claim("asset", "b", rival)]), START)
        found: dict[str, UUID] = yield Holders("asset", ("a", "b", "c"))
        return found

    assert (await fulfil(store, decide()))[0] == {"b": second}
