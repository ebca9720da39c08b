"""How workflows call on activities: something quick, something short, something that may wait for people.

Each is tried until it is done.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.workflow import ActivityCancellationType

RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), backoff_coefficient=2, maximum_interval=timedelta(seconds=30))
HEARTBEAT = timedelta(seconds=6)
"""Silence after which a worker counts as lost; every activity gives a sign of life each second."""
SHORT = timedelta(seconds=60)
"""What something short may take, and a step beyond its own account."""
LONGEST = timedelta(days=365)
QUICK = timedelta(seconds=10)
QUICK_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10))
STATE = SearchAttributeKey.for_keyword("BatonState")


async def call_quick_activity(name: str, *given: Any, result_type: Any = None, summary: str | None = None) -> Any:
    """Something so quick that it gives no sign of life."""
    return await workflow.execute_activity(
        name, args=given, result_type=result_type, start_to_close_timeout=QUICK, retry_policy=QUICK_RETRY, summary=summary
    )


async def call_short_activity(name: str, given: Sequence[Any], result_type: Any) -> Any:
    """Something short between two steps or phases."""
    return await workflow.execute_activity(
        name,
        args=given,
        result_type=result_type,
        start_to_close_timeout=SHORT,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RETRY,
    )


async def call_waiting_activity(name: str, given: Sequence[Any], result_type: Any, summary: str) -> Any:
    """Something that may wait for equipment or for people."""
    return await workflow.execute_activity(
        name,
        args=given,
        result_type=result_type,
        start_to_close_timeout=LONGEST,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RETRY,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=summary,
    )


async def run_to_completion(work: Coroutine[Any, Any, Any]) -> None:
    """Have something done to its end, whoever cancels it now."""
    doing = asyncio.create_task(work)
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            continue
    doing.result()


def has_search_attributes() -> bool:
    """Whether the server has our search attributes; naming them to one that lacks them fails the task."""
    return workflow.info().typed_search_attributes.get(STATE) is not None
