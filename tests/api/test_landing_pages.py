"""The pages that persistent identifiers lead to, for people and programs without any permission."""

import json
import re

import httpx

from tests.support.api.data_products import register_dataset
from tests.support.console.staff import ENFORCED
from tests.support.service import Api, running_api

JSON, LINKED_DATA, HTML = "application/json", "application/ld+json", "text/html,*/*;q=0.8"


async def ask(api: Api, path: str, accept: str) -> httpx.Response:
    return await api.request("GET", path, headers={"Accept": accept})


async def test_a_doi_leads_to_a_page_for_everybody_and_later_to_its_notice(api: Api) -> None:
    name = "scan </script><b>of pellet"
    dataset_id, plain = await register_dataset(api, name=name), await register_dataset(api)
    await api.execute(f"/datasets/{dataset_id}/promote", {"reason": "checked"})
    doi = (await api.post(f"/datasets/{dataset_id}/mint-external-id")).json()["external_id"]
    sample, camera = [
        await api.create(path, fields)
        for path, fields in (
            ("/subjects", {"name": "Pellet B-12"}),
            ("/assets", {"name": "Camera", "tier": "Unit", "facility_code": "facility"}),
        )
    ]
    public = {"public_landing_pages": ["subjects", "minted"]}
    async with running_api(api.database_url, projecting=False, **ENFORCED, **public) as open_to_all:
        path = f"/landing/datasets/{dataset_id}"
        page = await ask(open_to_all, path, HTML)
        assert page.status_code == 200
        assert f'<a href="https://doi.org/{doi}">' in page.text
        assert "<b>" not in page.text
        (data,) = re.findall('<script type="application/ld\\+json">(.*?)</script>', page.text)
        linked = await ask(open_to_all, path, LINKED_DATA)
        assert json.loads(data) == linked.json()
        assert (linked.json()["@id"], linked.json()["name"]) == (f"https://doi.org/{doi}", name)
        record = (await ask(open_to_all, path, JSON)).json()
        registered = json.loads((await api.get(f"/datasets/{dataset_id}/datacite")).content)
        assert record == registered, "the page shows what is registered, and nothing more"
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert (await open_to_all.request("GET", path, headers=link)).status_code == 200, "a link of a journal leads here"

        assert (await open_to_all.get(f"/landing/subjects/{sample}")).status_code == 200
        for kind, id in (("datasets", plain), ("assets", camera)):
            assert (await open_to_all.get(f"/landing/{kind}/{id}")).status_code == 403
            assert (await api.get(f"/landing/{kind}/{id}")).status_code == 200, "who may read it sees the page"
        for wrong in (f"runs/{plain}", "datasets/7", f"datasets/{sample}"):
            assert (await open_to_all.get(f"/landing/{wrong}")).json()["code"] == "LandingPageNotFoundError"

        await api.execute(f"/datasets/{dataset_id}/demote", {"reason": "Mira mixed up the samples"})
        notice = await ask(open_to_all, path, HTML)
        assert (notice.status_code, "Mira" in notice.text) == (200, False)
        assert re.search("Withdrawn on [0-9-]{10}[.] This dataset was retracted", notice.text)
        gone = await ask(open_to_all, path, JSON)
        assert (gone.status_code, gone.json()["code"]) == (410, "LandingPageWithdrawnError")
        assert gone.json()["facts"]["identifier"] == doi
