"""Whatever is killed, and when: one run, every reading once, one end."""

import asyncio
import random
from collections.abc import AsyncIterator
from itertools import product

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton_bluesky.journal import run_journals
from tests.support.databases import fresh_database
from tests.support.seeds import SEED
from tests.support.service import running_api
from tests.support.waiting import until
from tests.support.witness.kills import KillScene, Moment, Victim, journaled_uid, kill_scene, play_kill
from tests.support.witness.witnessed_beamline import witnessed_beamline

pytestmark = pytest.mark.server

SAMPLE = [(Victim.ENGINE, Moment.AFTER_APPEND), (Victim.SENDER, Moment.AFTER_BEGIN), (Victim.SERVICE, Moment.AFTER_ENDED)]
REST = [case for case in product(Victim, Moment) if case not in SAMPLE]
RANDOM_SCANS, KILLS_OF_EACH = 20, 10


@pytest.fixture(scope="module")
async def scene(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[KillScene]:
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            line = await witnessed_beamline(api)
            async with kill_scene(line, url, tmp_path_factory.mktemp("kills")) as scene:
                yield scene


@pytest.mark.parametrize(("victim", "moment"), [*SAMPLE, *(pytest.param(*case, marks=pytest.mark.soak) for case in REST)])
async def test_a_part_that_is_killed_loses_and_doubles_nothing(scene: KillScene, victim: Victim, moment: Moment) -> None:
    await play_kill(scene, victim, moment)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(RANDOM_SCANS))
async def test_kills_at_random_moments_lose_and_double_nothing(scene: KillScene, number: int) -> None:
    chance, events = random.Random(SEED + number), 400
    with scene.engine() as engine:
        engine.begin("numbered", num=events)
        uid = await until(lambda: journaled_uid(engine.journal))
        for _ in range(KILLS_OF_EACH):
            await asyncio.sleep(chance.uniform(0, 0.8))
            victim = chance.choice([Victim.SENDER, Victim.SERVICE])
            await asyncio.to_thread(scene.kill, victim, engine)
        await scene.check_record(uid, events, "Completed")
        await until(lambda: not run_journals(engine.journal))
