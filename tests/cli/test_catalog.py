"""Loading the starter catalog as a client: once, again, twice at once, and where it is refused."""

import asyncio
from typing import Any

import pytest

from baton.cli.catalog import load_catalog
from baton.domain.equipment.catalog import STARTER_ASSEMBLIES, STARTER_FAMILIES, STARTER_MODELS
from tests.support.service import Api, running_api

EVERYTHING = len(STARTER_FAMILIES) + len(STARTER_MODELS) + len(STARTER_ASSEMBLIES)


async def load_summary(api: Api, capsys: pytest.CaptureFixture[str]) -> str:
    """Load the catalog, and return the counts that are printed at its end."""
    await asyncio.to_thread(load_catalog, api.base_url, None)
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
    assert presented == {family.name: set(family.presents) for family in STARTER_FAMILIES}
    assert set(await items_by_name(api, "/models")) == {model.name for model in STARTER_MODELS}
    assemblies = await items_by_name(api, "/assemblies")
    microscope = (await api.get(f"/assemblies/{assemblies['Microscope']['assembly_id']}")).json()
    assert [
        (sub["slot_name"], sub["sub_assembly_id"], sub["content_hash"]) for sub in microscope["required_sub_assemblies"]
    ] == [("optics", assemblies["Optics"]["assembly_id"], assemblies["Optics"]["content_hash"])]

    assert await load_summary(api, capsys) == f"0 defined, {EVERYTHING} found and left alone."
    assert len(await items_by_name(api, "/assemblies")) == len(STARTER_ASSEMBLIES)


async def test_two_loads_at_once_define_nothing_twice(api: Api) -> None:
    await asyncio.gather(*(asyncio.to_thread(load_catalog, api.base_url, None) for _ in "12"))
    for path, entries in {
        "/families": STARTER_FAMILIES,
        "/models": STARTER_MODELS,
        "/assemblies": STARTER_ASSEMBLIES,
    }.items():
        assert len(await items_by_name(api, path)) == len(entries)


async def test_what_is_there_already_is_left_alone_and_what_was_cut_off_is_completed(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    own = await api.create("/families", {"name": "camera", "affordances": ["Reportable"]})
    cut_off = await api.create("/families", {"name": "Slit", "affordances": ["Translatable", "Homeable", "Limitable"]})
    assert await load_summary(api, capsys) == f"{EVERYTHING - 2} defined, 2 found and left alone."
    camera = (await api.get(f"/families/{own}")).json()
    assert (camera["affordances"], camera["presented_role_ids"]) == (["Reportable"], [])
    assert len((await api.get(f"/families/{cut_off}")).json()["presented_role_ids"]) == 1


async def load_refusal(url: str, capsys: pytest.CaptureFixture[str], token: str | None = None) -> str:
    """Return the one sentence that a load is refused with."""
    with pytest.raises(SystemExit) as refused:
        await asyncio.to_thread(load_catalog, url, token)
    assert refused.value.code == 2
    [sentence] = capsys.readouterr().err.splitlines()
    return sentence


async def test_nobody_at_the_address_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = await load_refusal("http://127.0.0.1:1", capsys)
    assert sentence.startswith("baton: No service answers at http://127.0.0.1:1")
    assert sentence.endswith("start it with `baton up`, or name its address with --url.")
    assert (await load_refusal("nonsense", capsys)).startswith("baton: nonsense is no URL")


async def test_a_service_that_wants_a_token_is_told_apart_from_one_that_forbids(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = {
        "issuer": "https://id.example.org",
        "jwks_url": "https://127.0.0.1:1/keys",
        "audiences": {"00000000-0000-0000-0000-000000000020": "baton"},
    }
    async with running_api(database_url, require_authenticated_principal=True, identity_providers=(provider,)) as api:
        assert (await load_refusal(api.base_url, capsys)).endswith("Put a bearer token into BATON_TOKEN.")
        assert "wants to know who asks" in await load_refusal(api.base_url, capsys, "not-a-token")
    async with running_api(database_url, authorization_mode="policy") as api:
        sentence = await load_refusal(api.base_url, capsys)
        assert sentence.startswith("baton: This principal may not load the catalog: ")
