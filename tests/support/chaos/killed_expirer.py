"""A worker like any other, which dies at once when it has expired a clearance and before it can say so."""

import asyncio
import os
import signal
from typing import Any

from baton.application.agents.agent_client import AgentClient
from baton.application.agents.rule_agents import Expirer
from baton.application.ports import CommandResult
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.worker import build_worker, open_conduct_engine
from baton.domain.kernel import Command
from baton.domain.safety.clearance import ExpireClearance
from baton.infrastructure.control.routes import open_control
from baton.infrastructure.temporal.engine import connect


class KilledClient(AgentClient):
    """A client whose process is killed once it has expired a clearance, before it can report that."""

    async def execute(self, command: Command, *given: Any, **named: Any) -> CommandResult:
        executed = await super().execute(command, *given, **named)
        if isinstance(command, ExpireClearance):
            os.kill(os.getpid(), signal.SIGKILL)
        return executed


async def work() -> None:
    settings = Settings()
    async with Runtime(settings) as runtime, open_control(settings) as control:
        runtime.works.of(Expirer).client = KilledClient(runtime.commands)
        async with open_conduct_engine(runtime, control) as wired, build_worker(await connect(settings), runtime, wired):
            await asyncio.Event().wait()


def run_killed_expirer() -> None:
    asyncio.run(work())
