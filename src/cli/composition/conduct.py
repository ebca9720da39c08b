"""The conduct engine of a worker: wired to the plant, its actions, programs and deciders."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import uuid4

from baton.application.conduct.actions import Actions
from baton.application.conduct.compute import Compute
from baton.application.conduct.conduct_record import ConductRecord, Submitters
from baton.application.conduct.conductor import Conductor
from baton.application.conduct.passes import Advisers, Passes
from baton.application.conduct.run_conductor import RunConductor
from baton.application.conduct.step_effects import StepEffects
from baton.application.conduct.step_execution import Limits, StepRunner, Worker
from baton.application.conduct.step_plan import StepPlans
from baton.application.control import Control
from baton.cli.composition.runtime import Runtime
from baton.domain.operation.steering.decider_choice import offered_deciders
from baton.infrastructure.actions.registry import installed_actions
from baton.infrastructure.compute.configured import configured_compute
from baton.infrastructure.compute.job_runner import process_birth
from baton.infrastructure.decide.configured import ConfiguredDeciders
from baton.infrastructure.postgres.ledger import PostgresConductProgress, PostgresLedger
from baton.infrastructure.wall_clock import WallClock, clock


@dataclass(frozen=True)
class ConductEngine:
    """Everything that the activities of a conduct call."""

    conductor: Conductor
    passes: Passes
    steps: StepRunner
    run_conductor: RunConductor


@asynccontextmanager
async def open_conduct_engine(
    runtime: Runtime, control: Control, *, actions: Actions | None = None, compute: Compute | None = None
) -> AsyncIterator[ConductEngine]:
    """Build what conducts in this process; actions and programs are the configured ones unless others are given."""
    settings = runtime.settings
    limits = Limits(
        action=settings.action_timeout_seconds,
        compute=settings.compute_timeout_seconds,
        restart=settings.conduct_restart_limit_seconds,
    )
    compute = compute or configured_compute(settings)
    effects = StepEffects(control, actions or installed_actions(), WallClock(), settings.control_routes, limits.action)
    ledger, plans = PostgresLedger(runtime.store), StepPlans(runtime.store)
    submitters = Submitters(runtime.authorizer)
    steps = StepRunner(ledger, plans, effects, compute, clock, limits, Worker(own_name(), is_dead), submitters)
    record = ConductRecord(runtime.store, runtime.commands)
    conductor = Conductor(runtime.store, record, clock, ledger, plans, steps, submitters)
    deciders = ConfiguredDeciders(offered_deciders(settings.decide_substrates), runtime.models.steering_model())
    advisers = Advisers(record, clock, ledger, deciders, submitters)
    passes = Passes(runtime.store, record, submitters, clock, ledger, plans, advisers)
    progress, works = PostgresConductProgress(runtime.store), (runtime.conducts, runtime.run_conducts)
    run_conductor = RunConductor(runtime.store, runtime.commands, clock, progress, *works, limits.restart, submitters)
    try:
        yield ConductEngine(conductor, passes, steps, run_conductor)
    finally:
        await steps.close()
        await compute.close()


def own_name() -> str:
    """Return the unique name of this process, on any machine, at any time."""
    pid = os.getpid()
    return f"{process_namespace()}/{pid}/{process_birth(pid)}"


def is_dead(name: str) -> bool:
    """Return whether a process of this name is known to have ended; False where it cannot be seen from here."""
    namespace, pid, birth = name.split("/")
    return namespace == process_namespace() and process_birth(pid) != birth


@cache
def process_namespace() -> str:
    """Return the scope of process ids: this boot of this machine, and within it this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()}:{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return f"{socket.gethostname()}:{uuid4()}"
