"""A calibration whose first value was replaced by a better one."""

from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    place = {"energy": 25, "optics_config": f"5x {mark}"}
    ids["calibration_id"] = await api.create(
        "/calibrations", {"target_id": ids["asset_id"], "quantity": "rotation_center", "operating_point": place}
    )
    revisions = f"/calibrations/{ids['calibration_id']}/revisions"
    guess = {
        "value": {"center": 1024.5},
        "status": "Provisional",
        "source": {"kind": "Asserted", "asserted_by": ids["actor_id"]},
    }
    ids["superseded_revision_id"] = await api.create(revisions, guess)
    following = {"status": "Verified", "supersedes_revision_id": ids["superseded_revision_id"]}
    better = {**guess, "value": {"center": 1024.72}, **following}
    ids["revision_id"] = await api.create(revisions, better)
