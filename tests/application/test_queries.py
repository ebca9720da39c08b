"""The query path: what is, what was, how it came to be, and reading one's own writes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.application import queries
from baton.application.caller import Caller
from baton.application.ports import JudgedPrincipal
from baton.domain.access.actor import DeactivateActor, ForgetActor, ListActors, ReactivateActor, RegisterActor
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import History, TimeTravel
from baton.domain.trust.authorization import Access, AuthzResult, deny
from baton.domain.trust.conduit import AccessDecision
from baton.domain.trust.visit import (
    CheckInVisit,
    HoldVisit,
    ListVisitPresence,
    ListVisits,
    RecordVisitArrival,
    ResumeVisit,
    StartVisit,
)
from baton.domain.trust.zone import DefineZone, ListZones
from baton.domain.views.my_access import GetMyAccess
from baton.infrastructure.postgres.pool import dedicated_connection, runtime_pool
from baton.infrastructure.postgres.projections import Projector
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import OPERATOR, SECOND, START, CommandCaller, planned_visit
from tests.support.domain.world import expect_refusal, new_id

GetActor: Any = REGISTRY.operations["get_actor"].input
GetVisit: Any = REGISTRY.operations["get_visit"].input
GetZone: Any = REGISTRY.operations["get_zone"].input
GetVisitHistory: Any = REGISTRY.operations["get_visit_history"].input


class Permits:
    """An authorization seam that knows a set of permissions, and remembers what it was asked."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)
        self.asked: list[str] = []

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        self.asked.append(command_name)
        return AuthzResult(AccessDecision.ALLOW) if command_name in self._names else deny("command_not_permitted")

    async def permitted_commands(self, caller: Caller) -> frozenset[str]:
        return self._names

    async def proven_groups(self, caller: Caller) -> frozenset[UUID]:
        return frozenset()

    async def access(self, caller: Caller) -> Access:
        return Access((), ())

    async def read_principal_status(self, caller: Caller) -> JudgedPrincipal:
        return JudgedPrincipal(caller.principal_id)


@pytest.fixture
def client() -> CommandCaller:
    return CommandCaller(MemoryStore())


async def held_visit(client: CommandCaller) -> UUID:
    """A visit of five versions, a second apart: registered, arrived, started, held, resumed."""
    visit = await client.create(planned_visit())
    for command in (RecordVisitArrival(), StartVisit(), HoldVisit(reason="Mira broke the shutter"), ResumeVisit()):
        await client.do(command, on=visit)
    return visit


class TestAuthorization:
    async def test_a_denied_query_tells_nothing_of_what_exists(self, client: CommandCaller) -> None:
        visit = await held_visit(client)
        outsider = replace(client, authorizer=Permits("ListVisits"))
        for id in (visit, new_id()):
            with expect_refusal("UnauthorizedError", "command_not_permitted"):
                await outsider.ask(GetVisit(), on=id)
            with expect_refusal("UnauthorizedError", "command_not_permitted"):
                await outsider.ask(GetVisitHistory(), on=id)

    async def test_each_read_has_its_own_permission(self, client: CommandCaller) -> None:
        visit = await held_visit(client)
        reader = replace(client, authorizer=Permits("GetVisit"))
        assert (await reader.ask(GetVisit(), on=visit)).status == "InProgress"
        with expect_refusal("UnauthorizedError"):
            await reader.ask(ListVisits())

    async def test_who_am_i_needs_no_grant(self, client: CommandCaller) -> None:
        nobody = Permits()

        me = await replace(client, authorizer=nobody).ask(GetMyAccess())
        assert (me.principal_id, me.kind, me.name, me.permitted_commands) == (OPERATOR, None, "not registered", frozenset())
        assert nobody.asked == []


