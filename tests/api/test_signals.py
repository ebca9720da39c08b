"""A motor with its signals: who owns them, between which values they may be set, over REST and MCP."""

from tests.support.api.example_reads import anonymous, cause
from tests.support.api.mcp_clients import agent, refusal, tool_result
from tests.support.service import Api, running_api

ROUTES = [
    {"prefix": "BL:", "substrate": "in_memory", "simulated": True},
    {"prefix": "BL:RING:", "substrate": "in_memory", "simulated": True, "read_only": True},
]


async def register_motor(api: Api) -> str:
    await api.create("/federation/facilities", {"code": "lumen", "display_name": "Lumen", "kind": "Site"})
    named = {"alternate_identifiers": [{"kind": "EPICS_PV", "value": "BL:ROT"}]}
    return await api.create("/assets", {"name": "Rotary", "tier": "Device", "facility_code": "lumen", **named})


async def test_the_signals_of_a_motor_are_limited_and_resolved_over_rest(database_url: str) -> None:
    async with running_api(database_url, projecting=False, control_routes=ROUTES) as api:
        motor = await register_motor(api)
        limits = f"/assets/{motor}/signal-limits"
        travel = {"address": "BL:ROT.VAL", "low": -5, "high": 5, "reason": "travel of the stage"}
        assert await api.execute(limits, travel)
        foreign = await api.post(limits, {**travel, "address": "BL:LIN"})
        assert cause(foreign) == (409, "AssetCannotSetSignalLimitsError", "not_owned")
        assert (await api.post(limits, {**travel, "low": 6})).status_code == 422
        assert (await api.get(f"/assets/{motor}")).json()["signal_limits"] == {"BL:ROT.VAL": {"low": -5.0, "high": 5.0}}

        answer = await api.post("/signals/resolve", {"addresses": ["BL:ROT.VAL", "BL:RING:Current", "ELSE"]})
        assert answer.status_code == 200
        unowned = {"owners": [], "limits": None, "control_limits": None, "control_error": None, "claims": []}
        assert answer.json()["signals"] == [
            {
                **unowned,
                "address": "BL:ROT.VAL",
                "owners": [{"asset_id": motor, "name": "Rotary"}],
                "route": {"substrate": "in_memory", "simulated": True, "read_only": False},
                "limits": {"low": -5.0, "high": 5.0},
            },
            {
                **unowned,
                "address": "BL:RING:Current",
                "route": {"substrate": "in_memory", "simulated": True, "read_only": True},
            },
            {**unowned, "address": "ELSE", "route": None},
        ]

        await api.execute(limits, {"address": "BL:ROT.VAL", "reason": "new stage"})
        assert (await api.get(f"/assets/{motor}")).json()["signal_limits"] == {}
        assert (await anonymous(api, f"/assets/{motor}"))[-1] == (
            "AssetSignalLimitsSet",
            {"address": "BL:ROT.VAL", "low": None, "high": None, "reason": "new stage"},
        )
        await api.execute(f"/assets/{motor}/decommission")
        assert cause(await api.post(limits, travel)) == (409, "AssetCannotSetSignalLimitsError", "decommissioned")
        gone = (await api.post("/signals/resolve", {"addresses": ["BL:ROT.VAL"]})).json()["signals"][0]
        assert gone["owners"] == []


async def test_an_agent_limits_and_resolves_signals_as_a_person_does(database_url: str) -> None:
    """Without routes everything is simulated; where writes are disabled, everything is read-only."""
    async with running_api(database_url, projecting=False, control_writes_enabled=False) as api, agent(api) as client:
        motor = await register_motor(api)
        await tool_result(client, "set_asset_signal_limits", asset_id=motor, address="BL:ROT", high=5, reason="travel")
        (signal,) = (await tool_result(client, "resolve_signals", addresses=["BL:ROT.VAL"]))["signals"]
        assert (signal["owners"], signal["limits"]) == ([{"asset_id": motor, "name": "Rotary"}], {"low": None, "high": 5.0})
        assert signal["route"] == {"substrate": "in_memory", "simulated": True, "read_only": True}
        refused = await refusal(client, "set_asset_signal_limits", asset_id=motor, address="X", low=1, reason="travel")
        assert (refused["code"], refused["reason"]) == ("AssetCannotSetSignalLimitsError", "not_owned")
