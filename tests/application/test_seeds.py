"""What every deployment starts with: written once, by the first process that boots, and never again."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from baton.application.authorization import PolicyAuthorizer
from baton.application.ports import Bookmark, EventRow, Store
from baton.application.seeds import BOOTSTRAP_COMMANDS, Seeds
from baton.domain.access.actor import ActorProfile, ForgetActor, RegisterActor, monitor_id
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.equipment.seeded_roles import SEEDED_ROLES
from baton.domain.facility.facility import RegisterFacility
from baton.domain.kernel import NIL, SYSTEM_CONDUIT, Command
from baton.domain.safety.clearance_template import (
    ActivateClearanceTemplate,
    DefineClearanceTemplate,
    DeprecateClearanceTemplate,
    WithdrawClearanceTemplate,
)
from baton.domain.trust.policy import DefinePolicy, RevokePolicyGrant
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.zone import DefineZone
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.testing.store import MemoryStore, MemoryVerdictLog
from tests.support.application.command_paths import SECOND, CommandCaller, HandSetClock
from tests.support.domain.world import OPERATOR, expect_refusal, new_id


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> HandSetClock:
    return HandSetClock()


async def boot(store: Store, clock: HandSetClock, principal: UUID | None = None, **seeds: Any) -> None:
    clock.now += SECOND
    await Seeds(store, clock, new_id).plant(facility_code="site-7", bootstrap_principal_id=principal, **seeds)


def states(store: MemoryStore, stream_type: str) -> dict[UUID, Any]:
    return {id: store.state((name, id)) for name, id in store.streams if name == stream_type}


def policies_of(store: MemoryStore, principal: UUID) -> list[Any]:
    return [policy for policy in states(store, "Policy").values() if principal in policy.permitted_principal_ids]


def contents(store: MemoryStore) -> Any:
    streams = {key: tuple(rows) for key, rows in store.streams.items()}
    return streams, dict(store.claims), set(store.look_ups), dict(store.rows)


class TestWhatIsSeeded:
    async def test_the_system_surfaces_zone_and_conduit(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock)
        surfaces = {id.int: (surface.name, surface.kind) for id, surface in states(store, "Surface").items()}
        assert surfaces == {
            0x20: ("System HTTP", "HTTP"),
            0x21: ("System MCP stdio", "MCP_STDIO"),
            0x22: ("System MCP streamable HTTP", "MCP_STREAMABLE_HTTP"),
        }
        assert {id.int: zone.name for id, zone in states(store, "Zone").items()} == {0x30: "System zone"}
        ((id, conduit),) = states(store, "Conduit").items()
        assert (id, conduit.name) == (UUID(int=0x10), "System conduit")
        assert conduit.source_zone_id == conduit.target_zone_id == UUID(int=0x30)
        assert conduit.verdict_logbook_id is not None

    async def test_the_own_facility_and_the_roles(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock)
        assert [(facility.code, facility.kind) for facility in states(store, "Facility").values()] == [("site-7", "Site")]
        assert {role.name for role in states(store, "Role").values()} == {role.name for role in SEEDED_ROLES}

    @pytest.mark.parametrize(
        ("monitor", "commands"),
        [
            ("SupplyMonitor", {"ObserveSupplyStatus", "RegisterSupply", "GetSupply", "ListSupplies"}),
            ("EnclosureMonitor", {"ObserveEnclosureStatus", "RegisterEnclosure", "GetEnclosure", "ListEnclosures"}),
        ],
    )
    async def test_each_monitor_and_its_policy(
        self, store: MemoryStore, clock: HandSetClock, monitor: str, commands: set[str]
    ) -> None:
        await boot(store, clock)
        actor = states(store, "Actor")[monitor_id(monitor)]
        assert (actor.kind, actor.active) == ("service_account", True)
        (policy,) = policies_of(store, actor.id)
        assert (policy.conduit_id, policy.surface_id) == (SYSTEM_CONDUIT, NIL)
        assert (policy.permitted_principal_ids, policy.permitted_commands) == ({actor.id}, commands)

    async def test_the_envelope_names_the_service_itself(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, OPERATOR)
        rows = await store.follow(Bookmark(0, 0), 1000)
        assert {(row.principal_id, row.command_name) for row in rows} == {(NIL, "SystemBootstrap")}

    async def test_facility_before_actors_before_policies_before_templates(
        self, store: MemoryStore, clock: HandSetClock
    ) -> None:
        await boot(store, clock, OPERATOR)
        turns = ["Facility", "Actor", "Policy", "ClearanceTemplate"]
        order = [row.stream_type for row in await store.follow(Bookmark(0, 0), 1000) if row.stream_type in turns]
        assert order == sorted(order, key=turns.index)
        assert set(order) == set(turns)

    async def test_nobody_administers_unless_a_bootstrap_principal_is_named(
        self, store: MemoryStore, clock: HandSetClock
    ) -> None:
        await boot(store, clock)
        assert {actor.kind for actor in states(store, "Actor").values()} == {"service_account", "agent"}
        assert all(policy.surface_id == NIL for policy in states(store, "Policy").values())


class TestEachOnce:
    async def test_a_second_boot_writes_nothing(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, OPERATOR)
        before = contents(store)
        await boot(store, clock, OPERATOR)
        assert contents(store) == before

    @pytest.mark.parametrize("appends", range(1, 12))
    async def test_a_boot_that_was_interrupted_is_completed_by_the_next(self, clock: HandSetClock, appends: int) -> None:
        written: list[None] = []

        def interrupt() -> None:
            written.append(None)
            if len(written) == appends:
                raise InterruptedError

        store, whole = MemoryStore(interrupt), MemoryStore()
        with pytest.raises(InterruptedError):
            await boot(store, clock, OPERATOR)
        await boot(store, clock, OPERATOR)
        await boot(whole, clock, OPERATOR)
        assert kinds(await store.follow(Bookmark(0, 0), 1000)) == kinds(await whole.follow(Bookmark(0, 0), 1000))
        assert store.claims.keys() == whole.claims.keys()

    async def test_a_forgotten_profile_is_not_seeded_again(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, OPERATOR)
        await CommandCaller(store, clock=clock).do(ForgetActor(), on=OPERATOR)
        await boot(store, clock, OPERATOR)
        async with store.session() as session:
            assert await session.records(ActorProfile, {"actor_id": OPERATOR}) == ()

    async def test_many_processes_may_boot_at_once(self, database_url: str, clock: HandSetClock) -> None:
        alone = MemoryStore()
        await boot(alone, clock, OPERATOR)
        async with runtime_pool(database_url, 8) as pool:
            store = PostgresStore(pool)
            await asyncio.gather(*(boot(store, HandSetClock(), OPERATOR) for _ in range(6)))
            rows = await store.follow(Bookmark(0, 0), 1000)
            await boot(store, clock, OPERATOR)
            assert await store.follow(Bookmark(0, 0), 1000) == rows
        assert kinds(rows) == kinds(await alone.follow(Bookmark(0, 0), 1000))


class TestBootstrap:
    async def test_the_named_principal_may_define_policies_register_actors_and_revoke(
        self, store: MemoryStore, clock: HandSetClock
    ) -> None:
        await boot(store, clock, OPERATOR)
        actor = states(store, "Actor")[OPERATOR]
        assert (actor.kind, actor.active) == ("human", True)
        (policy,) = policies_of(store, OPERATOR)
        assert (policy.conduit_id, policy.surface_id) == (SYSTEM_CONDUIT, SYSTEM_HTTP)
        assert (policy.permitted_principal_ids, policy.permitted_commands) == ({OPERATOR}, BOOTSTRAP_COMMANDS)
        async with store.session() as session:
            (profile,) = await session.records(ActorProfile, {"actor_id": OPERATOR})
        assert profile.name == "Bootstrap administrator"  # type: ignore[attr-defined]

    async def test_it_opens_a_deployment_in_policy_mode(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, OPERATOR)
        admin = CommandCaller(store, authorizer=PolicyAuthorizer(store, MemoryVerdictLog(store)), clock=clock)
        with expect_refusal("UnauthorizedError", "command_not_permitted"):
            await admin.do(DefineZone(name="Hutch"))
        person = await admin.create(RegisterActor(name="Mira"))
        grant = DefinePolicy(
            name="Everything",
            conduit_id=SYSTEM_CONDUIT,
            surface_id=SYSTEM_HTTP,
            permitted_principal_ids=[person],
            permitted_commands=[],
            permitted_command_sets=["all"],
        )
        await admin.do(grant)
        await admin.acting_as(person).do(DefineZone(name="Hutch"))

    async def test_a_withdrawn_grant_does_not_come_back(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, OPERATOR)
        (policy,) = policies_of(store, OPERATOR)
        withdraw = RevokePolicyGrant(permitted_principal_id=OPERATOR, reason="handed over")
        await CommandCaller(store, clock=clock).do(withdraw, on=policy.id)
        before = contents(store)
        await boot(store, clock, OPERATOR)
        assert contents(store) == before
        assert policies_of(store, OPERATOR) == []

    async def test_each_principal_ever_named_has_its_own_policy(self, store: MemoryStore, clock: HandSetClock) -> None:
        first, second = new_id(), new_id()
        for principal in (None, first, None, second, first):
            await boot(store, clock, principal)
        own = [policies_of(store, principal) for principal in (first, second)]
        assert [len(policies) for policies in own] == [1, 1]
        assert own[0][0].id != own[1][0].id

    async def test_an_actor_that_exists_already_keeps_its_name_and_gets_the_policy(
        self, store: MemoryStore, clock: HandSetClock
    ) -> None:
        person = await CommandCaller(store, clock=clock).create(RegisterActor(name="Mira"))
        for _ in range(2):
            await boot(store, clock, person)
        assert len(store.streams["Actor", person]) == 1
        assert len(policies_of(store, person)) == 1
        async with store.session() as session:
            (profile,) = await session.records(ActorProfile, {"actor_id": person})
        assert profile.name == "Mira"  # type: ignore[attr-defined]

    async def test_an_actor_with_the_id_of_an_agent_gets_nothing_of_it_and_is_named(
        self, store: MemoryStore, clock: HandSetClock
    ) -> None:
        debriefer, drafter = SEEDED["RunDebriefer"], SEEDED["CautionDrafter"]
        for _ in range(2):
            await boot(store, clock, debriefer.id)
        assert [policy.surface_id for policy in policies_of(store, debriefer.id)] == [SYSTEM_HTTP]
        assert [policy.surface_id for policy in policies_of(store, drafter.id)] == [NIL]
        (objection,) = await Seeds(store, clock, new_id).objections(bootstrap_principal_id=debriefer.id)
        assert f"The id {debriefer.id} of the agent RunDebriefer is held by an actor of kind human;" in objection


class TestTemplates:
    FORMS = ("ESAF", "SAF", "AForm", "DUO", "ESRA", "ERA", "PLHD", "DOOR", "BTR", "Form9")

    async def test_the_own_site_has_the_common_safety_forms_ready_for_use(
        self, store: MemoryStore, clock: HandSetClock
    ) -> None:
        await boot(store, clock)
        templates = states(store, "ClearanceTemplate").values()
        assert {template.code for template in templates} == set(self.FORMS)
        assert {(template.facility_code, template.status, template.version) for template in templates} == {
            ("site-7", "Active", 1)
        }
        assert {template.defined_by for template in templates} == {NIL}

    async def test_they_are_written_in_one_append(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock)
        rows = [row for row in await store.follow(Bookmark(0, 0), 1000) if row.stream_type == "ClearanceTemplate"]
        assert (len(rows), len({row.transaction_id for row in rows})) == (20, 1)

    async def test_the_list_is_configured(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, template_codes=["House form", "ESAF", "ESAF"])
        await boot(store, clock, template_codes=[])
        assert {template.code for template in states(store, "ClearanceTemplate").values()} == {"House form", "ESAF"}

    async def test_a_form_of_a_longer_list_is_added_by_the_next_boot(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, template_codes=["ESAF"])
        await boot(store, clock, template_codes=["ESAF", "SAF"])
        codes = [template.code for template in states(store, "ClearanceTemplate").values()]
        assert codes == ["ESAF", "SAF"]

    @pytest.mark.parametrize(
        "verbs", [[], [ActivateClearanceTemplate()], [ActivateClearanceTemplate(), DeprecateClearanceTemplate()]]
    )
    async def test_a_code_that_somebody_uses_is_left_alone(
        self, store: MemoryStore, clock: HandSetClock, verbs: list[Command]
    ) -> None:
        await boot(store, clock, template_codes=[])
        staff = CommandCaller(store, clock=clock)
        own = await staff.create(DefineClearanceTemplate(code="ESAF", title="Our own", facility_code="site-7"))
        for verb in verbs:
            await staff.do(verb, on=own)
        before = store.state(("ClearanceTemplate", own))
        await boot(store, clock)
        templates = states(store, "ClearanceTemplate")
        assert [id for id, template in templates.items() if template.code == "ESAF"] == [own]
        assert templates[own] == before

    async def test_a_withdrawn_form_comes_back_while_it_is_listed(self, store: MemoryStore, clock: HandSetClock) -> None:
        await boot(store, clock, template_codes=["ESAF"])
        (withdrawn,) = states(store, "ClearanceTemplate")
        await CommandCaller(store, clock=clock).do(WithdrawClearanceTemplate(), on=withdrawn)
        await boot(store, clock, template_codes=[])
        assert len(states(store, "ClearanceTemplate")) == 1
        await boot(store, clock, template_codes=["ESAF"])
        templates = [(template.code, template.status) for template in states(store, "ClearanceTemplate").values()]
        assert templates == [("ESAF", "Withdrawn"), ("ESAF", "Active")]

    async def test_an_area_has_no_forms_of_its_own(self, store: MemoryStore, clock: HandSetClock) -> None:
        staff = CommandCaller(store, clock=clock)
        site = await staff.create(RegisterFacility(code="lumen", display_name="Lumen", kind="Site"))
        await staff.create(RegisterFacility(code="site-7", display_name="Hall 7", kind="Area", parent_id=site))
        await boot(store, clock)
        assert states(store, "ClearanceTemplate") == {}


def kinds(rows: Any) -> list[tuple[str, str]]:
    """How many of what was written, whatever the ids."""
    return sorted(map(_kind, rows))


def _kind(row: EventRow) -> tuple[str, str]:
    return row.event_type, "" if row.stream_type in ("Facility", "Role", "Policy", "ClearanceTemplate") else str(
        row.stream_id
    )
