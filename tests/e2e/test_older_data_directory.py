"""Data directories that older versions left with work under way: they open, show what they held, and the work goes on."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.older_directory import DATA, OlderStack, running_older_stack

OPERATIONS = json.loads((DATA / "operations.json").read_text())
MOVING = ("/procedures", "/runs", "/schedules", "/queues", "/proposals", "/reactions", "/enclosures")
"""Lists whose rows change because the work goes on, or because what a monitor said long ago counts no more."""
OVER = ("Completed", "Aborted", "Stopped", "Truncated", "Retired")
BEFORE_IMPORT, BEFORE_LAUNCH = "before_baton_import", "before_launch"


@pytest.fixture(scope="module", params=[BEFORE_IMPORT, BEFORE_LAUNCH])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OlderStack]:
    """A stack of this version on an older directory."""
    with running_older_stack(request.param, tmp_path_factory.mktemp("older")) as stack:
        yield stack


def left_by(name: str) -> pytest.MarkDecorator:
    """Open one of the directories only: the other has nothing of the kind."""
    return pytest.mark.parametrize("older", [name], indirect=True, scope="module")


def by_id(listed: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows under their ids, which are what they begin with."""
    return {next(iter(row.values())): row for row in listed}


def test_every_list_has_what_it_had(older: OlderStack) -> None:
    assert older.read("/health")
    assert older.read("/readyz")
    assert {path: len(found) for path, found in older.lists.items()} == older.facts["lists"]
    for path, before in older.lists.items():
        now = by_id(older.rows(path))
        for id, row in by_id(before).items():
            assert id in now, f"{path} has lost {row}"
            if path not in MOVING or row.get("status") in OVER:
                assert row.items() <= now[id].items(), f"{path}: {row} has become {now[id]}"


def test_the_log_and_every_history_have_the_old_events(older: OlderStack) -> None:
    count = sum(older.facts["events"].values())
    events = older.rows("/events")[:count]
    assert Counter(event["event_type"] for event in events) == older.facts["events"]
    streams: dict[tuple[str, str], list[str]] = defaultdict(list)
    for event in events:
        streams[event["stream_type"], event["stream_id"]].append(event["event_type"])
    shown = 0
    for operation in OPERATIONS:
        path = operation["path"].partition("/{")[0]
        if not operation["path"].endswith("_id}/history") or path not in older.facts["lists"]:
            continue
        id, before = next((id, streams[kind, id]) for kind, id in streams if kind == operation["aggregate"])
        history = [item["event_type"] for item in older.rows(f"{path}/{id}/history")]
        assert history[: len(before)] == before, f"{path}/{id}"
        shown += 1
    assert shown > 20


def test_a_conduct_under_way_goes_on_and_does_nothing_twice(older: OlderStack) -> None:
    fact = older.facts["procedures"]["scan"]
    assert (fact["status"], 0 < fact["step_index"] < fact["step_count"]) == ("Running", True)
    older.wait_until_completed(older.procedure("scan"))
    result = older.read(f"{older.procedure('scan')}/conduct")["result"]
    assert (result["conduct_id"], result["completed_count"]) == (fact["conduct_id"], fact["step_count"])
    older.assert_scanned_once(older.procedure("scan"), "bl7:scan", older.angles("scan"))
    assert older.writes("bl7:lamp") == [0]


def test_a_step_that_was_cut_off_is_taken_up(older: OlderStack) -> None:
    older.wait_until_completed(older.procedure("slow move"))
    told = older.outcomes(older.procedure("slow move"))
    assert [told[False, index]["ok"] for index in (0, 1)] == [1, 1]
    assert older.writes("bl7:slow", repeats=1) == [25.0]


def test_the_conduct_of_a_run_goes_on_with_its_phase(older: OlderStack) -> None:
    if older.name == BEFORE_LAUNCH:  # that release recorded which assets a phase is judged by, so its hutch counts
        finish_run(older, older.run("run"))
    older.wait_until_completed(older.run("run"))
    for phase, address in (("first phase", "bl7:darks"), ("second phase", "bl7:tomo")):
        older.assert_scanned_once(older.procedure(phase), address, older.angles(phase))
    assert older.read(f"{older.run('run')}/conduct")["result"]


def finish_run(older: OlderStack, run: str) -> None:
    """Wait until a run has ended; where it is held because nobody has searched its hutch, have that done and resume it."""

    def has_ended() -> bool:
        status = older.read(run)["status"]
        assert status in ("Running", "Held", "Completed"), older.read(f"{run}/history")
        if status == "Held":
            older.search_hutch()
            older.ask(f"{run}/resume", {})
        return bool(status == "Completed")

    older.wait_for(has_ended)


