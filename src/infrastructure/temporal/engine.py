"""Temporal as the workflow engine: workflows start after the record says so, and the record never depends on them. Values
are JSON by pydantic, refused above a size that histories must not hold."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import structlog
from temporalio import common
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.failure.v1 import Failure
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode, TLSConfig
from temporalio.worker import WorkerDeploymentConfig

from baton.application.ports import EngineUnavailableError, EngineView, Job
from baton.application.settings import Settings
from baton.domain.agent.reactions import MAX_ERROR_LENGTH, OpenItem
from baton.infrastructure.temporal.attributes import creation_command
from baton.infrastructure.temporal.sdk_logging import core_runtime

if TYPE_CHECKING:
    from baton.infrastructure.telemetry.tracing import Tracing

log = structlog.get_logger()
A = TypeVar("A")

TASK_QUEUE = "baton"
NEWS = "news"  # the signal that tells an open workflow to look at the record again
TASK_TIMEOUT = timedelta(seconds=3)  # A worker that has not answered a workflow task by then counts as lost
REQUEST_SECONDS = 5.0
MAX_ITEMS = 50  # open workflows that are described for one answer
MANY_ATTEMPTS = 5  # attempts at one task after which a workflow counts as stalled


MAX_BYTES = 32 * 1024  # bytes that one value may have, in either direction


class PayloadTooLargeError(Exception):
    """A value is too large to be kept in a history and read again at every replay."""

    def __init__(self, what: str, size: int) -> None:
        super().__init__(
            f"{what} has {size:,} bytes, and no workflow or activity is given or answers more than {MAX_BYTES:,}; "
            "keep it in the database and pass its id."
        )


class BoundedPayloadConverter(PydanticPayloadConverter):
    """Checks the size of every payload, in both directions, in clients and workers."""

    def to_payloads(self, values: Sequence[object]) -> list[Payload]:
        payloads = super().to_payloads(values)
        check_sizes(payloads, [type(value) for value in values])
        return payloads

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[object]:
        check_sizes(payloads, type_hints or [])
        return super().from_payloads(payloads, type_hints)


def check_sizes(payloads: Sequence[Payload], types: Sequence[type]) -> None:
    """Refuse a payload that is too large, naming its type and its place among several."""
    for number, (payload, kind) in enumerate(zip_longest(payloads, types[: len(payloads)]), start=1):
        if len(payload.data) > MAX_BYTES:
            place = f" (value {number} of {len(payloads)})" if len(payloads) > 1 else ""
            raise PayloadTooLargeError(f"A {getattr(kind, '__name__', 'value')}{place}", len(payload.data))


class DiscreetFailureConverter(DefaultFailureConverter):
    """Keeps only the class of an error that is not made for the engine: its message may quote people's input."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        super().to_failure(exception, payload_converter, failure)
        if not isinstance(exception, FailureError | PayloadTooLargeError):
            failure.message = type(exception).__name__


data_converter = DataConverter(BoundedPayloadConverter, failure_converter_class=DiscreetFailureConverter)


async def connect(settings: Settings, tracing: "Tracing | None" = None) -> Client:
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
    authorities, certificate, private_key = (
        None if path is None else path.read_bytes()
        for path in (settings.temporal_tls_ca, settings.temporal_tls_cert, settings.temporal_tls_key)
    )
    tls = TLSConfig(server_root_ca_cert=authorities, client_cert=certificate, client_private_key=private_key)
    api_key = None if settings.temporal_api_key is None else settings.temporal_api_key.get_secret_value()
    return {"namespace": settings.temporal_namespace, "tls": tls if settings.temporal_tls else False, "api_key": api_key}


def stall_reason(described: WorkflowExecutionDescription) -> str | None:
    """Return why an open workflow does not proceed, or None; a running activity proceeds, whatever its attempt."""
    raw = described.raw_description
    for pending in raw.pending_activities:
        is_waiting = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
        if is_waiting and pending.attempt >= MANY_ATTEMPTS:
            return f"{pending.activity_type.name}, attempt {pending.attempt}: {pending.last_failure.message}"
    if raw.pending_workflow_task.attempt >= MANY_ATTEMPTS:
        return f"workflow task, attempt {raw.pending_workflow_task.attempt}"
    return None


async def triggering_event_id(known: WorkflowExecution) -> UUID | None:
    event_id: str | None = (await known.memo()).get("event_id")
    return None if event_id is None else UUID(event_id)


async def open_item(described: WorkflowExecutionDescription) -> OpenItem:
    raw = described.raw_description
    pending = max(raw.pending_activities, key=lambda activity: activity.attempt, default=None)
    return OpenItem(
        event_id=await triggering_event_id(described),
        workflow_id=described.id,
        started_at=described.start_time,
        attempt=1 if pending is None else pending.attempt,
        last_error=pending.last_failure.message[:MAX_ERROR_LENGTH] if pending and pending.HasField("last_failure") else None,
    )


def typed_attributes(attributes: Mapping[str, str]) -> common.TypedSearchAttributes:
    key_of = common.SearchAttributeKey.for_keyword
    return common.TypedSearchAttributes([common.SearchAttributePair(key_of(name), attributes[name]) for name in attributes])


