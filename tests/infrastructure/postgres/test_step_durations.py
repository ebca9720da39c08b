"""How long steps took, as the ledger tells: the last hundred good outcomes of a kind of step on a target, found by index."""

from datetime import UTC, datetime
from typing import Any

import pytest

from baton.domain.conduct.estimates import StepDuration
from baton.domain.conduct.messages import Mark
from baton.infrastructure.postgres.conduct_reader import DURATIONS, PostgresConductReader
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import CommandCaller, HandSetClock
from tests.support.infrastructure.database_observer import rows
from tests.support.infrastructure.ledger_cases import PORTS, LedgerCase, row

KEY = ("setpoint", "bl7:m1")


async def no_time(seconds: float) -> None:
    raise AssertionError("nothing here takes time")


@pytest.fixture
def case(store: PostgresStore) -> LedgerCase:
    client = CommandCaller(store, ports=PORTS, clock=HandSetClock(datetime.now(UTC)))
    return LedgerCase(client, PostgresLedger(store), no_time)


async def settle(case: LedgerCase, *outcomes: dict[str, Any], **fields: Any) -> None:
    """Store outcomes of one conduct, one after the other."""
    conduct = await case.open_conduct()
    for index, said in enumerate(outcomes):
        await case.ledger.settle(row(conduct.at(index), Mark.OUTCOME, **{"target": "bl7:m1", **fields, **said}))


async def test_median_and_ninetieth_percentile_are_of_the_last_hundred(case: LedgerCase, store: PostgresStore) -> None:
    await settle(case, *({"seconds": 1000.0} for _ in range(5)))
    await settle(case, *({"seconds": float(number)} for number in range(1, 101)))
    found = (await PostgresConductReader(store).read_durations([KEY]))[KEY]
    assert (found.count, found.median, found.p90) == (100, 50.5, pytest.approx(90.1))


async def test_only_good_outcomes_that_say_how_long_they_took_count(case: LedgerCase, store: PostgresStore) -> None:
    failed = {"result": "failed", "error_class": "ControlError", "message": "no"}
    await settle(case, {"seconds": 2.0}, {"seconds": 60.0, **failed}, {"result": "skipped"}, {})
    conduct = await case.open_conduct()
    await case.ledger.settle(row(conduct.at(0), Mark.DEPOSIT, target="bl7:m1", seconds=30.0))
    assert await PostgresConductReader(store).read_durations([KEY]) == {KEY: StepDuration(1, 2.0, 2.0)}


async def test_steps_are_told_apart_by_kind_and_target(case: LedgerCase, store: PostgresStore) -> None:
    await settle(case, {"seconds": 1.0}, {"seconds": 2.0, "target": "bl7:m2"}, {"seconds": 3.0, "kind": "check"})
    keys = [KEY, ("setpoint", "bl7:m2"), ("check", "bl7:m1"), ("check", "bl7:m2")]
    found = await PostgresConductReader(store).read_durations(keys)
    assert {key: duration.median for key, duration in found.items()} == dict(zip(keys, (1.0, 2.0, 3.0), strict=False))


async def test_the_last_value_of_a_signal_is_what_a_step_wrote_or_read_last(case: LedgerCase, store: PostgresStore) -> None:
    read = {"value": 2.5, "units": "mm"}
    await settle(
        case,
        {"seconds": 1.0, "value": 1.0},
        {"seconds": 1.0, "value": 2.0, "post_reading": read},
        {"seconds": 1.0, "value": 9.0, "target": "bl7:m2"},
        {"seconds": 1.0, "kind": "check", "reading": {"value": 3.5}, "target": "bl7:m3"},
        {"seconds": 1.0, "value": 7.0, "result": "failed", "error_class": "ControlError", "message": "no"},
    )
    found = await PostgresConductReader(store).last_values(["bl7:m1", "bl7:m2", "bl7:m3", "bl7:m4"])
    shown = {address: (one.value, one.unit, one.unit_known) for address, one in found.items()}
    assert shown == {"bl7:m1": (2.5, "mm", True), "bl7:m2": (9.0, None, False), "bl7:m3": (3.5, None, True)}


async def test_they_are_found_by_their_index(owner: Connection) -> None:
    await owner.execute("SET enable_seqscan = off")
    statement = DURATIONS.replace("%(kinds)s", "'{setpoint}'").replace("%(targets)s", "'{bl7:m1}'").replace("%(count)s", "9")
    plan = "\n".join(line for (line,) in await rows(owner, f"EXPLAIN {statement}"))
    assert "Index Scan using entries_procedure_activities_duration" in plan, plan
