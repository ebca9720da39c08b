"""A subject on the stage."""

from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    ids["subject_id"] = await api.create("/subjects", {"name": f"Catalyst pellet {mark}"})
    mounted = {"asset_id": ids["asset_id"], "reason": "loaded for overview scan"}
    await api.execute(f"/subjects/{ids['subject_id']}/mount", mounted)
