"""What a witness needs of the service: its account, a plan, and where files are kept; and what stands on record of a run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from tests.support.api.rest_beamline import create_plan
from tests.support.service import Api
from tests.support.waiting import until
from tests.support.witness.engine_process import Scan

OVER = {"Completed", "Stopped", "Aborted", "Truncated"}


@dataclass(frozen=True)
class WitnessedBeamline:
    """A plan that Bluesky's runs are recorded by, and the account of their witness."""

    api: Api
    plan: str
    """The name of the plan."""
    plan_id: str
    stage_id: str
    camera_id: str
    account_id: str

    @property
    def environment(self) -> dict[str, str]:
        """What the process of a RunEngine is told about who it is."""
        return {"BATON_PRINCIPAL_ID": self.account_id}

    async def run_of(self, uid: str) -> dict[str, Any] | None:
        """Return the run that records a Bluesky run."""
        found = (await self.api.get("/runs", limit=100)).json()["items"]
        ids = [one["run_id"] for one in found]
        views = [(await self.api.get(f"/runs/{id}")).json() for id in ids]
        [*same] = [view for view in views if (view.get("witness") or {}).get("document_uid") == uid]
        assert len(same) <= 1, "one Bluesky run is one run"
        return same[0] if same else None

    async def ended_run(self, scan: Scan, within: float = 60) -> dict[str, Any]:
        """Return the run of a scan, once it has ended on record."""
        return await self.ended_run_of(scan.uid, within)

    async def ended_run_of(self, uid: str, within: float = 60) -> dict[str, Any]:
        """Return the run with a uid, once it has ended on record."""

        async def find_ended() -> dict[str, Any] | None:
            view = await self.run_of(uid)
            return view if view is not None and view["status"] in OVER else None

        view: dict[str, Any] = await until(find_ended, within)
        return view

    async def readings(self, run_id: str, sampling: str = "monitor") -> list[tuple[str, float, datetime]]:
        """Return every reading of a run."""
        found: list[tuple[str, float, datetime]] = []
        page: dict[str, Any] = {}
        while not page or page.get("next_cursor"):
            asked = {"limit": 500, "sampling_procedure": sampling}
            if page:
                asked["cursor"] = page["next_cursor"]
            page = (await self.api.get(f"/runs/{run_id}/observations", **asked)).json()
            found += [
                (one["channel_name"], one["value"], datetime.fromisoformat(one["sampled_at"])) for one in page["items"]
            ]
        return sorted(found)

    async def endings(self, run_id: str) -> list[str]:
        """Return the events of a run that end it."""
        history = (await self.api.get(f"/runs/{run_id}/history", limit=100)).json()["items"]
        kinds = {f"Run{status}" for status in OVER}
        return [one["event_type"] for one in history if one["event_type"] in kinds]


async def witnessed_beamline(api: Api, account_id: str | None = None) -> WitnessedBeamline:
    """A beamline whose scans a witness records; the stage that Bluesky moves is an asset with its address."""
    operator = api.acting_as(await api.create("/actors", {"name": "Noor Haddad"}))
    account = account_id or await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"})
    unit = {"name": f"BL7 {uuid4().hex[:6]}", "tier": "Unit", "facility_code": "facility"}
    unit_id = await operator.create("/assets", unit)
    stage = await operator.create("/assets", {"name": "Stage", "tier": "Device", "parent_id": unit_id})
    await operator.execute(f"/assets/{stage}/add-alternate-identifier", {"kind": "EPICS_PV", "value": "stage_x"})
    camera = await operator.create("/assets", {"name": "Camera", "tier": "Device", "parent_id": unit_id})
    family = await operator.create(
        "/families", {"name": f"Camera {uuid4().hex[:6]}", "affordances": ["Imageable", "Capturing"]}
    )
    await operator.execute(f"/assets/{camera}/add-family", {"family_id": family})
    disk = await operator.create(
        "/supplies", {"kind": "Storage", "name": f"Disk {uuid4().hex[:6]}", "facility_code": "facility"}
    )
    plan = await create_plan(operator, stage, camera)
    registration = {"data_registration": {"supply_id": disk, "capturing_asset_id": camera}}
    await operator.execute(f"/plans/{plan.plan_id}/set-data-registration", registration)
    name = (await operator.get(f"/plans/{plan.plan_id}")).json()["name"]
    return WitnessedBeamline(operator, name, plan.plan_id, stage, camera, account)