class TestTimeTravel:
    @pytest.mark.parametrize(
        ("version", "status"), [(1, "Planned"), (2, "Arrived"), (3, "InProgress"), (4, "OnHold"), (5, "InProgress")]
    )
    async def test_as_of_a_version(self, client: CommandCaller, version: int, status: str) -> None:
        visit = await held_visit(client)
        assert (await client.ask(GetVisit(as_of_version=version), on=visit)).status == status

    @pytest.mark.parametrize(
        ("seconds", "status"), [(1, "Planned"), (1.5, "Planned"), (2, "Arrived"), (4, "OnHold"), (1000, "InProgress")]
    )
    async def test_as_of_a_time(self, client: CommandCaller, seconds: float, status: str) -> None:
        visit = await held_visit(client)
        then = START + timedelta(seconds=seconds)
        assert (await client.ask(GetVisit(as_of=then), on=visit)).status == status

    async def test_times_are_those_of_the_events(self, client: CommandCaller) -> None:
        visit = await held_visit(client)
        then = await client.ask(GetVisit(as_of_version=2), on=visit)
        assert (then.created_at, then.arrived_at, then.started_at) == (START + SECOND, START + 2 * SECOND, None)

    async def test_before_its_birth_there_was_nothing(self, client: CommandCaller) -> None:
        visit = await held_visit(client)
        with expect_refusal("VisitNotFoundError"):
            await client.ask(GetVisit(as_of=START), on=visit)
        with expect_refusal("VisitNotFoundError"):
            await client.ask(GetVisit(as_of_version=1), on=new_id())

    def test_one_past_at_a_time(self) -> None:
        with pytest.raises(ValidationError, match="not both"):
            GetVisit(as_of=START, as_of_version=1)

    async def test_a_past_actor_has_no_name(self, client: CommandCaller) -> None:
        id = await client.create(RegisterActor(name="Mira"))
        await client.do(DeactivateActor(), on=id)
        now, then = await client.ask(GetActor(), on=id), await client.ask(GetActor(as_of_version=1), on=id)
        assert (now.name, now.active, then.active) == ("Mira", False, True)
        assert not hasattr(then, "name")

    def test_every_aggregate_has_a_history_and_every_get_a_past(self) -> None:
        for aggregate in REGISTRY.aggregates.values():
            inputs = {operation.command_name: operation.input for operation in aggregate.operations}
            assert issubclass(inputs[f"Get{aggregate.name}History"], History)
            if get := inputs.get(f"Get{aggregate.name}"):
                assert issubclass(get, TimeTravel), get


class TestHistory:
    @pytest.mark.parametrize("limit", [1, 2, 4, 5, 6])
    async def test_pages_cover_every_version_once(self, client: CommandCaller, limit: int) -> None:
        visit = await held_visit(client)
        items: list[Any] = []
        cursor = None
        while True:
            page = await client.ask(GetVisitHistory(limit=limit, cursor=cursor), on=visit)
            assert (page.id_name, page.id) == ("visit_id", visit)
            assert len(page.items) <= limit
            items += page.items
            if (cursor := page.next_cursor) is None:
                break
        assert [item["version"] for item in items] == [1, 2, 3, 4, 5]

    async def test_an_item_is_the_whole_envelope_and_payload(self, client: CommandCaller) -> None:
        visit = await held_visit(client)
        held = (await client.ask(GetVisitHistory(), on=visit)).items[3]
        assert {name: held[name] for name in ("event_type", "version", "stream_type", "command_name", "schema_version")} == {
            "event_type": "VisitHeld",
            "version": 4,
            "stream_type": "Visit",
            "command_name": "HoldVisit",
            "schema_version": 1,
        }
        assert (held["stream_id"], held["principal_id"]) == (visit, OPERATOR)
        assert held["payload"] == {
            "visit_id": str(visit),
            "reason": "Mira broke the shutter",
            "occurred_at": "2026-10-06T08:00:04Z",
        }
        assert {"position", "transaction_id", "event_id", "correlation_id", "causation_id", "recorded_at"} < held.keys()

    async def test_texts_are_null_without_the_permission_to_read_them(self, client: CommandCaller) -> None:
        visit = await held_visit(client)
        discreet = replace(client, authorizer=Permits("GetVisitHistory"))
        trusted = replace(client, authorizer=Permits("GetVisitHistory", "ReadEventTexts"))
        hidden = (await discreet.ask(GetVisitHistory(), on=visit)).items
        shown = (await trusted.ask(GetVisitHistory(), on=visit)).items
        assert hidden[3]["payload"] == {**shown[3]["payload"], "reason": None}
        assert shown[3]["payload"]["reason"] == "Mira broke the shutter"
        assert hidden[:3] == shown[:3]
        assert "Mira" not in str(hidden)

    async def test_what_never_began_has_no_history(self, client: CommandCaller) -> None:
        with expect_refusal("VisitNotFoundError"):
            await client.ask(GetVisitHistory(), on=new_id())

    @pytest.mark.parametrize("cursor", ["nonsense!", "LTE", "MXwy", "4pyo"])
    async def test_a_cursor_nobody_handed_out_is_refused(self, client: CommandCaller, cursor: str) -> None:
        visit = await held_visit(client)
        with expect_refusal("InvalidCursorError", "malformed"):
            await client.ask(GetVisitHistory(cursor=cursor), on=visit)

    async def test_erasure_leaves_the_history_whole(self, client: CommandCaller) -> None:
        id = await client.create(RegisterActor(name="Mira Okafor", email="m.okafor@example.org"))
        await client.do(ForgetActor(), on=id)
        history: Any = REGISTRY.operations["get_actor_history"].input
        items = (await client.ask(history(), on=id)).items
        assert [item["event_type"] for item in items] == ["ActorRegistered", "ActorProfileForgotten"]
        assert "Okafor" not in str(items)


