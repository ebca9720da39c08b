"""What `baton doctor --only bluesky` says of executors of plans, by the rows that a worker keeps."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from baton.application.plan_settings import PlanExecutorSettings
from baton.application.settings import Settings
from baton.cli.doctor import CheckStatus
from baton.cli.doctor.bluesky import describe_executor, describe_witnesses, examine_bluesky
from baton.domain.step.plan_steps import KnownExecutor, OfferedPlan, PlanExecutorCatalogue, PlanTouches

QUEUESERVER = PlanExecutorSettings(
    name="bl7",
    kind="queueserver",
    address="tcp://bl7:60615",
    plans=("scan",),
    simulated=False,  # type: ignore[arg-type]
)
SCAN = OfferedPlan(digest="0", touches=PlanTouches(writes={"motor": ()}))


def heard(**over: Any) -> PlanExecutorCatalogue:
    now = datetime.now(UTC)
    known: dict[str, Any] = {"executor": "bl7", "asked_at": now, "heard_at": now, "trouble": None}
    known |= {"version": "RE Manager v0.0.25", "environment": "idle", "devices": []}
    return PlanExecutorCatalogue(**{**known, "plans": {"scan": SCAN.model_dump(mode="json")}, **over})


@pytest.mark.parametrize(
    ("row", "fault", "doubt", "words"),
    [
        (None, True, False, "bl7 was never heard; see that it runs at its address, and that a worker runs."),
        (heard(), False, False, "s ago."),
        (heard(trouble="no answer"), True, False, "and then not any more: no answer; see that it runs."),
        (heard(heard_at=datetime.now(UTC) - timedelta(hours=1)), True, False, "no worker asks it; see that it runs."),
        (heard(environment=None), False, True, "no environment is open."),
        (heard(plans={}), False, True, "it does not offer scan."),
        (heard(version="RE Manager v9"), False, True, "its release is not the tested RE Manager v0.0.25."),
        (heard(plans={"scan": {"digest": "0"}}), False, True, "nobody says what scan touches."),
    ],
)
def test_an_executor_is_described(row: PlanExecutorCatalogue | None, fault: bool, doubt: bool, words: str) -> None:
    found = describe_executor(KnownExecutor(QUEUESERVER, row))
    assert found[:2] == (fault, doubt)
    assert found[2].endswith(words)


def test_witnesses_are_described() -> None:
    assert describe_witnesses(0, None, 0, 0, None) == ("No witness gave word in the last day.", False)
    words, doubt = describe_witnesses(2, 90.0, 3, 0, datetime.now(UTC))
    assert words.startswith("Witnesses gave word of 2 runs in the last day, the last ")
    assert (words.endswith(" s ago, 90 s behind, 3 documents refused."), doubt) == (True, True)


async def test_an_executor_that_nobody_has_heard_is_wrong(database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        settings = Settings(database_url=database_url, plan_executors=(QUEUESERVER,))
        assert (await examine_bluesky(connection, settings)).status is CheckStatus.WRONG
        assert (await examine_bluesky(connection, Settings(database_url=database_url))).status is CheckStatus.OK
