"""The authorization seam: the pure judgement as a table, and the adapter that folds policies to the very latest event."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from baton.application.authorization import PermissiveAuthorizer, PolicyAuthorizer, PrincipalStatuses
from baton.application.caller import Caller, GivenApproval
from baton.application.ports import Authorizer, JudgedPrincipal, StoreUnavailableError
from baton.application.seeds import Seeds
from baton.domain.access.actor import Actor, ActorKind, DeactivateActor, ReactivateActor, RegisterActor
from baton.domain.agent.agent import DefineAgent, VersionAgent
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import NIL, SYSTEM_CONDUIT
from baton.domain.trust.authorization import AuthzResult, PrincipalStatus, judge, permitted_commands
from baton.domain.trust.conduit import AccessDecision, ConduitVerdict, ListConduitVerdicts
from baton.domain.trust.policy import Approval, DefinePolicy, Policy, RevokePolicyGrant
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STDIO, SYSTEM_MCP_STREAMABLE_HTTP, DefineSurface
from baton.domain.trust.visit import RecordVisitArrival, TakeControlOfSurface
from baton.domain.trust.zone import DefineZone
from baton.infrastructure.postgres.authorization_log import PostgresVerdictLog
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.store import MemoryStore, MemoryVerdictLog
from tests.support.application.command_paths import CommandCaller, planned_visit
from tests.support.domain.world import OPERATOR, START, expect_refusal, new_id
from tests.support.tables import for_each

ALLOW, DENY = AccessDecision.ALLOW, AccessDecision.DENY
CONDUIT, SURFACE, PRINCIPAL = new_id(), new_id(), new_id()
P1, P2, P3 = sorted(new_id() for _ in range(3))


def policy(id: UUID = P1, **changes: Any) -> Policy:
    """A policy that allows the principal GetVisit on the conduit and surface of the table."""
    matching = {
        "conduit_id": CONDUIT,
        "surface_id": SURFACE,
        "permitted_principal_ids": frozenset({PRINCIPAL}),
        "listed_commands": frozenset({"GetVisit"}),
        "permitted_command_sets": frozenset(),
        "permitted_group_ids": frozenset(),
        "approval": None,
    }
    return Policy(id=id, created_at=START, name="Crew", **{**matching, **changes})


def actor(*, active: bool = True, kind: ActorKind = ActorKind.HUMAN) -> Actor:
    return Actor(id=PRINCIPAL, created_at=START, kind=kind, active=active)


NOBODY = PrincipalStatus(None)
ELSEWHERE = {"surface_id": new_id()}
OTHER_CONDUIT = {"conduit_id": new_id()}
STRANGERS = {"permitted_principal_ids": frozenset({new_id()})}
EMPTY = {"permitted_principal_ids": frozenset()}
READERS = {"listed_commands": frozenset({"ListVisits"})}
COMMANDLESS = {"listed_commands": frozenset()}

JUDGEMENTS = [
    (PrincipalStatus(actor()), [policy()], ALLOW, None, (P1,)),
    (NOBODY, [policy()], ALLOW, None, (P1,)),
    (PrincipalStatus(actor(kind=ActorKind.AGENT)), [policy()], ALLOW, None, (P1,)),
    (PrincipalStatus(actor(active=False)), [policy()], DENY, "principal_deactivated", ()),
    (PrincipalStatus(actor(active=False)), [], DENY, "principal_deactivated", ()),
    (PrincipalStatus(actor(kind=ActorKind.AGENT), agent_versioned=False), [policy()], DENY, "agent_not_versioned", ()),
    (
        PrincipalStatus(actor(kind=ActorKind.AGENT, active=False), agent_versioned=False),
        [policy()],
        DENY,
        "principal_deactivated",
        (),
    ),
    (NOBODY, [], DENY, "no_applicable_policy", ()),
    (NOBODY, [policy(**ELSEWHERE)], DENY, "no_applicable_policy", ()),
    (NOBODY, [policy(**OTHER_CONDUIT)], DENY, "no_applicable_policy", ()),
    (NOBODY, [policy(surface_id=NIL)], DENY, "no_applicable_policy", ()),
    (NOBODY, [policy(conduit_id=NIL)], DENY, "no_applicable_policy", ()),
    (NOBODY, [policy(**STRANGERS)], DENY, "principal_not_permitted", ()),
    (NOBODY, [policy(**EMPTY)], DENY, "principal_not_permitted", ()),
    (NOBODY, [policy(**STRANGERS, **READERS)], DENY, "principal_not_permitted", ()),
    (NOBODY, [policy(**READERS)], DENY, "command_not_permitted", ()),
    (NOBODY, [policy(**COMMANDLESS)], DENY, "command_not_permitted", ()),
    (NOBODY, [policy(P1, **STRANGERS), policy(P2, **READERS)], DENY, "command_not_permitted", ()),
    (NOBODY, [policy(P3), policy(P1), policy(P2, **READERS)], ALLOW, None, (P1, P3)),
    (NOBODY, [policy(P1, **ELSEWHERE), policy(P2, **STRANGERS), policy(P3)], ALLOW, None, (P3,)),
]


class TestJudgement:
    @for_each(("standing", "policies", "decision", "reason", "determining"), JUDGEMENTS)
    def test_the_table(
        self,
        standing: PrincipalStatus,
        policies: list[Policy],
        decision: AccessDecision,
        reason: str | None,
        determining: Any,
    ) -> None:
        verdict = judge(standing, policies, PRINCIPAL, "GetVisit", CONDUIT, SURFACE)
        assert verdict == AuthzResult(decision, reason, determining)
        assert verdict.is_allowed is (decision is ALLOW)

    @for_each(("standing", "policies", "decision", "reason", "determining"), JUDGEMENTS)
    def test_what_is_permitted_is_what_would_be_allowed(
        self,
        standing: PrincipalStatus,
        policies: list[Policy],
        decision: AccessDecision,
        reason: str | None,
        determining: Any,
    ) -> None:
        permitted = permitted_commands(standing, policies, PRINCIPAL, CONDUIT, SURFACE)
        for name in ("GetVisit", "ListVisits", "DefinePolicy"):
            allowed = judge(standing, policies, PRINCIPAL, name, CONDUIT, SURFACE).is_allowed
            assert allowed is (name in permitted), name

    def test_a_nil_surface_policy_serves_nil_surface_callers_only(self) -> None:
        in_process = policy(surface_id=NIL)
        assert judge(NOBODY, [in_process], PRINCIPAL, "GetVisit", CONDUIT, NIL).is_allowed
        assert not judge(NOBODY, [policy()], PRINCIPAL, "GetVisit", CONDUIT, NIL).is_allowed


GROUP = new_id()
CREW = {"permitted_principal_ids": frozenset(), "permitted_group_ids": frozenset({GROUP})}
ASKING = {"listed_commands": frozenset({"DefineZone"}), "approval": Approval(principals=frozenset({new_id()}))}
OUTRIGHT = {"listed_commands": frozenset({"DefineZone"})}

APPROVALS: list[tuple[list[Policy], frozenset[UUID], AccessDecision, str | None, tuple[UUID, ...]]] = [
    ([policy(P1, **ASKING)], frozenset(), DENY, "approval_required", (P1,)),
    ([policy(P1, **ASKING)], frozenset({P1}), ALLOW, None, (P1,)),
    ([policy(P1, **ASKING)], frozenset({P2}), DENY, "approval_required", (P1,)),
    ([policy(P2, **ASKING), policy(P1, **ASKING)], frozenset(), DENY, "approval_required", (P1, P2)),
    ([policy(P2, **ASKING), policy(P1, **ASKING)], frozenset({P2}), ALLOW, None, (P2,)),
    ([policy(P1, **ASKING), policy(P2, **OUTRIGHT)], frozenset(), ALLOW, None, (P2,)),
    ([policy(P1, **ASKING), policy(P2, **OUTRIGHT)], frozenset({P1}), ALLOW, None, (P2,)),
    ([policy(P1, **ASKING, **STRANGERS)], frozenset({P1}), DENY, "principal_not_permitted", ()),
    ([policy(P1, **ASKING), policy(P2, **OUTRIGHT, **STRANGERS)], frozenset(), DENY, "approval_required", (P1,)),
    ([policy(P1, **{**ASKING, "listed_commands": frozenset()})], frozenset({P1}), DENY, "command_not_permitted", ()),
]


class TestApproval:
    @for_each(("policies", "approved_under", "decision", "reason", "determining"), APPROVALS)
    def test_an_approval_counts_for_the_policies_that_it_was_given_under(
        self,
        policies: list[Policy],
        approved_under: frozenset[UUID],
        decision: AccessDecision,
        reason: str | None,
        determining: tuple[UUID, ...],
    ) -> None:
        verdict = judge(NOBODY, policies, PRINCIPAL, "DefineZone", CONDUIT, SURFACE, approved_under=approved_under)
        assert verdict == AuthzResult(decision, reason, determining)

    def test_no_query_and_nothing_that_settles_a_proposal_is_permitted_with_approval(self) -> None:
        everything = policy(P1, **{**ASKING, "permitted_command_sets": frozenset({"all"})})
        for name in ("GetVisit", "ApproveProposal", "RejectProposal", "WithdrawProposal", "ReadEventTexts"):
            verdict = judge(NOBODY, [everything], PRINCIPAL, name, CONDUIT, SURFACE, approved_under=frozenset({P1}))
            assert verdict.reason == "command_not_permitted", name

    def test_an_approval_is_of_one_command(self) -> None:
        given = GivenApproval(new_id(), "DefineZone", frozenset({P1}))
        assert given.policies_for("DefineZone") == {P1}
        assert given.policies_for("DefineSurface") == frozenset()

    def test_a_group_is_permitted_like_a_principal_and_only_its_members_are(self) -> None:
        for groups, allowed in ((frozenset({GROUP}), True), (frozenset({new_id()}), False), (frozenset[UUID](), False)):
            judged = judge(NOBODY, [policy(**CREW)], PRINCIPAL, "GetVisit", CONDUIT, SURFACE, group_ids=groups)
            assert judged.is_allowed is allowed
            permitted = permitted_commands(NOBODY, [policy(**CREW)], PRINCIPAL, CONDUIT, SURFACE, group_ids=groups)
            assert ("GetVisit" in permitted) is allowed

    def test_what_needs_an_approval_is_not_among_what_is_permitted(self) -> None:
        assert permitted_commands(NOBODY, [policy(**ASKING)], PRINCIPAL, CONDUIT, SURFACE) == frozenset()


@dataclass
class Seam:
    """A facility in policy mode: an administrator, and the verdicts recorded so far."""

    admin: CommandCaller
    store: MemoryStore

    async def grant(self, principal: UUID, *commands: str, surface_id: UUID = SYSTEM_HTTP, **changes: Any) -> UUID:
        values = {"name": "Crew", "conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
        return await self.admin.create(
            DefinePolicy(**{**values, **changes}, permitted_principal_ids=[principal], permitted_commands=commands)
        )

    async def verdict(self, principal: UUID, command: str = "DefineZone", surface: UUID = SYSTEM_HTTP) -> AuthzResult:
        return await self.admin.authorizer.authorize(Caller(principal, surface, new_id()), command)

    @property
    def verdicts(self) -> list[Any]:
        return self.store.entries[ConduitVerdict.relation]


@pytest.fixture
async def seam() -> Seam:
    store = MemoryStore()
    admin = CommandCaller(store, authorizer=PolicyAuthorizer(store, MemoryVerdictLog(store))).acting_as(NIL, NIL)
    await Seeds(store, admin.clock, new_id).plant(facility_code="site", bootstrap_principal_id=OPERATOR)
    return Seam(admin, store)


class TestPolicies:
    async def test_default_is_deny(self, seam: Seam) -> None:
        assert await seam.verdict(new_id()) == AuthzResult(DENY, "principal_not_permitted")
        assert await seam.verdict(new_id(), surface=SYSTEM_MCP_STREAMABLE_HTTP) == AuthzResult(DENY, "no_applicable_policy")

    async def test_a_new_policy_counts_from_the_next_call(self, seam: Seam) -> None:
        person = new_id()
        assert (await seam.verdict(person)).reason == "principal_not_permitted"
        first = await seam.grant(person, "GetVisit")
        assert (await seam.verdict(person)).reason == "command_not_permitted"
        second = await seam.grant(person, "DefineZone", "GetVisit")
        assert await seam.verdict(person) == AuthzResult(ALLOW, None, (second,))
        assert await seam.verdict(person, "GetVisit") == AuthzResult(ALLOW, None, tuple(sorted((first, second))))

    async def test_nothing_is_kept_of_surfaces_without_policies(self, seam: Seam) -> None:
        person, surface = new_id(), new_id()
        before = set(seam.admin.authorizer._policies)  # type: ignore[attr-defined]
        assert (await seam.verdict(person, surface=surface)).reason == "no_applicable_policy"
        assert set(seam.admin.authorizer._policies) == before  # type: ignore[attr-defined]

    async def test_a_revocation_counts_from_the_next_call(self, seam: Seam) -> None:
        person, other = new_id(), new_id()
        grant = await seam.grant(person, "DefineZone")
        await seam.grant(other, "DefineZone")
        assert (await seam.verdict(person)).is_allowed
        await seam.admin.do(RevokePolicyGrant(permitted_principal_id=person, reason="over"), on=grant)
        assert await seam.verdict(person) == AuthzResult(DENY, "principal_not_permitted")
        assert (await seam.verdict(other)).is_allowed

    async def test_what_another_process_wrote_counts_as_soon(self, seam: Seam) -> None:
        person = new_id()
        elsewhere = PolicyAuthorizer(seam.store, MemoryVerdictLog(seam.store))
        caller = Caller(person, SYSTEM_HTTP, new_id())
        assert not (await elsewhere.authorize(caller, "DefineZone")).is_allowed
        grant = await seam.grant(person, "DefineZone")
        assert (await elsewhere.authorize(caller, "DefineZone")).is_allowed
        await seam.admin.do(RevokePolicyGrant(permitted_principal_id=person, reason="over"), on=grant)
        assert not (await elsewhere.authorize(caller, "DefineZone")).is_allowed

    async def test_a_deactivated_actor_is_denied_whatever_its_policies_say(self, seam: Seam) -> None:
        person = await seam.admin.create(RegisterActor(name="Mira"))
        await seam.grant(person, "DefineZone")
        assert (await seam.verdict(person)).is_allowed
        await seam.admin.do(DeactivateActor(), on=person)
        assert await seam.verdict(person) == AuthzResult(DENY, "principal_deactivated")
        await seam.admin.do(ReactivateActor(), on=person)
        assert (await seam.verdict(person)).is_allowed

    async def test_a_policy_serves_its_own_surface_and_conduit_only(self, seam: Seam) -> None:
        person = new_id()
        await seam.grant(person, "DefineZone", surface_id=SYSTEM_MCP_STDIO)
        assert (await seam.verdict(person, surface=SYSTEM_MCP_STDIO)).is_allowed
        assert (await seam.verdict(person, surface=SYSTEM_HTTP)).reason == "principal_not_permitted"
        assert (await seam.verdict(person, surface=NIL)).reason == "principal_not_permitted"
        detour = Caller(person, SYSTEM_MCP_STDIO, new_id(), conduit_id=new_id())
        assert (await seam.admin.authorizer.authorize(detour, "DefineZone")).reason == "no_applicable_policy"

    async def test_the_command_path_asks_the_seam(self, seam: Seam) -> None:
        person = seam.admin.acting_as(new_id())
        with expect_refusal("UnauthorizedError", "principal_not_permitted"):
            await person.do(DefineZone(name="Hutch"))
        await seam.grant(person.caller.principal_id, "DefineZone")
        await person.do(DefineZone(name="Hutch"))

    async def test_driving_a_surface_is_asked_for_on_that_surface_too(self, seam: Seam) -> None:
        console = await seam.admin.create(DefineSurface(name="Endstation A", kind="HTTP"))
        visit = await seam.admin.create(planned_visit(console))
        await seam.admin.do(RecordVisitArrival(), on=visit)
        person = seam.admin.acting_as(new_id())
        await seam.grant(person.caller.principal_id, "TakeControlOfSurface")
        with expect_refusal("UnauthorizedError", "surface_not_permitted"):
            await person.do(TakeControlOfSurface(surface_id=console), on=visit)
        await seam.grant(person.caller.principal_id, "TakeControlOfSurface", surface_id=console)
        await person.do(TakeControlOfSurface(surface_id=console), on=visit)
        asked = [(row.surface_id, row.decision) for row in seam.verdicts if row.actor_id == person.caller.principal_id]
        assert asked == [(SYSTEM_HTTP, ALLOW), (console, DENY), (SYSTEM_HTTP, ALLOW), (console, ALLOW)]

    async def test_permitted_commands_are_the_union_over_policies(self, seam: Seam) -> None:
        person = await seam.admin.create(RegisterActor(name="Mira"))
        await seam.grant(person, "DefineZone", "GetZone")
        await seam.grant(person, "GetZone", "ListZones")
        await seam.grant(person, "GetVisit", surface_id=SYSTEM_MCP_STDIO)
        caller = Caller(person, SYSTEM_HTTP, new_id())
        assert await seam.admin.authorizer.permitted_commands(caller) == {"DefineZone", "GetZone", "ListZones"}
        assert not seam.verdicts
        await seam.admin.do(DeactivateActor(), on=person)
        assert await seam.admin.authorizer.permitted_commands(caller) == frozenset()


class TestTheServiceItself:
    async def test_it_may_do_everything_and_leaves_no_verdict(self, seam: Seam) -> None:
        system = Caller.system(new_id())
        for name in ("DefinePolicy", "RecordAgentDecision", "NoSuchCommand"):
            assert await seam.admin.authorizer.authorize(system, name) == AuthzResult(ALLOW)
        assert await seam.admin.authorizer.permitted_commands(system) == REGISTRY.command_names()
        assert not seam.verdicts

    @pytest.mark.parametrize(
        "caller",
        [
            Caller(NIL, SYSTEM_HTTP, new_id()),
            Caller(NIL, SYSTEM_MCP_STREAMABLE_HTTP, new_id()),
            Caller(NIL, NIL, new_id(), conduit_id=new_id()),
            Caller(OPERATOR, NIL, new_id()),
        ],
    )
    async def test_nothing_less_than_the_whole_combination_is_the_service(self, seam: Seam, caller: Caller) -> None:
        assert not (await seam.admin.authorizer.authorize(caller, "DefineZone")).is_allowed
        assert "DefineZone" not in await seam.admin.authorizer.permitted_commands(caller)

    async def test_it_is_not_itself_on_another_surface(self, seam: Seam) -> None:
        verdict = await seam.admin.authorizer.authorize(Caller.system(new_id()), "DefineZone", surface_id=SYSTEM_HTTP)
        assert verdict.reason == "principal_not_permitted"


class TestPermissiveMode:
    async def test_everybody_may_do_everything_and_nothing_is_recorded(self, seam: Seam) -> None:
        anybody = replace(seam.admin, authorizer=PermissiveAuthorizer()).acting_as(new_id())
        await anybody.do(DefineZone(name="Hutch"))
        assert await anybody.authorizer.authorize(anybody.caller, "DefinePolicy") == AuthzResult(ALLOW)
        assert await anybody.authorizer.permitted_commands(anybody.caller) == REGISTRY.command_names()
        assert not seam.verdicts


class TestVerdicts:
    async def test_each_answer_is_one_row_that_says_why(self, seam: Seam) -> None:
        person, cause = new_id(), new_id()
        caller = Caller(person, SYSTEM_HTTP, new_id(), causation_id=cause)
        await seam.admin.authorizer.authorize(caller, "DefineZone")
        grant = await seam.grant(person, "DefineZone")
        await seam.admin.authorizer.authorize(caller, "DefineZone")
        page = await seam.admin.ask(ListConduitVerdicts(actor_id=person), on=SYSTEM_CONDUIT)
        denied, allowed = page.items
        assert (denied.decision, denied.reason, set(denied.determining_policies)) == (DENY, "principal_not_permitted", set())
        assert (allowed.decision, allowed.reason, set(allowed.determining_policies)) == (ALLOW, None, {grant})
        for row in page.items:
            assert (row.actor_id, row.command_name, row.surface_id) == (person, "DefineZone", SYSTEM_HTTP)
            assert (row.correlation_id, row.causation_id) == (caller.correlation_id, cause)


class TestOnPostgres:
    @pytest.fixture
    async def admin(self, database_url: str) -> AsyncIterator[CommandCaller]:
        async with runtime_pool(database_url, 4) as pool:
            store = PostgresStore(pool)
            self.verdicts = PostgresVerdictLog(pool)
            admin = CommandCaller(store, authorizer=PolicyAuthorizer(store, self.verdicts)).acting_as(NIL, NIL)
            await Seeds(store, admin.clock, new_id).plant(facility_code="site", bootstrap_principal_id=OPERATOR)
            yield admin

    async def rows(self, database_url: str) -> list[Any]:
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            rows = await connection.execute(
                "SELECT conduit_id, logbook_id, actor_id, command_name, decision, reason, surface_id, determining_policies, "
                "correlation_id, causation_id FROM entries_conduit_verdicts ORDER BY event_id"
            )
            return await rows.fetchall()

    async def test_verdicts_have_every_column(self, admin: CommandCaller, database_url: str) -> None:
        person, cause = new_id(), new_id()
        caller = Caller(person, SYSTEM_HTTP, new_id(), causation_id=cause)
        await admin.authorizer.authorize(caller, "DefineZone")
        grants = [
            await admin.create(
                DefinePolicy(
                    name=name,
                    conduit_id=SYSTEM_CONDUIT,
                    surface_id=SYSTEM_HTTP,
                    permitted_principal_ids=[person],
                    permitted_commands=["DefineZone"],
                )
            )
            for name in ("Day", "Night")
        ]
        await admin.authorizer.authorize(caller, "DefineZone")
        await self.verdicts.flush()
        async with admin.store.session() as session:
            opened = (await session.load("Conduit", [SYSTEM_CONDUIT]))[1]
        logbook = UUID(opened.payload.split('"logbook_id":"')[1][:36])
        asked = (SYSTEM_CONDUIT, logbook, person, "DefineZone")
        sent = (caller.correlation_id, cause)
        assert await self.rows(database_url) == [
            (*asked, "Deny", "principal_not_permitted", SYSTEM_HTTP, [], *sent),
            (*asked, "Allow", None, SYSTEM_HTTP, sorted(grants), *sent),
        ]

    async def test_verdicts_are_listed_by_their_conduit(self, admin: CommandCaller, database_url: str) -> None:
        caller = Caller(new_id(), SYSTEM_HTTP, new_id())
        before = datetime.now(UTC)
        for name in ("DefineZone", "DefineSurface", "DefineZone"):
            await admin.authorizer.authorize(caller, name)
        await self.verdicts.flush()
        page = await admin.ask(ListConduitVerdicts(command_name="DefineZone", decision="Deny"), on=SYSTEM_CONDUIT)
        assert [row.command_name for row in page.items] == ["DefineZone", "DefineZone"]
        assert all(before - timedelta(seconds=1) < row.occurred_at <= row.recorded_at for row in page.items)
        with expect_refusal("ConduitNotFoundError"):
            await admin.ask(ListConduitVerdicts(), on=new_id())

    async def test_the_service_itself_and_questions_about_oneself_leave_none(
        self, admin: CommandCaller, database_url: str
    ) -> None:
        await admin.do(DefineZone(name="Hutch"))
        await admin.authorizer.permitted_commands(Caller(OPERATOR, SYSTEM_HTTP, new_id()))
        await self.verdicts.flush()
        assert await self.rows(database_url) == []

    async def test_a_verdict_log_that_cannot_write_changes_no_decision(
        self, admin: CommandCaller, database_url: str
    ) -> None:
        closed = runtime_pool(database_url, 1)
        await closed.open()
        await closed.close()
        verdicts = PostgresVerdictLog(closed)
        authorizer = PolicyAuthorizer(admin.store, verdicts)
        verdict = await authorizer.authorize(Caller(OPERATOR, SYSTEM_HTTP, new_id()), "DefinePolicy")
        await verdicts.flush()
        assert verdict.is_allowed

    async def test_an_unreadable_store_fails_the_call_and_never_allows(self, admin: CommandCaller) -> None:
        unreachable = runtime_pool("postgresql://127.0.0.1:1/nowhere", 1)
        unreachable.timeout = 0.1
        await unreachable.open()
        try:
            authorizer = PolicyAuthorizer(PostgresStore(unreachable), self.verdicts)
            with pytest.raises(StoreUnavailableError):
                await authorizer.authorize(Caller(OPERATOR, SYSTEM_HTTP, new_id()), "DefinePolicy")
        finally:
            await unreachable.close()


class TestStandings:
    """Whether a principal may act at all, with the versions of the streams that say so."""

    async def standing_of(self, seam: Seam, principal_id: UUID, authorizer: Authorizer | None = None) -> JudgedPrincipal:
        return await (authorizer or seam.admin.authorizer).read_principal_status(Caller(principal_id, SYSTEM_HTTP, new_id()))

    async def test_somebody_on_record_has_nothing_said_against_them(self, seam: Seam) -> None:
        person = await seam.admin.create(RegisterActor(name="Mira Okafor"))
        assert await self.standing_of(seam, person) == JudgedPrincipal(person, None, 1)
        await seam.admin.do(DeactivateActor(), on=person)
        assert await self.standing_of(seam, person) == JudgedPrincipal(person, "principal_deactivated", 2)

    async def test_a_stranger_may_act_only_where_no_policy_is_asked(self, seam: Seam) -> None:
        stranger, permissive = new_id(), PermissiveAuthorizer(PrincipalStatuses(seam.store))
        assert await self.standing_of(seam, stranger) == JudgedPrincipal(stranger, "principal_unknown", 0)
        assert await self.standing_of(seam, stranger, permissive) == JudgedPrincipal(stranger, None, 0)

    async def test_an_agent_is_read_on_both_its_streams_in_both_modes(self, seam: Seam) -> None:
        model = {"provider": "deterministic", "model": "parabola:v1"}
        agent = await seam.admin.create(DefineAgent(kind="Alignment", name="Finder", version="1", model_ref=model))
        permissive = PermissiveAuthorizer(PrincipalStatuses(seam.store))
        for authorizer in (seam.admin.authorizer, permissive):
            assert await self.standing_of(seam, agent, authorizer) == JudgedPrincipal(agent, "agent_not_versioned", 1, 1)
        await seam.admin.do(VersionAgent(), on=agent)
        for authorizer in (seam.admin.authorizer, permissive):
            assert await self.standing_of(seam, agent, authorizer) == JudgedPrincipal(agent, None, 1, 2)

    async def test_the_service_itself_always_may(self, seam: Seam) -> None:
        caller = Caller.system(new_id())
        assert await seam.admin.authorizer.read_principal_status(caller) == JudgedPrincipal(NIL)
