"""Mint sweeps on the whole stack: asked for, attended or left alone, repeated, and carried on whatever dies."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack import Stack, eventually

SWEEP = "/assets/mint-missing-external-ids"


def register_assets(stack: Stack, count: int) -> list[str]:
    """So many assets that lack an identifier, visible to everybody."""
    ids = [
        stack.create("/assets", {"name": f"Unit {uuid4()}", "tier": "Unit", "facility_code": "facility"})
        for _ in range(count)
    ]
    position = stack.client.post("/actors", json={"name": "Last"}).headers["X-Baton-Position"]
    stack.client.get("/assets", params={"min_position": position})
    return ids


def wait_until_finished(stack: Stack, sweep_id: str, within: float = 60.0) -> dict[str, Any]:
    """A sweep once it has come to its end."""

    def finished_sweep() -> dict[str, Any] | None:
        sweep: dict[str, Any] = stack.client.get(f"/mint-sweeps/{sweep_id}").json()
        return sweep if sweep["status"] == "Finished" else None

    return eventually(finished_sweep, within, what=lambda: stack.client.get(f"/mint-sweeps/{sweep_id}").text)  # type: ignore[return-value]


def minted_ids(sweep: dict[str, Any]) -> set[str]:
    return {asset["asset_id"] for asset in sweep["minted"]}


def assignments(stack: Stack, ids: Sequence[str]) -> list[int]:
    """How often each asset was assigned an identifier."""
    histories = [stack.client.get(f"/assets/{id}/history").json()["items"] for id in ids]
    return [sum(event["event_type"] == "AssetExternalIdAssigned" for event in events) for events in histories]


def test_a_sweep_that_is_waited_for_answers_with_what_became_of_each_asset(stack: Stack) -> None:
    ids = register_assets(stack, 3)
    answer = stack.client.post(SWEEP, json={"wait": 60}, timeout=70)
    assert answer.status_code == 200, answer.text
    sweep = answer.json()
    assert (sweep["status"], sweep["failed"], set(ids) <= minted_ids(sweep)) == ("Finished", [], True)
    assert stack.client.get(f"/mint-sweeps/{sweep['sweep_id']}").json() == sweep
    assert assignments(stack, ids) == [1, 1, 1]


def test_a_sweep_that_is_not_waited_for_is_accepted_and_goes_on(stack: Stack) -> None:
    ids = register_assets(stack, 2)
    answer = stack.client.post(SWEEP, json={"wait": 0})
    assert answer.status_code == 202, answer.text
    accepted = answer.json()
    assert accepted["work_id"] == accepted["sweep_id"]
    assert set(ids) <= minted_ids(wait_until_finished(stack, accepted["sweep_id"]))


def test_a_repeat_with_the_same_key_attaches_to_the_sweep(stack: Stack) -> None:
    register_assets(stack, 1)
    once, again = (
        stack.client.post(SWEEP, json={"wait": 60}, headers={"Idempotency-Key": "the-same-sweep"}, timeout=70) for _ in "12"
    )
    assert (once.status_code, once.headers.get("Idempotency-Replayed")) == (200, None)
    assert (again.status_code, again.headers.get("Idempotency-Replayed")) == (200, "true")
    assert again.json() == once.json()


def test_what_is_asked_for_while_temporal_is_away_is_done_when_it_is_back(stack: Stack) -> None:
    ids = register_assets(stack, 1)
    temporal = stack.piece("temporal")
    temporal.suspend()
    try:
        answer = stack.client.post(SWEEP, json={"wait": 0})
        assert answer.status_code == 202, answer.text
        assert stack.client.get(f"/mint-sweeps/{answer.json()['sweep_id']}").json()["status"] == "Running"
        assert stack.client.post("/actors", json={"name": "Unimpeded"}).status_code == 201
    finally:
        temporal.resume()
    assert minted_ids(wait_until_finished(stack, answer.json()["sweep_id"])) == set(ids)


@pytest.mark.timeout(240)
def test_a_worker_killed_in_the_middle_of_a_sweep_leaves_nothing_undone_and_nothing_done_twice(stack: Stack) -> None:
    ids = register_assets(stack, 80)
    sweep_id = stack.client.post(SWEEP, json={"wait": 0}).json()["sweep_id"]

    def scanned_count() -> int:
        count: int = stack.client.get(f"/mint-sweeps/{sweep_id}").json()["scanned"]
        return count

    eventually(lambda: scanned_count() >= 5)
    stack.kill("worker")
    assert scanned_count() < len(ids), "the sweep was over before the worker was killed"
    sweep = wait_until_finished(stack, sweep_id, within=100)
    assert (minted_ids(sweep), sweep["skipped"], sweep["failed"]) == (set(ids), [], [])
    assert assignments(stack, ids) == [1] * len(ids)
