"""On whose behalf a workflow runs, told to all it sets going, and on every line that is logged there."""

from collections.abc import Mapping
from typing import Any, NoReturn
from uuid import UUID

import orjson
import structlog
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle, ChildWorkflowHandle

HEADER = "baton-caller"
CARRIED = ("principal_id", "surface_id", "conduit_id", "correlation_id")
LOGGED = ("principal_id", "correlation_id")

Headers = Mapping[str, Payload]


class CallerCarrier(Interceptor):
    """Carries the caller of a workflow to its activities and children."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        return CarryingWorkflow

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return CarriedActivity(next)


class CarryingWorkflow(WorkflowInboundInterceptor):
    """A workflow that knows its caller: from what it was told, or else from whoever started it."""

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self._outbound = CarryingCalls(outbound)
        super().init(self._outbound)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        self._outbound.carried = carried_by(input)
        return await super().execute_workflow(input)


class CarryingCalls(WorkflowOutboundInterceptor):
    """Whatever a workflow sets going is told on whose behalf."""

    carried: Headers = {}

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:
        input.headers = {**input.headers, **self.carried}
        return super().start_activity(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> ActivityHandle[Any]:
        input.headers = {**input.headers, **self.carried}
        return super().start_local_activity(input)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> ChildWorkflowHandle[Any, Any]:
        input.headers = {**input.headers, **self.carried}
        return await super().start_child_workflow(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        input.headers = {**input.headers, **self.carried}
        super().continue_as_new(input)


class CarriedActivity(ActivityInboundInterceptor):
    """An activity whose log lines say for whom it runs, and for which workflow."""

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        told = told_in(input.headers)
        # Left bound: the activity has a context of its own, and how it ended is logged after it has returned.
        structlog.contextvars.bind_contextvars(
            workflow_id=info.workflow_id,
            activity=info.activity_type,
            **{name: told[name] for name in LOGGED if name in told},
        )
        return await super().execute_activity(input)


def carried_by(input: ExecuteWorkflowInput) -> Headers:
    """The header that a workflow's calls carry; none where neither its argument nor its own header names a caller."""
    told = input.args[0] if input.args else None
    ids = {name: getattr(told, name, None) for name in CARRIED}
    if all(isinstance(id, UUID) for id in ids.values()):
        return {HEADER: workflow.payload_converter().to_payload({name: str(id) for name, id in ids.items()})}
    return {HEADER: input.headers[HEADER]} if HEADER in input.headers else {}


def told_in(headers: Headers) -> dict[str, str]:
    """The caller that a header names."""
    payload = headers.get(HEADER)
    return {} if payload is None else orjson.loads(payload.data)