class TestOwnWrites:
    async def test_by_id_they_are_visible_at_once(self, client: CommandCaller) -> None:
        zone = await client.create(DefineZone(name="Hutch"))
        assert (await client.ask(GetZone(), on=zone)).name == "Hutch"

    async def test_lists_show_names_as_they_are_now(self, client: CommandCaller) -> None:
        kept, forgotten = [await client.create(RegisterActor(name=name)) for name in ("Mira", "Noor")]
        await client.do(ForgetActor(), on=forgotten)
        await client.do(DeactivateActor(), on=kept)
        await client.do(ReactivateActor(), on=kept)
        page = await client.ask(ListActors())
        assert {row.actor_id: row.name for row in page.items} == {kept: "Mira", forgotten: "<deleted user>"}

    @pytest.fixture
    async def lagging_service(self, database_url: str) -> AsyncIterator[CommandCaller]:
        """A service on PostgreSQL whose projections stand still until they are moved."""
        async with runtime_pool(database_url, 4) as pool:
            yield CommandCaller(PostgresStore(pool))

    async def test_a_list_waits_until_the_projection_has_passed_the_position(
        self, lagging_service: CommandCaller, database_url: str
    ) -> None:
        executed = await lagging_service.do(DefineZone(name="Hutch"))
        assert (await lagging_service.ask(ListZones())).items == ()

        async def project() -> None:
            async with await dedicated_connection(database_url, owner=True) as connection:
                while await Projector(database_url).advance(connection):
                    pass

        page, _ = await asyncio.gather(lagging_service.ask(ListZones(min_position=executed.position)), project())
        assert [row.name for row in page.items] == ["Hutch"]

    async def test_the_wait_is_bounded(self, lagging_service: CommandCaller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queries, "OWN_WRITES_WAIT_SECONDS", 0.3)
        executed = await lagging_service.do(DefineZone(name="Hutch"))
        loop = asyncio.get_running_loop()
        began = loop.time()
        page = await lagging_service.ask(ListZones(min_position=executed.position))
        assert page.items == ()
        assert loop.time() - began >= 0.3

    async def test_what_is_read_from_a_stream_never_waits(
        self, lagging_service: CommandCaller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "OWN_WRITES_WAIT_SECONDS", 3600.0)
        visit = await lagging_service.create(planned_visit())
        await lagging_service.do(RecordVisitArrival(), on=visit)
        executed = await lagging_service.do(CheckInVisit(mode="remote"), on=visit)
        async with asyncio.timeout(60):
            page = await lagging_service.ask(ListVisitPresence(min_position=executed.position), on=visit)
        assert [row.mode for row in page.items] == ["remote"]