def test_a_run_that_was_held_goes_on_when_it_is_resumed(older: OlderStack) -> None:
    run = older.run("waiting run")
    assert older.read(run)["status"] == older.facts["runs"]["waiting run"]["status"] == "Held"
    assert older.read(f"{older.procedure('waiting phase')}/conduct")["waiting_for"] == "run"
    older.search_hutch()
    older.ask(f"{run}/resume", {})
    older.wait_until_completed(run)
    older.assert_scanned_once(older.procedure("waiting phase"), "bl7:theta", older.angles("waiting phase"))


def test_a_held_conduct_is_taken_up_at_the_first_step_that_is_not_done(older: OlderStack) -> None:
    held = older.procedure("held")
    assert older.read(held)["status"] == older.facts["procedures"]["held"]["status"] == "Held"
    older.ask(f"{held}/reconduct", {"wait": 0})
    older.wait_until_completed(held)
    older.assert_scanned_once(held, "bl7:held", older.angles("held"))


def test_an_active_schedule_is_still_on_the_calendar_and_counts_on_when_it_fires(older: OlderStack) -> None:
    shown = older.read(path := f"/schedules/{older.facts['schedules']['active schedule']['id']}")
    assert shown["status"] == "Active"
    assert shown["next_firings"]
    older.ask(f"{path}/trigger", {})
    older.wait_until_fired("active schedule", 1)


def test_a_held_schedule_has_stayed_held_and_fires_by_its_calendar_once_it_is_resumed(older: OlderStack) -> None:
    fact = older.facts["schedules"]["held schedule"]
    shown = older.read(path := f"/schedules/{fact['id']}")
    assert (shown["status"], shown["firing_count"], shown["next_firings"]) == ("Held", fact["firing_count"], [])
    older.ask(f"{path}/resume", {})
    older.wait_until_fired("held schedule", 1)


@left_by(BEFORE_IMPORT)
def test_a_search_that_waited_for_advice_longer_than_it_may_is_held_and_goes_on_with_what_it_measured(
    older: OlderStack,
) -> None:
    path, search = older.procedure("search"), older.facts["search"]
    assert older.facts["procedures"]["search"]["waiting_for"] == "advice"
    patience = search["decide"]["advice_timeout"]
    older.wait_for(lambda: older.read(path)["status"] == "Held", patience)
    assert older.read(path)["hold_cause"] == "DriverStoodDown"
    older.ask(f"{path}/steering/resume", {**search, "wait": 0})
    question = older.wait_for(lambda: (asked := older.read(f"{path}/steering"))["waiting"] and asked)
    assert len(question["evidence"]["observations"]) == 2
    advice = {"iteration_index": question["iteration_index"], "advice": {"verdict": "Stop"}}
    older.ask(f"{path}/steering/advise", advice)
    older.wait_until_completed(path)
    assert len(older.writes("bl7:focus")) == 2, "what was measured is not measured again"


def queue_items(older: OlderStack, name: str) -> list[dict[str, Any]]:
    """The items of a queue, in the order of their numbers."""
    return sorted(older.rows(f"/queues/{older.facts['queues'][name]['id']}/items"), key=lambda item: int(item["number"]))


def wait_for_items(older: OlderStack, name: str, *statuses: str) -> list[dict[str, Any]]:
    """Wait until the items of a queue have these states, and return them."""

    def have_statuses() -> bool:
        return [item["status"] for item in queue_items(older, name)] == list(statuses)

    older.wait_for(have_statuses)
    return queue_items(older, name)


def wait_for_launches(older: OlderStack, expected: list[tuple[str, str | None]], **filters: str) -> None:
    """Wait until these launches are listed, by their status and outcome, in their order."""

    def list_ends() -> list[tuple[str, str | None]]:
        return [(row["status"], row["outcome"]) for row in older.rows("/launches", **filters)]

    older.wait_for(lambda: list_ends() == expected)


@left_by(BEFORE_LAUNCH)
def test_the_items_of_a_queue_are_conducted_in_order_and_once(older: OlderStack) -> None:
    before = older.facts["queues"]["tonight"]
    assert (before["status"], [item["status"] for item in before["items"]]) == (
        "Active",
        ["Completed", "Running", "Waiting", "Waiting"],
    )
    older.search_hutch()
    items = wait_for_items(older, "tonight", *["Completed"] * 4)
    assert [item["item_id"] for item in items] == [item["item_id"] for item in before["items"]]
    assert [item["attempt"] for item in items] == [1] * 4
    assert items[1]["procedure_id"] == older.facts["procedures"]["queued"]["id"]
    assert [item["started_at"] for item in items] == sorted(item["started_at"] for item in items)
    assert older.writes("bl7:queue") == [20, 40, *older.angles("queued"), 5, 6, 7, 8]
    wait_for_launches(older, [("Ended", "Completed")] * 2, queue_id=before["id"])
    assert older.read(f"/runs/{items[2]['run_id']}")["name"] == "Queued run 3"
    assert older.read(f"/procedures/{items[3]['procedure_id']}")["name"] == "Queued 4"


