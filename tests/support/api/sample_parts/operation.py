"""A procedure that is carried out by hand, with an iteration and an activity, one from the recipe, a schedule of it,
a queue in which it waits twice, and a launch of it."""

from baton.infrastructure.wall_clock import new_id
from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    from_recipe = {"name": f"Flats {mark}", "kind": "flat_field", "parent_run_id": ids["run_id"]}
    await api.create(f"/recipes/{ids['recipe_id']}/procedures", from_recipe)
    task = {"name": f"Centre the axis {mark}", "kind": f"alignment {mark}", "target_asset_ids": [ids["asset_id"]]}
    ids["procedure_id"] = await api.create("/procedures", task)
    await api.execute(f"/procedures/{ids['procedure_id']}/start")
    await api.execute(f"/procedures/{ids['procedure_id']}/iterations/start", {"iteration_index": 1})
    doing = {"event_id": str(new_id()), "step_kind": "setpoint", "payload": {"address": "bl7:x", "value": 1.5}}
    entries = [{**doing, "sampled_at": "2026-10-06T09:12:00Z"}]
    answer = await api.post(f"/procedures/{ids['procedure_id']}/activities", {"entries": entries})
    assert answer.json() == {"event_count": 1}, answer.text
    darks = {"kind": "ConductRecipe", "recipe_id": ids["recipe_id"], "name": "Darks {fired_at}"}
    nightly = {"name": f"Nightly darks {mark}", "calendar": {"cron": ["0 2 * * *"]}, "time_zone": "Europe/Berlin"}
    ids["schedule_id"] = await api.create("/schedules", {**nightly, "target": darks})
    root = await api.create("/assets", {"name": f"Imaging {mark}", "tier": "Unit", "facility_code": "facility"})
    ids["queue_id"] = await api.create("/queues", {"name": f"Tonight {mark}", "asset_id": root})
    queued = [{"title": title, "target": darks} for title in ("Darks", "More darks")]
    answer = await api.post(f"/queues/{ids['queue_id']}/add-items", {"items": queued})
    assert answer.status_code == 200, answer.text
    ids["other_item_id"], ids["item_id"] = answer.json()["item_ids"]
    ids["launch_id"] = await api.create("/launches", {"recipe_id": ids["recipe_id"], "name": f"Darks now {mark}"})
