"""The order of the command path, and what an idempotency key survives."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.ports import Batch, Bookmark, JudgedPrincipal, Session, Store, StreamAppend
from baton.application.seeds import Seeds
from baton.application.unit_of_work import decode_event
from baton.domain.access.actor import (
    ActorKind,
    ActorProfile,
    DeactivateActor,
    ForgetActor,
    ReactivateActor,
    RegisterActor,
    UpdateActorProfile,
)
from baton.domain.access.identity_provider import ProviderFacts
from baton.domain.equipment.role import DefineRole
from baton.domain.kernel import Call, Command, Event
from baton.domain.shared.refusals import ConcurrencyError, IdempotencyClaimLostError, IdempotencyConflictError, Refusal
from baton.domain.trust.authorization import Access, AuthzResult, deny
from baton.domain.trust.conduit import AccessDecision, DefineConduit
from baton.domain.trust.policy import RevokePolicyGrant
from baton.domain.trust.subject_binding import BindActorSubject
from baton.domain.trust.surface import SYSTEM_HTTP, DefineSurface, SurfaceControl
from baton.domain.trust.visit import (
    CheckInVisit,
    HoldVisit,
    RecordVisitArrival,
    StartVisit,
    TakeControlOfSurface,
    VisitCheckedIn,
    VisitHeld,
)
from baton.domain.trust.zone import DefineZone, Zone
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import OPERATOR, SECOND, CommandCaller, lenient, planned_visit
from tests.support.application.ports import ports_of
from tests.support.domain.world import expect_refusal, new_id


@dataclass
class Gatekeeper:
    """An authorization seam that answers as it is told."""

    verdict: AuthzResult

    async def authorize(self, caller: Caller, command_name: str, surface_id: UUID | None = None) -> AuthzResult:
        return self.verdict

    async def permitted_commands(self, caller: Caller) -> frozenset[str]:
        return frozenset()

    async def proven_groups(self, caller: Caller) -> frozenset[UUID]:
        return frozenset()

    async def access(self, caller: Caller) -> Access:
        return Access((), ())

    async def read_principal_status(self, caller: Caller) -> JudgedPrincipal:
        return JudgedPrincipal(caller.principal_id)


CLOSED = deny("principal_not_permitted")


class UntouchedStore:
    """A store nobody may look at."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the store was asked to {name}")


class RacedStore(MemoryStore):
    """A store in which rivals write between a decision and its append."""

    def __init__(self) -> None:
        super().__init__()
        self.rivals: list[tuple[str, UUID, Event]] = []

    def check(self, batch: Batch) -> None:
        if self.rivals:
            stream_type, id, event = self.rivals.pop(0)
            call = Call(new_id(), SYSTEM_HTTP, batch.call.now, new_id(), new_id())
            after = len(self.streams[stream_type, id])
            append = StreamAppend(stream_type, id, after, [(new_id(), event.stamp(id, call.now))])
            rival = Batch(call, "Rival", [append])
            self.commit(rival, self.event_rows(rival))
        super().check(batch)


class Crash(Exception):
    """The process ends here."""


def ignore() -> None:
    """A process that nobody follows."""


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def client(store: MemoryStore) -> CommandCaller:
    return CommandCaller(store)


def contents(store: MemoryStore) -> Any:
    streams = {key: tuple(rows) for key, rows in store.streams.items()}
    return streams, dict(store.claims), set(store.look_ups), dict(store.rows), dict(store.keys)


