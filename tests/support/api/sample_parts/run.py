"""A run that is on, in a campaign, with beam, a reading and a note."""

from baton.infrastructure.wall_clock import new_id
from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    series = {"name": f"Series {mark}", "intent": "Series", "lead_actor_id": ids["actor_id"]}
    ids["campaign_id"] = await api.create("/campaigns", series)
    beam = await api.create("/supplies", {"kind": "photon_beam", "name": f"Beam {mark}", "facility_code": "facility"})
    await api.execute(f"/supplies/{beam}/mark-available", {"reason": "shutter open"})
    asked = {"name": "Load step 1", "plan_id": ids["plan_id"], "campaign_id": ids["campaign_id"]}
    ids["run_id"] = await api.create("/runs", asked)
    sample = {"event_id": str(new_id()), "channel_name": "ring_current", "value": 198.7, "units": "mA"}
    entries = [{**sample, "sampling_procedure": "baseline", "sampled_at": "2026-10-06T09:12:00Z"}]
    answer = await api.post(f"/runs/{ids['run_id']}/observations", {"entries": entries})
    assert answer.json() == {"event_count": 1}, answer.text
    note = {"event_id": str(new_id()), "text": "Sample slipped 20 um at the end."}
    answer = await api.post(f"/runs/{ids['run_id']}/logbook", {"entries": [note]})
    assert answer.json() == {"event_count": 1}, answer.text
