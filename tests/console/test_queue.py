"""The Queue page without a browser: its rows and forms, what is sent with them, and uploads however they are made."""

import time
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import httpx
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.api.errors import RequestValidationError
from baton.console.pages.queue import first_shown
from baton.console.queue_rows import moves_of, parameters_line
from baton.console.queueing import with_arrangement
from baton.console.uploads import FileForm, UploadedFile, read_file_form
from baton.domain.queue.item_records import BlockQueueItem, StartQueueItem
from tests.support.console.hall import Hall
from tests.support.console.page_source import PageSource, load
from tests.support.console.queued import add_items, open_queue, record, scan_target, titles_of, waiting_items
from tests.support.console.staff import ENFORCED, employ
from tests.support.hostile_workbooks import hostile_workbook
from tests.support.service import Api, running_api
from tests.support.tables import for_each
from tests.support.waiting import until

BOUNDARY = "multipart/form-data; boundary=----WebKitFormBoundaryAbc"
BLOCKED = {"code": "ProcedureAssetNotReadyError", "detail": "Camera is Faulted; have it repaired."}


async def press(api: Api, page: PageSource, text: str) -> httpx.Response:
    """Press a button of the page's own form, as a browser without script does."""
    button = next(one for one in page.all("button") if one.text == text and one.get("form") == "act")
    typed = {"form_token": page.value("form_token"), "back": page.value("back")}
    return await api.request("POST", button.get("formaction"), data=typed)


def has_text(page: PageSource, text: str) -> bool:
    return any(text in one.text for one in page.all("main"))


def multipart(*parts: tuple[str, bytes]) -> bytes:
    """What a browser sends of a form with a file."""
    body = b"".join(
        b'------WebKitFormBoundaryAbc\r\nContent-Disposition: form-data; name="%b\r\n\r\n%b\r\n' % (name.encode(), content)
        for name, content in parts
    )
    return body + b"------WebKitFormBoundaryAbc--\r\n"


@given(content=st.binary(), name=st.text(st.characters(codec="utf-8", exclude_characters='"\0/\\\r\n'), min_size=1))
def test_a_file_arrives_as_it_was_sent(content: bytes, name: str) -> None:
    sent = multipart(('what"', b"plan:1"), ('assets"', b"a"), ('assets"', b"b"), (f'file"; filename="{name}"', content))
    file = UploadedFile(name.replace("%22", '"')[-200:], content)
    assert read_file_form(BOUNDARY, sent) == FileForm({"what": "plan:1", "assets": "a\nb"}, file)


@for_each(
    ("content_type", "body"),
    [
        ("multipart/form-data", multipart()),
        ("multipart/form-data; boundary=" + "x" * 71, multipart()),
        (BOUNDARY, b""),
        (BOUNDARY, multipart(('a"', b"1"))[:-4]),
        (BOUNDARY, multipart(*[('a"', b"1")] * 200)),
        (BOUNDARY, multipart(('a"', b"\xff"))),
        (BOUNDARY, multipart(('a"', b"\0"))),
        (BOUNDARY, b"------WebKitFormBoundaryAbc\r\n\r\nno name\r\n------WebKitFormBoundaryAbc--"),
    ],
)
def test_a_form_that_is_none_is_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(RequestValidationError):
        read_file_form(content_type, body)


def test_a_path_before_the_name_of_a_file_leads_nowhere() -> None:
    sent = multipart(('file"; filename="..\\..\\/etc/rows.csv"', b"a"), ('other"; filename=""', b""))
    assert read_file_form(BOUNDARY, sent).file == UploadedFile("rows.csv", b"a")


def test_an_item_is_moved_before_its_neighbours_and_to_both_ends() -> None:
    ids = [str(uuid4()) for _ in range(4)]
    found = [
        [move.href and move.href.rpartition("before_item_id=")[2] for move in moves_of("q", ids, at)] for at in range(4)
    ]
    end = "/console/do/move_queue_item?queue_id=q&item_id={}"
    assert found[0] == [None, None, ids[2], end.format(ids[0])]
    assert found[1] == [ids[0], ids[0], ids[3], end.format(ids[1])]
    assert found[2] == [ids[0], ids[1], end.format(ids[2]), end.format(ids[2])]
    assert found[3] == [ids[0], ids[2], None, None]


