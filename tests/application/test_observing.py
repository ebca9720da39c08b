"""Who may report a status in process: the service itself and service accounts, whatever surface they name."""

from uuid import UUID

import pytest

from baton.application.ports import Batch, StreamAppend
from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.enclosure.enclosure import Enclosure, EnclosureContact, ObserveEnclosureStatus, RegisterEnclosure
from baton.domain.facility.facility import RegisterFacility
from baton.domain.kernel import NIL, Call
from baton.domain.supply.supply import ObserveSupplyStatus, RegisterSupply, Supply
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import START, expect_refusal, new_id

SOURCE = {"source_kind": "ProcessVariable", "source_id": "PSS:PERMIT"}
PERMITTED = ObserveEnclosureStatus(new_status="Permitted", reason="read", monitor_ref=SOURCE)
UNAVAILABLE = ObserveSupplyStatus(new_status="Unavailable", reason="read", monitor_ref=SOURCE)
SURFACES = {"in process": NIL, "HTTP": SYSTEM_HTTP, "MCP stdio": SYSTEM_MCP_STDIO, "MCP": SYSTEM_MCP_STREAMABLE_HTTP}


@pytest.fixture
def client() -> CommandCaller:
    return CommandCaller(MemoryStore())


async def actor(client: CommandCaller, kind: ActorKind) -> UUID:
    id = new_id()
    registered = ActorRegistered(kind=kind).stamp(id, START)
    batch = Batch(
        Call(NIL, NIL, START, new_id(), new_id()), "Seed", [StreamAppend("Actor", id, 0, [(new_id(), registered)])]
    )
    async with client.store.session() as session:
        await session.append(batch)
    return id


async def hutch_and_beam(client: CommandCaller) -> tuple[UUID, UUID]:
    await client.do(RegisterFacility(code="lumen", display_name="Lumen", kind="Site"))
    hutch = await client.create(RegisterEnclosure(name="Hutch", facility_code="lumen"))
    beam = await client.create(RegisterSupply(kind="photon_beam", name="Ring", facility_code="lumen"))
    return hutch, beam


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("kind", [ActorKind.HUMAN, ActorKind.AGENT, None], ids=["human", "agent", "nobody known"])
async def test_others_are_refused_on_every_surface(client: CommandCaller, kind: ActorKind | None, surface: str) -> None:
    hutch, beam = await hutch_and_beam(client)
    principal_id = new_id() if kind is None else await actor(client, kind)
    pretender = client.acting_as(principal_id, SURFACES[surface])
    for command, target in ((PERMITTED, hutch), (UNAVAILABLE, beam), (PERMITTED, new_id()), (UNAVAILABLE, new_id())):
        with expect_refusal("UnauthorizedError", "caller_kind_not_permitted"):
            await pretender.do(command, on=target)
    assert await client.versions("Enclosure", hutch) == [1]
    assert await client.versions("Supply", beam) == [1]


@pytest.mark.parametrize("surface", SURFACES)
async def test_service_accounts_are_heard_on_every_surface(client: CommandCaller, surface: str) -> None:
    hutch, beam = await hutch_and_beam(client)
    monitor = client.acting_as(await actor(client, ActorKind.SERVICE_ACCOUNT), SURFACES[surface])
    await monitor.do(PERMITTED, on=hutch)
    await monitor.do(UNAVAILABLE, on=beam)
    assert await client.versions("Enclosure", hutch) == [1, 2]
    assert await client.versions("Supply", beam) == [1, 2]


@pytest.mark.parametrize("surface", SURFACES)
async def test_the_service_itself_is_heard_in_process_alone(client: CommandCaller, surface: str) -> None:
    hutch, beam = await hutch_and_beam(client)
    service = client.acting_as(NIL, SURFACES[surface])
    for command, target in ((PERMITTED, hutch), (UNAVAILABLE, beam)):
        if surface == "in process":
            await service.do(command, on=target)
        else:
            with expect_refusal("UnauthorizedError", "caller_kind_not_permitted"):
                await service.do(command, on=target)


async def test_a_repeat_moves_the_contact_and_nothing_else(client: CommandCaller) -> None:
    hutch, beam = await hutch_and_beam(client)
    monitor = client.acting_as(NIL, NIL)
    first = await monitor.do(PERMITTED, on=hutch)
    for _ in range(3):
        again = await monitor.do(PERMITTED, on=hutch)
        assert again.position == first.position
        async with client.store.session() as session:
            assert await session.records(EnclosureContact, {"enclosure_id": hutch}) == (
                EnclosureContact(hutch, client.clock.now),
            )
    assert await client.versions(Enclosure.__name__, hutch) == [1, 2]
    reported = await monitor.do(UNAVAILABLE, on=beam)
    assert (await monitor.do(UNAVAILABLE, on=beam)).position == reported.position
    assert await client.versions(Supply.__name__, beam) == [1, 2]
