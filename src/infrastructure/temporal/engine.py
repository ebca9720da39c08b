"""Temporal as the workflow engine: started after the record says so, and never needed to know what is true."""

import asyncio

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError

from application.ports import EngineUnavailableError
from application.settings import Settings

TASK_QUEUE = "baton"
PATIENCE = 5.0


async def connect(settings: Settings) -> Client:
    """A client of the configured server."""
    if settings.temporal_address is None:
        raise EngineUnavailableError("No workflow engine is configured; set TEMPORAL_ADDRESS.")
    return await Client.connect(
        settings.temporal_address, namespace=settings.temporal_namespace, data_converter=pydantic_data_converter
    )


class TemporalEngine:
    """Starts workflows; connects when first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: Client | None = None

    async def start(self, workflow: str, workflow_id: str, argument: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                self._client = self._client or await connect(self._settings)
                await self._client.start_workflow(
                    workflow,
                    argument,
                    id=workflow_id,
                    task_queue=TASK_QUEUE,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                )
        except (RPCError, RuntimeError, TimeoutError) as error:
            raise EngineUnavailableError(
                "The workflow engine cannot be reached; the work is recorded and will start."
            ) from error
