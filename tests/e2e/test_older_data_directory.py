"""A data directory that an older version left with work under way: it opens, shows what it held, and the work goes on.

`tests/data/before_baton_import/make.py` made it; `facts.json` says how everything stood.
"""

import json
import lzma
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stack import Stack, eventually, running_stack

HELD_BACK = Path(__file__).parents[1] / "data" / "before_baton_import"
OPERATIONS = json.loads((HELD_BACK.parent / "operations.json").read_text())
FACTS: dict[str, Any] = json.loads((HELD_BACK / "facts.json").read_text())
WHOLE = ("/reactions", "/affordances")
"""Lists that have no pages."""
MOVING = ("/procedures", "/runs", "/schedules", "/reactions", "/enclosures")
"""Lists whose rows change because the work goes on, or because what a monitor said long ago counts no more."""
PATIENT = {"CONDUCT_RESTART_LIMIT_SECONDS": str(10**9)}
"""A conduct that has stood still for longer is given up, and this directory only gets older."""
OVER = ("Completed", "Aborted", "Stopped", "Truncated", "Retired")


@pytest.fixture(scope="module")
def older_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of this version on the older directory."""
    directory = tmp_path_factory.mktemp("older")
    with lzma.open(HELD_BACK / "directory.tar.xz") as unpacked, tarfile.open(fileobj=unpacked) as tar:
        tar.extractall(directory, filter="tar")
    plant = {"SIMULATION_JOURNAL": str(directory / FACTS["journal"])}
    settings: dict[str, Any] = {**FACTS["settings"], **PATIENT, **plant}
    with running_stack(directory, **settings) as stack:
        yield stack


def read(stack: Stack, path: str, **parameters: Any) -> Any:
    """What a question that must succeed is answered."""
    answer = stack.client.get(path, params=parameters)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer.json()


def ask(stack: Stack, path: str, body: Any, **headers: str) -> None:
    """Ask for something that may be still to come."""
    answer = stack.client.post(path, json=body, headers=headers)
    assert answer.status_code in (200, 202, 204), f"{path}: {answer.text}"


def rows(stack: Stack, path: str) -> list[dict[str, Any]]:
    """Every row of a list."""
    found: list[dict[str, Any]] = []
    paging: dict[str, Any] = {} if path in WHOLE else {"limit": 100}
    while True:
        page = read(stack, path, **paging)
        found += page["items"]
        if page.get("next_cursor") is None:
            return found
        paging["cursor"] = page["next_cursor"]


def by_id(listed: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows under their ids, which are what they begin with."""
    return {next(iter(row.values())): row for row in listed}


def procedure(name: str) -> str:
    """Where a procedure of the facts is."""
    return f"/procedures/{FACTS['procedures'][name]['id']}"


def is_completed(stack: Stack, path: str) -> bool:
    """Whether something has come to its good end; no other end is to come."""
    status = read(stack, path)["status"]
    assert status in ("Defined", "Running", "Held", "Completed"), f"{path} is {status}: {read(stack, f'{path}/history')}"
    return bool(status == "Completed")


def outcomes(stack: Stack, name: str) -> dict[tuple[bool, int], Counter[str]]:
    """How often each step of a procedure was begun and done, by the ledger."""
    told: dict[tuple[bool, int], Counter[str]] = defaultdict(Counter)
    for row in rows(stack, f"{procedure(name)}/activities"):
        payload = row["payload"]
        told[bool(payload.get("closing")), payload["step_index"]][payload["result"]] += 1
    return told


def writes(stack: Stack, address: str) -> list[float]:
    """Return what was written to an address, in order, by the plant's own journal."""
    lines = (stack.directory / FACTS["journal"]).read_text().splitlines()
    entries = (json.loads(line) for line in lines)
    return [entry["value"] for entry in entries if (entry["kind"], entry["address"]) == ("write", address)]


