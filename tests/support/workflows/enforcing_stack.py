"""Conduct stacks that enforce policies."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from baton.application.caller import Caller
from baton.domain.registry import REGISTRY
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.wall_clock import new_id
from tests.support.workflows.conduct_stack import OPERATOR, ConductStack, open_conduct_stack
from tests.support.workflows.run_cases import PLANT, RunStack, build_run_stack
from tests.support.workflows.schedule_cases import register_member


@asynccontextmanager
async def open_enforcing_stack(database_url: str, temporal_address: str, **more: Any) -> AsyncIterator[ConductStack]:
    """A conduct stack that enforces policies, whose own caller is the service itself."""
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": OPERATOR}
    async with open_conduct_stack(database_url, temporal_address, **enforced, **PLANT, **more) as stack:
        stack.caller = Caller.system(new_id())
        yield stack


@asynccontextmanager
async def open_enforcing_run_stack(
    database_url: str,
    temporal_address: str,
    beside: Callable[[ConductStack], AbstractAsyncContextManager[Any]] = nullcontext,
) -> AsyncIterator[RunStack]:
    """A run stack that enforces policies, with what goes on beside it; its caller is somebody who may do everything."""
    async with open_enforcing_stack(database_url, temporal_address, compute=SimulatedCompute()) as stack, beside(stack):
        made = await build_run_stack(stack)
        stack.caller, _ = await register_member(stack, REGISTRY.command_names())
        yield made