class TestAuthorizationComesFirst:
    async def test_a_denied_caller_is_refused_before_anything_is_loaded(self) -> None:
        untouched: Any = UntouchedStore()
        client = CommandCaller(untouched, authorizer=Gatekeeper(CLOSED))
        with expect_refusal("UnauthorizedError", "principal_not_permitted"):
            await client.do(DeactivateActor(), on=new_id())
        with expect_refusal("UnauthorizedError", "principal_not_permitted"):
            await client.do(DeactivateActor(), on=new_id(), key="retry-1")

    async def test_a_denied_caller_cannot_tell_what_exists(self, client: CommandCaller) -> None:
        known = await client.create(RegisterActor(name="Mira"))
        outsider = replace(client, authorizer=Gatekeeper(CLOSED))
        answers = []
        for id in (known, new_id()):
            with pytest.raises(Refusal) as caught:
                await outsider.do(DeactivateActor(), on=id)
            answers.append((str(caught.value), caught.value.facts))
        assert answers[0] == answers[1]

    async def test_a_denial_names_its_cause_but_no_policy(self, client: CommandCaller) -> None:
        policy = new_id()
        outsider = replace(
            client, authorizer=Gatekeeper(AuthzResult(AccessDecision.DENY, "command_not_permitted", (policy,)))
        )
        with pytest.raises(Refusal) as caught:
            await outsider.do(DefineZone(name="Hutch"))
        assert (caught.value.status, caught.value.reason) == (403, "command_not_permitted")
        assert str(policy) not in f"{caught.value.detail} {caught.value.facts}"
        assert "DefineZone" in caught.value.detail

    async def test_a_denied_request_never_reaches_the_cache(self, store: MemoryStore, client: CommandCaller) -> None:
        outsider = replace(client, authorizer=Gatekeeper(CLOSED))
        with expect_refusal("UnauthorizedError"):
            await outsider.do(RegisterActor(name="Mira"), key="retry-1")
        assert not store.keys
        executed = await client.do(DefineZone(name="Hutch"), key="retry-1")
        assert (executed.status, executed.replayed) == (201, False)

    async def test_a_stored_outcome_is_not_replayed_to_who_lost_the_permission(self, client: CommandCaller) -> None:
        await client.do(DefineZone(name="Hutch"), key="retry-1")
        outsider = replace(client, authorizer=Gatekeeper(CLOSED))
        with expect_refusal("UnauthorizedError"):
            await outsider.do(DefineZone(name="Hutch"), key="retry-1")


class TestIdempotency:
    async def test_a_repeated_creation_creates_once(self, store: MemoryStore, client: CommandCaller) -> None:
        first = await client.do(RegisterActor(name="Mira"), key="retry-1")
        before = contents(store)
        again = await client.do(RegisterActor(name="Mira"), key="retry-1")
        assert again == replace(first, replayed=True)
        assert contents(store) == before

    async def test_a_repeated_command_is_answered_though_the_state_has_moved_on(self, client: CommandCaller) -> None:
        id = await client.create(RegisterActor(name="Mira"))
        first = await client.do(DeactivateActor(), on=id, key="retry-1")
        await client.do(ReactivateActor(), on=id)
        again = await client.do(DeactivateActor(), on=id, key="retry-1")
        assert (again.status, again.position, again.replayed) == (204, first.position, True)
        assert await client.versions("Actor", id) == [1, 2, 3]

    async def test_without_a_key_every_request_counts(self, store: MemoryStore, client: CommandCaller) -> None:
        await client.do(DefineZone(name="Hutch"))
        await client.do(DefineZone(name="Hutch"))
        assert len(store.streams) == 2
        assert not store.keys

    @pytest.mark.parametrize("name", ["Hutch", "hutch", "Hutch 2"])
    async def test_a_key_stands_for_one_exact_request(self, client: CommandCaller, name: str) -> None:
        await client.do(DefineZone(name="Hutch"), key="retry-1")
        if name == "Hutch":
            assert (await client.do(DefineZone(name=name), key="retry-1")).replayed
        else:
            with expect_refusal(IdempotencyConflictError):
                await client.do(DefineZone(name=name), key="retry-1")

    async def test_requests_that_mean_the_same_have_one_fingerprint(self, client: CommandCaller) -> None:
        composed, decomposed = "Institut Poincar\u00e9", "Institut Poincare\u0301"
        await client.do(DefineZone(name=composed), key="names")
        assert (await client.do(DefineZone(name=decomposed), key="names")).replayed
        role = {"name": "Detector", "description": "Sees", "required_affordances": []}
        await client.do(DefineRole(**role, produces=["image", "counts"]), key="sets")
        assert (await client.do(DefineRole(**role, produces=["counts", "image", "image"]), key="sets")).replayed

    async def test_the_target_and_the_command_are_part_of_the_request(self, client: CommandCaller) -> None:
        first, second = [await client.create(RegisterActor(name=name)) for name in ("Mira", "Noor")]
        await client.do(DeactivateActor(), on=first, key="retry-1")
        with expect_refusal(IdempotencyConflictError):
            await client.do(DeactivateActor(), on=second, key="retry-1")
        with expect_refusal(IdempotencyConflictError):
            await client.do(ReactivateActor(), on=first, key="retry-1")

    async def test_keys_of_others_and_of_other_surfaces_are_independent(self, client: CommandCaller) -> None:
        await client.do(DefineZone(name="Hutch"), key="retry-1")
        elsewhere = client.acting_as(OPERATOR, surface_id=new_id())
        for other in (client.acting_as(new_id()), elsewhere):
            executed = await other.do(DefineZone(name="Another"), key="retry-1")
            assert not executed.replayed

    async def test_a_stored_outcome_holds_no_personal_data(self, store: MemoryStore, client: CommandCaller) -> None:
        await client.do(RegisterActor(name="Mira Okafor", email="m.okafor@example.org"), key="retry-1")
        assert "Okafor" not in repr(store.keys)
        assert "example.org" not in repr(store.keys)

    async def test_a_request_that_changes_nothing_is_remembered_too(self, client: CommandCaller) -> None:
        id = await client.create(RegisterActor(name="Mira"))
        first = await client.do(UpdateActorProfile(name="Mira"), on=id, key="retry-1")
        again = await client.do(UpdateActorProfile(name="Mira"), on=id, key="retry-1")
        assert again == replace(first, replayed=True)
        assert first.position > 0


