"""Random conducts compared with the reference interpreter: the same ends, writes, record and ledger.

RANDOM_CONDUCTS says how many, SOAK_SEED is the seed of the first.
"""

import asyncio
import os
import pprint
import time
from collections import Counter
from typing import Any

import pytest

from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.workflows.conduct_cases import ConductCase, build_case
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.many_conducts import CaseConduct, ManyConducts

COUNT = int(os.environ.get("RANDOM_CONDUCTS", "15"))
FIRST = int(os.environ.get("SOAK_SEED", "0"))
AT_ONCE = 40


async def conduct_case(case: ConductCase, many_conducts: ManyConducts, stack: ConductStack, turns: asyncio.Semaphore) -> Any:
    """Where a case went otherwise than it must; nothing where it did not."""
    async with turns:
        conduct = CaseConduct(case, many_conducts)
        try:
            await conduct.register(stack)
            for act in case.acts:
                await conduct.perform(act, stack)
        except Exception as error:
            return {repr(error): None}
        return await conduct.differences()


def describe_case(case: ConductCase, differences: Any) -> str:
    """A whole case, with where it went wrong: every pair is what must be, and what is."""
    acts = "\n".join(f"  {number}. {act}" for number, act in enumerate(case.acts, start=1))
    said = pprint.pformat(differences, width=120, sort_dicts=False)
    return f"\nseed {case.seed}\n{pprint.pformat(case.described, width=120, sort_dicts=False)}\n{acts}\n{said}\n"


@pytest.mark.timeout(300 + COUNT)
async def test_random_conducts_come_out_as_the_rules_have_it(database_url: str, temporal: EmbeddedTemporal) -> None:
    many_conducts, turns = ManyConducts(), asyncio.Semaphore(AT_ONCE)
    cases = [build_case(seed) for seed in range(FIRST, FIRST + COUNT)]
    began = time.perf_counter()
    async with many_conducts.open_stack(database_url, temporal.address) as stack:
        found = await asyncio.gather(*(conduct_case(case, many_conducts, stack, turns) for case in cases))
    wrong = [describe_case(case, differences) for case, differences in zip(cases, found, strict=True) if differences]
    seeds = [case.seed for case, differences in zip(cases, found, strict=True) if differences]
    kinds = Counter(name for differences in found for name in differences)
    print(f"{COUNT} cases in {time.perf_counter() - began:.1f} s, {len(wrong)} of them wrong {seeds}: {dict(kinds)}")
    assert not wrong, f"{len(wrong)} of {COUNT} went otherwise, {dict(kinds)}:{''.join(wrong[:5])}"
