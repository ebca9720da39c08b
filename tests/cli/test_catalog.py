"""Loading the starter catalog as a client: once, again, twice at once, and beside what is there already."""

import asyncio
from typing import Any

import pytest

from baton.beamline.catalog import load_catalog, starter_catalog
from baton.client import Baton
from tests.support.service import Api

CATALOG = starter_catalog().content
EVERYTHING = len(CATALOG.families) + len(CATALOG.models) + len(CATALOG.assemblies)


def load(api: Api) -> int:
    """Load the catalog by a client of its own."""
    with Baton(api.base_url) as client:
        return load_catalog(client)


async def load_summary(api: Api, capsys: pytest.CaptureFixture[str]) -> str:
    """Load the catalog, and return the counts that are printed at its end."""
    assert await asyncio.to_thread(load, api) == 0
    return capsys.readouterr().out.strip().rpartition(": ")[2]


async def items_by_name(api: Api, path: str) -> dict[str, dict[str, Any]]:
    """Return the items of a list, each of another name, once all commands so far show in it."""
    position = await api.execute("/actors", {"name": "Probe"})
    items = (await api.get(path, limit=100, min_position=position)).json()["items"]
    assert len(items) == len({item["name"] for item in items}), "nothing is there twice"
    return {item["name"]: item for item in items}


async def test_a_load_defines_everything_and_the_next_one_nothing(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    assert await load_summary(api, capsys) == f"{EVERYTHING} defined, 0 found and left alone."
    families = await items_by_name(api, "/families")
    roles = {role["role_id"]: name for name, role in (await items_by_name(api, "/roles")).items()}
    presented = {name: {roles[id] for id in family["presented_role_ids"]} for name, family in families.items()}
    assert presented == {family.name: set(family.presents or ()) for family in CATALOG.families}
    assert set(await items_by_name(api, "/models")) == {model.name for model in CATALOG.models}
    assemblies = await items_by_name(api, "/assemblies")
    microscope = (await api.get(f"/assemblies/{assemblies['Microscope']['assembly_id']}")).json()
    assert [
        (sub["slot_name"], sub["sub_assembly_id"], sub["content_hash"]) for sub in microscope["required_sub_assemblies"]
    ] == [("optics", assemblies["Optics"]["assembly_id"], assemblies["Optics"]["content_hash"])]

    assert await load_summary(api, capsys) == f"0 defined, {EVERYTHING} found and left alone."
    assert len(await items_by_name(api, "/assemblies")) == len(CATALOG.assemblies)


async def test_two_loads_at_once_define_nothing_twice(api: Api) -> None:
    await asyncio.gather(*(asyncio.to_thread(load, api) for _ in "12"))
    for path, entries in {
        "/families": CATALOG.families,
        "/models": CATALOG.models,
        "/assemblies": CATALOG.assemblies,
    }.items():
        assert len(await items_by_name(api, path)) == len(entries)


async def test_what_is_there_already_is_left_alone_and_what_was_cut_off_is_completed(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    own = await api.create("/families", {"name": "camera", "affordances": ["Reportable"]})
    [slit] = [family for family in CATALOG.families if family.name == "Slit"]
    cut_off = await api.create("/families", {"name": "Slit", "affordances": list(slit.affordances or ())})
    assert await load_summary(api, capsys) == f"{EVERYTHING - 2} defined, 2 found and left alone."
    camera = (await api.get(f"/families/{own}")).json()
    assert (camera["affordances"], camera["presented_role_ids"]) == (["Reportable"], [])
    assert len((await api.get(f"/families/{cut_off}")).json()["presented_role_ids"]) == 1
