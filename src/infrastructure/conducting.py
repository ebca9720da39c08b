"""What a worker conducts with: the plant, its actions, its programs and its deciders, as configured."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

from baton.application.conduct.actions import Actions
from baton.application.conduct.advice import Advisers
from baton.application.conduct.compute import Compute
from baton.application.conduct.conduct_plan import ConductPlans
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.passes import Passes
from baton.application.conduct.procedure_stream import ConductRecord
from baton.application.conduct.run_conductor import RunConductor
from baton.application.conduct.step_effects import StepEffects
from baton.application.conduct.step_runner import Limits, StepRunner, Worker
from baton.application.conduct.submitters import Submitters
from baton.application.control import Control
from baton.domain.operation.steering.decider_choice import offered
from baton.infrastructure.actions.registry import installed_actions
from baton.infrastructure.compute.configured import configured_compute
from baton.infrastructure.compute.job_runner import birth_of
from baton.infrastructure.decide.configured import ConfiguredDeciders
from baton.infrastructure.postgres.conduct_progress import PostgresRunProgress
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.runtime import Runtime, clock
from baton.infrastructure.wall_clock import WallClock


@dataclass(frozen=True)
class Conducting:
    """Everything that the activities of a conduct call."""

    conductor: Conductor
    passes: Passes
    steps: StepRunner
    scores: ConductPlans
    run_conductor: RunConductor


@asynccontextmanager
async def conducting(
    runtime: Runtime, control: Control, *, actions: Actions | None = None, compute: Compute | None = None
) -> AsyncIterator[Conducting]:
    """Wire a worker of this process to the plant, and let go of its programs at the end.

    Actions and programs are those that are installed and configured, unless others are given.
    """
    settings = runtime.settings
    limits = Limits(
        action=settings.action_timeout_seconds,
        compute=settings.compute_timeout_seconds,
        restart=settings.conduct_restart_limit_seconds,
    )
    compute = compute or configured_compute(settings)
    effects = StepEffects(control, actions or installed_actions(), WallClock(), settings.control_routes, limits.action)
    ledger, scores = PostgresLedger(runtime.store), ConductPlans(runtime.store)
    submitters = Submitters(runtime.authorizer)
    steps = StepRunner(ledger, effects, compute, clock, limits, Worker(own_name(), is_dead), submitters)
    record = ConductRecord(runtime.store, runtime.commands)
    conductor = Conductor(runtime.store, record, clock, ledger, scores, steps, submitters)
    deciders = ConfiguredDeciders(offered(settings.decide_substrates), runtime.models.steering())
    advisers = Advisers(record, clock, ledger, deciders, submitters)
    passes = Passes(runtime.store, record, submitters, clock, ledger, scores, advisers)
    run_conductor = RunConductor(
        runtime.store,
        runtime.commands,
        clock,
        PostgresRunProgress(runtime.store),
        runtime.conducts,
        runtime.run_conducts,
        limits.restart,
        submitters,
    )
    try:
        yield Conducting(conductor, passes, steps, scores, run_conductor)
    finally:
        await steps.close()
        await compute.close()


def own_name() -> str:
    """What tells this process from every other one, on any machine, at any time."""
    pid = os.getpid()
    return f"{here()}/{pid}/{birth_of(pid)}"


def is_dead(name: str) -> bool:
    """Whether a process of this name is known to have ended; of one that cannot be seen from here nobody can tell."""
    place, pid, birth = name.split("/")
    return place == here() and birth_of(pid) != birth


@cache
def here() -> str:
    """Where process numbers mean the same: this boot of this machine, and within it this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()}:{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return f"{socket.gethostname()}:{uuid4()}"