@left_by(BEFORE_LAUNCH)
def test_a_launch_that_was_half_begun_is_finished_under_its_ids(older: OlderStack) -> None:
    (item, behind) = older.facts["queues"]["begun"]["items"]
    assert (item["status"], behind["status"]) == ("Running", "Waiting")
    finish_run(older, f"/runs/{item['run_id']}")
    wait_for_items(older, "begun", "Completed", "Completed")
    phases = older.rows("/procedures", parent_run_id=item["run_id"])
    assert [phase["name"] for phase in phases] == ["First of begun", "Held back: begun"]
    assert phases[0]["procedure_id"] == older.facts["procedures"]["First of begun"]["id"]
    assert older.writes("bl7:begun") == [20, 40, 60, 80, 100, 120]
    wait_for_launches(older, [("Ended", "Completed")] * 2, queue_id=older.facts["queues"]["begun"]["id"])


@left_by(BEFORE_LAUNCH)
def test_a_launch_that_was_half_begun_and_is_refused_leaves_nothing_behind(older: OlderStack) -> None:
    (item, _) = older.facts["queues"]["refused"]["items"]
    assert item["status"] == "Running"
    older.search_hutch()
    refused, _ = wait_for_items(older, "refused", "Refused", "Waiting")
    assert refused["code"] == "ProcedureBoundRecipeDeprecatedError"
    assert older.read(f"/runs/{item['run_id']}")["status"] == "Aborted"
    phases = older.rows("/procedures", parent_run_id=item["run_id"])
    assert [(phase["name"], phase["status"]) for phase in phases] == [("First of refused", "Aborted")]
    wait_for_launches(older, [("Refused", None)], queue_id=older.facts["queues"]["refused"]["id"])
    assert older.writes("bl7:refused") == []
    older.ask(f"/queues/{older.facts['queues']['refused']['id']}/resume", {})
    wait_for_items(older, "refused", "Refused", "Completed")
    assert older.writes("bl7:refused") == [100, 120]


@left_by(BEFORE_LAUNCH)
def test_a_firing_under_way_ends_and_is_counted_once(older: OlderStack) -> None:
    older.wait_until_completed(older.procedure("firing"))
    older.wait_until_fired("firing schedule", 0)
    older.assert_scanned_once(older.procedure("firing"), "bl7:firing", older.angles("firing"))


@left_by(BEFORE_LAUNCH)
def test_a_firing_that_had_not_opened_its_conduct_opens_it_once(older: OlderStack) -> None:
    fact = older.facts["schedules"]["unopened schedule"]
    assert fact["firing_count"] == 0
    older.wait_until_fired("unopened schedule", 1)
    (procedure,) = older.rows("/procedures", name="Never opened: firing")
    assert procedure["procedure_id"] == older.facts["procedures"]["Never opened: firing"]["id"]
    assert older.writes("bl7:unopened") == [20, 40, 60]
    older.ask(f"/schedules/{fact['id']}/trigger", {})
    older.wait_until_fired("unopened schedule", 2)
    assert older.writes("bl7:unopened") == [20, 40, 60] * 2
    wait_for_launches(older, [("Ended", "Completed")] * 2, schedule_id=fact["id"])


@left_by(BEFORE_LAUNCH)
def test_what_was_approved_without_a_digest_is_carried_out_once(older: OlderStack) -> None:
    fact = older.facts["proposals"]["Never opened: approved"]
    assert (fact["status"], fact["approved_by"]) == ("Open", older.facts["people"]["approver"])
    path = f"/proposals/{fact['id']}"
    older.wait_for(lambda: older.read(path)["status"] == "CarriedOut")
    assert_approved(older, older.procedure("Never opened: approved"), "bl7:approved")


@left_by(BEFORE_LAUNCH)
def test_an_open_proposal_is_approved_with_the_digest_of_what_it_shows_now(older: OlderStack) -> None:
    path = f"/proposals/{older.facts['proposals']['asked']['id']}"
    shown = older.read(path, by="approver")
    assert (shown["status"], shown["may_approve"], older.writes("bl7:asked")) == ("Open", True, [])
    for body, status in (({}, 422), ({"digest": "0" * 64}, 409)):
        answer = older.stack.client.post(f"{path}/approve", json=body, headers=older.person("approver"))
        assert answer.status_code == status, answer.text
    approved = older.ask(f"{path}/approve", {"digest": shown["digest"]}, **older.person("approver"))
    assert approved["status"] == "CarriedOut"
    assert_approved(older, older.procedure("asked"), "bl7:asked")


def assert_approved(older: OlderStack, procedure: str, address: str) -> None:
    """Assert that a conduct was opened once with the approver's name, and came to its end."""
    older.wait_until_completed(procedure)
    assert older.writes(address) == [20, 40, 60]
    (opened,) = [one for one in older.rows(f"{procedure}/history") if one["event_type"] == "ProcedureStarted"]
    people = older.facts["people"]
    assert (opened["principal_id"], opened["approved_by"]) == (people["proposer"], people["approver"])