class TestRefusalsReleaseTheKey:
    """A refusal wrote nothing and is never cached: the same key may be tried again at once, for anything."""

    async def deactivated_actor(self, client: CommandCaller) -> UUID:
        id = await client.create(RegisterActor(name="Mira"))
        await client.do(DeactivateActor(), on=id)
        return id

    def refusals(self, actor: UUID) -> Iterator[tuple[str, Command, UUID | None]]:
        yield "ActorNotFoundError", DeactivateActor(), new_id()
        yield "ActorCannotDeactivateError", DeactivateActor(), actor
        yield "InvalidZoneNameError", DefineZone(name="   "), None
        yield "InvalidActorKindError", RegisterActor(name="Agent", kind=ActorKind.AGENT), None
        yield "VisitParentNotFoundError", planned_visit(parent_id=new_id()), None
        yield "UnauthorizedError", ReactivateActor(), actor

    @pytest.mark.parametrize("number", range(6))
    async def test_whatever_the_refusal(self, store: MemoryStore, client: CommandCaller, number: int) -> None:
        actor = await self.deactivated_actor(client)
        code, command, target = list(self.refusals(actor))[number]
        caller = client.acting_as(actor) if code == "UnauthorizedError" else client
        before = contents(store)
        with expect_refusal(code):
            await caller.do(command, on=target, key="retry-1")
        assert contents(store) == before
        executed = await caller.do(DefineZone(name="Hutch"), key="retry-1")
        assert (executed.status, executed.replayed) == (201, False)

    async def test_a_taken_name(self, store: MemoryStore, client: CommandCaller) -> None:
        role = DefineRole(name="Detector", description="Sees", required_affordances=[])
        await client.do(role)
        before = contents(store)
        with expect_refusal("RoleAlreadyExistsError", "name_taken"):
            await client.do(role, key="retry-1")
        assert contents(store) == before

    async def test_a_lost_race(self) -> None:
        store = RacedStore()
        client = CommandCaller(store)
        visit = await client.create(planned_visit())
        await client.do(RecordVisitArrival(), on=visit)
        store.rivals = [("Visit", visit, VisitCheckedIn(actor_id=new_id(), mode="remote"))]
        with expect_refusal(ConcurrencyError):
            await client.do(StartVisit(), on=visit, key="retry-1")
        assert not store.keys
        assert not (await client.do(StartVisit(), on=visit, key="retry-1")).replayed


