"""The worked examples of access and trust, over REST."""

from uuid import uuid4

from tests.support.service import Api, running_api

SYSTEM_HTTP = "00000000-0000-0000-0000-000000000020"
SYSTEM_CONDUIT = "00000000-0000-0000-0000-000000000010"


async def test_an_actor_from_registration_to_erasure(api: Api) -> None:
    mira = await api.create("/actors", {"name": "Mira Okafor", "kind": "human", "email": "m.okafor@example.org"})
    await api.create("/actors", {"name": "Scan bridge 7", "kind": "service_account"})
    shown = (await api.get(f"/actors/{mira}")).json()
    identity = {"id": mira, "actor_id": mira, "created_at": shown["created_at"]}
    assert shown == {**identity, "name": "Mira Okafor", "kind": "human", "active": True}
    me = (await api.acting_as(mira).get("/me")).json()
    assert (me["principal_id"], me["kind"], me["name"], me["surface_id"]) == (mira, "human", "Mira Okafor", SYSTEM_HTTP)
    await api.execute(f"/actors/{mira}/deactivate")
    again = await api.post(f"/actors/{mira}/deactivate")
    assert (again.status_code, again.json()["code"]) == (409, "ActorCannotDeactivateError")
    forgotten = await api.request("DELETE", f"/actors/{mira}/profile")
    assert forgotten.status_code == 204
    assert (await api.get(f"/actors/{mira}")).json() == {
        **identity,
        "name": "<deleted user>",
        "kind": "human",
        "active": False,
    }


async def test_a_user_beamtime_with_nested_commissioning(api: Api) -> None:
    operator = await api.create("/actors", {"name": "Operator"})
    person = await api.create("/actors", {"name": "User"})
    console = await api.create("/surfaces", {"name": "Endstation A console", "kind": "HTTP"})
    crew = {"permitted_principal_ids": [operator, person], "conduit_id": SYSTEM_CONDUIT}
    verbs = ["RegisterVisit", "RecordVisitArrival", "StartVisit", "TakeControlOfSurface", "GetVisit", "ListVisits"]
    policy = await api.create(
        "/policies", {**crew, "name": "Shift crew, REST", "surface_id": SYSTEM_HTTP, "permitted_commands": verbs}
    )
    unknown = await api.post(
        "/policies", {**crew, "name": "Typo", "surface_id": SYSTEM_HTTP, "permitted_commands": ["GetVisits"]}
    )
    assert (unknown.status_code, unknown.json()["facts"]) == (400, {"unknown": ["GetVisits"]})
    readers = {**crew, "name": "Readers", "surface_id": SYSTEM_HTTP, "permitted_commands": []}
    expanded = await api.create("/policies", {**readers, "permitted_command_sets": ["queries"]})
    assert "ListVisits" in (await api.get(f"/policies/{expanded}")).json()["permitted_commands"]

    plan = {
        "policy_id": policy,
        "surface_id": console,
        "type": "user",
        "planned_start_at": "2026-10-06T08:00:00+02:00",
        "planned_end_at": "2026-10-08T08:00:00+02:00",
    }
    first = await api.create("/visits", {**plan, "external_refs": {"proposal": "20260417", "cycle": "2026-2"}})
    early = await api.post(f"/visits/{first}/presence/open", {"mode": "physical"})
    assert (early.status_code, early.json()["reason"]) == (409, "status_not_eligible")
    await api.execute(f"/visits/{first}/record-arrival")
    await api.execute(f"/visits/{first}/presence/open", {"mode": "physical"})
    await api.execute(f"/visits/{first}/start")
    take = {"surface_id": console}
    await api.execute(f"/visits/{first}/surface-control/take", take)
    nested = await api.create("/visits", {**plan, "type": "commissioning", "parent_id": first})
    await api.execute(f"/visits/{nested}/record-arrival")
    await api.execute(f"/visits/{nested}/surface-control/take", take)
    assert (await api.get(f"/surfaces/{console}/control")).json()["visit_id"] == nested
    lost = await api.post(f"/visits/{first}/surface-control/take", take)
    assert (lost.json()["code"], lost.json()["reason"]) == ("VisitCannotTakeControlError", "not_descendant")
    await api.execute(f"/visits/{nested}/surface-control/release", take)
    await api.execute(f"/visits/{first}/surface-control/take", take)
    await api.execute(f"/visits/{first}/hold", {"reason": "beam dump"})
    await api.execute(f"/visits/{first}/resume")
    position = await api.execute(f"/visits/{first}/complete")
    ended = (await api.get(f"/visits/{first}")).json()
    assert ended["status"] == "Completed"
    assert ended["presence_entries"][0]["check_out_at"] == ended["completed_at"]
    assert (await api.get(f"/surfaces/{console}/control")).json()["visit_id"] is None
    listed = (
        await api.get("/visits", external_ref_scheme="cycle", external_ref_value="2026-2", min_position=position)
    ).json()
    assert [item["visit_id"] for item in listed["items"]] == [first]


