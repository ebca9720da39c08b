"""Attaching an asset to a fixture and taking it out of its mount, at the same moment on the real store."""

from typing import Any

import pytest

from tests.support.api.concurrent_requests import send_at_once
from tests.support.api.samples import create_catalog_samples, create_equipment_samples
from tests.support.service import Api


@pytest.mark.parametrize("first", [0, 1], ids=["attach first", "uninstall first"])
async def test_an_asset_is_not_both_attached_and_uninstalled_by_requests_that_meet(api: Api, first: int) -> None:
    ids: dict[str, str] = {}
    for make in (create_catalog_samples, create_equipment_samples):
        await make(api, ids, f"races-{first}")
    asset, mount, fixture = f"/assets/{ids['asset_id']}", f"/mounts/{ids['mount_id']}", {"fixture_id": ids["fixture_id"]}
    await api.execute(f"{asset}/fixture/detach", fixture)
    requests: list[Any] = [api.post(f"{asset}/fixture/attach", fixture), api.post(f"{mount}/uninstall", {"reason": "swap"})]
    answers = await send_at_once(api.database_url, requests[first], requests[1 - first])
    assert sorted(answer.status_code for answer in answers) == [204, 409], "one of them comes too late"
    lost = next(answer.json() for answer in answers if answer.status_code == 409)
    assert (lost["code"], lost["reason"]) in {
        ("AssetCannotAttachToFixtureError", "not_installed"),
        ("MountCannotUninstallAssetError", "asset_fixture_bound"),
    }
    attached = (await api.get(asset)).json()["fixture_id"] is not None
    installed = (await api.get(mount)).json()["installed_asset_id"] is not None
    assert attached == installed
