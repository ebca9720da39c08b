"""Temporal, as the doctor looks at it: the server, its namespace, and the workers that ask it for work."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    DescribeWorkerDeploymentRequest,
    GetSystemInfoRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from baton.cli.doctor.findings import START_WORKER, Finding, ok, warning, wrong
from baton.infrastructure.temporal.attributes import NAMES, PATIENCE, command_for, missing
from baton.infrastructure.temporal.engine import TASK_QUEUE

LOST = 75.0
"""Seconds without a poll after which a worker is gone: it asks for work at least once a minute."""


async def examine_server(client: Client) -> Finding:
    """Which server answers."""
    info = await _asked(client.workflow_service.get_system_info, GetSystemInfoRequest())
    return ok(f"Temporal {info.server_version} answers at {client.service_client.config.target_host}.")


async def examine_namespace(client: Client) -> Finding:
    """Whether our namespace is there."""
    request = DescribeNamespaceRequest(namespace=client.namespace)
    described = await _known(client.workflow_service.describe_namespace, request)
    if described is None:
        return wrong(
            f"There is no namespace {client.namespace}; run `temporal operator namespace create --namespace "
            f"{client.namespace}`, or correct TEMPORAL_NAMESPACE."
        )
    days = described.config.workflow_execution_retention_ttl.ToTimedelta() / timedelta(days=1)
    return ok(f"The namespace {client.namespace} is there and keeps finished workflows for {days:g} days.")


async def examine_attributes(client: Client) -> Finding:
    """Whether people find workflows by their search attributes."""
    if lacking := await missing(client):
        return warning(
            f"The search attributes {', '.join(lacking)} are missing, so nobody finds workflows by them; run "
            f"`{command_for(client.namespace, lacking)}`."
        )
    return ok(f"All {len(NAMES)} search attributes are there.")


async def examine_workers(client: Client, deployment_name: str | None) -> Finding:
    """Whether somebody asks for work, and is given new workflows."""
    polled: dict[str, datetime] = {}
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        described = await _asked(
            client.workflow_service.describe_task_queue,
            DescribeTaskQueueRequest(
                namespace=client.namespace, task_queue=TaskQueue(name=TASK_QUEUE), task_queue_type=kind
            ),
        )
        for poller in described.pollers:
            at = poller.last_access_time.ToDatetime(tzinfo=UTC)
            polled[poller.identity] = max(at, polled.get(poller.identity, at))
    if not polled:
        return wrong(f"No worker asks for work on the task queue {TASK_QUEUE}; {START_WORKER}.")
    ages = {identity: max(0.0, (datetime.now(UTC) - at).total_seconds()) for identity, at in polled.items()}
    told = ", ".join(f"{identity} {age:.0f} s ago" for identity, age in sorted(ages.items(), key=lambda item: item[1]))
    if min(ages.values()) > LOST:
        return wrong(f"Every worker of the task queue {TASK_QUEUE} is lost (last polls: {told}); {START_WORKER}.")
    if deployment_name and (idle := await _idle_deployment(client, deployment_name)) is not None:
        return idle
    return ok(f"Workers poll the task queue {TASK_QUEUE} (last polls: {told}).")


async def _idle_deployment(client: Client, name: str) -> Finding | None:
    """What keeps the workers of a named deployment from being given new workflows."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    known = await _known(client.workflow_service.describe_worker_deployment, request)
    if known is None:
        return wrong(f"No worker of the deployment {name} has asked for work; start one with WORKER_DEPLOYMENT_NAME={name}.")
    if known.worker_deployment_info.routing_config.current_deployment_version.build_id:
        return None
    return wrong(
        f"The deployment {name} has no current build, so nobody is given new workflows; run `temporal worker "
        f"deployment set-current-version --namespace {client.namespace} --deployment-name {name} --build-id` with one."
    )


async def _asked(ask: Callable[..., Awaitable[Any]], request: object) -> Any:
    return await ask(request, timeout=PATIENCE)


async def _known(ask: Callable[..., Awaitable[Any]], request: object) -> Any | None:
    """What the server says of something, or None where it does not know of it."""
    try:
        return await _asked(ask, request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
