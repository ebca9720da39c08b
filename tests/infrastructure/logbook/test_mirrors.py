"""What every mirror promises: each narrative unchanged and once, in the logbook it was meant for, and no complaint."""

import asyncio
import os
from pathlib import Path
from urllib.parse import unquote
from uuid import UUID, uuid4

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from baton.application.ports import LogbookMirror
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.infrastructure.publishing import FileMirror, mirror_directory_name
from tests.support.infrastructure.memory_adapters import MemoryMirror
from tests.support.waiting import until

NARRATIVE = "Ring current fell at 09:12.\r\nThe run was held for 14 min; 1,480 of 1,500 projections are good (20 µm drift)."


@pytest.fixture(params=["files", "memory"])
def mirror(request: pytest.FixtureRequest, tmp_path: Path) -> LogbookMirror:
    return FileMirror(tmp_path / "mirror") if request.param == "files" else MemoryMirror()


def logbooks(mirror: LogbookMirror, tmp_path: Path) -> dict[str, dict[UUID, str]]:
    """What was copied, by logbook and decision; nothing is outside the mirror."""
    if isinstance(mirror, MemoryMirror):
        return mirror.logbooks
    assert os.listdir(tmp_path) == ["mirror"]
    return {
        unquote(logbook.name): {UUID(file.stem): file.read_bytes().decode() for file in logbook.iterdir()}
        for logbook in (tmp_path / "mirror").iterdir()
    }


async def test_a_narrative_is_copied_to_the_letter(mirror: LogbookMirror, tmp_path: Path) -> None:
    first, second = uuid4(), uuid4()
    await mirror.mirror_decision(first, NARRATIVE, "north-ring")
    await mirror.mirror_decision(second, "Nothing to report.", "north-ring")
    await mirror.mirror_decision(first, NARRATIVE, "Tomography")
    assert logbooks(mirror, tmp_path) == {
        "north-ring": {first: NARRATIVE, second: "Nothing to report."},
        "Tomography": {first: NARRATIVE},
    }


async def test_a_decision_that_was_copied_is_recognised(mirror: LogbookMirror, tmp_path: Path) -> None:
    decision_id = uuid4()
    await mirror.mirror_decision(decision_id, "First", "north-ring")
    await mirror.mirror_decision(decision_id, "Second", "north-ring")
    assert logbooks(mirror, tmp_path) == {"north-ring": {decision_id: "First"}}


async def test_of_many_copies_at_once_one_is_kept_whole(mirror: LogbookMirror, tmp_path: Path) -> None:
    decision_id = uuid4()
    narratives = [f"{number} " * 10_000 for number in range(10)]
    await asyncio.gather(*(mirror.mirror_decision(decision_id, text, "north-ring") for text in narratives))
    assert logbooks(mirror, tmp_path)["north-ring"][decision_id] in narratives


@pytest.mark.parametrize("name", ["../outside", "..", ".", ".hidden", "a/b", "/etc", "Hutch B", "100%", "Straße", "%2E%2E"])
async def test_a_logbook_may_have_any_name(mirror: LogbookMirror, tmp_path: Path, name: str) -> None:
    decision_id = uuid4()
    await mirror.mirror_decision(decision_id, NARRATIVE, name)
    assert logbooks(mirror, tmp_path) == {name: {decision_id: NARRATIVE}}


@given(some.text(min_size=1, max_size=50), some.text(min_size=1, max_size=50))
def test_logbooks_of_different_names_have_different_directories(one: str, other: str) -> None:
    assert (mirror_directory_name(one) == mirror_directory_name(other)) is (one == other)
    assert "/" not in mirror_directory_name(one)
    assert not mirror_directory_name(one).startswith(".")


@given(narrative=some.text(max_size=500))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_files_hold_any_text(tmp_path: Path, narrative: str) -> None:
    decision_id = uuid4()
    await FileMirror(tmp_path, pauses=()).mirror_decision(decision_id, narrative, "north-ring")
    assert (tmp_path / "north-ring" / f"{decision_id}.txt").read_bytes().decode() == narrative


async def test_the_directory_holds_nothing_but_narratives(tmp_path: Path) -> None:
    decision_id = uuid4()
    await FileMirror(tmp_path / "mirror").mirror_decision(decision_id, NARRATIVE, "north-ring")
    assert os.listdir(tmp_path / "mirror" / "north-ring") == [f"{decision_id}.txt"]


@pytest.mark.parametrize(("text", "logbook"), [(NARRATIVE, "north-ring"), ("\ud800", "north-ring"), (NARRATIVE, "x" * 300)])
async def test_what_cannot_be_copied_is_logged_without_its_text_and_raises_nothing(
    tmp_path: Path, text: str, logbook: str
) -> None:
    (tmp_path / "north-ring").write_bytes(b"in the way")
    decision_id = uuid4()
    with structlog.testing.capture_logs() as logs:
        await FileMirror(tmp_path, pauses=(0.0, 0.0)).mirror_decision(decision_id, text, logbook)
    assert [line["event"] for line in logs] == ["mirroring_failed"] * 3 + ["mirroring_given_up"]
    assert {line["decision_id"] for line in logs} == {str(decision_id)}
    assert "Ring current" not in str(logs)
    assert os.listdir(tmp_path) == ["north-ring"]


async def test_what_fails_at_first_is_tried_again(tmp_path: Path) -> None:
    obstacle = tmp_path / "north-ring"
    obstacle.write_bytes(b"in the way")
    decision_id = uuid4()
    with structlog.testing.capture_logs() as logs:
        copying = asyncio.create_task(
            FileMirror(tmp_path, pauses=(0.05,) * 100).mirror_decision(decision_id, NARRATIVE, "north-ring")
        )
        await until(lambda: len(logs) >= 2)
        obstacle.unlink()
        await copying
    assert (obstacle / f"{decision_id}.txt").read_bytes().decode() == NARRATIVE


def test_a_deployment_mirrors_nothing_unless_it_says_where_to(tmp_path: Path) -> None:
    url = "postgresql://localhost/nowhere"
    assert Runtime(Settings(database_url=url)).agents.mirror is None
    configured = Runtime(Settings(database_url=url, logbook_mirror_directory=tmp_path))
    assert isinstance(configured.agents.mirror, FileMirror)
