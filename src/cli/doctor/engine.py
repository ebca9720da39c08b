"""Checks of Temporal: the server, its namespace, search attributes and workers."""

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

from baton.cli.doctor.findings import CheckResult, ok, warning, wrong
from baton.infrastructure.temporal.attributes import NAMES, RPC_TIMEOUT, creation_command, missing_attributes
from baton.infrastructure.temporal.engine import TASK_QUEUE

START_WORKER = "start `baton worker`, or `baton up`"
WORKER_LOST_SECONDS = 75.0  # a worker polls at least once a minute


async def examine_server(client: Client) -> CheckResult:
    """Tell which server answers."""
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=RPC_TIMEOUT)
    return ok(f"Temporal {info.server_version} answers at {client.service_client.config.target_host}.")


async def examine_namespace(client: Client) -> CheckResult:
    """Check that the namespace exists."""
    request = DescribeNamespaceRequest(namespace=client.namespace)
    described = await _call_or_none(client.workflow_service.describe_namespace, request)
    if described is None:
        remedy = f"run `temporal operator namespace create --namespace {client.namespace}`, or correct TEMPORAL_NAMESPACE"
        return wrong(f"There is no namespace {client.namespace}; {remedy}.")
    days = described.config.workflow_execution_retention_ttl.ToTimedelta() / timedelta(days=1)
    return ok(f"The namespace {client.namespace} is there and keeps finished workflows for {days:g} days.")


async def examine_attributes(client: Client) -> CheckResult:
    """Check that the search attributes exist."""
    if lacking := await missing_attributes(client):
        remedy = f"run `{creation_command(client.namespace, lacking)}`"
        return warning(
            f"The search attributes {', '.join(lacking)} are missing, so nobody finds workflows by them; {remedy}."
        )
    return ok(f"All {len(NAMES)} search attributes are there.")


async def examine_workers(client: Client, deployment_name: str | None) -> CheckResult:
    """Check that a worker polls and is given new workflows."""
    polled: dict[str, datetime] = {}
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        queue = TaskQueue(name=TASK_QUEUE)
        request = DescribeTaskQueueRequest(namespace=client.namespace, task_queue=queue, task_queue_type=kind)
        described = await client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
        for poller in described.pollers:
            at = poller.last_access_time.ToDatetime(tzinfo=UTC)
            polled[poller.identity] = max(at, polled.get(poller.identity, at))
    if not polled:
        return wrong(f"No worker asks for work on the task queue {TASK_QUEUE}; {START_WORKER}.")
    ages = {identity: max(0.0, (datetime.now(UTC) - at).total_seconds()) for identity, at in polled.items()}
    text = ", ".join(f"{identity} {age:.0f} s ago" for identity, age in sorted(ages.items(), key=lambda item: item[1]))
    if min(ages.values()) > WORKER_LOST_SECONDS:
        return wrong(f"Every worker of the task queue {TASK_QUEUE} is lost (last polls: {text}); {START_WORKER}.")
    if deployment_name and (idle := await _idle_deployment(client, deployment_name)) is not None:
        return idle
    return ok(f"Workers poll the task queue {TASK_QUEUE} (last polls: {text}).")


async def _idle_deployment(client: Client, name: str) -> CheckResult | None:
    """Return what keeps the workers of a named deployment from being given new workflows."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    known = await _call_or_none(client.workflow_service.describe_worker_deployment, request)
    if known is None:
        return wrong(f"No worker of the deployment {name} has asked for work; start one with WORKER_DEPLOYMENT_NAME={name}.")
    if known.worker_deployment_info.routing_config.current_deployment_version.build_id:
        return None
    options = f"--namespace {client.namespace} --deployment-name {name} --build-id"
    remedy = f"run `temporal worker deployment set-current-version {options}` with one"
    return wrong(f"The deployment {name} has no current build, so nobody is given new workflows; {remedy}.")


async def _call_or_none(ask: Callable[..., Awaitable[Any]], request: object) -> Any | None:
    """Return the answer of the server, or None where it does not know what is asked for."""
    try:
        return await ask(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
