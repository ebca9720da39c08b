"""Conducts on a Channel Access server whose records have limits: what is written, what is read back, what is refused."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.control_signals import ReadSignals, ResolveSignals
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.equipment.signals import SetAssetSignalLimits
from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelAccess
from baton.infrastructure.plugins import ActionRegistry
from tests.support.infrastructure.epics_servers import EpicsServer
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import action, setpoint

GAP = "bl7:slit:gap"
ROUTES = [{"prefix": "bl7:", "substrate": "epics_ca"}]


async def push(control: Any, time: Any, params: Any) -> dict[str, Any]:
    await control.write(GAP, params["to"])
    return {}


@pytest.fixture
async def stack(database_url: str, temporal: EmbeddedTemporal, ca_server: EpicsServer) -> AsyncIterator[ConductStack]:
    control = ChannelAccess(CaprotoClient())
    actions = ActionRegistry({"push": push})
    wired = {"control": control, "actions": actions, "control_routes": ROUTES}
    async with open_conduct_stack(database_url, temporal.address, **wired) as stack:
        yield stack
    await control.close()


def offer_gap(server: EpicsServer, *, declared: bool = True) -> None:
    """Serve a record like an `ao` with DRVL 0 and DRVH 100; one that does not declare them cuts all the same."""
    limits = {"limits": [0.0, 100.0]} if declared else {}
    server.tell("set", address=GAP, value=10.0, units="um", drive_limits=[0.0, 100.0], **limits)


async def own_gap(stack: ConductStack) -> UUID:
    """Register the asset that owns the gap."""
    registered = await stack.do(RegisterAsset(name="Slits", tier="Unit", facility_code="facility"))
    id = UUID((registered.body or {})["asset_id"])
    await stack.do(AddAssetAlternateIdentifier(kind="EPICS_PV", value="bl7:slit"), id)
    return id


async def root_asset(stack: ConductStack) -> UUID:
    registered = await stack.do(RegisterAsset(name="BL7", tier="Unit", facility_code="main"))
    return UUID((registered.body or {})["asset_id"])


async def test_a_setpoint_beyond_the_drive_limit_is_not_written(stack: ConductStack, ca_server: EpicsServer) -> None:
    offer_gap(ca_server)
    procedure_id, result = await stack.conduct_steps([setpoint(GAP, 500, verify=True)])
    failure = result["failure"]
    assert (failure["error_class"], result["substrate_writes"]) == ("SetpointOutOfLimitsError", {})
    assert failure["facts"] == {"address": GAP, "value": 500, "low": 0.0, "high": 100.0, "whose": "control_system"}
    assert failure["message"] == f"{GAP} was not set to 500: the control system allows values from 0.0 to 100.0."
    assert (await stack.ledger(procedure_id))[-1]["facts"] == failure["facts"]
    assert (stack.control.writes, ca_server.tell("value", address=GAP)) == ([], 10.0)


async def test_what_was_cut_off_without_a_word_deviates(stack: ConductStack, ca_server: EpicsServer) -> None:
    offer_gap(ca_server, declared=False)
    procedure_id, result = await stack.conduct_steps([setpoint(GAP, 50, verify=True), setpoint(GAP, 500, verify=True)])
    assert result["succeeded"]
    assert result["substrate_writes"] == {GAP: {"written": 500, "read": 100.0, "unit": "um"}}
    deviation = {"step_index": 1, "closing": False, "address": GAP, "asked": 500, "read": 100.0, "unit": "um"}
    assert result["deviations"] == [deviation]
    rows = [row for row in await stack.ledger(procedure_id) if row["mark"] == "outcome"]
    assert [row.get("deviates") for row in rows] == [None, True]
    assert [one.model_dump() for one in (await stack.procedure(procedure_id)).deviations] == [deviation]


async def test_a_setpoint_that_does_not_come_near_fails(stack: ConductStack, ca_server: EpicsServer) -> None:
    offer_gap(ca_server, declared=False)
    verify = {"tolerance": 0.5, "timeout": 0.3}
    _, result = await stack.conduct_steps([setpoint(GAP, 50, verify=verify), setpoint(GAP, 500, verify=verify)])
    failure = result["failure"]
    assert (failure["step_index"], failure["error_class"]) == (1, "SetpointNotReachedError")
    assert failure["facts"] == {"address": GAP, "asked": 500, "read": 100.0, "tolerance": 0.5, "unit": "um"}
    assert result["substrate_writes"] == {GAP: {"written": 500, "read": 100.0, "unit": "um"}}


async def test_a_limit_that_is_set_while_it_conducts_counts_and_actions_obey_it(
    stack: ConductStack, ca_server: EpicsServer
) -> None:
    offer_gap(ca_server)
    asset_id = await own_gap(stack)
    _, result = await stack.conduct_steps([action("push", to=60)])
    assert result["succeeded"], result
    await stack.do(SetAssetSignalLimits(address=GAP, high=50, reason="a sample is in the beam"), asset_id)
    _, refused = await stack.conduct_steps([action("push", to=60)])
    while refused["succeeded"]:  # what was read of the limits is known for a moment
        _, refused = await stack.conduct_steps([action("push", to=60)])
    facts = {"address": GAP, "value": 60, "low": None, "high": 50.0, "whose": "owners"}
    assert (refused["failure"]["error_class"], refused["failure"]["facts"]) == ("SetpointOutOfLimitsError", facts)
    (read,) = (await stack.ask(ReadSignals(addresses=(GAP,)))).signals
    assert (read.value, read.unit, read.limits.high, read.control_limits.high) == (60.0, "um", 50.0, 100.0)
    assert (read.route.substrate, read.route.simulated, read.route.read_only) == ("epics_ca", False, False)


async def test_what_the_control_system_allows_is_asked_for_only_where_that_is_said(
    stack: ConductStack, ca_server: EpicsServer
) -> None:
    offer_gap(ca_server)
    (unasked,) = (await stack.ask(ResolveSignals(addresses=(GAP,)))).signals
    assert (unasked.control_limits, unasked.control_error) == (None, None)
    asked = await stack.ask(ResolveSignals(addresses=(GAP, "bl7:nobody"), control_limits=True))
    gap, nobody = asked.signals
    assert (gap.control_limits.low, gap.control_limits.high, gap.control_error) == (0.0, 100.0, None)
    assert (nobody.control_limits, nobody.control_error.code) == (None, "ControlTimeoutError")
