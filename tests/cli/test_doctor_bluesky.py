"""What `baton doctor --only bluesky` says of executors of plans, by the rows that a worker keeps."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from baton.application.plan_settings import PlanExecutorSettings
from baton.application.settings import Settings
from baton.cli.doctor import CheckStatus
from baton.cli.doctor.bluesky import describe_executor, describe_witness, examine_bluesky
from baton.domain.recipe.offered_plans import OfferedPlan, PlanExecutorCatalogue, PlanTouches
from baton.domain.step.plan_steps import KnownExecutor

QUEUESERVER = PlanExecutorSettings(
    name="bl7",
    kind="queueserver",
    address="tcp://bl7:60615",
    plans=("scan",),
    simulated=False,  # type: ignore[arg-type]
)
EARLIER = datetime.now(UTC) - timedelta(hours=1)
SCAN = OfferedPlan(digest="0", touches=PlanTouches(writes={"motor": ()}))


def catalogue_row(**over: Any) -> PlanExecutorCatalogue:
    now = datetime.now(UTC)
    known: dict[str, Any] = {"executor": "bl7", "asked_at": now, "heard_at": now, "trouble": None}
    known |= {"version": "RE Manager v0.0.25", "environment": "idle", "devices": []}
    return PlanExecutorCatalogue(**{**known, "plans": {"scan": SCAN.model_dump(mode="json")}, **over})


@pytest.mark.parametrize(
    ("over", "fault", "doubt", "words"),
    [
        (None, True, False, "bl7 was never heard; see that it runs at its address, and that a worker runs."),
        ({}, False, False, "s ago: 1 plans in its catalogue; its release is tested; environment idle."),
        ({"trouble": "no answer"}, True, False, "and then not any more: no answer; see that it runs."),
        ({"heard_at": EARLIER}, True, False, "no worker asks it; see that it runs."),
        ({"environment": None}, False, True, "no environment is open."),
        ({"plans": {}}, False, True, "it does not offer scan."),
        ({"version": "RE Manager v9"}, False, True, "its release is not the tested RE Manager v0.0.25."),
        ({"plans": {"scan": {"digest": "0"}}}, False, True, "nobody says what scan touches."),
    ],
)
def test_an_executor_is_described(over: dict[str, Any] | None, fault: bool, doubt: bool, words: str) -> None:
    row = None if over is None else catalogue_row(**over)
    found = describe_executor(KnownExecutor(QUEUESERVER, row))
    assert found[:2] == (fault, doubt)
    assert found[2].endswith(words)


def test_a_witness_is_described() -> None:
    words = (
        "Bluesky at BL7 gave word of 2 runs in the last day, the last 4 s ago: 90 s behind, 0 documents refused, 0 dropped."
    )
    assert describe_witness("Bluesky at BL7", 2, 90.0, 0, 0, 4.2) == (words, True)
    assert describe_witness("Bluesky at BL7", 1, 0.0, 0, 0, 4.2)[1] is False
    assert describe_witness("Bluesky at BL7", 1, None, 3, 0, 900)[1] is True


async def test_an_executor_that_nobody_has_heard_is_wrong(database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        settings = Settings(database_url=database_url, plan_executors=(QUEUESERVER,))
        assert (await examine_bluesky(connection, settings)).status is CheckStatus.WRONG
        assert (await examine_bluesky(connection, Settings(database_url=database_url))).status is CheckStatus.OK
        row = "INSERT INTO run_witness_contacts VALUES (gen_random_uuid(), clock_timestamp(), 0, 3, 1, '{}')"
        await connection.execute(row)
        found = await examine_bluesky(connection, Settings(database_url=database_url))
    assert (found.status, "3 documents refused, 1 dropped." in found.sentence) == (CheckStatus.WARNING, True)
