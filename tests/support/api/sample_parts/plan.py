"""A plan: the practice bound to the asset, with a window, a wire and its role played."""

from tests.support.service import Api

WINDOW = {"window_starts_at": "2026-04-01T08:00:00Z", "window_ends_at": "2026-04-03T08:00:00Z"}


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    asset_id = ids["asset_id"]
    bound = {"practice_id": ids["practice_id"], "asset_ids": [asset_id], **WINDOW}
    ids["plan_id"] = await api.create("/plans", {"name": f"Spring block {mark}", **bound})
    sent, received = f"sent {mark}", f"received {mark}"
    for name, direction in ((sent, "Output"), (received, "Input")):
        port = {"port_name": name, "direction": direction, "signal_type": "TTL"}
        await api.execute(f"/assets/{asset_id}/add-port", port)
    source = {"source_asset_id": asset_id, "source_port_name": sent}
    target = {"target_asset_id": asset_id, "target_port_name": received}
    await api.execute(f"/plans/{ids['plan_id']}/add-wire", {**source, **target})
    await api.execute(f"/plans/{ids['plan_id']}/bind-role", {"role_name": "stage", "asset_id": asset_id})
