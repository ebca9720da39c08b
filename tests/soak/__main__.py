"""`make soak`: runs what multiplies, with seeds of its own and in a random order, until the time is over."""

import argparse
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parents[1]
WORKERS = len(os.sched_getaffinity(0)) + 1


@dataclass(frozen=True)
class SoakJob:
    """Some tests, with the variables that let them take every case, or many."""

    name: str
    selection: Sequence[str]
    seconds: float
    """What they take on two cores, about; nothing is begun that would take longer than there is time."""
    variables: Mapping[str, str] = field(default_factory=dict)
    is_random: bool = False
    """Whether another seed tries something else, so that they are run again and again while there is time."""

    def command(self, seed: int) -> str:
        """Return what a shell runs."""
        variables = [f"{name}={value}" for name, value in {"SOAK_SEED": seed, **self.variables}.items()]
        program = [sys.executable, "-m", "pytest", "--workers", str(WORKERS), "--timeout=1800", f"--hypothesis-seed={seed}"]
        return shlex.join([*variables, *program, *self.selection])


def files_with(text: str, room: Path = TESTS) -> list[str]:
    """Return the modules of tests that have this in their source."""
    found = [path for path in sorted(room.rglob("test_*.py")) if text in path.read_text()]
    return [str(path.relative_to(TESTS.parent)) for path in found]


def jobs() -> list[SoakJob]:
    """Return everything that a soak runs; tests that are marked are run room by room."""
    workflows, chaos = "tests/workflows/test_", "tests/chaos/test_"
    conducts = {"RANDOM_CONDUCTS": "100"}
    rivals = {"RIVAL_AGENTS": "4", "RIVAL_RUNS": "8", "RIVAL_KILLS": "5"}
    contract = {"CONTRACT_CASES": "100000", "CONTRACT_EXAMPLES": "3"}
    marked = {room.name: files_with("mark.soak", room) for room in sorted(TESTS.iterdir()) if room.is_dir()}
    return [
        *(SoakJob(f"marked {room}", ["--soak", "-m", "soak", *files], 240) for room, files in marked.items() if files),
        SoakJob("crashes", [chaos + "worker_kill.py"], 120, {"CRASH_MATRIX": "full"}),
        SoakJob("holds", [workflows + "holds.py"], 180, {"HOLD_MATRIX": "all"}),
        SoakJob("suspensions", [chaos + "suspended_worker.py"], 120, {"SUSPENSIONS": "66"}),
        SoakJob("lost monitors", [chaos + "lost_monitor.py"], 300, {"LOST_MONITORS": "9"}),
        SoakJob("random conducts", [workflows + "random_conducts.py"], 60, conducts, is_random=True),
        SoakJob("a long conduct", [workflows + "long_conduct.py"], 90, {"LONG_CONDUCT_STEPS": "5000"}),
        SoakJob("rival agents", [chaos + "rival_agents.py"], 90, rivals, is_random=True),
        SoakJob("operations page", ["tests/e2e/test_docs_page.py"], 90, {"WHOLE_DOCUMENT": "1"}),
        SoakJob("contract", ["tests/api/test_contract.py"], 420, contract, is_random=True),
        SoakJob(
            "beamlines", ["tests/beamline/test_random_beamlines.py"], 90, {"RANDOM_BEAMLINE_ASSETS": "600"}, is_random=True
        ),
        SoakJob("killed applications", [chaos + "apply_kill.py"], 60, {"APPLY_KILLS": "8"}, is_random=True),
        SoakJob(
            "properties", ["-m", "hypothesis", *files_with("@given(")], 240, {"PROPERTY_EXAMPLES": "200"}, is_random=True
        ),
    ]


def main() -> int:
    """Run jobs until the time is over, and return 1 if one failed."""
    known = {job.name: job for job in jobs()}
    options = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    options.add_argument("--minutes", type=float, default=20, help="how long it takes, about")
    options.add_argument("--seed", type=int, default=random.randrange(10**6), help="that of an earlier soak: the same order")
    options.add_argument("--only", choices=known, action="append", help="these jobs")
    given = options.parse_args()
    print(f"seed {given.seed}", flush=True)
    chance = random.Random(given.seed)
    waiting = [known[name] for name in given.only or known]
    chance.shuffle(waiting)
    deadline = time.monotonic() + 60 * given.minutes
    failed, took = [], dict[str, float]()
    while waiting:
        left = deadline - time.monotonic()
        fitting = [job for job in waiting if took.get(job.name, job.seconds) <= left]
        if took and not fitting:
            break
        waiting.remove(job := (fitting or waiting)[0])
        command = job.command(chance.randrange(10**6))
        passed, took[job.name] = run(job.name, command)
        if not passed:
            failed.append(command)
        elif job.is_random:
            waiting.append(job)
    print(f"not begun: {', '.join(job.name for job in waiting if job.name not in took) or 'nothing'}")
    print(f"seed {given.seed}:", "\n".join(["failed, and is repeated by", *failed]) if failed else "nothing failed")
    return int(bool(failed))


def run(name: str, command: str) -> tuple[bool, float]:
    """Run a job, and return whether it passed and how many seconds it took."""
    print(f"{name}: {command}", flush=True)
    begun = time.monotonic()
    passed = subprocess.run(command, shell=True, cwd=TESTS.parent, check=False).returncode == 0
    seconds = time.monotonic() - begun
    print(f"{name}: {'passed' if passed else 'FAILED'} after {seconds:.0f} s", flush=True)
    return passed, seconds


if __name__ == "__main__":
    sys.exit(main())