def assert_done_once(stack: Stack, name: str, address: str, targets: list[float]) -> None:
    """Every step of a scan was begun once and done once, by the ledger and by the plant."""
    assert writes(stack, address) == targets
    told = outcomes(stack, name)
    assert [index for closing, index in sorted(told) if not closing] == list(range(len(targets)))
    assert all(counted == {"in_flight": 1, "ok": 1} for counted in told.values()), told


def angles(name: str) -> list[float]:
    """Where a scan of the facts goes."""
    return [20.0 * number for number in range(1, FACTS["procedures"][name]["step_count"] + 1)]


def test_every_list_has_what_it_had(older_stack: Stack) -> None:
    assert read(older_stack, "/health")
    assert read(older_stack, "/readyz")
    listed = json.loads(lzma.decompress((HELD_BACK / "lists.json.xz").read_bytes()))
    assert {path: len(found) for path, found in listed.items()} == FACTS["lists"]
    for path, before in listed.items():
        now = by_id(rows(older_stack, path))
        for id, row in by_id(before).items():
            assert id in now, f"{path} has lost {row}"
            if path not in MOVING or row.get("status") in OVER:
                assert row.items() <= now[id].items(), f"{path}: {row} has become {now[id]}"


def test_the_log_and_every_history_have_the_old_events(older_stack: Stack) -> None:
    count = sum(FACTS["events"].values())
    events = rows(older_stack, "/events")[:count]
    assert Counter(event["event_type"] for event in events) == FACTS["events"]
    streams: dict[tuple[str, str], list[str]] = defaultdict(list)
    for event in events:
        streams[event["stream_type"], event["stream_id"]].append(event["event_type"])
    shown = 0
    for operation in OPERATIONS:
        path = operation["path"].partition("/{")[0]
        if not operation["path"].endswith("_id}/history") or path not in FACTS["lists"]:
            continue
        id, before = next((id, streams[kind, id]) for kind, id in streams if kind == operation["aggregate"])
        history = [item["event_type"] for item in rows(older_stack, f"{path}/{id}/history")]
        assert history[: len(before)] == before, f"{path}/{id}"
        shown += 1
    assert shown > 20


def test_a_conduct_under_way_goes_on_and_does_nothing_twice(older_stack: Stack) -> None:
    fact = FACTS["procedures"]["scan"]
    assert (fact["status"], 0 < fact["step_index"] < fact["step_count"]) == ("Running", True)
    eventually(lambda: is_completed(older_stack, procedure("scan")), what=older_stack.output)
    result = read(older_stack, f"{procedure('scan')}/conduct")["result"]
    assert (result["conduct_id"], result["completed_count"]) == (fact["conduct_id"], fact["step_count"])
    assert_done_once(older_stack, "scan", "bl7:scan", angles("scan"))
    assert writes(older_stack, "bl7:lamp") == [0]


def test_a_step_that_was_cut_off_is_taken_up(older_stack: Stack) -> None:
    eventually(lambda: is_completed(older_stack, procedure("slow move")), what=older_stack.output)
    told = outcomes(older_stack, "slow move")
    assert [told[False, index]["ok"] for index in (0, 1)] == [1, 1]
    assert set(writes(older_stack, "bl7:slow")) == {25.0}


def test_the_conduct_of_a_run_goes_on_with_its_phase(older_stack: Stack) -> None:
    run = f"/runs/{FACTS['runs']['run']['id']}"
    eventually(lambda: is_completed(older_stack, run), what=older_stack.output)
    assert_done_once(older_stack, "first phase", "bl7:darks", angles("first phase"))
    assert_done_once(older_stack, "second phase", "bl7:tomo", angles("second phase"))
    assert read(older_stack, f"{run}/conduct")["result"]


def search_hutch(stack: Stack) -> None:
    """Have the interlock permit the hutch again: what it said long ago counts no more."""
    permitted = {"new_status": "Permitted", "reason": "searched"}
    source = {"monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:B:PERMIT"}}
    path = f"/enclosures/{FACTS['hutch']['enclosure_id']}/observe-status"
    ask(stack, path, {**permitted, **source}, **{"X-Principal-Id": FACTS["hutch"]["monitor_id"]})


