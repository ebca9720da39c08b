"""Interceptors that pass a workflow's caller to everything it starts, and put it on every log line of its activities."""

from collections.abc import Mapping
from typing import NoReturn
from uuid import UUID

import orjson
import structlog
from temporalio import activity, worker, workflow
from temporalio.api.common.v1 import Payload
from temporalio.workflow import ActivityHandle, ChildWorkflowHandle

HEADER = "baton-caller"
CALLER_FIELDS = ("principal_id", "surface_id", "conduit_id", "correlation_id")
LOGGED_FIELDS = ("principal_id", "correlation_id")

Headers = Mapping[str, Payload]


class CallerInterceptor(worker.Interceptor):
    def workflow_interceptor_class(
        self, input: worker.WorkflowInterceptorClassInput
    ) -> type[worker.WorkflowInboundInterceptor]:
        return CallerWorkflowInterceptor

    def intercept_activity(self, next: worker.ActivityInboundInterceptor) -> worker.ActivityInboundInterceptor:
        return CallerActivityInterceptor(next)


class CallerWorkflowInterceptor(worker.WorkflowInboundInterceptor):
    """Takes the caller from the workflow's argument, or else from its header."""

    def init(self, outbound: worker.WorkflowOutboundInterceptor) -> None:
        self._outbound = CallerOutboundInterceptor(outbound)
        super().init(self._outbound)

    async def execute_workflow(self, input: worker.ExecuteWorkflowInput) -> object:
        self._outbound.headers = caller_header(input)
        return await super().execute_workflow(input)


class CallerOutboundInterceptor(worker.WorkflowOutboundInterceptor):
    """Adds the caller's header to everything that a workflow starts."""

    headers: Headers = {}

    def start_activity(self, input: worker.StartActivityInput) -> ActivityHandle[object]:
        input.headers = {**input.headers, **self.headers}
        return super().start_activity(input)

    def start_local_activity(self, input: worker.StartLocalActivityInput) -> ActivityHandle[object]:
        input.headers = {**input.headers, **self.headers}
        return super().start_local_activity(input)

    async def start_child_workflow(self, input: worker.StartChildWorkflowInput) -> ChildWorkflowHandle[object, object]:
        input.headers = {**input.headers, **self.headers}
        return await super().start_child_workflow(input)

    def continue_as_new(self, input: worker.ContinueAsNewInput) -> NoReturn:
        input.headers = {**input.headers, **self.headers}
        super().continue_as_new(input)


class CallerActivityInterceptor(worker.ActivityInboundInterceptor):
    """Binds workflow and caller to the log lines of an activity."""

    async def execute_activity(self, input: worker.ExecuteActivityInput) -> object:
        info = activity.info()
        payload = input.headers.get(HEADER)
        caller = {} if payload is None else orjson.loads(payload.data)
        logged = {name: caller[name] for name in LOGGED_FIELDS if name in caller}
        # Left bound: the activity has a context of its own, and how it ended is logged after it has returned.
        structlog.contextvars.bind_contextvars(workflow_id=info.workflow_id, activity=info.activity_type, **logged)
        return await super().execute_activity(input)


def caller_header(input: worker.ExecuteWorkflowInput) -> Headers:
    """Return the header for a workflow's calls; empty when neither its argument nor its own header names a caller."""
    argument = input.args[0] if input.args else None
    ids = {name: getattr(argument, name, None) for name in CALLER_FIELDS}
    if all(isinstance(id, UUID) for id in ids.values()):
        return {HEADER: workflow.payload_converter().to_payload({name: str(id) for name, id in ids.items()})}
    return {HEADER: input.headers[HEADER]} if HEADER in input.headers else {}
