"""A worker killed between a clearance's expiry and the decision that says so: the decision is there once, afterwards."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGKILL

from baton.application.ports import Job
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.temporal.engine import TemporalEngine
from tests.support.api.rest_beamline import bring_into_force
from tests.support.chaos.killed_expirer import run_killed_expirer
from tests.support.domain.world import new_id
from tests.support.forked_commands import forked_process
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.agent_stack import EXPIRER, AgentStack, agent_stack


async def register_short_clearance(facility: AgentStack) -> str:
    """A clearance in force that runs out within a second."""
    api = facility.api
    template = await api.create("/clearance-templates", {"code": "S", "title": "S", "facility_code": "facility"})
    await api.execute(f"/clearance-templates/{template}/activate")
    bindings = [{"kind": "Asset", "id": str(new_id())}]
    form = {"template_id": template, "facility_code": "facility", "title": "Short", "bindings": bindings}
    end = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    clearance = await api.create("/clearances", {**form, "valid_until": end})
    await bring_into_force(api, clearance)
    return clearance


async def test_the_owed_decision_is_written_once(database_url: str, temporal: EmbeddedTemporal, tmp_path: Path) -> None:
    environment = clean_environment(DATABASE_URL=database_url, TEMPORAL_ADDRESS=temporal.address, APP_ENV="test")
    async with agent_stack(database_url, temporal.address, working=False) as facility:
        clearance = await register_short_clearance(facility)
        with forked_process(run_killed_expirer, (), environment, tmp_path / "out", tmp_path / "log") as doomed:
            engine = TemporalEngine(Settings(temporal_address=temporal.address, app_env="test"))

            async def has_died() -> bool:
                await engine.start(Job("expire-clearances", f"expire-clearances:{clearance}", None))
                return not doomed.is_alive()

            await until(has_died, within=60)
        assert doomed.exitcode == -SIGKILL
        assert await facility.has_status(f"/clearances/{clearance}", "Expired")
        assert await facility.decisions(0, context="ClearanceExpiry") == []
        await facility.start_worker()
        (decision,) = await facility.decisions(context="ClearanceExpiry")
        assert (decision["decided_by"], decision["choice"]) == (EXPIRER, "Expire")
        assert decision["inputs"]["clearance_id"] == clearance