def test_a_run_that_was_held_goes_on_when_it_is_resumed(older_stack: Stack) -> None:
    run = f"/runs/{FACTS['runs']['waiting run']['id']}"
    assert read(older_stack, run)["status"] == FACTS["runs"]["waiting run"]["status"] == "Held"
    assert read(older_stack, f"{procedure('waiting phase')}/conduct")["waiting_for"] == "run"
    search_hutch(older_stack)
    ask(older_stack, f"{run}/resume", {})
    eventually(lambda: is_completed(older_stack, run), what=older_stack.output)
    assert_done_once(older_stack, "waiting phase", "bl7:theta", angles("waiting phase"))


def test_a_held_conduct_is_taken_up_at_the_first_step_that_is_not_done(older_stack: Stack) -> None:
    assert read(older_stack, procedure("held"))["status"] == FACTS["procedures"]["held"]["status"] == "Held"
    ask(older_stack, f"{procedure('held')}/reconduct", {"wait": 0})
    eventually(lambda: is_completed(older_stack, procedure("held")), what=older_stack.output)
    assert_done_once(older_stack, "held", "bl7:held", angles("held"))


def test_a_search_that_waited_for_advice_longer_than_it_may_is_held_and_goes_on_with_what_it_measured(
    older_stack: Stack,
) -> None:
    path = procedure("search")
    assert FACTS["procedures"]["search"]["waiting_for"] == "advice"
    patience = FACTS["search"]["decide"]["advice_timeout"]
    eventually(lambda: read(older_stack, path)["status"] == "Held", patience, what=older_stack.output)
    assert read(older_stack, path)["hold_cause"] == "DriverStoodDown"
    ask(older_stack, f"{path}/steering/resume", {**FACTS["search"], "wait": 0})
    question = eventually(
        lambda: (asked := read(older_stack, f"{path}/steering"))["waiting"] and asked, what=older_stack.output
    )
    assert len(question["evidence"]["observations"]) == 2
    advice = {"iteration_index": question["iteration_index"], "advice": {"verdict": "Stop"}}
    ask(older_stack, f"{path}/steering/advise", advice)
    eventually(lambda: is_completed(older_stack, path), what=older_stack.output)
    assert len(writes(older_stack, "bl7:focus")) == 2, "what was measured is not measured again"


def fire(stack: Stack, name: str, verb: str) -> None:
    """Have a schedule fire once more, and see that its firings are numbered without a gap."""
    fact = FACTS["schedules"][name]
    path = f"/schedules/{fact['id']}"
    ask(stack, f"{path}/{verb}", {})

    def has_fired() -> bool:
        shown = read(stack, path)
        return bool(shown["firing_count"] > fact["firing_count"] and shown["last_firings"][0]["outcome"] == "Completed")

    eventually(has_fired, what=stack.output)
    fired = [item["payload"] for item in rows(stack, f"{path}/history") if item["event_type"] == "ScheduleFired"]
    assert [one["count"] for one in fired] == list(range(1, len(fired) + 1))
    assert len({one["scheduled_at"] for one in fired}) == len(fired) > fact["firing_count"]


def test_an_active_schedule_is_still_on_the_calendar_and_counts_on_when_it_fires(older_stack: Stack) -> None:
    shown = read(older_stack, f"/schedules/{FACTS['schedules']['active schedule']['id']}")
    assert shown["status"] == "Active"
    assert shown["next_firings"]
    fire(older_stack, "active schedule", "trigger")


def test_a_held_schedule_has_stayed_held_and_fires_by_its_calendar_once_it_is_resumed(older_stack: Stack) -> None:
    fact = FACTS["schedules"]["held schedule"]
    shown = read(older_stack, f"/schedules/{fact['id']}")
    assert (shown["status"], shown["firing_count"], shown["next_firings"]) == ("Held", fact["firing_count"], [])
    fire(older_stack, "held schedule", "resume")
