"""Rival agents of two kinds on runs that end at once, while their workers are killed: each run is concluded about once."""

import asyncio
import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.domain.agent.caution_proposal import DRAFT
from baton.domain.agent.debrief import DEBRIEF
from tests.conftest import ONE_PARTITION
from tests.support.api.rest_beamline import beamline
from tests.support.forked_commands import forked_command
from tests.support.infrastructure.model_server import ModelServer, OpenAi, ReceivedRequest
from tests.support.seeds import SEED
from tests.support.service import Api, running_api
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.agent_stack import DEBRIEFER, DRAFTER

RIVALS = int(os.environ.get("RIVAL_AGENTS", "2"))
RUNS = int(os.environ.get("RIVAL_RUNS", "2"))
KILLS = int(os.environ.get("RIVAL_KILLS", "1"))
TASKS = (DEBRIEF, DRAFT)
NARRATIVE = "The scan was ended for a fault. " + "It was ended before its plan was carried out. " * 3
ANSWERS = {
    "RunDebrief": {"choice": "EquipmentAbort", "confidence": 0.9, "reasoning": NARRATIVE},
    "CautionProposal": {"choice": "NoAction", "confidence": 0.9, "reasoning": NARRATIVE, "proposed_caution": None},
}


def kind_of(asked: ReceivedRequest) -> str:
    """What a model is asked for."""
    return "CautionProposal" if "proposed_caution" in json.dumps(asked.body["response_format"]) else "RunDebrief"


def run_of(asked: ReceivedRequest) -> str:
    facts: dict[str, str] = json.loads(asked.body["messages"][1]["content"])
    return facts["run_id"]


class Workers:
    """Worker processes, one of which is killed now and then and replaced."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._numbers = itertools.count()
        self._running = ExitStack()
        self._chance = random.Random(SEED)
        self._processes = [self._start_worker() for _ in range(2)]

    def _start_worker(self) -> ForkServerProcess:
        output = self._directory / f"worker-{next(self._numbers)}"
        paths = output.with_suffix(".out"), output.with_suffix(".log")
        return self._running.enter_context(forked_command(("worker",), self._environment, *paths))

    def kill_one(self) -> None:
        victim = self._chance.randrange(len(self._processes))
        self._processes[victim].kill()
        self._processes[victim].join()
        self._processes[victim] = self._start_worker()

    def close(self) -> None:
        self._running.close()


async def register_rivals(api: Api) -> dict[str, dict[str, str]]:
    """So many agents of each kind, in service, each with a model of its own; the seeded ones keep out of it."""
    for seeded in (DEBRIEFER, DRAFTER):
        await api.execute(f"/agents/{seeded}/suspend", {"reason": "others are tried"})
    found: dict[str, dict[str, str]] = {}
    for task in TASKS:
        for number in range(RIVALS):
            model = {"provider": "openai", "model": f"{task.kind}-{number}"}
            named = {"kind": task.kind, "name": f"Rival {number}", "version": "1", "model_ref": model}
            agent_id = await api.create("/agents", {**named, "prompt_template_id": str(task.prompt.id)})
            await api.execute(f"/agents/{agent_id}/version")
            found.setdefault(task.context, {})[agent_id] = model["model"]
    return found


def decisions(database_url: str) -> list[dict[str, Any]]:
    query = "SELECT payload FROM events WHERE event_type = 'DecisionRegistered' ORDER BY position"
    with psycopg.connect(database_url) as connection:
        return [row[0] for row in connection.execute(query)]


def rows(database_url: str, query: str) -> list[Any]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def own_temporal(tmp_path: Path) -> Iterator[EmbeddedTemporal]:
    """A server that nobody else has workflows in."""
    with EmbeddedTemporal(
        tmp_path / "temporal", headless=True, search_attributes=SEARCH_ATTRIBUTES, settings=ONE_PARTITION
    ) as server:
        yield server


@pytest.mark.timeout(600)
async def test_each_run_is_concluded_about_once_by_one_agent_of_each_kind(
    database_url: str, own_temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    with ModelServer.running_server() as server:
        server.rule = lambda asked: OpenAi().answer(ANSWERS[kind_of(asked)])
        reached = {"temporal_address": own_temporal.address, "openai_base_url": server.url}
        async with running_api(database_url, **reached) as api:
            agents = await register_rivals(api)
            line = await beamline(api)
            runs = [await line.start_run() for _ in range(RUNS)]
            environment = {name.upper(): value for name, value in reached.items()}
            settings = clean_environment(DATABASE_URL=database_url, **environment)
            with closing(Workers(tmp_path, settings)) as workers:
                fault = {"reason": "rotary stage encoder offline"}
                await asyncio.gather(*(api.execute(f"/runs/{run_id}/abort", fault) for run_id in runs))
                wanted = RUNS * RIVALS * len(TASKS)
                for kill in range(KILLS):
                    so_many = wanted * (kill + 1) // (KILLS + 2)
                    await until(lambda at_least=so_many: len(decisions(database_url)) >= at_least, within=100)
                    workers.kill_one()
                await until(lambda: len(decisions(database_url)) >= wanted, within=100)
                entered = "SELECT run_id::text, actor_id::text FROM entries_run_narrative"
                await until(lambda: len(rows(database_url, entered)) >= RUNS, within=60)
        told = decisions(database_url)
        winners = leases(database_url)
        assert Counter((one["inputs"]["run_id"], one["decided_by"]) for one in told) == {
            (run_id, agent_id): 1 for run_id in runs for group in agents.values() for agent_id in group
        }, "one decision by each agent for each run"
        for one in told:
            winner = winners[one["inputs"]["run_id"], one["context"]]
            conflicted = one["choice"].endswith("Conflicted")
            assert conflicted is (one["decided_by"] != winner)
            assert one["inputs"].get("winning_agent_id") == (winner if conflicted else None)
            assert conflicted or one["choice"] == ANSWERS[one["context"]]["choice"]
        calls = rows(
            database_url, "SELECT actor_id::text, count(*) FROM entries_decision_inferences GROUP BY decision_id, 1"
        )
        assert sorted(actor for actor, _ in calls) == sorted(winners.values())
        assert {count for _, count in calls} == {1}
        assert sorted(rows(database_url, entered)) == sorted((run_id, winners[run_id, "RunDebrief"]) for run_id in runs)
        asked = Counter((run_of(one), kind_of(one)) for one in server.asked)
        assert set(asked) == set(winners)
        for one in server.asked:
            context = kind_of(one)
            assert one.body["model"] == agents[context][winners[run_of(one), context]], "nobody but the winner asks"
        assert max(asked.values()) <= 1 + KILLS, "and again only where it was cut off"
        again = sum(asked.values()) - len(asked)
        print(f"{len(told)} decisions, {len(server.asked)} model calls for {len(asked)} conclusions, {again} after a kill")


def leases(database_url: str) -> dict[tuple[str, str], str]:
    """Who holds the lease of each run and kind; one each."""
    query = "SELECT stream_id::text, payload FROM events WHERE event_type = 'DecisionDebriefRequested'"
    contexts = {task.kind: task.context for task in TASKS}
    found = [
        ((run_id, contexts[told["debriefer_kind"]]), told["debriefer_agent_id"])
        for run_id, told in rows(database_url, query)
    ]
    assert len(found) == len(dict(found)) == RUNS * len(TASKS)
    return dict(found)