def test_parameters_stand_in_a_line_that_ends() -> None:
    many: dict[str, Any] = {f"p{number}": number for number in range(8)}
    line = parameters_line({"kind": "ConductRecipe", "bindings": {"text": "x" * 100, **many}})
    assert line.startswith("text xxxx")
    assert line.endswith("…, p0 0, p1 1, p2 2, p3 3, p4 4, 3 more")
    assert parameters_line({"kind": "ConductPlan", "override_parameters": {}}) == ""


@for_each(("text", "first"), [("", 0), ("50", 50), ("60", 0), ("²", 0), ("-1", 0), ("9" * 9, 0)])
def test_a_page_of_items_begins_where_there_is_one(text: str, first: int) -> None:
    assert first_shown(text, 60) == first


def test_a_changed_target_is_conducted_as_before() -> None:
    before = {"kind": "ConductPlan", "phases": [{"recipe_id": "a", "conduct": 1}, {"recipe_id": "b", "conduct": 2}]}
    changed = {"kind": "ConductPlan", "phases": [{"recipe_id": "b"}, {"recipe_id": "c"}]}
    assert with_arrangement(changed, before)["phases"] == [{"recipe_id": "b", "conduct": 2}, {"recipe_id": "c"}]


async def test_without_a_queue_the_page_says_what_one_is_and_opens_it(api: Api, hall: Hall) -> None:
    page = await load(api, "/console/queue")
    assert has_text(page, "A queue is what a beamline does next")
    assert "/console/do/open_queue?back=" in {link.get("href") for link in page.all("a")}
    assert "launch-queue" not in {one.get("id") for one in (await load(api, hall.path)).all("button")}