class AttributeSupport:
    """Sends requests with search attributes, and without them to a server that refuses them; warns of that once."""

    def __init__(self) -> None:
        self.accepted = True

    async def request(
        self, send: Callable[[Mapping[str, str]], Awaitable[None]], attributes: Mapping[str, str], namespace: str, **of: str
    ) -> None:
        """Send a request; raise what the server answers to it without attributes."""
        try:
            await send(attributes)
            self.accepted = self.accepted or bool(attributes)
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT or not attributes:
                raise
            await send({})
            if self.accepted:
                run = creation_command(namespace, attributes)
                log.warning("search_attributes_refused", **of, message=error.message, run=run)
            self.accepted = False


@contextmanager
def ignore_not_found() -> Iterator[None]:
    try:
        yield
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


async def describe_open(client: Client, id: str, run_id: str | None = None) -> WorkflowExecutionDescription | None:
    with ignore_not_found():
        described = await client.get_workflow_handle(id, run_id=run_id).describe()
        return described if described.status is WorkflowExecutionStatus.RUNNING else None
    return None


class TemporalEngine:
    def __init__(self, settings: Settings, tracing: "Tracing | None" = None) -> None:
        self._settings = settings
        self._tracing = tracing
        self._client: Client | None = None
        self._attributes = AttributeSupport()

    async def start(self, job: Job) -> bool:
        async with self.connected_client() as client:
            try:
                correlation_id = getattr(job.argument, "correlation_id", None)
                with nullcontext() if self._tracing is None else self._tracing.trace_of(correlation_id):
                    send = partial(self._send, client, job)
                    await self._attributes.request(send, job.attributes, client.namespace, workflow_id=job.id)
            except WorkflowAlreadyStartedError:
                return False
        return True

    async def _send(self, client: Client, job: Job, attributes: Mapping[str, str]) -> None:
        policies, conflicts = common.WorkflowIDReusePolicy, common.WorkflowIDConflictPolicy
        await client.start_workflow(
            job.workflow,
            args=[] if job.argument is None else [job.argument],
            id=job.id,
            task_queue=TASK_QUEUE,
            task_timeout=TASK_TIMEOUT,
            id_conflict_policy=conflicts.UNSPECIFIED if job.news else conflicts.FAIL,
            id_reuse_policy=policies.REJECT_DUPLICATE if job.once else policies.ALLOW_DUPLICATE,
            start_signal=NEWS if job.news else None,
            memo=job.memo or None,
            search_attributes=typed_attributes(attributes),
            static_summary=job.summary,
        )

    async def view(self, id: str) -> EngineView:
        async with self.connected_client() as client:
            known = await describe_open(client, id)
        if known is None:
            return EngineView.ABSENT
        return EngineView.OPEN if stall_reason(known) is None else EngineView.STALLED

    async def terminate(self, id: str, reason: str) -> None:
        async with self.connected_client() as client:
            with ignore_not_found():
                await client.get_workflow_handle(id).terminate(reason=reason)

    async def answer(self, job: Job, returns: type[A], seconds: float) -> A:
        limit = timedelta(seconds=seconds)
        try:
            async with asyncio.timeout(seconds):
                self._client = self._client or await connect(self._settings, self._tracing)
                result: A = await self._client.execute_workflow(
                    job.workflow,
                    job.argument,
                    id=job.id,
                    task_queue=TASK_QUEUE,
                    execution_timeout=limit,
                    result_type=returns,
                    static_summary=job.summary,
                )
        except (RPCError, RuntimeError, TimeoutError, WorkflowFailureError) as error:
            raise EngineUnavailableError(f"The workflow engine gave no answer within {seconds:g} s.") from error
        return result

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        kinds = ", ".join(f"'{name}'" for name in workflows)
        open_now = f"WorkflowType IN ({kinds}) AND ExecutionStatus = 'Running'"
        async with self.connected_client() as client:
            found: list[WorkflowExecution] = []
            async for known in client.list_workflows(open_now):
                if await triggering_event_id(known) is not None:
                    found.append(known)
                if len(found) == MAX_ITEMS:
                    break
            described = await asyncio.gather(*(describe_open(client, known.id, known.run_id) for known in found))
            items = [await open_item(one) for one in described if one is not None]
        return sorted(items, key=lambda item: item.started_at)

    @asynccontextmanager
    async def connected_client(self) -> AsyncIterator[Client]:
        """Open a client for one request, in bounded time."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                self._client = self._client or await connect(self._settings, self._tracing)
                yield self._client
        except RPCError as error:
            detail = f"The workflow engine cannot be used now ({error.status.name}); the work is recorded and will start."
            raise EngineUnavailableError(detail) from error
        except (RuntimeError, TimeoutError) as error:
            detail = "The workflow engine cannot be reached; the work is recorded and will start."
            raise EngineUnavailableError(detail) from error


def worker_deployment(settings: Settings) -> WorkerDeploymentConfig | None:
    name, build_id = settings.worker_deployment_name, settings.worker_build_id
    if name is None or build_id is None:
        return None
    version, pinned = common.WorkerDeploymentVersion(name, build_id), common.VersioningBehavior.PINNED
    return WorkerDeploymentConfig(version, use_worker_versioning=True, default_versioning_behavior=pinned)
