"""The actor has a name in every answer and history, and no caller sees a command that its calls cannot reach."""

from typing import Any
from uuid import uuid4

import psycopg

from baton.application.seeds import SYSTEM_ZONE, monitor_id
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.kernel import NIL, SYSTEM_CONDUIT
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.api.event_streams import open_feed
from tests.support.api.example_reads import cause
from tests.support.api.mcp_clients import agent, tool_result
from tests.support.service import Api, running_api
from tests.support.waiting import until


async def recording_principals(api: Api, path: str) -> list[tuple[str, Any, Any]]:
    """Who recorded the events of a history: the id, the surface and the name."""
    page = await api.get(f"{path}/history")
    assert page.status_code == 200, page.text
    return [(one["principal_id"], one["surface_id"], one["principal_name"]) for one in page.json()["items"]]


async def test_the_actor_has_a_name_in_histories_and_in_the_feed(api: Api) -> None:
    ada = await api.create("/actors", {"name": "Ada", "kind": "human"})
    stranger = str(uuid4())
    by_nobody = await api.create("/zones", {"name": "Hall"})
    by_ada = await api.acting_as(ada).create("/zones", {"name": "Hutch"})
    by_stranger = await api.acting_as(stranger).create("/zones", {"name": "Store"})
    http, nil = str(SYSTEM_HTTP), str(NIL)
    expected = {
        str(SYSTEM_ZONE): (nil, nil, "Baton"),
        by_nobody: (nil, http, "not signed in"),
        by_ada: (ada, http, "Ada"),
        by_stranger: (stranger, http, "not registered"),
    }
    for zone, whose in expected.items():
        assert await recording_principals(api, f"/zones/{zone}") == [whose]
    feed = (await api.get("/events", stream_type="Zone")).json()["items"]
    shown = {one["stream_id"]: (one["principal_id"], one["surface_id"], one["principal_name"]) for one in feed}
    assert shown == expected
    async with open_feed(api, stream_type="Zone", after=0) as reader:
        frames = await reader.frames(4)
        assert {frame.data["stream_id"]: frame.data["principal_name"] for frame in frames} == {
            zone: name for zone, (*_, name) in expected.items()
        }


async def test_the_nil_id_is_explained_where_it_is_looked_up(api: Api) -> None:
    answer = await api.get(f"/actors/{NIL}")
    assert cause(answer) == (404, "ActorNotFoundError", None)
    assert "stands for Baton itself and for callers who were not signed in" in answer.json()["detail"]
    unknown = await api.get(f"/actors/{uuid4()}")
    assert unknown.json()["detail"].startswith("There is no actor ")


async def test_the_services_own_accounts_have_names(api: Api) -> None:
    own = {monitor_id(name): name for name in ("EnclosureMonitor", "SupplyMonitor")}
    own |= {seeded.id: kind for kind, seeded in SEEDED.items()}
    for id, name in own.items():
        assert (await api.get(f"/actors/{id}")).json()["name"] == name


async def test_a_caller_without_a_token_is_told_so(api: Api) -> None:
    me = (await api.get("/me")).json()
    assert (me["principal_id"], me["kind"], me["name"]) == (str(NIL), None, "not signed in")


async def test_access_names_only_what_a_call_of_this_caller_can_reach(api: Api) -> None:
    account = await api.create("/actors", {"name": "Bridge", "kind": "service_account"})
    inner = {"RequestDecisionDebrief", "RecordAgentDecision"}
    monitoring = {"ObserveEnclosureStatus", "ObserveSupplyStatus"}
    witnessing = {"WitnessRun", "WitnessRunChange"}
    nobody = set((await api.get("/me")).json()["permitted_commands"])
    bridge = set((await api.acting_as(account).get("/me")).json()["permitted_commands"])
    assert not nobody & (inner | monitoring | witnessing)
    assert bridge - nobody == monitoring | witnessing
    assert {"ReadEventTexts", "StreamEvents"} <= nobody
    async with agent(api.acting_as(account)) as client:
        over_mcp = set((await tool_result(client, "get_my_access"))["permitted_commands"])
        assert not over_mcp & (inner | monitoring | {"StreamEvents", "ExamineService"})
        found = (await tool_result(client, "search_operations", words="observe enclosure status", limit=50))["operations"]
        assert "observe_enclosure_status" not in {operation["name"] for operation in found}


