"""A supply that somebody looked at."""

from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    nitrogen = {"kind": "cryogen", "name": f"Nitrogen drop {mark}", "facility_code": "facility"}
    ids["supply_id"] = await api.create("/supplies", {**nitrogen, "containing_asset_id": ids["asset_id"]})
    await api.execute(f"/supplies/{ids['supply_id']}/mark-available", {"reason": "walkdown, flow nominal"})
