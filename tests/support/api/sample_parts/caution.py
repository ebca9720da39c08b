"""A caution on the stage, in effect."""

from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    ids["caution_id"] = await api.create(
        "/cautions",
        {
            "target": {"kind": "Asset", "id": ids["asset_id"]},
            "category": "OperationalWindow",
            "severity": "Caution",
            "text": f"Rotation drifts after homing ({mark})",
            "workaround": "Wait ten minutes, then re-home",
            "tags": ["rotary"],
            "propagate_to_children": True,
        },
    )
