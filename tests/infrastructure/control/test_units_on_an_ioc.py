"""Steps that count in units of their own, on a Channel Access server whose records count in micrometres."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from baton.application.conduct import signal_reader
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.preflight import PreflightProcedure
from baton.domain.procedure.procedure import ProcedureRecipeExpanded, ProcedureStepsResolved
from baton.domain.recipe.expansion import UnitMismatchError
from baton.domain.shared.schema import DIALECT
from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelAccess
from tests.support.infrastructure.epics_servers import EpicsServer
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import capture, captured_value, check, setpoint

GAP, BARE = "bl7:units:gap", "bl7:units:bare"
ALTERED = "bl7:units:altered"
ROUTES = [{"prefix": "bl7:", "substrate": "epics_ca"}]
OFFSET = {"type": "number", "unit": {"system": "udunits", "code": "mm"}}
CLOSED = {"additionalProperties": False, "unevaluatedProperties": False, "$schema": DIALECT}
PARAMETERS = {"type": "object", "properties": {"offset": OFFSET}, **CLOSED}


@pytest.fixture
async def stack(database_url: str, temporal: EmbeddedTemporal, ca_server: EpicsServer) -> AsyncIterator[ConductStack]:
    ca_server.tell("set", address=GAP, value=10.0, units="um", limits=[0.0, 100.0])
    ca_server.tell("set", address=BARE, value=1.0)
    control = ChannelAccess(CaprotoClient())
    async with open_conduct_stack(database_url, temporal.address, control=control, control_routes=ROUTES) as stack:
        yield stack
    await control.close()


async def outcomes(stack: ConductStack, procedure_id: Any) -> list[Any]:
    return [row for row in await stack.ledger(procedure_id) if row["mark"] == "outcome"]


async def test_millimetres_are_written_compared_and_captured_as_micrometres(
    stack: ConductStack, ca_server: EpicsServer
) -> None:
    steps = [
        setpoint(GAP, 0.05, unit="mm", verify={"tolerance": 0.1}),
        check(GAP, 0.0504, 0.001, unit="mm"),
        {**capture(GAP, "gap"), "unit": "mm"},
        setpoint(BARE, captured_value("gap")),
        setpoint(GAP, 40),
    ]
    procedure_id, result = await stack.conduct_steps(steps)
    assert result["succeeded"], result
    assert stack.control.writes == [(GAP, 50.0), (BARE, 0.05), (GAP, 40)]
    assert result["substrate_writes"] == {GAP: 40, BARE: 0.05}
    assert (result["captures"]["gap"]["value"], result["captures"]["gap"]["unit"]) == (0.05, "mm")
    written, checked, captured, bare, plain = await outcomes(stack, procedure_id)
    assert (written["value"], written["unit"], written["converted"]) == (0.05, "mm", {"value": 50.0, "unit": "um"})
    assert (checked["reading"]["value"], checked["reading"]["units"]) == (50.0, "um")
    assert checked["converted"] == {"value": 0.05, "unit": "mm"}
    assert (captured["reading"]["value"], captured["captured_value"], captured["captured_unit"]) == (50.0, 0.05, "mm")
    assert (bare["unit"], "converted" in bare, "unit" in plain) == ("mm", False, False)


async def test_a_parameter_in_millimetres_is_written_as_micrometres(stack: ConductStack, ca_server: EpicsServer) -> None:
    steps = [setpoint(GAP, {"__binding__": "offset"}, verify=True)]
    procedure_id = await stack.register_from_recipe(steps, schema=PARAMETERS, bindings={"offset": 0.025})
    result = await stack.conduct(ConductProcedure(wait=60), procedure_id)
    assert (result["succeeded"], result["deviations"], ca_server.tell("value", address=GAP)) == (True, [], 25.0)
    events = await stack.events(procedure_id)
    (expanded,) = [event for event in events if isinstance(event, ProcedureRecipeExpanded)]
    (pin,) = [event for event in events if isinstance(event, ProcedureStepsResolved)]
    assert (expanded.binding_units, pin.resolved_steps[0].unit) == ({"offset": "mm"}, "mm")


async def test_a_limit_counts_in_the_unit_of_the_signal(stack: ConductStack, ca_server: EpicsServer) -> None:
    _, result = await stack.conduct_steps([setpoint(GAP, 0.5, unit="mm")])
    assert result["failure"]["error_class"] == "SetpointOutOfLimitsError"
    assert (result["failure"]["facts"]["value"], stack.control.writes) == (500.0, [])


async def test_what_cannot_be_converted_is_refused_before_anything_begins(stack: ConductStack) -> None:
    procedure_id = await stack.register_procedure()
    steps = (setpoint(GAP, 10), setpoint(GAP, 0.5, unit="degree"))
    with pytest.raises(UnitMismatchError) as refused:
        await stack.do(ConductProcedure(steps=steps, wait=0), procedure_id)
    assert (refused.value.status, refused.value.reason) == (409, "unit_mismatch")
    assert refused.value.detail == (
        f"steps[1] counts {GAP} in degree, and the control system in um: degree cannot be converted to um; "
        "correct the unit of the step, of its parameter or of the signal."
    )
    place = {"list": "steps", "step_index": 1}
    assert refused.value.facts == {"address": GAP, "unit": "degree", "control_unit": "um", "step": place}
    assert await stack.ledger(procedure_id) == []


async def test_a_unit_that_changes_after_the_pin_fails_the_step_and_nothing_is_written(
    stack: ConductStack, ca_server: EpicsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal_reader, "UNIT_SECONDS", 3600.0)
    ca_server.tell("set", address=ALTERED, value=50.0, units="um")
    await stack.conduct_steps([setpoint(ALTERED, 0.05, unit="mm")])
    ca_server.tell("set", address=ALTERED, value=50.0, units="K")
    _, result = await stack.conduct_steps([setpoint(ALTERED, 0.06, unit="mm")])
    while result["succeeded"]:  # what a channel says of itself is known for a moment
        _, result = await stack.conduct_steps([setpoint(ALTERED, 0.06, unit="mm")])
    failure = result["failure"]
    assert (failure["error_class"], failure["facts"]["reason"]) == ("UnitMismatchError", "unit_mismatch")
    assert (failure["facts"]["unit"], failure["facts"]["control_unit"]) == ("mm", "K")
    assert result["substrate_writes"] == {}


async def test_a_preflight_names_the_signals_whose_unit_nobody_states(stack: ConductStack) -> None:
    steps = [setpoint(BARE, 1.0, unit="mm"), setpoint(GAP, 0.01, unit="mm")]
    procedure_id = await stack.register_from_recipe(steps)
    asked = await stack.ask(PreflightProcedure(), procedure_id)
    (gate,) = [one for one in asked.gates if one.gate == "units_agree"]
    assert (asked.units_unknown, gate.passed) == ((BARE,), True)
    unfit = await stack.register_from_recipe([setpoint(GAP, 1.0, unit="degree")])
    (closed,) = [one for one in (await stack.ask(PreflightProcedure(), unfit)).gates if one.gate == "units_agree"]
    assert (closed.passed, closed.code) == (False, "UnitMismatchError")
