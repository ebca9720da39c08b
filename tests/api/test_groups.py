"""Groups: who belongs to one by a list or by the token of a call, what policies permit them, and how long that counts."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.api.example_reads import cause, history
from tests.support.api.group_service import GroupService, Person, denial, open_group_service
from tests.support.api.mcp_clients import MCP, agent, refusal, tool_result
from tests.support.api.sample_parts.proposals import approve
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.databases import fresh_database
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE
from tests.support.workflows.step_json import setpoint

CONDUCTING = [
    "RegisterProcedure",
    "ConductProcedure",
    "CompleteProcedure",
    "HoldProcedure",
    "AbortProcedure",
    "GetProcedure",
]
READING = ["GetWork", "GetProposal"]


@pytest.fixture(scope="module")
def other_issuer() -> Iterator[Issuer]:
    with Issuer.running_server() as issuer:
        yield issuer


@pytest.fixture(scope="module")
async def service(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, issuer: Issuer, other_issuer: Issuer
) -> AsyncIterator[GroupService]:
    with fresh_database(postgres, template) as url:
        async with open_group_service(url, temporal.address, issuer, other_issuer) as service:
            yield service


async def define_zone(api: Api) -> Any:
    return await api.post("/zones", {"name": f"Zone {uuid4()}"})


async def me(api: Api) -> dict[str, Any]:
    return dict((await api.get("/me")).json())


class TestListedMembers:
    async def test_a_listed_member_may_what_the_group_may_until_it_is_taken_off(self, service: GroupService) -> None:
        mira = await service.register()
        group_id = await service.define_group()
        await service.permit([group_id], "DefineZone")
        api = service.as_person(mira)
        assert denial(await define_zone(api)) == "principal_not_permitted"
        await service.boss.execute(f"/groups/{group_id}/add-member", {"actor_id": mira.id})
        assert (await define_zone(api)).status_code == 201
        await service.boss.execute(f"/groups/{group_id}/remove-member", {"actor_id": mira.id})
        assert denial(await define_zone(api)) == "principal_not_permitted"

    async def test_a_group_that_is_retired_permits_nobody_anything(self, service: GroupService) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        group_id = await service.define_group("groups", "bl7", mira)
        await service.permit([group_id], "DefineZone")
        listed, told = service.as_person(mira), service.as_person(jun, groups=["bl7"])
        assert [(await define_zone(api)).status_code for api in (listed, told)] == [201, 201]
        await service.boss.execute(f"/groups/{group_id}/retire", {"reason": "dissolved"})
        assert [denial(await define_zone(api)) for api in (listed, told)] == ["principal_not_permitted"] * 2
        assert (await me(told))["groups"] == []
        again = await service.boss.post(f"/groups/{group_id}/add-member", {"actor_id": jun.id})
        assert cause(again) == (409, "GroupCannotAddMemberError", "retired")

    async def test_a_policy_counts_on_its_own_surface(self, service: GroupService) -> None:
        mira = await service.register()
        group_id = await service.define_group("groups", "bl7", mira)
        await service.permit([group_id], "DefineZone", surface_id=MCP)
        api = service.as_person(mira)
        assert denial(await define_zone(api)) in ("principal_not_permitted", "command_not_permitted")
        async with agent(api) as client:
            assert "zone_id" in await tool_result(client, "define_zone", name="By agent")
        await service.permit([group_id], "DefineZone")
        assert (await define_zone(api)).status_code == 201

    async def test_over_mcp_a_claim_counts_for_each_call_too(self, service: GroupService) -> None:
        mira = await service.register()
        await service.permit([await service.define_group("groups", "agents")], "DefineZone", surface_id=MCP)
        async with agent(service.as_person(mira, groups=["agents"])) as client:
            assert "zone_id" in await tool_result(client, "define_zone", name="By agent")
        async with agent(service.as_person(mira)) as client:
            assert (await refusal(client, "define_zone", name="By agent"))["code"] == "UnauthorizedError"


class TestClaims:
    async def test_who_comes_without_the_claim_is_no_member_any_more(self, service: GroupService) -> None:
        mira = await service.register()
        await service.permit([await service.define_group("groups", "night")], "DefineZone")
        member, no_member = service.as_person(mira, groups=["day", "night"]), service.as_person(mira, groups=["day"])
        for _ in range(2):
            assert (await define_zone(member)).status_code == 201
            assert denial(await define_zone(no_member)) == "principal_not_permitted"

    @pytest.mark.parametrize(
        ("path", "said"),
        [
            ("role", {"role": "operator"}),
            ("role", {"role": ["visitor", "operator"]}),
            ("realm_access.roles", {"realm_access": {"roles": ["operator"]}}),
            ("realm_access.roles", {"realm_access.roles": "operator"}),
            ("https://example.org/roles", {"https://example.org/roles": ["operator"]}),
            ("https://example.org/claims.role", {"https://example.org/claims": {"role": "operator"}}),
        ],
    )
    async def test_a_claim_is_found_at_its_path(self, service: GroupService, path: str, said: dict[str, Any]) -> None:
        mira = await service.register()
        group_id = await service.define_group(path, "operator")
        shown = (await me(service.as_person(mira, **said)))["groups"]
        assert {"group_id": group_id, "listed": False} in [
            {name: group[name] for name in ("group_id", "listed")} for group in shown
        ]
        await service.boss.execute(f"/groups/{group_id}/retire")

    async def test_what_another_issuer_says_makes_nobody_a_member(self, service: GroupService) -> None:
        mira = await service.register()
        await service.permit([await service.define_group("groups", "issued")], "DefineZone")
        assert (await define_zone(service.as_person(mira, groups=["issued"]))).status_code == 201
        assert (
            denial(await define_zone(service.as_person(mira, service.other, groups=["issued"]))) == "principal_not_permitted"
        )

    async def test_a_group_of_an_issuer_that_is_not_trusted_is_refused(self, service: GroupService) -> None:
        claim = {"issuer": "https://elsewhere.example.org", "path": "groups", "value": "x"}
        refused = await service.boss.post("/groups", {"name": "Elsewhere", "claim": claim})
        assert cause(refused) == (400, "InvalidGroupClaimError", "unknown_issuer")

    async def test_what_an_issuer_answers_about_a_token_counts_like_what_is_in_one(self, database_url: str) -> None:
        boss = str(uuid4())
        enforced: dict[str, Any] = {"authorization_mode": "policy", "bootstrap_principal_id": boss}
        with Issuer.running_server() as issuer:
            asked = issuer.asked_provider(subject_bindings=[{"subject": "boss", "actor_id": boss}])
            async with running_api(database_url, identity_providers=[asked], **enforced) as api:

                def come(subject: str, **answer: Any) -> Api:
                    return api.with_token(issuer.opaque_token(subject, **answer))

                place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
                grant = {"permitted_principal_ids": [boss], "permitted_commands": ["DefineGroup"]}
                await come("boss").create("/policies", {"name": "Groups", **place, **grant})
                claim = {"issuer": issuer.url, "path": "roles", "value": "operator"}
                group_id = await come("boss").create("/groups", {"name": "Operators", "claim": claim})
                for answer in ({"roles": ["operator"]}, {"roles": ["visitor"]}, {}):
                    groups = [group["group_id"] for group in (await me(come("boss", **answer)))["groups"]]
                    assert groups == ([group_id] if "operator" in answer.get("roles", ()) else [])

    async def test_nothing_that_a_token_says_is_kept(self, service: GroupService) -> None:
        mira, secret = await service.register(), f"{uuid4()}@example.org"
        group_id = await service.define_group("groups", "kept")
        approver = await service.define_group()
        await service.permit([group_id], *CONDUCTING, *READING)
        await service.permit([group_id], "DefineZone", approval={"groups": [approver]})
        api = service.as_person(mira, groups=["kept", "unrelated-group"], email=secret, name="Mira Secret")
        procedure_id = await api.create("/procedures", {"name": "Align", "kind": "alignment"})
        await api.execute(f"/procedures/{procedure_id}/conduct", {"steps": [setpoint("a", 1)], "wait": 30})
        proposed = await api.post("/zones", {"name": "Kept"}, Idempotency_Key=str(uuid4()))
        assert proposed.status_code == 202, proposed.text
        for text in (secret, "Mira Secret", "unrelated-group"):
            assert await service.tables_with(text) == set()
        events = await history(service.boss, f"/proposals/{proposed.json()['proposal_id']}")
        assert group_id not in str(events), "which groups a token told is in no event"


class TestPolicies:
    async def test_a_policy_is_extended_by_principals_groups_commands_and_sets(self, service: GroupService) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        policy_id = await service.permit([], "DefineZone")
        path, place = f"/policies/{policy_id}/extend", (service.as_person(mira), service.as_person(jun, groups=["extended"]))
        assert [denial(await define_zone(api)) for api in place] == ["principal_not_permitted"] * 2
        await service.boss.execute(path, {"permitted_principal_ids": [mira.id]})
        group_id = await service.define_group("groups", "extended")
        await service.boss.execute(path, {"permitted_group_ids": [group_id]})
        assert [(await define_zone(api)).status_code for api in place] == [201, 201]
        await service.boss.execute(path, {"permitted_commands": ["GetZone"], "permitted_command_sets": ["run.queries"]})
        held = set((await me(place[1]))["permitted_commands"])
        assert {"DefineZone", "GetZone", "GetRun", "ListRuns"} <= held
        view = (await service.boss.get(f"/policies/{policy_id}")).json()
        assert (view["permitted_principal_ids"], view["permitted_group_ids"]) == ([mira.id], [group_id])
        assert view["permitted_command_sets"] == ["run.queries"]
        before = len(await history(service.boss, f"/policies/{policy_id}"))
        await service.boss.execute(path, {"permitted_principal_ids": [mira.id], "permitted_commands": ["GetZone"]})
        assert len(await history(service.boss, f"/policies/{policy_id}")) == before, "what it has already changes nothing"

    async def test_each_grant_is_revoked_by_itself(self, service: GroupService) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        group_id = await service.define_group(None, "", jun)
        grants = {"permitted_principal_ids": [mira.id], "permitted_command_sets": ["run.queries"]}
        policy_id = await service.permit([group_id], "DefineZone", "GetZone", **grants)
        listed, member = service.as_person(mira), service.as_person(jun)

        async def revoke(**grant: str) -> None:
            await service.boss.execute(f"/policies/{policy_id}/revoke-grant", {**grant, "reason": "over"})

        await revoke(permitted_command="DefineZone")
        assert [denial(await define_zone(api)) for api in (listed, member)] == ["command_not_permitted"] * 2
        await revoke(permitted_command_set="run.queries")
        assert (await me(member))["permitted_commands"] == ["GetZone"]
        await revoke(permitted_group_id=group_id)
        assert ((await me(member))["policies"], len((await me(listed))["policies"])) == ([], 1)
        await revoke(permitted_principal_id=mira.id)
        assert denial(await define_zone(listed)) == "principal_not_permitted"
        await revoke(permitted_principal_id=mira.id)
        events = [one["event_type"] for one in await history(service.boss, f"/policies/{policy_id}")]
        assert events == ["PolicyDefined", *["PolicyGrantRevoked"] * 4], "what it has not is revoked without an event"

    async def test_a_grant_is_named_exactly_once(self, service: GroupService) -> None:
        policy_id = await service.permit([], "DefineZone")
        for grant in ({}, {"permitted_command": "DefineZone", "permitted_principal_id": str(uuid4())}):
            refused = await service.boss.post(f"/policies/{policy_id}/revoke-grant", {**grant, "reason": "x"})
            assert cause(refused)[:2] == (422, "RequestValidationError")
        assert cause(await service.boss.post(f"/policies/{policy_id}/extend", {}))[:2] == (422, "RequestValidationError")

    async def test_only_groups_and_names_that_exist_are_permitted(self, service: GroupService) -> None:
        policy_id = await service.permit([], "DefineZone")
        path = f"/policies/{policy_id}/extend"
        unknown = await service.boss.post(path, {"permitted_group_ids": [str(uuid4())]})
        assert cause(unknown)[:2] == (404, "GroupNotFoundError")
        misspelt = await service.boss.post(path, {"permitted_commands": ["DefineZones"]})
        assert cause(misspelt) == (400, "InvalidPolicyCommandError", "unknown_command")

    async def test_the_nil_surface_is_for_no_group(self, service: GroupService) -> None:
        group_id = await service.define_group()
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": str(UUID(int=0))}
        grant = {"permitted_principal_ids": [], "permitted_group_ids": [group_id], "permitted_commands": ["GetZone"]}
        refused = await service.boss.post("/policies", {"name": "In process", **place, **grant})
        assert cause(refused) == (400, "InvalidPolicySurfaceError", "not_in_process")

    async def test_approvals_by_nobody_and_of_queries_are_refused(self, service: GroupService) -> None:
        place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": []}
        for commands, approval, reason in (
            (["DefineZone"], {}, "nobody"),
            (["GetZone"], {"principals": [str(uuid4())]}, "not_approvable"),
            (["ApproveProposal"], {"principals": [str(uuid4())]}, "not_approvable"),
        ):
            asked = {"name": "Odd", **place, "permitted_commands": commands, "approval": approval}
            assert cause(await service.boss.post("/policies", asked)) == (400, "InvalidPolicyApprovalError", reason)
        missing = {"name": "Odd", **place, "permitted_commands": ["DefineZone"], "approval": {"groups": [str(uuid4())]}}
        assert cause(await service.boss.post("/policies", missing))[:2] == (404, "GroupNotFoundError")
        policy_id = await service.permit([], "DefineZone", approval={"principals": [str(uuid4())]})
        widened = await service.boss.post(f"/policies/{policy_id}/extend", {"permitted_commands": ["GetZone"]})
        assert cause(widened) == (400, "InvalidPolicyApprovalError", "not_approvable")


class TestWhatIsSaid:
    async def test_who_asks_learns_groups_policies_and_what_takes_an_approval(self, service: GroupService) -> None:
        mira = await service.register()
        listed = await service.define_group(None, "", mira)
        told = await service.define_group("groups", "said")
        own = await service.permit([told], "GetZone", permitted_principal_ids=[mira.id])
        asking = {"permitted_command_sets": ["trust.queries"], "approval": {"groups": [listed]}}
        through = await service.permit([listed, told], "DefineZone", **asking)
        known = await me(service.as_person(mira, groups=["said"]))
        assert known["permitted_commands"] == ["GetZone"]
        assert known["commands_with_approval"] == ["DefineZone"], "a query is not permitted with approval"
        assert {(group["group_id"], group["listed"]) for group in known["groups"]} == {(listed, True), (told, False)}
        policies = {one["policy_id"]: one for one in known["policies"]}
        assert policies.keys() == {own, through}
        assert (policies[own]["through_group_ids"], policies[own]["with_approval"]) == ([told], False)
        assert policies[through]["through_group_ids"] == sorted([listed, told])
        assert (policies[through]["commands"], policies[through]["with_approval"]) == (["DefineZone"], True)
        without = await me(service.as_person(mira))
        assert [group["group_id"] for group in without["groups"]] == [listed]
        over_mcp = service.as_person(mira, groups=["said"])
        async with agent(over_mcp) as client:
            shown = await tool_result(client, "get_my_access")
        assert (shown["permitted_commands"], shown["policies"], len(shown["groups"])) == ([], [], 2)

    async def test_what_a_policy_would_say_counts_listed_members(self, service: GroupService) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        group_id = await service.define_group("groups", "evaluated", mira)
        outright = await service.permit([group_id], "DefineZone")
        asking = await service.permit([group_id], "DefineZone", approval={"principals": [jun.id]})

        async def evaluate(policy_id: str, person: Person) -> tuple[str, str | None]:
            place = {"evaluated_conduit_id": SYSTEM_CONDUIT, "evaluated_surface_id": SYSTEM_HTTP}
            asked = {"evaluated_principal_id": person.id, "evaluated_command_name": "DefineZone", **place}
            found = (await service.boss.get(f"/policies/{policy_id}/evaluate", **asked)).json()
            return found["decision"], found["reason"]

        assert await evaluate(outright, mira) == ("Allow", None)
        assert await evaluate(outright, jun) == ("Deny", "principal_not_permitted")
        assert await evaluate(asking, mira) == ("Deny", "approval_required")

        async def permissions(policy_id: str, person: Person) -> list[str]:
            place = {"evaluated_conduit_id": SYSTEM_CONDUIT, "evaluated_surface_id": SYSTEM_HTTP}
            found = await service.boss.get(f"/policies/{policy_id}/permissions", evaluated_principal_id=person.id, **place)
            return list(found.json()["permitted_commands"])

        assert await permissions(outright, mira) == ["DefineZone"]
        assert await permissions(outright, jun) == []
        assert await permissions(asking, mira) == [], "what takes an approval is not permitted"


class TestWhoMakesMembers:
    async def test_a_clerk_binds_nobody_who_may_more_through_a_group(self, service: GroupService) -> None:
        clerk, mira = await service.register("Clerk"), await service.register()
        crew = await service.define_group(None, "", mira)
        await service.permit([crew], "DefineZone")
        clerks = await service.define_group("groups", "clerks")
        policy_id = await service.permit([clerks], "BindActorSubject")
        api, path = service.as_person(clerk, groups=["clerks"]), f"/actors/{mira.id}/subject-bindings/add"

        def binding() -> dict[str, str]:
            return {"issuer": service.issuer.url, "subject": f"again-{uuid4()}"}

        assert cause(await api.post(path, binding())) == (409, "ActorCannotBindSubjectError", "more_privileged")
        await service.boss.execute(f"/policies/{policy_id}/extend", {"permitted_commands": ["DefineZone"]})
        await api.execute(path, binding())
        assert denial(await service.as_person(clerk).post(path, binding())) == "principal_not_permitted"

    async def test_a_clerk_lists_nobody_in_a_group_that_may_more(self, service: GroupService) -> None:
        clerk = await service.register("Clerk")
        group_id = await service.define_group()
        policy_id = await service.permit([group_id], "DefineZone")
        own = await service.permit([], "AddGroupMember", permitted_principal_ids=[clerk.id])
        api, path = service.as_person(clerk), f"/groups/{group_id}/add-member"
        assert cause(await api.post(path, {"actor_id": clerk.id})) == (409, "GroupCannotAddMemberError", "more_privileged")
        assert denial(await define_zone(api)) == "command_not_permitted"
        await service.boss.execute(f"/policies/{policy_id}/revoke-grant", {"permitted_group_id": group_id, "reason": "x"})
        await api.execute(path, {"actor_id": clerk.id})
        assert own in {one["policy_id"] for one in (await me(api))["policies"]}


class TestWorkThatGoesOn:
    async def test_a_conduct_of_a_member_by_claim_comes_to_its_end_after_the_request(self, service: GroupService) -> None:
        mira = await service.register()
        await service.permit([await service.define_group("groups", "conducting")], *CONDUCTING, *READING)
        api = service.as_person(mira, groups=["conducting"])
        procedure_id, work_id = await start_conduct(service, api)
        service.conducts.pauses.end()
        work = await service.conducts.wait_until_over(UUID(work_id), api)
        assert work["answer"]["succeeded"], work
        assert (await service.boss.get(f"/procedures/{procedure_id}")).json()["status"] == "Completed"
        (*_, last) = await history(service.boss, f"/procedures/{procedure_id}")
        assert (last["event_type"], last["principal_id"]) == ("ProcedureCompleted", mira.id)
        assert denial(await service.as_person(mira).get(f"/procedures/{procedure_id}")) == "principal_not_permitted"

    @pytest.mark.parametrize("how", ["policy", "group"])
    async def test_it_is_not_permitted_any_more_when_policy_or_group_go(self, service: GroupService, how: str) -> None:
        mira = await service.register()
        group_id = await service.define_group("groups", f"dropped-{how}")
        policy_id = await service.permit([group_id], *CONDUCTING, *READING)
        api = service.as_person(mira, groups=[f"dropped-{how}"])
        procedure_id, work_id = await start_conduct(service, api)
        if how == "policy":
            revoked = {"permitted_group_id": group_id, "reason": "over"}
            await service.boss.execute(f"/policies/{policy_id}/revoke-grant", revoked)
        else:
            await service.boss.execute(f"/groups/{group_id}/retire", {"reason": "over"})
        service.conducts.pauses.end()
        work = await service.conducts.wait_until_over(UUID(work_id), service.boss)
        assert not work["answer"]["succeeded"], work
        assert work["answer"]["failure"]["error_class"] == "UnauthorizedError", work
        assert (await service.boss.get(f"/procedures/{procedure_id}")).json()["status"] == "Aborted"

    async def test_what_a_conduct_does_at_its_end_may_turn_into_something_to_approve(self, service: GroupService) -> None:
        mira = await service.register()
        group_id = await service.define_group("groups", "turned")
        await service.permit([group_id], *(set(CONDUCTING) - {"CompleteProcedure"}), *READING)
        ending = await service.permit([group_id], "CompleteProcedure")
        await service.permit([group_id], "CompleteProcedure", approval={"groups": [await service.define_group()]})
        api = service.as_person(mira, groups=["turned"])
        _, work_id = await start_conduct(service, api)
        revoked = {"permitted_group_id": group_id, "reason": "over"}
        await service.boss.execute(f"/policies/{ending}/revoke-grant", revoked)
        service.conducts.pauses.end()
        work = await service.conducts.wait_until_over(UUID(work_id), service.boss)
        assert work["answer"]["failure"]["error_class"] == "ApprovalRequiredError", work

    async def test_a_member_by_claim_holds_everything_and_closes_what_was_held(self, service: GroupService) -> None:
        mira = await service.register()
        allowed = [*CONDUCTING, *READING, "HoldEverything", "RegisterProcedureFromRecipe"]
        await service.permit([await service.define_group("groups", "holding")], *allowed)
        api, stack = service.as_person(mira, groups=["holding"]), service.conducts.stack
        procedure_id = await stack.register_from_recipe([setpoint("a", 1), PAUSE, setpoint("a", 2)], [setpoint("c", 0)])
        accepted = await api.post(f"/procedures/{procedure_id}/conduct", {"wait": 0})
        assert accepted.status_code == 202, accepted.text
        await service.conducts.pauses.wait_until_reached()
        held = (await api.post("/hold-everything", {"reason": "smoke"})).json()
        assert (held["refused"], [one["id"] for one in held["held"]]) == ([], [str(procedure_id)])
        service.conducts.pauses.end()
        await until_status(service, procedure_id, "Held")
        closing = await api.post(f"/procedures/{procedure_id}/abort", {"reason": "give up", "run_closing": True})
        assert closing.status_code == 202, closing.text
        await until_status(service, procedure_id, "Aborted")
        (*_, last) = await history(service.boss, f"/procedures/{procedure_id}")
        assert (last["event_type"], last["principal_id"]) == ("ProcedureAborted", mira.id)
        assert stack.control.writes[-1] == ("c", 0)

    async def test_texts_are_shown_to_who_may_read_them_by_claim(self, service: GroupService) -> None:
        mira = await service.register()
        group_id = await service.define_group("groups", "reading")
        await service.permit([group_id], "ListEvents", "GetGroup", "ReadEventTexts", "GetPolicy")
        retired = await service.define_group()
        await service.boss.execute(f"/groups/{retired}/retire", {"reason": "a reason in words"})
        page = await service.as_person(mira, groups=["reading"]).get("/events", order="desc", limit=5)
        assert "a reason in words" in page.text


async def start_conduct(service: GroupService, api: Api) -> tuple[str, str]:
    """Open a conduct that waits in a step, and return its procedure and its work."""
    procedure_id = await api.create("/procedures", {"name": "Align", "kind": "alignment"})
    steps = [setpoint("a", 1), PAUSE]
    accepted = await api.post(f"/procedures/{procedure_id}/conduct", {"steps": steps, "wait": 0})
    assert accepted.status_code == 202, accepted.text
    await service.conducts.pauses.wait_until_reached()
    return procedure_id, accepted.json()["work_id"]


async def until_status(service: GroupService, procedure_id: UUID, status: str) -> None:
    async def is_reached() -> bool:
        return bool((await service.boss.get(f"/procedures/{procedure_id}")).json()["status"] == status)

    await until(is_reached)


class TestProposals:
    async def test_what_a_member_by_claim_proposes_is_carried_out_as_one(self, service: GroupService) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        group_id = await service.define_group("groups", "proposing")
        approvers = await service.define_group("groups", "approving")
        await service.permit([group_id, approvers], *READING)
        await service.permit([group_id], "DefineZone", approval={"groups": [approvers]})
        await service.permit([approvers], "ApproveProposal", "DefineZone")
        proposed = await define_zone(service.as_person(mira, groups=["proposing"]))
        assert proposed.status_code == 202, proposed.text
        path = f"/proposals/{proposed.json()['proposal_id']}"
        refused = await service.as_person(jun).post(f"{path}/approve", {"digest": "0" * 64})
        assert denial(refused) == "principal_not_permitted", "without the claim nobody approves"
        approver = service.as_person(jun, groups=["approving"])
        assert (await approver.get(path)).json()["may_approve"] is True
        approved = await approve(approver, proposed.json()["proposal_id"])
        assert (approved.status_code, approved.json()["status"]) == (200, "CarriedOut"), approved.text
        (event,) = await history(service.boss, f"/zones/{approved.json()['answer']['zone_id']}")
        assert (event["principal_id"], event["approved_by"]) == (mira.id, jun.id)
        held = "SELECT request, proven_group_ids FROM proposal_contents WHERE proposal_id = %s"
        async with service.conducts.stack.runtime.pool.connection() as connection:
            rows = await (await connection.execute(held, [proposed.json()["proposal_id"]])).fetchall()
        assert rows == [(None, [])], "nothing of the request and of the groups is kept"

    async def test_it_is_refused_where_the_group_was_dropped_meanwhile(self, service: GroupService) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        group_id = await service.define_group("groups", "leaving")
        policy_id = await service.permit([group_id], "DefineZone", approval={"principals": [jun.id]})
        await service.permit([], "ApproveProposal", "GetProposal", "DefineZone", permitted_principal_ids=[jun.id])
        proposed = await define_zone(service.as_person(mira, groups=["leaving"]))
        revoked = {"permitted_group_id": group_id, "reason": "over"}
        await service.boss.execute(f"/policies/{policy_id}/revoke-grant", revoked)
        approved = await approve(service.as_person(jun), proposed.json()["proposal_id"])
        assert (approved.json()["status"], approved.json()["refusal"]["code"]) == ("Refused", "UnauthorizedError")

    async def test_a_conduct_that_was_approved_goes_on_as_a_member_by_claim(self, service: GroupService) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        group_id = await service.define_group("groups", "conducting-with-approval")
        ending = await service.define_group("groups", "ending")
        await service.permit([group_id], "ConductProcedure", approval={"principals": [jun.id]})
        await service.permit([ending], *(set(CONDUCTING) - {"ConductProcedure"}), *READING)
        await service.permit([], "ApproveProposal", "GetProposal", "ConductProcedure", permitted_principal_ids=[jun.id])
        api = service.as_person(mira, groups=["conducting-with-approval", "ending"])
        procedure_id = await api.create("/procedures", {"name": "Align", "kind": "alignment"})
        proposed = await api.post(f"/procedures/{procedure_id}/conduct", {"steps": [setpoint("a", 1)], "wait": 30})
        assert proposed.status_code == 202, proposed.text
        approved = await approve(service.as_person(jun), proposed.json()["proposal_id"])
        assert approved.json()["status"] == "CarriedOut", approved.text
        await until_status(service, UUID(procedure_id), "Completed")
        (*_, last) = await history(service.boss, f"/procedures/{procedure_id}")
        assert (last["principal_id"], last["approved_by"]) == (mira.id, None), "what follows was not approved but permitted"


class TestTakingAway:
    @pytest.mark.parametrize("verb", ["remove-member", "retire"])
    async def test_nobody_takes_away_from_a_group_whose_members_may_do_more(self, service: GroupService, verb: str) -> None:
        mira, jun = await service.register(), await service.register("Jun Abe")
        group_id, crew_id = await service.define_group(None, "", mira), await service.define_group(None, "", jun)
        await service.permit([group_id], "DefineZone")
        await service.permit([crew_id], "RemoveGroupMember", "RetireGroup")
        body = {"actor_id": mira.id} if verb == "remove-member" else {"reason": "dissolved"}
        code = "GroupCannotRemoveMemberError" if verb == "remove-member" else "GroupCannotRetireError"
        less = service.as_person(jun)
        assert cause(await less.post(f"/groups/{group_id}/{verb}", body)) == (409, code, "more_privileged")
        await service.permit([crew_id], "DefineZone")
        assert (await less.post(f"/groups/{group_id}/{verb}", body)).status_code == 204

    async def test_nobody_retires_the_group_that_approves_what_they_propose(self, service: GroupService) -> None:
        jun = await service.register("Jun Abe")
        approvers_id, crew_id = await service.define_group(), await service.define_group(None, "", jun)
        approval = {"approval": {"groups": [approvers_id]}}
        await service.permit([crew_id], "DefineZone", **approval)
        await service.permit([crew_id], "RetireGroup")
        refused = await service.as_person(jun).post(f"/groups/{approvers_id}/retire")
        assert cause(refused) == (409, "GroupCannotRetireError", "more_privileged")
