"""Catalogues on the whole stack: what is registered over REST appears there, once, whatever dies meanwhile."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.infrastructure.scicat_server import PREFIX, SciCatServer
from tests.support.stack import Stack, eventually


def register_dataset(stack: Stack, name: str, uri: str = "file:///elsewhere/scan.h5") -> str:
    return stack.create(
        "/datasets",
        {
            "name": name,
            "uri": uri,
            "checksum": {"algorithm": "sha256", "value": sha256(name.encode()).hexdigest()},
            "byte_size": 6,
            "encoding": {"media_type": "application/x-hdf5"},
        },
    )


def entries(stack: Stack, **filters: Any) -> dict[str, dict[str, Any]]:
    """The entries of datasets in SciCat, by dataset."""
    answer = stack.client.get("/catalogue-entries", params={"catalogue": "SciCat", "limit": 100, "order": "desc", **filters})
    assert answer.status_code == 200, answer.text
    return {entry["dataset_id"]: entry for entry in answer.json()["items"]}


def wait_until_entered(stack: Stack, *ids: str, within: float = 60) -> None:
    """Wait until SciCat has these datasets."""

    def statuses() -> list[Any]:
        found = entries(stack)
        return [found.get(id, {}).get("status") for id in ids]

    eventually(lambda: statuses() == ["Entered"] * len(ids), within, what=statuses)


def is_idle(stack: Stack) -> bool:
    """Whether no pass over a catalogue runs: a retry would join it, and be answered with all that it has done."""
    with psycopg.connect(stack.address("database_url")) as connection:
        return not connection.execute("SELECT FROM tasks WHERE status = 'Running'").fetchall()


def test_a_dataset_that_is_registered_over_rest_appears_in_the_catalogue(stack: Stack, scicat: SciCatServer) -> None:
    id = register_dataset(stack, "pellet.h5")
    wait_until_entered(stack, id)
    kept = scicat.datasets[f"{PREFIX}/{id}"]
    assert (kept["datasetName"], kept["type"], kept["validationStatus"]) == ("pellet.h5", "raw", "Trial")
    assert stack.client.post(f"/datasets/{id}/discard", json={"reason": "wrong sample"}).status_code == 204
    eventually(lambda: kept["keywords"] == ["Discarded", "Trial"], what=lambda: kept)


def test_a_refused_dataset_is_retried_by_a_person_and_answers_with_what_came_of_it(
    stack: Stack, scicat: SciCatServer
) -> None:
    scicat.refused_names.add("unwanted.h5")
    id = register_dataset(stack, "unwanted.h5")
    eventually(lambda: entries(stack).get(id, {}).get("status") == "Refused", what=lambda: entries(stack))
    assert "datasetName is not allowed here" in entries(stack, dataset_id=id)[id]["last_error"]
    retry = f"/datasets/{id}/retry-catalogue-entry"
    eventually(lambda: is_idle(stack), what="a pass does not end")
    again = stack.client.post(retry, json={"catalogue": "SciCat", "wait": 30}, timeout=40)
    assert (again.status_code, again.json()["refused_count"]) == (200, 1), again.text
    scicat.refused_names.clear()
    mended = stack.client.post(retry, json={"catalogue": "SciCat", "wait": 30}, timeout=40)
    assert mended.json() == {"catalogue": "SciCat", "entered_count": 1, "refused_count": 0}
    assert entries(stack, dataset_id=id)[id]["status"] == "Entered"


@pytest.mark.timeout(240)
def test_a_worker_killed_while_it_tells_the_catalogue_leaves_every_dataset_entered_once(
    stack: Stack, scicat: SciCatServer
) -> None:
    scicat.closes_after = len(scicat.creations) + 3
    try:
        ids = [register_dataset(stack, f"burst_{number}.h5") for number in range(10)]
        eventually(lambda: len(entries(stack, status="Pending")) == len(ids) - 2 and not scicat.gate.is_set())
        stack.kill("worker")
    finally:
        scicat.gate.set()
    wait_until_entered(stack, *ids, within=100)
    pids = [f"{PREFIX}/{id}" for id in ids]
    assert [scicat.creations.count(pid) for pid in pids] == [1] * len(ids)
    assert [len(scicat.blocks[pid]) for pid in pids] == [1] * len(ids)


def test_registering_does_not_wait_for_a_catalogue_that_is_down(stack: Stack, scicat: SciCatServer) -> None:
    scicat.down = True
    try:
        id = register_dataset(stack, "meanwhile.h5")
        eventually(lambda: "cannot be reached" in (entries(stack).get(id, {}).get("last_error") or ""))
    finally:
        scicat.down = False
    wait_until_entered(stack, id)


def test_a_file_is_linked_for_tiled_and_a_discarded_one_is_not(stack: Stack, data_root: Path, tiled_directory: Path) -> None:
    (data_root / "linked.h5").write_bytes(b"frames")
    id = register_dataset(stack, "linked.h5", (data_root / "linked.h5").as_uri())

    def links() -> list[Path]:
        return list(tiled_directory.glob(f"facility/*/no-run/linked_{id}.h5"))

    (link,) = eventually(links)
    assert link.readlink() == data_root / "linked.h5"
    stack.client.post(f"/datasets/{id}/discard", json={"reason": "wrong sample"})
    eventually(lambda: not links())
    assert (data_root / "linked.h5").read_bytes() == b"frames"
