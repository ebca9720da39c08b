"""The report of a run over REST: one page that anybody can read, the same bytes twice, and a zip that others can check."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from io import BytesIO, StringIO
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import httpx
import pytest

from baton.infrastructure.wall_clock import new_id
from tests.support.api.data_products import register_copy, register_dataset
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api

BEGAN = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)
SCRIPT = "<script>alert(1)</script>"
FOOT = b'<footer class="foot">'


@pytest.fixture(scope="module")
async def line(api: Api) -> Beamline:
    return await beamline(api)


def reading(channel: str, value: float, number: int) -> dict[str, Any]:
    at = (BEGAN + timedelta(seconds=number)).isoformat()
    said = {"event_id": str(new_id()), "channel_name": channel, "value": value, "units": "mA", "sampled_at": at}
    return {**said, "sampling_procedure": "monitor"}


async def eventful_run(line: Beamline) -> str:
    """A live run with a hold, an adjustment, readings, a dataset with a copy, and a note."""
    run_id = await line.start_run(name=f"Load step {SCRIPT}", subject_id=line.subject_id)
    path = f"/runs/{run_id}"
    await line.api.execute(f"{path}/hold", {"reason": "The beam was lost."})
    await line.api.execute(f"{path}/resume")
    changed = {"parameters_patch": {"projections": 900}, "reason": "The beam goes at four."}
    await line.api.execute(f"{path}/adjust", changed)
    entries = [reading("ring current", 300 + number, number) for number in range(5)]
    await line.api.execute(f"{path}/observations", {"entries": entries})
    note = {"event_id": str(new_id()), "text": "It was a little cold."}
    await line.api.execute(f"{path}/logbook", {"entries": [note]})
    dataset_id = await register_dataset(line.api, producing_run_id=run_id, name="Raw projections")
    await register_copy(line.api, dataset_id)
    return run_id


async def report(line: Beamline, run_id: str, **asked: Any) -> httpx.Response:
    """Return the report of a run as the record has it now."""
    position = await line.api.runtime.store.last_position()
    answer = await line.api.get(f"/runs/{run_id}/report", min_position=position, **asked)
    assert answer.status_code == 200, answer.text
    return answer


async def test_a_report_tells_what_happened_on_one_page_that_loads_nothing(line: Beamline) -> None:
    run_id = await eventful_run(line)
    await line.api.execute(f"/runs/{run_id}/complete")
    answer = await report(line, run_id)
    assert answer.headers["content-type"] == "text/html"
    page = answer.text
    for told in ("The beam was lost.", "The beam goes at four.", "It was a little cold.", "Raw projections", "Alloy bar 7"):
        assert told in page, told
    for told in ("Spring block", "ring current", "It was held once", "passed every gate", "900"):
        assert told in page, told
    assert SCRIPT not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert re.findall(r"<(?:script|link|iframe|object)\b|\b(?:src|href)=\"(?!data:)|url\(", page) == []


async def test_a_report_of_an_ended_run_is_the_same_twice_and_names_its_own_digest(line: Beamline) -> None:
    run_id = await eventful_run(line)
    await line.api.execute(f"/runs/{run_id}/complete")
    first, second = await report(line, run_id), await report(line, run_id)
    assert first.content == second.content
    above, foot = first.content.split(FOOT)
    digest = sha256(above).hexdigest()
    assert digest.encode() in foot
    assert first.headers["x-baton-sha256"] == digest
    assert (await report(line, run_id, format="zip")).content == (await report(line, run_id, format="zip")).content


async def test_a_report_of_a_live_run_says_so_far(line: Beamline) -> None:
    run_id = await eventful_run(line)
    assert "so far" in (await report(line, run_id)).text
    await line.api.execute(f"/runs/{run_id}/complete")
    assert "so far" not in (await report(line, run_id)).text


async def test_people_are_left_out_where_nobody_is_to_be_named(line: Beamline) -> None:
    person = await line.api.create("/actors", {"name": "Mira Okafor"})
    run_id = await eventful_run(line)
    await line.api.acting_as(person).execute(f"/runs/{run_id}/stop", {"reason": "Enough."})
    assert "Mira Okafor" in (await report(line, run_id)).text
    assert "Mira Okafor" not in (await report(line, run_id, names="false")).text
    archive = ZipFile(BytesIO((await report(line, run_id, names="false", format="zip")).content))
    assert all(person not in archive.read(name).decode() for name in archive.namelist())


async def test_a_zip_has_tables_and_a_crate_that_refers_to_the_data(line: Beamline) -> None:
    run_id = await eventful_run(line)
    await line.api.execute(f"/runs/{run_id}/complete")
    answer = await report(line, run_id, format="zip")
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["x-baton-sha256"] == sha256(answer.content).hexdigest()
    archive = ZipFile(BytesIO(answer.content))
    tables = {"steps.csv", "points.csv", "observations.csv"}
    assert set(archive.namelist()) == {"ro-crate-metadata.json", "report.html", "events.jsonl", *tables}
    readings = [*csv.DictReader(StringIO(archive.read("observations.csv").decode()))]
    assert [row["value"] for row in readings] == ["300.0", "301.0", "302.0", "303.0", "304.0"]
    events = [json.loads(line)["event_type"] for line in archive.read("events.jsonl").splitlines()]
    assert events == ["RunStarted", "RunHeld", "RunResumed", "RunAdjusted", "RunCompleted"]
    crate = {one["@id"]: one for one in json.loads(archive.read("ro-crate-metadata.json"))["@graph"]}
    action = crate["#run"]
    assert (action["@type"], action["actionStatus"]["@id"]) == ("CreateAction", "http://schema.org/CompletedActionStatus")
    [result] = action["result"]
    assert crate[result["@id"]]["name"] == "Raw projections"
    named = [one["@id"] for role in ("agent", "object", "instrument") for one in as_list(action[role])]
    assert set(named) <= crate.keys()
    assert {part["@id"] for part in crate["./"]["hasPart"]} <= crate.keys()


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


async def test_a_report_of_a_run_that_is_not_on_record_is_404(line: Beamline) -> None:
    answer = await line.api.get(f"/runs/{uuid4()}/report")
    assert (answer.status_code, answer.json()["code"]) == (404, "RunNotFoundError")