async def test_peoples_names_are_for_those_who_may_read_actors(database_url: str) -> None:
    admin = str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        boss = api.acting_as(admin)
        reader = await boss.create("/actors", {"name": "Reader", "kind": "human"})

        async def grant_commands(*commands: str) -> str:
            grant = {"conduit_id": str(SYSTEM_CONDUIT), "surface_id": str(SYSTEM_HTTP), "permitted_principal_ids": [reader]}
            return await boss.create("/policies", {"name": "Reading", **grant, "permitted_commands": list(commands)})

        first = await grant_commands("GetPolicyHistory", "ListConduitVerdicts")
        as_reader = api.acting_as(reader)
        assert [name for *_, name in await recording_principals(as_reader, f"/policies/{first}")] == [None]

        async def verdict_names() -> set[str | None]:
            page = await as_reader.get(f"/conduits/{SYSTEM_CONDUIT}/verdicts", actor_id=admin)
            return {item["actor_name"] for item in page.json()["items"]}

        await until(verdict_names)
        assert await verdict_names() == {None}
        await grant_commands("GetActor")
        assert [name for *_, name in await recording_principals(as_reader, f"/policies/{first}")] == [
            "Bootstrap administrator"
        ]
        assert await verdict_names() == {"Bootstrap administrator"}


async def test_of_an_event_from_before_surfaces_were_kept_both_are_said(api: Api) -> None:
    zone = await api.create("/zones", {"name": "Hall"})
    async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
        await connection.execute("UPDATE events SET surface_id = NULL WHERE stream_id = %s", (zone,))
    assert await recording_principals(api, f"/zones/{zone}") == [(str(NIL), None, "Baton, or not signed in")]


async def test_a_refusal_of_the_permit_says_who_can_report_it(database_url: str) -> None:
    async with running_api(database_url, monitored_enclosures={"Hutch A": "PSS:A"}) as api:
        for name, watched in (("Hutch A", True), ("Hutch B", False)):
            enclosure = await api.create("/enclosures", {"name": name, "facility_code": "facility"})
            shown = (await api.get(f"/enclosures/{enclosure}")).json()
            assert (shown["monitored"], shown["last_contact_at"]) == (watched, None)
            asset = await api.create("/assets", {"name": name, "tier": "Unit", "facility_code": "facility"})
            located = {"located_in_enclosure_id": enclosure, "reason": "it stands there"}
            await api.execute(f"/assets/{asset}/relocate", located)
            task = {"name": "Align", "kind": "alignment", "target_asset_ids": [asset]}
            procedure = await api.create("/procedures", task)
            refused = await api.post(f"/procedures/{procedure}/start")
            assert cause(refused) == (409, "ProcedureRequiresPermittedEnclosureError", "no_enclosure_permitted")
            unwatched = f"only an enclosure's monitor reports its permit, and none is configured for {name}"
            assert (unwatched in refused.json()["detail"]) is not watched


async def test_a_supply_says_whether_a_monitor_is_configured_for_it(database_url: str) -> None:
    rule = {"status": "Unavailable", "values": [0]}
    configured = [{"name": "Beam", "kind": "photon_beam", "signal": "BEAM", "readings": [rule]}]
    async with running_api(database_url, monitored_supplies=configured) as api:
        for name, watched in (("Beam", True), ("Other", False)):
            body = {"name": name, "kind": "photon_beam", "facility_code": "facility"}
            supply = await api.create("/supplies", body)
            shown = (await api.get(f"/supplies/{supply}")).json()
            assert (shown["monitored"], shown["last_contact_at"]) == (watched, None)
