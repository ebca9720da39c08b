"""A conduct of many steps: it goes on in fresh histories, each of them short, and takes no more memory towards the end.

LONG_CONDUCT_STEPS says how many; ten thousand is the most that is ever conducted. Unless it is set there are few, in short
stretches and shorter histories.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct import messages
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.messages import MAX_STRETCH, conduct_workflow_id
from baton.workflows import conduct
from baton.workflows.conduct import STRETCHES_PER_EXECUTION
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import setpoint

WANTED = os.environ.get("LONG_CONDUCT_STEPS")
COUNT = int(WANTED or "220")
PER_STRETCH = MAX_STRETCH if WANTED else 20
PER_EXECUTION = STRETCHES_PER_EXECUTION if WANTED else 3
EVENTS_PER_STRETCH = 6
"""Events of a history that a stretch takes: three of the activity, three of the turn it leads to."""
BESIDE = 40
"""Events that beginning, closing and ending may take."""
GROWTH = 64
"""Megabytes that the process may come to need beyond what the first half of the steps took."""


EVERY = 10
"""Steps between two looks at a conduct that is under way."""


@dataclass
class Seen:
    """What was seen of a conduct while it went on: where it stood, and how much memory the process had."""

    stack: ConductStack
    procedure_id: UUID
    steps: list[int] = field(default_factory=list)
    memory: dict[int, int] = field(default_factory=dict)

    async def over(self) -> bool:
        """Whether the conduct is over; now and then its progress row is looked at."""
        done = len(self.stack.control.writes)
        if done < min(len(self.steps) * EVERY, COUNT):
            return False
        async with self.stack.runtime.pool.connection() as connection:
            looked = "SELECT phase, step_index FROM conduct_progress WHERE procedure_id = %s"
            row = await (await connection.execute(looked, [self.procedure_id])).fetchone()
        assert row is not None
        phase, step_index = row
        if step_index is not None:
            self.steps.append(step_index)
        self.memory.setdefault(done // 50 * 50, resident_megabytes())
        return bool(phase == "Ended")


def resident_megabytes() -> int:
    """Megabytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


async def history_lengths(stack: ConductStack, id: str) -> list[int]:
    """The lengths of the histories that a conduct went through, one after the other."""
    described = (await stack.client.get_workflow_handle(id).describe()).raw_description
    run_id, lengths = described.workflow_execution_info.first_run_id, []
    while run_id:
        history = await stack.client.get_workflow_handle(id, run_id=run_id).fetch_history()
        lengths.append(len(history.events))
        run_id = history.events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return lengths


@pytest.mark.timeout(300 + COUNT // 5)
async def test_a_long_conduct_goes_on_in_short_histories_and_constant_memory(
    database_url: str, temporal: EmbeddedTemporal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conduct, "STRETCHES_PER_EXECUTION", PER_EXECUTION)
    monkeypatch.setattr(messages, "MAX_STRETCH", PER_STRETCH)
    async with open_conduct_stack(database_url, temporal.address, simulated_signals={"a": -1}) as stack:
        id = await stack.register_from_recipe([setpoint("a", number) for number in range(COUNT)])
        seen = Seen(stack, id)
        began = time.perf_counter()
        await stack.do(ConductProcedure(wait=0), id)
        await until(seen.over, within=60 + COUNT // 5)
        took = time.perf_counter() - began
        lengths = await history_lengths(stack, conduct_workflow_id(id))
        (ended,) = [event for event in await stack.events(id) if type(event).__name__ == "ProcedureConducted"]
        rows = await stack.ledger(id)
    last = max(seen.memory)
    half = min(index for index in seen.memory if index >= COUNT // 2)
    print(
        f"{COUNT} steps in {took:.1f} s, {1000 * took / COUNT:.1f} ms each; {len(lengths)} histories, the longest of "
        f"{max(lengths)} events; {seen.memory.get(1000)} MB resident after 1,000 steps, {seen.memory[last]} MB after {last}"
    )
    assert (ended.result.succeeded, ended.result.completed_count) == (True, COUNT)
    assert stack.control.writes == [("a", number) for number in range(COUNT)]
    assert len(rows) == 2 * COUNT
    assert len(lengths) >= -(-COUNT // (PER_STRETCH * PER_EXECUTION)), "a stretch that takes long is shorter"
    assert max(lengths) <= EVENTS_PER_STRETCH * PER_EXECUTION + BESIDE
    assert seen.steps == sorted(seen.steps)
    assert len(set(seen.steps)) > 10, "its progress is visible while it moves"
    assert seen.memory[last] - seen.memory[half] < GROWTH
