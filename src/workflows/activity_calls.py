"""How workflows call activities: quick ones, short ones, and ones that wait for people; each is retried until done."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from baton.domain.conduct.progress import ConductPhase

RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30))
QUICK_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10))
HEARTBEAT = timedelta(seconds=2)  # silence after which another worker tries; what it may do then, the ledger says
QUICK = timedelta(seconds=10)
SHORT = timedelta(seconds=60)  # the limit of a short activity, and what a step may take beyond its own timeout
LONGEST = timedelta(days=365)
STATE = SearchAttributeKey.for_keyword("BatonState")

A = TypeVar("A")
R = TypeVar("R")


async def call_quick_activity(method: Callable[[Any, A], Awaitable[R]], argument: A, summary: str | None = None) -> R:
    """Call an activity that is so quick that it sends no heartbeat."""
    return await workflow.execute_activity_method(
        method, argument, start_to_close_timeout=QUICK, retry_policy=QUICK_RETRY, summary=summary
    )


async def call_local_activity(method: Callable[[Any, A], Awaitable[R]], argument: A) -> R:
    """Call an activity that takes a moment, in the worker that has the workflow: the engine is not asked for it."""
    return await workflow.execute_local_activity_method(
        method, argument, start_to_close_timeout=SHORT, retry_policy=QUICK_RETRY
    )


async def call_short_activity(method: Callable[[Any, A], Awaitable[R]], argument: A) -> R:
    """Call an activity that takes a moment, such as one between two steps or phases."""
    return await workflow.execute_activity_method(
        method, argument, start_to_close_timeout=SHORT, heartbeat_timeout=HEARTBEAT, retry_policy=RETRY
    )


async def call_waiting_activity(
    method: Callable[[Any, A], Awaitable[R]], argument: A, summary: str, step_seconds: float | None = None
) -> R:
    """Call an activity that may wait for people, or for as long as its step; when cancelled, wait until it has stopped."""
    return await workflow.execute_activity_method(
        method,
        argument,
        start_to_close_timeout=LONGEST if step_seconds is None else timedelta(seconds=step_seconds) + SHORT,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RETRY,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=summary,
    )


async def run_to_completion(work: Coroutine[object, object, object]) -> None:
    """Run something to its end even if the workflow is cancelled meanwhile."""
    task = asyncio.create_task(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
    task.result()


@dataclass
class StatusDisplay:
    """Shows in the engine's pages where a workflow is."""

    _phase: ConductPhase | None = None

    def show(self, phase: ConductPhase, text: str) -> None:
        """Show the phase with a text, and the phase as search attribute when it changes."""
        workflow.set_current_details(f"**{phase.value}**: {text}")
        if phase is not self._phase and has_search_attributes():
            workflow.upsert_search_attributes([STATE.value_set(phase.value)])
        self._phase = phase


def has_search_attributes() -> bool:
    """Return whether the server had our search attributes at the start; setting one that it lacks fails the task."""
    return workflow.info().typed_search_attributes.get(STATE) is not None
