"""A worker killed between the setpoint of a point and its capture: the point is there once, from whoever took over."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.point_list import ListProcedurePoints
from tests.support.chaos.stuck_worker import StuckMoment, run_stuck_worker
from tests.support.forked_commands import forked_process
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import open_conduct_stack
from tests.support.workflows.step_json import capture, setpoint

LINE = [step for n in range(3) for step in (setpoint("a", n), capture("a", f"height_{n}"))]
SECOND_CAPTURE = 3


@pytest.mark.parametrize("after", [True, False], ids=["capture begun", "capture not begun"])
async def test_a_worker_killed_between_setpoint_and_capture_neither_doubles_nor_loses_the_point(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path, after: bool
) -> None:
    shared = {"simulated_signals": {"a": 0}, "simulation_journal": str(tmp_path / "journal")}
    told = {name.upper(): value if isinstance(value, str) else json.dumps(value) for name, value in shared.items()}
    servers = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": temporal.address, "APP_ENV": "test"}
    stuck, plan = tmp_path / "out", tmp_path / "plan.json"
    async with open_conduct_stack(database_url, temporal.address, **shared) as stack:
        await stack.stop_worker()
        procedure_id = await stack.register_from_recipe(LINE)
        await stack.do(ConductProcedure(wait=0), procedure_id)
        moment = StuckMoment(call="begin", step_index=SECOND_CAPTURE, after=after)
        plan.write_text(json.dumps({str(procedure_id): asdict(moment)}))
        environment = clean_environment(**servers, **told)
        with forked_process(run_stuck_worker, (str(plan),), environment, stuck, tmp_path / "log"):
            await until(lambda: stuck.exists() and stuck.read_text())
        left = await stack.ask(ListProcedurePoints(), procedure_id)
        await stack.start_worker()
        await stack.wait_until_over(procedure_id)
        found = await stack.ask(ListProcedurePoints(), procedure_id)
    assert [(one.axes, one.values) for one in left.items] == [((0,), (0,))]
    assert [(one.axes, one.values) for one in found.items] == [((n,), (n,)) for n in range(3)]
    assert found.items[0].ordinal == left.items[0].ordinal