class DelayedStore:
    """A store that a slow process reaches only when it is let go on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.arrived, self.go_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Session]:
        self.arrived.set()
        await self.go_on.wait()
        async with self._store.session(lock) as session:
            yield session


StoreOpener = Callable[[Callable[[], None]], Store]


class TestCrashes:
    """Nothing acknowledged is lost, and nothing is done twice, wherever a process ends."""

    @pytest.fixture(params=["memory", "postgres"])
    async def open_again(self, request: pytest.FixtureRequest) -> AsyncIterator[StoreOpener]:
        """The same data for one process after the other; each hears of its own appends."""
        if request.param == "memory":
            processes: list[Callable[[], None]] = []
            kept = MemoryStore(lambda: processes[-1]())

            def memory(appended: Callable[[], None]) -> Store:
                processes.append(appended)
                return kept

            yield memory
            return
        async with runtime_pool(request.getfixturevalue("database_url"), 4) as pool:
            yield lambda appended: PostgresStore(pool, appended)

    async def test_between_append_and_answer(self, open_again: StoreOpener) -> None:
        def crash() -> None:
            raise Crash

        client = CommandCaller(open_again(crash))
        with pytest.raises(Crash):
            await client.do(RegisterActor(name="Mira"), key="retry-1")
        restarted = replace(client, store=open_again(ignore))
        answer = await restarted.do(RegisterActor(name="Mira"), key="retry-1")
        (event,) = await restarted.store.follow(Bookmark(0, 0), 10)
        assert (answer.status, answer.replayed, answer.position) == (201, True, event.position)
        assert answer.body == {"actor_id": str(event.stream_id)}

    async def test_cancelled_between_append_and_answer(self, open_again: StoreOpener) -> None:
        async def request_and_wait() -> None:
            request = asyncio.current_task()
            assert request is not None
            await CommandCaller(open_again(request.cancel)).do(RegisterActor(name="Mira"), key="retry-1")
            await asyncio.Event().wait()

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(request_and_wait())
        restarted = CommandCaller(open_again(ignore))
        assert (await restarted.do(RegisterActor(name="Mira"), key="retry-1")).replayed
        assert len(await restarted.store.follow(Bookmark(0, 0), 10)) == 1

    @pytest.mark.parametrize("end", [Crash, asyncio.CancelledError])
    async def test_before_the_append_the_key_is_locked_until_it_is_stale(
        self, open_again: StoreOpener, end: type[BaseException]
    ) -> None:
        client = CommandCaller(open_again(ignore))
        id = await client.create(RegisterActor(name="Mira"))

        async def ends(*arguments: Any) -> Any:
            raise end

        async def knows(*arguments: Any) -> Any:
            return ProviderFacts(known=True, bound=False)

        bind = BindActorSubject(issuer="https://login.example.org", subject="mira")
        with pytest.raises(end):
            await replace(client, ports=ports_of(identity_provider=ends, deployment=lenient)).do(bind, on=id, key="retry-1")
        restarted = replace(client, ports=ports_of(identity_provider=knows, deployment=lenient))
        with expect_refusal(IdempotencyClaimLostError, "in_flight"):
            await restarted.do(bind, on=id, key="retry-1")
        client.clock.now += 60 * SECOND
        executed = await restarted.do(bind, on=id, key="retry-1")
        assert (executed.status, executed.replayed) == (204, False)
        assert await restarted.versions("Actor", id) == [1, 2]

    async def test_a_request_that_was_taken_over_while_it_hung_does_nothing(self, open_again: StoreOpener) -> None:
        client = CommandCaller(open_again(ignore))
        delayed: Any = DelayedStore(client.store)
        slow = asyncio.create_task(replace(client, store=delayed).do(RegisterActor(name="Mira"), key="retry-1"))
        await delayed.arrived.wait()
        client.clock.now += 60 * SECOND
        quick = await client.do(RegisterActor(name="Mira"), key="retry-1")
        delayed.go_on.set()
        with expect_refusal(IdempotencyClaimLostError):
            await slow
        assert await client.do(RegisterActor(name="Mira"), key="retry-1") == replace(quick, replayed=True)
        assert len(await client.store.follow(Bookmark(0, 0), 10)) == 1

    async def test_a_request_that_was_taken_over_frees_nobody_elses_key(self, open_again: StoreOpener) -> None:
        client = CommandCaller(open_again(ignore))
        delayed: list[Any] = [DelayedStore(client.store), DelayedStore(client.store)]
        requests = []
        for store in delayed:
            request = replace(client, store=store).do(DeactivateActor(), on=OPERATOR, key="retry-1")
            requests.append(asyncio.create_task(request))
            await store.arrived.wait()
            client.clock.now += 60 * SECOND
        client.clock.now -= 60 * SECOND
        delayed[0].go_on.set()
        with expect_refusal("ActorNotFoundError"):
            await requests[0]
        with expect_refusal(IdempotencyClaimLostError):
            await client.do(DeactivateActor(), on=OPERATOR, key="retry-1")
        delayed[1].go_on.set()
        with expect_refusal("ActorNotFoundError"):
            await requests[1]


class TestReDeciding:
    """Holding and aborting reload and decide again, up to three times; other commands lose at once."""

    @pytest.fixture
    def store(self) -> RacedStore:
        return RacedStore()

    async def in_progress(self, client: CommandCaller) -> UUID:
        visit = await client.create(planned_visit())
        for command in (RecordVisitArrival(), StartVisit()):
            await client.do(command, on=visit)
        return visit

    def check_in(self, visit: UUID) -> tuple[str, UUID, Event]:
        return "Visit", visit, VisitCheckedIn(actor_id=new_id(), mode="physical")

    @pytest.mark.parametrize("rivals", [0, 1, 2])
    async def test_a_hold_wins_within_three_attempts(self, store: RacedStore, client: CommandCaller, rivals: int) -> None:
        visit = await self.in_progress(client)
        store.rivals = [self.check_in(visit)] * rivals
        await client.do(HoldVisit(reason="beam dump"), on=visit, key="retry-1")
        stream = store.streams["Visit", visit]
        assert [row.version for row in stream] == list(range(1, 5 + rivals))
        assert stream[-1].event_type == "VisitHeld"
        assert (await client.do(HoldVisit(reason="beam dump"), on=visit, key="retry-1")).replayed

    async def test_a_hold_loses_the_fourth_race(self, store: RacedStore, client: CommandCaller) -> None:
        visit = await self.in_progress(client)
        store.rivals = [self.check_in(visit)] * 3
        with expect_refusal(ConcurrencyError):
            await client.do(HoldVisit(reason="beam dump"), on=visit, key="retry-1")
        assert store.streams["Visit", visit][-1].event_type == "VisitCheckedIn"
        assert not store.keys

    async def test_what_changed_meanwhile_is_judged_anew(self, store: RacedStore, client: CommandCaller) -> None:
        visit = await self.in_progress(client)
        store.rivals = [("Visit", visit, VisitHeld(reason="somebody was faster"))]
        with expect_refusal("VisitCannotHoldError", "on_hold"):
            await client.do(HoldVisit(reason="beam dump"), on=visit)

    async def test_other_commands_lose_at_once(self, store: RacedStore, client: CommandCaller) -> None:
        visit = await self.in_progress(client)
        store.rivals = [self.check_in(visit)]
        with expect_refusal(ConcurrencyError, "version_taken"):
            await client.do(CheckInVisit(mode="remote"), on=visit)


class TestAnswers:
    async def test_a_command_answers_the_position_of_its_last_event(self, store: MemoryStore, client: CommandCaller) -> None:
        zone = await client.create(DefineZone(name="Hutch"))
        executed = await client.do(DefineConduit(name="Gate", source_zone_id=zone, target_zone_id=zone))
        assert executed.body is not None
        stream = store.streams["Conduit", UUID(executed.body["conduit_id"])]
        assert [row.event_type for row in stream] == ["ConduitDefined", "ConduitLogbookOpened"]
        assert executed.position == stream[-1].position

    async def test_a_command_that_wrote_nothing_answers_the_highest_position_it_loaded(
        self, store: MemoryStore, client: CommandCaller
    ) -> None:
        id = await client.create(RegisterActor(name="Mira"))
        changed = await client.do(UpdateActorProfile(phone="12"), on=id)
        await client.do(DefineZone(name="Written later, elsewhere"))
        before = contents(store)
        unchanged = await client.do(UpdateActorProfile(phone="12"), on=id)
        assert (unchanged.status, unchanged.position) == (204, changed.position)
        assert contents(store) == before

    async def test_revoking_what_nobody_holds_writes_nothing(self, store: MemoryStore, client: CommandCaller) -> None:
        await Seeds(store, client.clock, new_id).plant(facility_code="site", bootstrap_principal_id=OPERATOR)
        policy = next(id for name, id in store.streams if name == "Policy")
        first, second = [
            await client.do(RevokePolicyGrant(permitted_principal_id=OPERATOR, reason="over"), on=policy) for _ in range(2)
        ]
        assert second.position == first.position
        assert await client.versions("Policy", policy) == [1, 2]

    async def test_a_creation_under_an_existing_id_is_refused_as_existing(self, client: CommandCaller) -> None:
        zone = await client.create(DefineZone(name="Hutch"))
        clashing = replace(client, new_id=lambda: zone)
        with expect_refusal("ZoneAlreadyExistsError"):
            await clashing.do(DefineZone(name="Another"))
        assert await client.versions("Zone", zone) == [1]

    async def test_every_event_says_who_and_why(self, store: MemoryStore, client: CommandCaller) -> None:
        cause = new_id()
        agent = replace(client, caller=Caller(new_id(), SYSTEM_HTTP, new_id(), causation_id=cause))
        zone = await agent.create(DefineZone(name="Hutch"))
        (row,) = store.streams["Zone", zone]
        assert (row.principal_id, row.command_name) == (agent.caller.principal_id, "DefineZone")
        assert (row.correlation_id, row.causation_id) == (agent.caller.correlation_id, cause)
        assert row.occurred_at == agent.clock.now

    async def test_erasure_leaves_the_stream_and_takes_the_rows(self, store: MemoryStore, client: CommandCaller) -> None:
        id = await client.create(RegisterActor(name="Mira Okafor"))
        await client.do(ForgetActor(), on=id)
        assert [row.event_type for row in store.streams["Actor", id]] == ["ActorRegistered", "ActorProfileForgotten"]
        async with store.session() as session:
            assert await session.records(ActorProfile, {"actor_id": id}) == ()


class TestNamedLocks:
    async def test_of_two_rivals_for_a_surface_one_drives(self, store: MemoryStore, client: CommandCaller) -> None:
        surface = await client.create(DefineSurface(name="Endstation A", kind="HTTP"))
        visits = [await client.create(planned_visit(surface)) for _ in range(4)]
        for visit in visits:
            await client.do(RecordVisitArrival(), on=visit)
        takes = [client.do(TakeControlOfSurface(surface_id=surface), on=visit) for visit in visits]
        outcomes = await asyncio.gather(*takes, return_exceptions=True)
        winners = [visit for visit, outcome in zip(visits, outcomes, strict=True) if not isinstance(outcome, Refusal)]
        losers = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
        assert [(loser.code, loser.reason) for loser in losers] == [("VisitCannotTakeControlError", "not_descendant")] * 3
        async with store.session() as session:
            rows: Any = await session.records(SurfaceControl, {"surface_id": surface})
        assert [row.visit_id for row in rows] == winners


async def test_an_event_that_was_read_claims_its_id_for_nothing_that_is_written() -> None:
    store = MemoryStore()
    await CommandCaller(store).create(DefineZone(name="Hall"))
    (row,) = await store.follow(Bookmark(0, 0), 10)
    event = decode_event(Zone.aggregate, row)
    assert (event.stored_id, event.own_id) == (row.event_id, None)