async def test_items_are_moved_paused_and_duplicated_without_script(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a", "b", "c") as id:
        position = str(await api.execute(f"/queues/{id}/hold", {"reason": "search"}))
        page = await load(api, "/console/queue", position=position)
        assert has_text(page, "Held: search")
        moved = await press(api, page, "⤒Move c to the front")
        assert moved.headers["location"].startswith("/console/queue?")
        await press(api, await load(api, f"/console/queues/{id}"), "↓Move a down")
        assert await titles_of(api, id) == ["c", "b", "a"]
        page = await load(api, f"/console/queues/{id}")
        assert (await press(api, page, "Pause after b")).status_code == 303
        assert (await press(api, page, "Duplicate b")).status_code == 303
        items = await waiting_items(api, id)
        assert [(one["title"], one["pause_after"]) for one in items] == [
            ("c", False),
            ("b", True),
            ("b", True),
            ("a", False),
        ]
        assert items[1]["target"] == items[2]["target"]
        page = await load(api, f"/console/queues/{id}")
        await press(api, page, "No pause after b")
        assert [one["pause_after"] for one in await waiting_items(api, id)] == [False, False, True, False]


async def test_a_move_that_comes_too_late_is_refused_with_a_sentence(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a", "b") as id:
        page = await load(api, f"/console/queues/{id}")
        first = UUID((await waiting_items(api, id))[0]["item_id"])
        await record(api, id, StartQueueItem(item_id=first, attempt=1))
        for text in ("↓Move a down", "Duplicate a"):
            answer = await press(api, page, text)
            assert answer.status_code in (409, 422), text
            assert "any more" in answer.text or "only one that waits can be changed" in answer.text
        shown = await load(api, f"/console/queues/{id}")
        assert has_text(shown, "a ● Running")
        assert next(link.text for link in shown.all("a") if "/console/procedures/" in link.get("href")) == "a"


async def test_a_blocked_item_shows_the_sentence_that_blocks_it(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a") as id:
        (item,) = await waiting_items(api, id)
        await record(api, id, BlockQueueItem(item_id=UUID(item["item_id"]), attempt=1, **BLOCKED))
        page = await load(api, f"/console/queues/{id}")
        assert has_text(page, "a ✗ Blocked")
        assert has_text(page, BLOCKED["detail"])
        position = str(await api.execute(f"/queues/{id}/hold", {"reason": "search"}))
        assert has_text(await load(api, "/console", position=position), f"is next and blocked: {BLOCKED['detail']}")


async def test_an_item_whose_recipe_has_changed_shows_it_and_is_confirmed(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a") as id:
        (item,) = await waiting_items(api, id)
        assert not has_text(await load(api, f"/console/queues/{id}"), "Confirm the new version")
        recipe_id = next(one["template_id"] for one in item["versions"] if one["kind"] == "Recipe")
        recipe = (await api.get(f"/recipes/{recipe_id}")).json()
        content = {name: recipe[name] for name in ("steps", "closing_steps")}
        await api.execute(f"/recipes/{recipe_id}/version", {"version_tag": f"tag-{uuid4().hex[:8]}", **content})
        page = await load(api, f"/console/queues/{id}")
        assert has_text(page, "Since this was arranged it has changed: the recipe")
        assert (await press(api, page, "Confirm the new version of a")).status_code == 303
        (confirmed,) = await waiting_items(api, id)
        assert confirmed["versions"] != item["versions"]
        assert confirmed["target"] == item["target"]
        assert not has_text(await load(api, f"/console/queues/{id}"), "it has changed")


async def test_an_item_is_edited_and_may_start_in_its_turn_again(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a") as id:
        (item,) = await waiting_items(api, id)
        when = {"item_id": item["item_id"], "not_before": "2030-05-20T12:00:00Z"}
        await api.execute(f"/queues/{id}/edit-item", when)
        page = await load(api, f"/console/queues/{id}")
        edit = next(link.get("href") for link in page.all("a") if link.text == "Edit… a")
        form = await load(api, edit)
        assert [form.value(name) for name in ("title", "not_before", "item_id")] == [
            "a",
            "2030-05-20T14:00:00",
            item["item_id"],
        ]
        assert not any(one.text.startswith("Item") for one in form.all("label"))
        typed = {one.get("name"): one.get("value") for one in form.all("input") if one.get("type") != "checkbox"}
        answer = await api.request("POST", "/console/do/edit_queue_item", data={**typed, "title": "b", "not_before": ""})
        assert answer.status_code == 303, answer.text
        (changed,) = await waiting_items(api, id)
        assert (changed["title"], changed["not_before"], changed["target"]) == ("b", None, item["target"])


async def test_a_launch_is_queued_although_a_gate_is_closed_and_changed_in_its_place(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall) as id:
        await hall.line.observe("NotPermitted")
        position = str(await api.execute(f"/queues/{id}/hold", {"reason": "search"}))
        page = await load(api, hall.path, position=position)
        typed = {
            "_queue": page.value("_queue"),
            "name": "Bar 7",
            "parameters.exposure": "35 ms",
            "subject_id": hall.line.subject_id,
        }
        answer = await api.request("POST", hall.path, data=hall.form(page, _do="queue", **typed))
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"].startswith(f"/console/queues/{id}?")
        (item,) = await waiting_items(api, id)
        target = item["target"]
        assert (item["title"], target["name"], target["override_parameters"]) == ("Bar 7", "Bar 7", {"exposure": 0.035})
        assert [one["recipe_id"] for one in target["phases"]] == [hall.scan_id]
        shown = await load(api, f"/console/queues/{id}")
        assert has_text(shown, "Enclosure permitted")
        assert f"/console/enclosures/{hall.line.enclosure_id}" in {link.get("href") for link in shown.all("a")}
        change = next(link.get("href") for link in shown.all("a") if link.text == "Parameters… of Bar 7")
        form = await load(api, change)
        assert next(one.get("value") for one in form.all("input") if one.get("name") == "parameters.exposure") == "0.035"
        changed = hall.form(form, _do="queue", name="Bar 8", **{"parameters.exposure": "50 ms", "phase.0": hall.flats_id})
        assert (await api.request("POST", change, data=changed)).status_code == 303
        (again,) = await waiting_items(api, id)
        assert (again["item_id"], again["target"]["override_parameters"]) == (item["item_id"], {"exposure": 0.05})
        assert [one["recipe_id"] for one in again["target"]["phases"]] == [hall.flats_id]
        await api.execute(f"/queues/{id}/remove-item", {"item_id": item["item_id"], "reason": "no sample"})
        late = await api.request("POST", change, data=changed)
        assert (late.status_code, "does not wait any more" in late.text) == (422, True)
        await hall.line.observe("Permitted")


async def send_sheet(api: Api, id: str, name: str, content: bytes, **typed: str) -> httpx.Response:
    token = (await load(api, f"/console/queues/{id}")).value("form_token")
    files = {"file": (name, content)} if name else {"none": ("", b"")}
    return await api.request(
        "POST", f"/console/queues/{id}/spreadsheet", data={"form_token": token, "_add": "1", **typed}, files=files
    )


async def test_rows_of_a_spreadsheet_are_added_or_every_fault_is_shown(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a") as id:
        for_plan = {"what": f"plan:{hall.plan_id}", "phase.0": hall.scan_id}
        answer = await send_sheet(api, id, "rows.csv", b"title,exposure\nb,0.2\nc,0.3\n", **for_plan)
        assert answer.status_code == 303, answer.text
        assert await titles_of(api, id) == ["a", "b", "c"]
        wrong = await send_sheet(api, id, "rows.csv", b"title,exposure,colour\nb,7,red\nc,much,\n", **for_plan)
        page = PageSource.of(wrong.text)
        faults = [one.text for one in page.all("li") if one.text.startswith(("row", "column"))]
        assert wrong.status_code == 422
        assert [fault.partition(":")[0] for fault in faults] == [
            "column colour",
            "row 2, column exposure",
            "row 3, column exposure",
        ]
        assert has_text(page, "rows.csv: 3 faults; nothing was added.")
        for_recipe = {"what": f"recipe:{hall.scan_id}", "assets": hall.line.camera_id}
        assert (await send_sheet(api, id, "rows.csv", b"exposure\n0.4\n", **for_recipe)).status_code == 303
        assert (await waiting_items(api, id))[-1]["target"]["bindings"] == {"exposure": 0.4}
        for name, typed, said in (
            ("rows.pdf", for_plan, "is no .csv and no .xlsx file"),
            ("rows.csv", {}, "Choose the plan or the recipe"),
            ("", for_plan, "No file was chosen"),
            ("rows.csv", {"what": f"plan:{hall.plan_id}"}, "2 recipes realise what the plan"),
        ):
            refused = await send_sheet(api, id, name, b"exposure\n0.4\n", **typed)
            assert (refused.status_code, said in refused.text) == (422, True), said
        assert len(await waiting_items(api, id)) == 4
        run_id = await api.create("/runs", {"name": "Load step 1", "plan_id": hall.plan_id})
        flats = {"name": "Flats", "kind": "flat_field", "parent_run_id": run_id, "target_asset_ids": [hall.line.camera_id]}
        await api.create(f"/recipes/{hall.flats_id}/procedures", flats)

        async def is_listed() -> bool:
            listed = [
                await api.get(path) for path in (f"/runs?plan_id={hall.plan_id}", f"/procedures?parent_run_id={run_id}")
            ]
            return all(answer.json()["items"] for answer in listed)

        await until(is_listed)
        again = await send_sheet(api, id, "rows.csv", b"exposure\n0.4\n", what=f"plan:{hall.plan_id}")
        assert again.status_code == 303, again.text
        added = (await waiting_items(api, id))[-1]["target"]
        assert [one["recipe_id"] for one in added["phases"]] == [hall.flats_id], "as the last run had them"
        await api.execute(f"/runs/{run_id}/abort", {"reason": "it was for its phases"})


async def test_a_spreadsheet_is_shown_before_it_is_added_and_has_a_template(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall) as id:
        what = f"plan:{hall.plan_id}"
        template = await api.get(f"/console/queues/{id}/template.csv", what=what)
        assert template.text.splitlines() == ["title,subject,exposure,binning,angles,not_before,pause_after", ",,0.1,2,,,"]
        assert 'filename="template.csv"' in template.headers["content-disposition"]
        token = (await load(api, f"/console/queues/{id}")).value("form_token")
        typed, files = (
            {"form_token": token, "what": what, "phase.0": hall.scan_id},
            {"file": ("rows.csv", b"title,exposure\nd,0.4\n")},
        )
        shown = await api.request("POST", f"/console/queues/{id}/spreadsheet", data=typed, files=files)
        page = PageSource.of(shown.text)
        assert (shown.status_code, "Add 1 row" in {one.text for one in page.all("button")}) == (200, True)
        assert any("d" in one.text and "exposure 0.4" in one.text for one in page.all("tr"))
        assert await titles_of(api, id) == [], "nothing is added yet"
        options = await api.get(f"/console/queues/{id}/sheet-options", what=what)
        assert "template.csv?what=plan" in options.text


async def test_chosen_items_are_moved_and_removed_together(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a", "b", "c", "d") as id:
        await api.execute(f"/queues/{id}/hold", {"reason": "search"})
        token = (await load(api, f"/console/queues/{id}")).value("form_token")
        ids = [one["item_id"] for one in await waiting_items(api, id)]

        async def send(do: str, *chosen: str) -> httpx.Response:
            content = urlencode([("form_token", token), ("do", do), *(("item", one) for one in chosen)])
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            return await api.request("POST", f"/console/queues/{id}/several", content=content, headers=form)

        assert (await send("front", ids[2], ids[3])).status_code == 303
        assert await titles_of(api, id) == ["c", "d", "a", "b"]
        await send("pause", ids[0], ids[1])
        assert [one["pause_after"] for one in await waiting_items(api, id)] == [False, False, True, True]
        await send("remove", ids[3], ids[0])
        assert await titles_of(api, id) == ["c", "b"]
        refused = await send("remove")
        assert (refused.status_code, "No item that waits is chosen" in refused.text) == (409, True)


async def test_a_hostile_spreadsheet_costs_the_service_nothing(api: Api, hall: Hall) -> None:
    recipe, hostile = {"what": f"recipe:{hall.flats_id}"}, hostile_workbook(1_500_000, "sheet1.dat")
    async with open_queue(api, hall) as id:
        first = await send_sheet(api, id, "night.xlsx", b"no workbook", **recipe)  # the process that reads is started
        assert first.status_code == 422
        before, begun = psutil.Process().memory_info().rss, time.process_time()
        answer = await send_sheet(api, id, "night.xlsx", hostile, **recipe)
    assert (answer.status_code, "holds too many cells" in answer.text) == (422, True)
    assert time.process_time() - begun < 2
    assert psutil.Process().memory_info().rss - before < 100 * 2**20


async def test_a_spreadsheet_of_another_session_is_refused(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall) as id:
        typed, files = {"form_token": "0" * 64, "what": f"plan:{hall.plan_id}"}, {"file": ("rows.csv", b"exposure\n0.2\n")}
        for options in ({"data": typed, "files": files}, {"content": b"x", "headers": {"Content-Type": BOUNDARY}}):
            answer = await api.request("POST", f"/console/queues/{id}/spreadsheet", **options)
            assert answer.status_code in (403, 422)
        foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"}
        answer = await api.request("POST", f"/console/queues/{id}/spreadsheet", data=typed, files=files, headers=foreign)
        assert answer.status_code == 403
        assert await waiting_items(api, id) == []


async def test_a_long_queue_is_shown_a_screenful_at_a_time(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall) as id:
        items = [{"title": f"Item {number}", "target": scan_target(hall, 0.1)} for number in range(120)]
        assert (await api.post(f"/queues/{id}/add-items", {"items": items})).status_code == 200
        page = await load(api, f"/console/queues/{id}", first="50")
        shown = [one.text for one in page.all("h3")]
        assert (shown[0], len(shown)) == ("Item 50", 50)
        (listed,) = [one for one in page.all("ol") if one.get("class") == "queue"]
        assert listed.get("data-after") == (await waiting_items(api, id))[100]["item_id"]


async def test_who_may_only_look_sees_the_order_and_no_buttons(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a", "b") as id, running_api(api.database_url, projecting=False, **ENFORCED) as guarded:
        visitor = (await employ(guarded, "Visitor", sets=("queries",))).api
        page = await load(visitor, f"/console/queues/{id}")
        assert [one.text for one in page.all("h3")] == ["a", "b"]
        assert [one for one in page.all("button") if one.get("form") == "act"] == []
        assert "sheet-file" not in {one.get("id") for one in page.all("input")}
        token = page.value("form_token")
        answer = await visitor.request(
            "POST", f"/console/queues/{id}/spreadsheet", data={"form_token": token}, files={"file": ("rows.csv", b"a\n1\n")}
        )
        assert (answer.status_code, "AddQueueItems" in answer.text) == (403, True)


async def test_added_items_belong_to_who_added_them(api: Api, hall: Hall) -> None:
    mira = await api.create("/actors", {"name": "Mira Okafor"})
    async with open_queue(api, hall) as id:
        await add_items(api.acting_as(mira), hall, id, "a")
        assert has_text(await load(api, f"/console/queues/{id}"), "Added by Mira Okafor")
