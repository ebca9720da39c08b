"""Queues at the command line, on a real service: filled from spreadsheets, shown, put in order, held and resumed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from openpyxl import Workbook

from baton.client import AsyncBaton, Baton
from baton.client.queue_items import TableTargetError
from baton.client.spreadsheets import SpreadsheetError, Table, read_table
from tests.support.cli.daily_service import CAMERA, PLAN, RECIPE, SUBJECT, UNIT, DailyService
from tests.support.workflows.step_json import setpoint

QUEUE, BOUND = "Tonight", "Bound scan"
SCANS = f"""\
title,exposure,subject,not_before,pause_after
First light,0.02,{SUBJECT},,
Second,0.05,,2030-05-20T14:30:00+02:00,yes
,,,,
"""


@pytest.fixture(scope="module")
async def queue_id(daily_service: DailyService) -> str:
    """The queue of the beamline, held so that nothing starts, and a recipe that leaves its exposure open."""
    opened = await daily_service.answer("call", "open_queue", f"name={QUEUE}", f"asset_id={UNIT}")
    await daily_service.answer("queue", "hold", QUEUE, "--reason", "not yet")

    def define_recipe() -> None:
        with Baton(daily_service.url) as client:
            steps = [setpoint("a", {"__binding__": "exposure"})]
            client.define_recipe(name=BOUND, capability_id=client.get_recipe(RECIPE).capability_id, steps=steps)

    await asyncio.to_thread(define_recipe)
    return str(opened["queue_id"])


def sheet(directory: Path, text: str) -> str:
    file = directory / "scans.csv"
    file.write_text(text, encoding="utf-8")
    return str(file)


async def waiting_items(daily: DailyService, queue: str = QUEUE) -> list[dict[str, Any]]:
    async with AsyncBaton(daily.url) as client:
        view = await client.get_queue(queue)
    items: list[dict[str, Any]] = view.to_dict()["items"]
    return items


async def empty_queue(daily: DailyService) -> None:
    async with AsyncBaton(daily.url) as client:
        for one in (await client.get_queue(QUEUE)).items:
            await client.remove_queue_item(QUEUE, item_id=one.item_id, reason="another test")


async def add_titles(daily: DailyService, *titles: str) -> list[str]:
    """Put items with these titles into the empty queue, and return their ids."""
    await empty_queue(daily)
    table = read_table("titles.csv", "\n".join(["title,exposure", *(f"{title},1" for title in titles)]).encode())
    async with AsyncBaton(daily.url) as client:
        return list(map(str, await client.queues[QUEUE].add_from_table(table, plan=PLAN, recipes=[RECIPE])))


async def titles_of(daily: DailyService) -> list[str]:
    return [one["title"] for one in await waiting_items(daily)]


async def test_rows_become_runs_on_a_plan(daily_service: DailyService, queue_id: str, tmp_path: Path) -> None:
    await empty_queue(daily_service)
    file = sheet(tmp_path, SCANS)
    added = await daily_service.answer("queue", "add", QUEUE, file, "--plan", PLAN, "--recipe", RECIPE)
    assert added["queue_id"] == queue_id
    assert [(one["row"], one["title"]) for one in added["items"]] == [(2, "First light"), (3, "Second")]
    first, second = await waiting_items(daily_service)
    assert [first["item_id"], second["item_id"]] == added["item_ids"]
    assert (first["status"], first["pause_after"], first["not_before"]) == ("Waiting", False, None)
    target = first["target"]
    assert (target["kind"], target["name"]) == ("ConductPlan", "First light")
    assert target["override_parameters"] == {"exposure": 0.02}
    subject = await daily_service.answer("call", "get_subject", SUBJECT)
    assert target["subject_id"] == subject["id"]
    [phase] = target["phases"]
    assert (phase["name"], phase["procedure_kind"], len(phase["target_asset_ids"])) == (RECIPE, "scan", 1)
    assert (second["pause_after"], second["not_before"]) == (True, "2030-05-20T12:30:00Z")


async def test_rows_become_procedures_of_a_recipe_before_an_item(
    daily_service: DailyService, queue_id: str, tmp_path: Path
) -> None:
    await add_titles(daily_service, "first", "last")
    workbook = Workbook()
    for row in (["exposure", "title"], [0.5, None], [2, "Bright"]):
        workbook.active.append(row)
    workbook.save(tmp_path / "scans.xlsx")
    file = str(tmp_path / "scans.xlsx")
    done = await daily_service.baton("queue", "add", QUEUE, file, "--recipe", BOUND, "--on", CAMERA, "--before", "last")
    assert done.stdout.splitlines()[0] == f"2 items were added to the queue {QUEUE!r}.", done.stderr
    items = await waiting_items(daily_service)
    assert [one["title"] for one in items] == ["first", "Bound scan, row 2", "Bright", "last"]
    assert [one["target"]["bindings"] for one in items[1:3]] == [{"exposure": 0.5}, {"exposure": 2}]
    assert items[1]["target"]["kind"] == "ConductRecipe"
    assert len(items[1]["target"]["target_asset_ids"]) == 1


async def test_one_bad_row_and_nothing_is_added(daily_service: DailyService, queue_id: str, tmp_path: Path) -> None:
    await empty_queue(daily_service)
    before = await daily_service.answer("events", "-n", "1")
    file = sheet(tmp_path, "title,exposure,subject\na,1,Bar 7\nb,fast,Bar 7\nc,1,Bar 77\nd,1,Bar 77\n")
    done = await daily_service.baton("queue", "add", QUEUE, file, "--plan", PLAN, "--recipe", RECIPE)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "baton: scans.csv, row 3, column exposure: 'fast' is no number; correct the value.",
        "baton: scans.csv, row 4, column subject: There is no subject called 'Bar 77'. Did you mean 'Bar 7'?",
        "baton: scans.csv, row 5, column subject: There is no subject called 'Bar 77'. Did you mean 'Bar 7'?",
    ]
    assert await daily_service.answer("events", "-n", "1") == before
    assert await titles_of(daily_service) == []


async def test_rows_that_only_the_service_refuses_add_nothing(
    daily_service: DailyService, queue_id: str, tmp_path: Path
) -> None:
    async with AsyncBaton(daily_service.url) as client:
        await client.register_asset(name="Full hall", tier="Unit", facility_code="facility")
        await client.open_queue(name="Full", asset_id="Full hall")
        await client.hold_queue("Full", reason="not yet")
        await client.queues["Full"].add_from_table(one_row("1"), plan=PLAN, recipes=[RECIPE])
    arguments = ("queue", "add", "Full", sheet(tmp_path, "exposure\n" + "1\n" * 500), "--plan", PLAN, "--recipe", RECIPE)
    assert len((await daily_service.answer(*arguments))["item_ids"]) == 500
    code, sentence = await daily_service.refusal(*arguments)
    assert code == 1
    assert "at most 1000 items that have not ended, and these would be 1001" in sentence
    assert len(await waiting_items(daily_service, "Full")) == 501


async def test_a_dry_run_shows_the_rows_and_records_nothing(
    daily_service: DailyService, queue_id: str, tmp_path: Path
) -> None:
    before = await daily_service.answer("events", "-n", "1")
    file = sheet(tmp_path, SCANS)
    done = await daily_service.baton("queue", "add", QUEUE, file, "--plan", PLAN, "--recipe", RECIPE, "--dry-run")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["ROW", "TITLE", "SUBJECT", "NOT", "BEFORE", "PAUSE", "AFTER", "PARAMETERS"]
    assert lines[1].split() == ["2", "First", "light", "Bar", "7", "-", "-", "exposure=0.02"]
    assert lines[-1] == f"It would record QueueItemsAdded in Queue {queue_id}."
    assert await daily_service.answer("events", "-n", "1") == before


async def test_times_without_a_zone_need_one(daily_service: DailyService, queue_id: str, tmp_path: Path) -> None:
    await empty_queue(daily_service)
    file = sheet(tmp_path, "exposure,not_before\n1,2030-05-20 14:30\n")
    arguments = ("queue", "add", QUEUE, file, "--plan", PLAN, "--recipe", RECIPE)
    code, sentence = await daily_service.refusal(*arguments)
    assert (code, "row 2, column not_before: 2030-05-20T14:30:00 has no time zone" in sentence) == (2, True)
    code, sentence = await daily_service.refusal(*arguments, "--time-zone", "Europe/Nowhere")
    assert (code, sentence) == (2, "There is no time zone 'Europe/Nowhere'; name one like Europe/Berlin or UTC.")
    await daily_service.answer(*arguments, "--time-zone", "Europe/Berlin")
    [only] = await waiting_items(daily_service)
    assert (only["title"], only["not_before"]) == (f"{PLAN}, row 2", "2030-05-20T12:30:00Z")


async def test_what_the_rows_are_for_must_be_said(daily_service: DailyService, queue_id: str, tmp_path: Path) -> None:
    file = sheet(tmp_path, SCANS)

    async def refusal(*arguments: str) -> str:
        code, sentence = await daily_service.refusal("queue", "add", QUEUE, file, *arguments)
        assert code == 2
        return sentence

    unsaid = "Say what the rows are for: --plan NAME, or one --recipe NAME with --on ASSET."
    assert await refusal() == await refusal("--recipe", RECIPE) == unsaid
    assert await refusal("--recipe", RECIPE, "--recipe", BOUND, "--on", CAMERA) == unsaid
    assert (await refusal("--plan", PLAN, "--on", CAMERA)).startswith("A plan says itself on which assets")
    assert (await refusal("--plan", PLAN)).startswith(f"2 recipes realise what the plan {PLAN} is for")
    assert (await refusal("--plan", "Nothing")).startswith("There is no plan called 'Nothing'.")
    code, sentence = await daily_service.refusal("queue", "add", "Nothing", file, "--plan", PLAN)
    assert (code, sentence) == (2, "There is no queue called 'Nothing'.")
    code, sentence = await daily_service.refusal("queue", "add", QUEUE, str(tmp_path / "none.csv"), "--plan", PLAN)
    assert (code, sentence) == (2, "none.csv cannot be read: No such file or directory.")


async def test_a_queue_is_listed_shown_held_and_resumed(daily_service: DailyService, queue_id: str, tmp_path: Path) -> None:
    await add_titles(daily_service, "one", "two")
    listed = (await daily_service.baton("queue", "list")).stdout.splitlines()
    assert [QUEUE, UNIT, "Held", "2", "-", queue_id] in [line.split() for line in listed]
    shown = (await daily_service.baton("queue", "show", QUEUE)).stdout.splitlines()
    assert shown[0] == f"{QUEUE}: Held (not yet)"
    assert shown[1].split() == ["PLACE", "TITLE", "STATUS", "WHY", "START", "END", "ADDED", "BY", "ID"]
    assert [line.split()[:3] for line in shown[2:]] == [["1", "one", "Waiting"], ["2", "two", "Waiting"]]
    assert all("not signed in" in line for line in shown[2:])
    await empty_queue(daily_service)
    assert (await daily_service.baton("queue", "show", queue_id)).stdout.splitlines()[1] == "Nothing waits."
    resumed = await daily_service.answer("queue", "resume", QUEUE)
    assert resumed["status"] == "Active"
    would = (await daily_service.baton("queue", "hold", QUEUE, "--dry-run")).stdout
    assert would == f"It would record QueueHeld in Queue {queue_id}.\n"
    held = await daily_service.answer("queue", "hold", QUEUE, "--reason", "not yet")
    assert (held["status"], held["last_status_reason"]) == ("Held", "not yet")
    code, sentence = await daily_service.refusal("queue", "hold", QUEUE)
    assert (code, "Held" in sentence) == (1, True)


async def test_a_closed_gate_is_shown_with_the_item_that_waits_for_it(
    daily_service: DailyService, queue_id: str, tmp_path: Path
) -> None:
    await add_titles(daily_service, "one")
    await daily_service.answer("call", "mark_supply_unavailable", "Beam", "reason=beam dump")
    try:
        shown = (await daily_service.baton("queue", "show", QUEUE)).stdout
        assert "No supply of kind photon_beam in scope is Available" in shown
        screen = (await daily_service.baton("status", UNIT)).stdout
        assert (
            f"  queue      {QUEUE}: Held (not yet), 1 waiting\n             next: one; closed: No supply of kind" in screen
        )
        assert " ago by not signed in\n" in screen
    finally:
        await daily_service.answer("call", "mark_supply_recovering", "Beam", "reason=injecting")
        await daily_service.answer("call", "restore_supply", "Beam", "reason=beam back")


async def test_an_item_whose_recipe_has_changed_is_confirmed(daily_service: DailyService, queue_id: str) -> None:
    (item,) = await add_titles(daily_service, "Changed")
    assert "Nothing is to be confirmed" in (await daily_service.baton("queue", "confirm", QUEUE, "Changed")).stderr
    async with AsyncBaton(daily_service.url) as client:
        recipe = await client.get_recipe(RECIPE)
        content = {"steps": recipe.to_dict()["steps"], "closing_steps": recipe.to_dict()["closing_steps"]}
        await client.version_recipe(RECIPE, version_tag=f"tag-{uuid4().hex[:8]}", **content)
    assert "Since this was arranged it has changed" in (await daily_service.baton("queue", "show", QUEUE)).stdout
    unasked = await daily_service.baton("queue", "confirm", QUEUE, "Changed")
    assert (unasked.returncode, "Nobody can be asked here" in unasked.stderr) == (2, True)
    assert "it has changed: the recipe" in unasked.stdout
    said = (await daily_service.baton("queue", "confirm", QUEUE, item, "--yes")).stdout.splitlines()
    assert "it has changed" in said[0]
    assert "it has changed" not in "".join(said[1:])


async def test_items_are_moved_and_removed_by_their_titles_and_ids(
    daily_service: DailyService, queue_id: str, tmp_path: Path
) -> None:
    one, _, three = await add_titles(daily_service, "one", "two", "three")
    await daily_service.answer("queue", "move", QUEUE, "three", "--before", "one")
    assert await titles_of(daily_service) == ["three", "one", "two"]
    await daily_service.answer("queue", "move", QUEUE, one, "--last")
    assert await titles_of(daily_service) == ["three", "two", "one"]
    removed = (await daily_service.baton("queue", "remove", QUEUE, three, "--reason", "no sample")).stdout
    assert "three" not in removed
    assert await titles_of(daily_service) == ["two", "one"]
    code, sentence = await daily_service.refusal("queue", "move", QUEUE, "two")
    assert (code, sentence) == (2, "Say where it is to stand: --before ITEM, or --last.")
    assert (await daily_service.refusal("queue", "move", QUEUE, "two", "--last", "--before", "one"))[0] == 2
    code, sentence = await daily_service.refusal("queue", "remove", QUEUE, "tw")
    assert (code, sentence) == (2, "There is no waiting queue item called 'tw'. Did you mean 'two'?")
    nothing = str(uuid4())
    code, sentence = await daily_service.refusal("queue", "remove", QUEUE, nothing)
    assert (code, sentence.startswith(f"The queue has no item {nothing}")) == (1, True)
    twins = await add_titles(daily_service, "twin", "twin")
    code, sentence = await daily_service.refusal("queue", "remove", QUEUE, "twin")
    assert (code, sentence) == (2, f"2 things of kind queue item are called 'twin'; name one by its id: {'; '.join(twins)}.")


def one_row(exposure: str) -> Table:
    return read_table("scans.csv", f"title,exposure\nfrom a program,{exposure}\n".encode())


async def test_both_clients_add_tables(daily_service: DailyService, queue_id: str) -> None:
    await empty_queue(daily_service)

    def add() -> Sequence[UUID]:
        with Baton(daily_service.url) as client:
            queue = client.queues[QUEUE]
            with pytest.raises(SpreadsheetError, match=r"scans\.csv, row 2, column exposure: 'fast' is no number"):
                queue.add_from_table(one_row("fast"), plan=PLAN, recipes=[RECIPE])
            with pytest.raises(TableTargetError, match="Say what the rows are for"):
                queue.add_from_table(one_row("1"))
            would = queue.add_from_table(one_row("1"), recipe=BOUND, on=CAMERA, dry_run=True)
            assert [one.event_type for one in would.would] == ["QueueItemsAdded"]
            return queue.add_from_table(one_row("1"), plan=PLAN, recipes=[RECIPE])

    [first] = await asyncio.to_thread(add)
    async with AsyncBaton(daily_service.url) as client:
        [second] = await client.queues[QUEUE].add_from_table(one_row("2"), recipe=BOUND, on=[CAMERA], before=first)
    assert [one["item_id"] for one in await waiting_items(daily_service)] == [str(second), str(first)]
