"""An enclosure nobody has observed yet; only a service account could."""

from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    hutch = {"name": f"Imaging hutch {mark}", "facility_code": "facility"}
    ids["enclosure_id"] = await api.create("/enclosures", hutch)
