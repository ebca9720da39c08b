"""Agents at work on a real engine: what happens when runs end, from the event in the log to the entry in the logbook."""

from tests.api.beamline import beamline
from tests.workflows.agency import DEBRIEFER, agency


async def test_a_run_that_ends_is_debriefed(database_url: str, temporal) -> None:
    async with agency(database_url, temporal.address) as facility:
        line = await beamline(facility.api)
        run_id = await line.started()
        await facility.api.done(f"/runs/{run_id}/abort", {"reason": "rotary stage encoder offline"})
        (debrief,) = await facility.decisions(context="RunDebrief")
        (draft,) = await facility.decisions(context="CautionProposal")
        print(debrief, draft)
        print(await facility.events(f"/runs/{run_id}"))
        print(await facility.read(f"/runs/{run_id}/logbook"))
        print(await facility.read("/reactions"))
        assert debrief["decided_by"] == DEBRIEFER
