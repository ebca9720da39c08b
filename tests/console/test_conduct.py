"""Conduct: what a person sees of a procedure that goes on, waits, fails, is held, is lost or searches; and of many steps."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID, uuid4

import pytest

from tests.support.api.operation_states import bring_into_state
from tests.support.console.page_source import PageSource
from tests.support.console.page_text import text_of
from tests.support.domain.conducts import BY_CALLER
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, check, criterion, setpoint, steered_value


async def page_of(api: Api, procedure_id: UUID | str, **query: Any) -> str:
    answer = await api.get(f"/console/procedures/{procedure_id}", **query)
    assert answer.status_code == 200, answer.text
    return answer.text


def form_fields(html: str, label: str) -> dict[str, str]:
    """Return what a button with this label fills into its form."""
    (link,) = [one for one in PageSource.of(html).all("a") if one.text == label and "/console/do/" in one.get("href")]
    return dict(parse_qsl(urlsplit(link.get("href")).query))


async def test_a_live_conduct_shows_where_it_is_and_what_a_hold_waits_for(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(
        setpoint("a", 3), check("a", 3), PAUSE, capture("b", "level")
    )
    await conduct_service.pauses.wait_until_reached()
    text = text_of(await page_of(conduct_service.operator, procedure_id))
    assert "step 3 of 4" in text
    assert "Worker heard" in text
    assert "1 Set a to 3 ✓ done" in text
    assert "2 Check that a is 3 ✓ done reads 3" in text
    assert "3 Do pause ● running" in text
    assert "4 Read b as level ○ ahead" in text
    await conduct_service.operator.post(f"/procedures/{procedure_id}/hold", {"reason": "lunch"})
    asked = text_of(await page_of(conduct_service.operator, procedure_id))
    assert "Asked to hold" in asked
    assert "it waits for do pause (step 3), until" in asked
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)
    html = await page_of(conduct_service.operator, procedure_id)
    assert "by not registered (operator): lunch" in text_of(html)
    assert form_fields(html, "Take it up")["procedure_id"] == str(procedure_id)
    await conduct_service.result(await conduct_service.conduct(procedure_id, "reconduct"))
    ended = text_of(await page_of(conduct_service.operator, procedure_id))
    assert "Its latest conduct completed 1 of 4 steps" in ended
    assert "✓ 4 done" in ended
    assert "3 Do pause ✓ done" in ended, "what an earlier conduct did is shown too"


async def test_what_failed_is_said_with_its_step_and_the_steps_behind_it_stay_ahead(conduct_service: ConductService) -> None:
    steps = [setpoint("a", 1), check("b", 9, 0.1), setpoint("a", 2)]
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps, how="conduct-or-hold")
    await conduct_service.result(conduct_id)
    html = await page_of(conduct_service.operator, procedure_id)
    assert "Step 2 failed: b reads 1.5 with quality Good, which does not meet the criterion. CheckFailedError" in text_of(
        html
    )
    assert "Its latest conduct completed 1 of 3 steps" in text_of(html)
    assert "✗ failed b reads 1.5" in text_of(html)
    (strip,) = [one for one in PageSource.of(html).all("svg") if one.get("class") == "strip"]
    assert strip.get("aria-label") == "All 3 steps: 1 done, 1 failed, 1 ahead"
    await conduct_service.operator.post(f"/procedures/{procedure_id}/abort", {"reason": "broken"})
    await until(lambda: is_over(conduct_service.operator, procedure_id))
    assert "○ not done" in text_of(await page_of(conduct_service.operator, procedure_id)), "nothing is ahead any more"


async def is_over(api: Api, procedure_id: UUID) -> bool:
    return bool((await api.get(f"/procedures/{procedure_id}")).json()["status"] == "Aborted")


async def test_a_wait_can_be_skipped_where_the_conduct_stands_in_it(conduct_service: ConductService) -> None:
    waiting = check("c", 99, 0.5, timeout=600)
    procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 1), waiting)

    async def waits() -> str | None:
        html = await page_of(conduct_service.operator, procedure_id)
        return html if "It waits in step 2" in html else None

    html = await until(waits)
    assert "Wait until c is 99 ± 0.5, 10 min at most" in text_of(html)
    place = {"procedure_id": str(procedure_id), "conduct_id": str(conduct_id), "step_index": "1"}
    fields = form_fields(html, "Skip wait")
    assert {name: fields[name] for name in place} == place
    body = {"conduct_id": str(conduct_id), "step_index": 1, "reason": "warm enough"}
    await conduct_service.operator.execute(f"/procedures/{procedure_id}/conduct/skip", body)
    await conduct_service.result(conduct_id)
    ended = text_of(await page_of(conduct_service.operator, procedure_id))
    assert "2 Wait until c is 99 ± 0.5, 10 min at most » skipped" in ended
    assert "It succeeded." in ended


async def test_a_lost_worker_is_said_and_so_is_that_nobody_took_it_up(conduct_service: ConductService) -> None:
    await conduct_service.stack.stop_worker()
    try:
        procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 1))
        assert "It waits for a worker to take it up." in text_of(await page_of(conduct_service.operator, procedure_id))
        await conduct_service.mark_walking(procedure_id, conduct_id)
        await conduct_service.age_heartbeat(procedure_id, 60)
        assert "Its worker is lost. It was last heard" in text_of(await page_of(conduct_service.operator, procedure_id))
    finally:
        await conduct_service.stack.start_worker()
        await conduct_service.result(conduct_id)


async def test_the_passes_of_a_loop_are_listed_and_plotted_with_the_band_they_must_come_into(
    conduct_service: ConductService,
) -> None:
    loop = {"convergence_capture_name": "offset", "criterion": criterion(1.5, 0.1)}
    procedure_id, conduct_id = await conduct_service.start_conduct(capture("b", "offset"), how="converge", **loop)
    await conduct_service.result(conduct_id)
    html = await page_of(conduct_service.operator, procedure_id)
    text = text_of(html)
    assert "Passes 1, judged by offset" in text
    assert "1 1.5 ✓ converged" in text
    assert "offset = 1.5" in text_of(await page_of(conduct_service.operator, procedure_id, **{"pass": 1}))
    (plot,) = [one for one in PageSource.of(html).all("svg") if one.get("class") == "plot"]
    assert plot.get("aria-label") == "offset over pass; the latest is 1.5"
    assert "the band is where it converges" in text


async def test_a_search_that_waits_shows_its_question_and_the_evidence(conduct_service: ConductService) -> None:
    steps = [setpoint("a", steered_value("focus")), capture("b", "sharpness")]
    procedure_id = await conduct_service.stack.register_from_recipe(steps)
    assert "1 Set a to the advised focus ○ ahead" in text_of(await page_of(conduct_service.operator, procedure_id))
    conduct_id = await conduct_service.conduct(procedure_id, "steering/conduct", **BY_CALLER)

    async def page_with_question() -> str | None:
        html = await page_of(conduct_service.operator, procedure_id)
        return html if "Asked for advice" in html else None

    html = await until(page_with_question)
    assert "What should follow pass 1? Maximize sharpness, along focus (-2 to 2)." in text_of(html)
    assert form_fields(html, "Advise…")["iteration_index"] == "1"
    stop = {"iteration_index": 1, "advice": {"verdict": "Stop", "rationale": "Sharp enough."}, "wait": 0}
    await conduct_service.operator.execute(f"/procedures/{procedure_id}/steering/advise", stop)
    await conduct_service.result(conduct_id)
    ended = text_of(await page_of(conduct_service.operator, procedure_id))
    assert "best so far: sharpness 1.5 at focus -2 in pass 1" in ended
    assert "Sharp enough." in ended


async def test_a_step_of_which_nobody_knows_asks_a_person_to_say(conduct_service: ConductService) -> None:
    ids: dict[str, str] = {}
    await bring_into_state(conduct_service.api, "resolve_procedure_step", ids)
    html = await page_of(conduct_service.operator, ids["procedure_id"])
    assert "Nobody knows whether step 1 was done." in text_of(html)
    for label, outcome in (("It was done", "done"), ("It was not done", "not_done")):
        fields = form_fields(html, label)
        assert (fields["outcome"], fields["step_index"], fields["conduct_id"]) == (outcome, "0", ids["conduct_id"])


async def test_a_long_list_is_shown_in_parts_around_the_current_step_or_where_a_person_looks(
    conduct_service: ConductService,
) -> None:
    steps = [*(setpoint("a", value) for value in range(200)), PAUSE, *(setpoint("a", value) for value in range(250))]
    procedure_id = await conduct_service.stack.register_from_recipe(steps)
    conduct_id = await conduct_service.conduct(procedure_id)
    await conduct_service.pauses.wait_until_reached()
    html = await page_of(conduct_service.operator, procedure_id)
    numbers = step_numbers(html)
    assert (len(numbers), numbers[0]) == (60, 191)
    assert "✓ 200 done ● 1 running ○ 250 ahead" in text_of(html)
    assert "Follow" not in text_of(html)
    early = await page_of(conduct_service.operator, procedure_id, **{"from": 31})
    assert step_numbers(early)[0] == 31
    links = {one.text: one.get("href") for one in PageSource.of(early).all("a")}
    base = f"/console/procedures/{procedure_id}"
    assert [links[name] for name in ("Follow", "First", "Previous", "Next", "Last")] == [
        base,
        f"{base}?from=1",
        f"{base}?from=1",
        f"{base}?from=91",
        f"{base}?from=392",
    ]
    for wrong in ("4000", "0", "x", "9" * 30):
        assert "Steps" in text_of(await page_of(conduct_service.operator, procedure_id, **{"from": wrong}))
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)


def step_numbers(html: str) -> list[int]:
    """Return the numbers of the steps that a page lists."""
    rows = html.partition('<table class="steps">')[2].partition("</table>")[0].split("<tr")[2:]
    return [
        int(row.partition('<td class="r">')[2].partition("</td>")[0].replace("\N{NARROW NO-BREAK SPACE}", ""))
        for row in rows
    ]


@pytest.fixture(scope="module")
async def guarded_api(conduct_service: ConductService) -> AsyncIterator[Api]:
    """The service on the same record, where everybody needs a permission."""
    settings = {"authorization_mode": "policy", "bootstrap_principal_id": str(uuid4())}
    async with running_api(conduct_service.api.database_url, projecting=False, **settings) as api:
        yield api


async def test_who_has_no_grant_sees_nothing_of_a_conduct(conduct_service: ConductService, guarded_api: Api) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 41))
    await conduct_service.result(conduct_id)
    for id in (procedure_id, uuid4()):
        answer = await guarded_api.acting_as(uuid4()).get(f"/console/procedures/{id}")
        assert answer.status_code in (200, 403)
        assert "Nothing to see here for you" in answer.text or answer.status_code == 403
        assert "Set a to 41" not in answer.text
        assert "Alignment" not in answer.text
