"""Temporal as the workflow engine: started after the record says so, and never needed to know what is true."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from baton.application.ports import EngineUnavailableError, EngineView, Job
from baton.application.settings import Settings
from baton.domain.agent.reactions import LONGEST_ERROR, OpenItem
from baton.infrastructure.temporal.attributes import command_for
from baton.infrastructure.temporal.converter import data_converter
from baton.infrastructure.temporal.sdk_logging import core_runtime

if TYPE_CHECKING:
    from baton.infrastructure.telemetry.tracing import Tracing

log = structlog.get_logger()

TASK_QUEUE = "baton"
TASK_TIMEOUT = timedelta(seconds=8)
"""After this long a worker that was about to say what comes next counts as lost."""
PATIENCE = 5.0
MOST_ITEMS = 50
"""Open workflows that are looked at for one answer."""
MANY_ATTEMPTS = 5
"""Attempts at one task after which something is wrong with more than the moment."""


async def connect(settings: Settings, tracing: "Tracing | None" = None) -> Client:
    """A client of the configured server; what it and its workers do is traced, if anything is."""
    if settings.temporal_address is None:
        raise EngineUnavailableError("No workflow engine is configured; set TEMPORAL_ADDRESS.")
    return await Client.connect(
        settings.temporal_address,
        **connection_options(settings),
        data_converter=data_converter,
        interceptors=[] if tracing is None else [tracing.interceptor],
        runtime=core_runtime(),
    )


def connection_options(settings: Settings) -> dict[str, Any]:
    """How the server is reached: the namespace and, where they are set, TLS and an API key."""
    authorities, certificate, private_key = (
        None if path is None else path.read_bytes()
        for path in (settings.temporal_tls_ca, settings.temporal_tls_cert, settings.temporal_tls_key)
    )
    tls = TLSConfig(server_root_ca_cert=authorities, client_cert=certificate, client_private_key=private_key)
    key = settings.temporal_api_key
    return {
        "namespace": settings.temporal_namespace,
        "tls": tls if settings.temporal_tls else False,
        "api_key": None if key is None else key.get_secret_value(),
    }


def trouble_of(described: WorkflowExecutionDescription) -> str | None:
    """What keeps an open workflow from going on, if anything does.

    An activity that is under way counts for none, whatever its attempt: long waits are begun anew with every worker.
    """
    raw = described.raw_description
    for pending in raw.pending_activities:
        between = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
        if between and pending.attempt >= MANY_ATTEMPTS:
            return f"{pending.activity_type.name}, attempt {pending.attempt}: {pending.last_failure.message}"
    if raw.pending_workflow_task.attempt >= MANY_ATTEMPTS:
        return f"workflow task, attempt {raw.pending_workflow_task.attempt}"
    return None


async def event_of(known: WorkflowExecution) -> UUID | None:
    """The id of the event that a workflow was started for, if it was for one."""
    event_id: str | None = (await known.memo()).get("event_id")
    return None if event_id is None else UUID(event_id)


def reuse_policy(job: Job) -> WorkflowIDReusePolicy:
    """Whether the id may be used again, once the workflow under it has come to its end."""
    return WorkflowIDReusePolicy.REJECT_DUPLICATE if job.once else WorkflowIDReusePolicy.ALLOW_DUPLICATE


async def open_item(described: WorkflowExecutionDescription) -> OpenItem:
    """An open workflow as those see it who wonder why something takes so long."""
    raw = described.raw_description
    pending = max(raw.pending_activities, key=lambda activity: activity.attempt, default=None)
    failed = pending is not None and pending.HasField("last_failure")
    return OpenItem(
        event_id=await event_of(described),
        workflow_id=described.id,
        started_at=described.start_time,
        attempt=1 if pending is None else pending.attempt,
        last_error=pending.last_failure.message[:LONGEST_ERROR] if pending is not None and failed else None,
    )


class TemporalEngine:
    """Starts workflows, looks at them and ends them; connects when first needed."""

    def __init__(self, settings: Settings, tracing: "Tracing | None" = None) -> None:
        self._settings = settings
        self._tracing = tracing
        self._client: Client | None = None
        self._knows_attributes = True

    async def start(self, job: Job) -> bool:
        async with self.reaching() as client:
            try:
                with self._traced(job):
                    await self._start(client, job)
            except WorkflowAlreadyStartedError:
                return False
        return True

    def _traced(self, job: Job) -> AbstractContextManager[None]:
        return (
            nullcontext()
            if self._tracing is None
            else self._tracing.beginning(getattr(job.argument, "correlation_id", None))
        )

    async def _start(self, client: Client, job: Job) -> None:
        """Start a workflow; one that cannot be found by its attributes is better than none."""
        try:
            await self._told(client, job, job.attributes)
            self._knows_attributes = True
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT or not job.attributes:
                raise
            if self._knows_attributes:
                self._knows_attributes = False
                run = command_for(client.namespace, job.attributes)
                log.warning("search_attributes_refused", workflow_id=job.id, said=error.message, run=run)
            await self._told(client, job, {})

    async def _told(self, client: Client, job: Job, attributes: Mapping[str, str]) -> None:
        pairs = [SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in attributes.items()]
        await client.start_workflow(
            job.workflow,
            args=[] if job.argument is None else [job.argument],
            id=job.id,
            task_queue=TASK_QUEUE,
            task_timeout=TASK_TIMEOUT,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=reuse_policy(job),
            memo=job.memo or None,
            search_attributes=TypedSearchAttributes(pairs),
            static_summary=job.summary,
        )

    async def look(self, id: str) -> EngineView:
        async with self.reaching() as client:
            try:
                known = await client.get_workflow_handle(id).describe()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return EngineView.ABSENT
                raise
        if known.status is not WorkflowExecutionStatus.RUNNING:
            return EngineView.ABSENT
        return EngineView.OPEN if trouble_of(known) is None else EngineView.STALLED

    async def terminate(self, id: str, reason: str) -> None:
        async with self.reaching() as client:
            try:
                await client.get_workflow_handle(id).terminate(reason=reason)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        kinds = ", ".join(f"'{name}'" for name in workflows)
        open_now = f"WorkflowType IN ({kinds}) AND ExecutionStatus = 'Running'"
        async with self.reaching() as client:
            found: list[WorkflowExecution] = []
            async for known in client.list_workflows(open_now):
                if await event_of(known) is not None:
                    found.append(known)
                if len(found) == MOST_ITEMS:
                    break
            items = await asyncio.gather(*(self._open_item(client, known) for known in found))
        return sorted((item for item in items if item is not None), key=lambda item: item.started_at)

    async def _open_item(self, client: Client, known: WorkflowExecution) -> OpenItem | None:
        """A listed workflow, unless it has ended or is gone since."""
        try:
            described = await client.get_workflow_handle(known.id, run_id=known.run_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        return await open_item(described) if described.status is WorkflowExecutionStatus.RUNNING else None

    @asynccontextmanager
    async def reaching(self) -> AsyncIterator[Client]:
        """A client for one request, in bounded time."""
        try:
            async with asyncio.timeout(PATIENCE):
                self._client = self._client or await connect(self._settings, self._tracing)
                yield self._client
        except RPCError as error:
            raise EngineUnavailableError(
                f"The workflow engine cannot be used now ({error.status.name}); the work is recorded and will start."
            ) from error
        except (RuntimeError, TimeoutError) as error:
            raise EngineUnavailableError(
                "The workflow engine cannot be reached; the work is recorded and will start."
            ) from error