async def test_a_revoked_grant_is_felt_by_the_next_call(database_url: str) -> None:
    admin = str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        boss = api.acting_as(admin)
        person = await boss.create("/actors", {"name": "User"})
        grant = {
            "name": "Readers",
            "conduit_id": SYSTEM_CONDUIT,
            "surface_id": SYSTEM_HTTP,
            "permitted_commands": ["ListVisits"],
        }
        policy = await boss.create("/policies", {**grant, "permitted_principal_ids": [person]})
        assert (await api.acting_as(person).get("/visits")).status_code == 200
        await boss.execute(f"/policies/{policy}/revoke-grant", {"permitted_principal_id": person, "reason": "beamtime over"})
        refused = await api.acting_as(person).get("/visits")
        assert (refused.status_code, refused.json()["reason"]) == (403, "principal_not_permitted")


async def test_a_policy_that_is_not_enforced_says_so(api: Api) -> None:
    """In a permissive service an approval policy holds nobody back, and everything that is about policies says it."""
    person = await api.create("/actors", {"name": "Agent's keeper"})
    grant = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [person]}
    watched = {**grant, "name": "Watched", "permitted_commands": ["DefineZone"], "approval": {"principals": [person]}}
    defined = await api.post("/policies", watched)
    assert (defined.status_code, defined.json()["enforced"]) == (201, False)
    assert defined.json()["remark"].startswith("Policies are recorded and not enforced here: everybody")
    policy_id = defined.json()["policy_id"]
    extended = await api.post(f"/policies/{policy_id}/extend", {"permitted_commands": ["RegisterActor"]})
    assert (extended.status_code, extended.json()) == (200, defined.json())
    assert (await api.acting_as(person).post("/zones", {"name": "Hall"})).status_code == 201
    asked = {"evaluated_command_name": "DefineZone", "evaluated_principal_id": person}
    place = {"evaluated_conduit_id": SYSTEM_CONDUIT, "evaluated_surface_id": SYSTEM_HTTP}
    verdict = (await api.get(f"/policies/{policy_id}/evaluate", **asked, **place)).json()
    assert (verdict["decision"], verdict["reason"], verdict["enforced"]) == ("Deny", "approval_required", False)
    me = (await api.get("/me")).json()
    assert (me["enforced"], me["remark"]) == (False, defined.json()["remark"])


async def test_a_policy_that_is_enforced_says_so_too(database_url: str) -> None:
    admin = str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        boss = api.acting_as(admin)
        grant = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [admin]}
        defined = (await boss.post("/policies", {**grant, "name": "All", "permitted_commands": ["DefineZone"]})).json()
        assert (defined["enforced"], defined["remark"]) == (True, None)
        me = (await boss.get("/me")).json()
        assert (me["enforced"], me["remark"]) == (True, None)
