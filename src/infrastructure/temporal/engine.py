"""Temporal as the workflow engine: started after the record says so, and never needed to know what is true."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from application.ports import EngineUnavailableError, EngineView, Job
from application.settings import Settings

TASK_QUEUE = "baton"
PATIENCE = 5.0
STALLED_ATTEMPTS = 5
"""Attempts at one task after which a workflow counts as stalled."""


async def connect(settings: Settings) -> Client:
    """A client of the configured server."""
    if settings.temporal_address is None:
        raise EngineUnavailableError("No workflow engine is configured; set TEMPORAL_ADDRESS.")
    return await Client.connect(
        settings.temporal_address, namespace=settings.temporal_namespace, data_converter=pydantic_data_converter
    )


class TemporalEngine:
    """Starts workflows, looks at them and ends them; connects when first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: Client | None = None

    async def start(self, job: Job) -> bool:
        attributes = [
            SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in job.attributes.items()
        ]
        async with self._reaching() as client:
            try:
                await client.start_workflow(
                    job.workflow,
                    job.argument,
                    id=job.id,
                    task_queue=TASK_QUEUE,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                    search_attributes=TypedSearchAttributes(attributes),
                    static_summary=job.summary,
                )
            except WorkflowAlreadyStartedError:
                return False
        return True

    async def look(self, id: str) -> EngineView:
        async with self._reaching() as client:
            try:
                known = await client.get_workflow_handle(id).describe()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return EngineView.ABSENT
                raise
        if known.status is not WorkflowExecutionStatus.RUNNING:
            return EngineView.ABSENT
        raw = known.raw_description
        failing = max([raw.pending_workflow_task.attempt, *(activity.attempt for activity in raw.pending_activities)])
        return EngineView.STALLED if failing >= STALLED_ATTEMPTS else EngineView.OPEN

    async def terminate(self, id: str, reason: str) -> None:
        async with self._reaching() as client:
            try:
                await client.get_workflow_handle(id).terminate(reason=reason)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise

    @asynccontextmanager
    async def _reaching(self) -> AsyncIterator[Client]:
        """A client for one request, in bounded time."""
        try:
            async with asyncio.timeout(PATIENCE):
                self._client = self._client or await connect(self._settings)
                yield self._client
        except (RPCError, RuntimeError, TimeoutError) as error:
            raise EngineUnavailableError(
                "The workflow engine cannot be reached; the work is recorded and will start."
            ) from error
