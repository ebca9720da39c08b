"""Health: what the doctor finds for those who may see it, what everybody may know for the others, without waiting."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest

from baton.application.settings import Settings
from baton.cli.doctor.examination import CHECKS
from baton.cli.doctor.own_examination import carry_out_checks
from baton.console import health
from baton.console.health import HealthFinding, ServiceHealth
from tests.support.console.staff import ENFORCED, Person, employ
from tests.support.service import Api, running_api
from tests.support.waiting import until

FINDINGS = (
    HealthFinding("database", "ok", "PostgreSQL answers."),
    HealthFinding("temporal", "wrong", "Temporal does not answer at engine.example; start it."),
    HealthFinding("rights", "warning", "The login can rewrite the log."),
)


@dataclass
class Examiner:
    """An examination that always finds the same, and counts how often it was made."""

    count: int = 0

    async def __call__(self) -> Sequence[HealthFinding]:
        self.count += 1
        return FINDINGS


@dataclass(frozen=True)
class House:
    """Somebody who may examine the service, and somebody who may not."""

    warden: Person
    guest: Person
    examiner: Examiner


@pytest.fixture(scope="module")
async def house(module_database: str) -> AsyncIterator[House]:
    examiner = Examiner()
    async with running_api(module_database, **ENFORCED, examine=examiner) as api:
        warden = await employ(api, "Wim Warden", "ExamineService")
        guest = await employ(api, "Gil Guest", sets=("queries",))
        yield House(warden, guest, examiner)


async def test_who_may_examine_sees_every_finding_with_what_is_wrong_first(house: House) -> None:
    page = await house.warden.see("/console/health")
    assert "1 wrong, 1 to look at" in page
    places = [page.index(one.sentence) for one in (FINDINGS[1], FINDINGS[2], FINDINGS[0])]
    assert places == sorted(places)
    assert "<b>Temporal</b> <small>wrong</small>" in page
    assert "room for more, of 200 in this process" in page


async def test_who_may_not_sees_what_everybody_may_know(house: House) -> None:
    page = await house.guest.see("/console/health")
    assert not any(one.sentence in page for one in FINDINGS)
    assert "it takes the permission ExamineService" in page
    assert "Ready" in page
    ready = (await house.guest.api.get("/readyz")).json()
    assert ", ".join(ready["unled_tasks"]) in page
    processes = page[page.index("<h2>Processes") :]
    assert "<b>Api</b></li>" in processes, "without its host and number"


async def test_looking_again_soon_examines_nothing_anew(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FRESH_SECONDS", 600.0)
    await house.warden.see("/console/health")
    count = house.examiner.count
    await asyncio.gather(*(house.warden.see("/console/health") for _ in range(5)))
    assert house.examiner.count == count


async def test_without_an_examination_the_page_says_so(api: Api) -> None:
    page = " ".join((await api.get("/console/health")).text.split())
    assert "This process cannot examine the service." in page
    assert "Ready" in page


class FakeHost:
    """As much of a process as an examination needs."""

    settings = Settings(app_env="test")


async def test_an_examination_that_hangs_or_breaks_leaves_the_last_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    behaviour: dict[str, bool] = {}

    async def examine() -> Sequence[HealthFinding]:
        if behaviour.get("hangs"):
            await asyncio.sleep(60)
        if behaviour.get("breaks"):
            raise RuntimeError("no")
        return FINDINGS

    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(health, "LONGEST_SECONDS", 0.05)
    service = ServiceHealth(FakeHost(), None, examine)  # type: ignore[arg-type]
    assert (await service.latest(60.0)).findings == FINDINGS
    for fault, sentence in (("hangs", "did not end"), ("breaks", "could not be made")):
        behaviour.clear()
        behaviour[fault] = True

        async def is_noted(sentence: str = sentence) -> bool:
            last = await service.latest(0.0)
            return last.findings == FINDINGS and sentence in (last.trouble or "")

        await until(is_noted)


async def test_the_doctor_examines_a_process_under_its_own_settings(module_database: str) -> None:
    settings = Settings(database_url=module_database, app_env="test", temporal_address="127.0.0.1:1")
    found = {one.check: one for one in await carry_out_checks(settings)}
    assert list(found) == list(CHECKS)
    assert found["settings"].status == "ok"
    assert found["database"].sentence.startswith("PostgreSQL ")
    assert found["temporal"].status == "wrong"
    assert "127.0.0.1:1" in found["temporal"].sentence
