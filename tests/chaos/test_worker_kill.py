"""A worker killed at any moment of a conduct: what was done to the plant, what the record says, and that they agree."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from baton.application.conduct.conduct_work import ProcedureConductWork
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import CONDUCTED_ASSETS, ConductProcedure
from baton.domain.conduct.progress import ABORT_ASKED, HOLD_ASKED
from baton.domain.kernel import Event
from baton.domain.procedure.procedure import (
    ProcedureAborted,
    ProcedureAdvised,
    ProcedureCompleted,
    ProcedureConducted,
    ProcedureHeld,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
    ProcedureOutcomeRecorded,
    ProcedureStarted,
)
from baton.domain.step.results import ConductResult
from baton.infrastructure.control.simulator import EntryKind, FileJournal
from baton.infrastructure.wall_clock import clock
from tests.support.chaos.crash_moments import (
    ABORTED,
    COMPLETED,
    HELD,
    LOOPS,
    UNREPEATED,
    CrashCase,
    OpeningCommand,
    StepInQuestion,
    chosen_cases,
)
from tests.support.chaos.worker_kills import ADVICE, CHECK_SECONDS, KilledConduct, WorkerKills, open_worker_kills
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import OPERATOR, open_conduct_stack
from tests.support.workflows.step_json import setpoint

Row = Mapping[str, Any]
ENDINGS = {COMPLETED: ProcedureCompleted, ABORTED: ProcedureAborted, HELD: ProcedureHeld}


@pytest.mark.timeout(900)
async def test_whatever_a_killed_worker_was_at_another_does_what_is_left_and_nothing_twice(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    cases = chosen_cases()
    async with open_worker_kills(database_url, temporal, tmp_path, cases) as kills:
        conducts = await kills.play(cases)
        aftermath = Aftermath(kills)
        found = {one.case: faults for one in conducts if (faults := await aftermath.faults(one))}
    assert not found, "\n".join(f"{case}\n    " + "\n    ".join(faults) for case, faults in found.items())


async def test_a_conduct_that_no_worker_took_up_in_time_is_aborted_untouched(
    database_url: str, temporal: EmbeddedTemporal
) -> None:
    plant = {"simulated_signals": {"a": 0, "shutter": 1}, "conduct_restart_limit_seconds": 1}
    async with open_conduct_stack(database_url, temporal.address, **plant) as stack:
        await stack.stop_worker()
        id = await stack.register_from_recipe([setpoint("a", 1)], [setpoint("shutter", 0)])
        await stack.do(ConductProcedure(wait=0), id)
        (opened,) = [event for event in await stack.events(id) if isinstance(event, ProcedureStarted)]

        async def is_too_late() -> bool:
            return clock() - opened.occurred_at > timedelta(seconds=1)

        await until(is_too_late)
        await stack.start_worker()
        await stack.wait_until_over(id)
        (ended,) = [event.result for event in await stack.events(id) if isinstance(event, ProcedureConducted)]
        assert ended.failure is not None
        assert (ended.failure.target, ended.failure.error_class) == ("start", "ConductStartExpired")
        assert (await stack.procedure(id)).status is ABORTED
        assert (stack.control.writes, await stack.ledger(id)) == ([], [])


class Aftermath:
    """Everything there is to know of conducts that are over."""

    def __init__(self, kills: WorkerKills) -> None:
        self._stack = kills.stack
        self._tallied = Counter(kills.tally.read_text().splitlines())
        deeds = FileJournal(kills.journal).read_new()
        self._written = Counter((entry["address"], entry["value"]) for entry in deeds if entry["kind"] == EntryKind.WRITE)

    async def faults(self, one: KilledConduct) -> list[str]:
        """What is not as it must be."""
        events = await self._stack.events(one.procedure_id)
        rows = [row for row in await self._stack.ledger(one.procedure_id) if row["conduct_id"] == str(one.conduct_id)]
        ends = [event for event in events if isinstance(event, ProcedureConducted) and event.conduct_id == one.conduct_id]
        if len(ends) != 1:
            return [f"it ended {len(ends)} times"]
        result = ends[0].result
        procedure = await self._stack.procedure(one.procedure_id)
        answer = await self._stack.runtime.works.of(ProcedureConductWork).answer(one.conduct_id)
        return [
            *difference("status", procedure.status, one.case.status),
            *difference("open pass", procedure.current_iteration_index, None),
            *difference("answer to a reader", answer, result.model_dump(mode="json")),
            *difference("left behind", await self._remaining_claims(one), []),
            *self._plant(one),
            *stream_differences(one.case, events, events.index(ends[0])),
            *ledger_differences(one.case, rows),
            *result_differences(one.case, result, rows),
        ]

    def _plant(self, one: KilledConduct) -> Iterator[str]:
        """How often the plant saw the step in question, the one after it, and the last one to close."""
        seen = {
            StepInQuestion.SETPOINT: self._written["motor", one.number],
            StepInQuestion.ACTION: self._tallied[f"action {one.number}"],
            StepInQuestion.DONE_ACTION: self._tallied[f"action {one.number}"],
            StepInQuestion.COMPUTE: self._tallied[f"compute {one.number}"],
        }
        yield from difference("executions", seen.get(one.case.kind, one.case.executions), one.case.executions)
        goes_on = one.case.error_class is None and one.case.way not in (*LOOPS, OpeningCommand.CLOSING)
        yield from difference("next steps", self._written["next", one.number], int(goes_on))
        yield from difference("closing steps", self._written["shutter", one.number], int(one.case.closes))

    async def _remaining_claims(self, one: KilledConduct) -> list[str]:
        """Return the kinds of claims and requests that a conduct still holds."""
        async with self._stack.runtime.pool.connection() as connection:
            found = await connection.execute(
                "SELECT kind FROM claims WHERE kind = %s AND key = %s "
                "UNION ALL SELECT kind FROM lookups WHERE kind = ANY(%s) AND key = %s",
                [CONDUCTED_ASSETS, str(one.asset_id), [HOLD_ASKED, ABORT_ASKED], str(one.conduct_id)],
            )
            return [kind for (kind,) in await found.fetchall()]


def stream_differences(case: CrashCase, events: Sequence[Event], end: int) -> Iterator[str]:
    """Passes follow each other, each measured once where they are steered; and the end is the end."""
    ending = [ENDINGS[case.status].__name__] if case.status in ENDINGS else []
    yield from difference("after the end", [type(event).__name__ for event in events[end + 1 :]], ending)
    begun = [event.iteration_index for event in events if isinstance(event, ProcedureIterationStarted)]
    ended = [event for event in events if isinstance(event, ProcedureIterationEnded)]
    yield from difference("passes begun", begun, list(range(1, len(case.iterations) + 1)))
    yield from difference("passes ended", [event.iteration_index for event in ended], begun)
    yield from difference("how passes ended", [event.converged for event in ended], case.iterations)
    if case.way in (OpeningCommand.ADVISED, OpeningCommand.ADVISED_FROM):
        measured = [event.iteration_index for event in events if isinstance(event, ProcedureOutcomeRecorded)]
        yield from difference("passes measured", measured, begun[:-1] if case.error_class else begun)
    if case.by_caller:
        advised = [event.advice.rationale for event in events if isinstance(event, ProcedureAdvised)]
        yield from difference("advice", advised, [ADVICE["rationale"]])
        yield from difference("adviser", (ended[-1].reasoning, ended[-1].advised_by), (ADVICE["rationale"], OPERATOR))


def ledger_differences(case: CrashCase, rows: Sequence[Row]) -> Iterator[str]:
    """What was begun came to one outcome, that of its last attempt; only what was interrupted was begun again, or never
    came to anything because it was too late."""
    attempts: dict[tuple[int, bool, int], dict[str, list[int]]] = {}
    for row in rows:
        at = attempts.setdefault(place_of(row), {"in_flight": [], "outcome": [], "deposit": []})
        at[row["mark"]].append(row["attempt"])
    for place, at in attempts.items():
        again = (place == case.place and case.begins_again) or place == case.neighbour_that_begins_again
        begun = [1, 2] if again and at["in_flight"] else [1]
        yield from difference(f"begun at {place}", at["in_flight"], begun if at["in_flight"] else [])
        given_up = place == case.place and case.error_class == "StepInterrupted"
        yield from difference(f"outcomes at {place}", at["outcome"], [] if given_up else begun[-1:])
    unknown = [row["error_class"] for row in rows if row.get("error_class") in UNREPEATED.values()]
    yield from difference("unknown outcomes", unknown, [UNREPEATED[case.kind]] if case.loses_the_outcome else [])
    if case.kind is StepInQuestion.UNMET_CHECK and case.moment.call == "begin":
        waited = [row["waited"] < CHECK_SECONDS for row in rows if "waited" in row]
        yield from difference("whether the check kept its deadline", waited, [True])


def result_differences(case: CrashCase, result: ConductResult, rows: Sequence[Row]) -> Iterator[str]:
    """The result says what the ledger says."""
    outcomes = [row for row in rows if row["mark"] == "outcome"]
    last_pass = max((row.get("iteration_index", 0) for row in rows), default=0)
    main = [row for row in outcomes if not row["is_closing"] and row.get("iteration_index", 0) == last_pass]
    written: dict[str, Any] = {
        row["address"]: row["value"] for row in outcomes if row["kind"] == "setpoint" and row["result"] == "ok"
    }
    settled = {place_of(row) for row in outcomes}
    lost = [row for row in rows if row["kind"] == "setpoint" and place_of(row) not in settled]
    written |= {row["address"]: {"outcome": "unknown", "values": [row["value"]]} for row in lost}
    failed = [row["error_class"] for row in outcomes if row["is_closing"] and row["result"] == "failed"]
    yield from difference("failure told", result.failure and result.failure.error_class, case.error_class)
    yield from difference("success told", result.succeeded, case.error_class is None)
    yield from difference("hold told", result.held, case.status is HELD)
    yield from difference("passes told", result.iteration_count, len(case.iterations) or None)
    yield from difference("steps told", result.completed_count, sum(row["result"] == "ok" for row in main))
    yield from difference("writes told", result.substrate_writes, written)
    brought = [item["name"] for row in main for item in row.get("measurements", ())]
    yield from difference("measurements told", [item.name for item in result.measurements], brought)
    yield from difference("closing failures told", [failure.error_class for failure in result.closing_failures], failed)


def place_of(row: Row) -> tuple[int, bool, int]:
    return row.get("iteration_index", 0), bool(row["is_closing"]), row["step_index"]


def difference(what: str, found: object, wanted: object) -> Iterator[str]:
    """What to say where something is not as wanted."""
    if found != wanted:
        yield f"{what}: {found!r} instead of {wanted!r}"
