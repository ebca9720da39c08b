"""What Temporal's SDK says, as structured lines: what failed and where, without the messages that may quote input."""

import logging
import re
from functools import cache
from typing import Any

import structlog
from temporalio import activity, workflow
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from baton.application.telemetry import error_location

log = structlog.get_logger()

SDK = logging.getLogger("temporalio")
CORE = logging.getLogger("temporalio.core")
EVENTS = {"ActivityFailure": "activity_failed", "WorkflowTaskFailure": "workflow_task_failed"}
"""The lines that have a name, by what the SDK calls the fault."""
PLACE = {
    "workflow_id": "workflow_id",
    "workflow_type": "workflow",
    "run_id": "run_id",
    "workflow_run_id": "run_id",
    "activity_type": "activity",
    "attempt": "attempt",
}
"""What the SDK tells of where something happened, and what our lines call it."""
TASK_FAILED = "Failing workflow task"
CAUSE = re.compile(r"force_cause: (\w+)")
RULE = re.compile(r"\[TMPRL\d+\][^\"\\]*")
"""What the SDK says of its own rules: it names kinds of events and commands, and nothing that they hold."""
SAID_ALREADY = ("Unspecified", "WorkflowWorkerUnhandledFailure")
"""Causes of a failed task that was one of our exceptions; that has a line of its own, with its place."""


def speak_in_lines() -> None:
    """Have everything that the SDK has to say in this process come as structured lines."""
    SDK.handlers = [Lines(logging.WARNING)]
    SDK.propagate = False
    activity.logger.activity_info_on_message = False
    workflow.logger.workflow_info_on_message = False


@cache
def core_runtime() -> Runtime:
    """The SDK's native part, the same for every client of this process; it would print its lines itself otherwise."""
    forwarding = LogForwardingConfig(
        CORE, append_target_to_name=False, prepend_target_on_message=False, append_log_fields_to_message=False
    )
    loudness = TelemetryFilter(core_level="WARN", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=loudness, forwarding=forwarding)))


class Lines(logging.Handler):
    """A line for each record."""

    def emit(self, record: logging.LogRecord) -> None:
        said = core_said(record) if hasattr(record, "temporal_log") else python_said(record)
        if said is not None:
            event, fields = said
            log.log(record.levelno, event, **fields)


def python_said(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """A record of the SDK's Python part: an exception of ours, or a remark of its own."""
    place = getattr(record, "temporal_activity", None) or getattr(record, "temporal_workflow", None) or {}
    fields = {known: place[name] for name, known in PLACE.items() if name in place}
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields |= error_location(error)
        if error.__cause__ is not None:
            fields["caused_by"] = type(error.__cause__).__name__
    event = EVENTS.get(getattr(record, "__temporal_error_identifier", ""))
    if event is not None:
        return event, fields
    return "engine_said", {**fields, "said": record.getMessage().partition(": ")[0]}  # behind it an exception speaks


def core_said(record: logging.LogRecord) -> tuple[str, dict[str, Any]] | None:
    """A record of the SDK's native part: a workflow that does not do what its history says, or a fault of the server."""
    fields: dict[str, Any] = record.temporal_log.fields  # type: ignore[attr-defined]
    told: dict[str, Any] = {name: fields[name] for name in ("run_id", "workflow_id", "error") if name in fields}
    if record.msg != TASK_FAILED:
        return "engine_said", {**told, "said": record.msg}
    failure = str(fields.get("failure", ""))
    cause = CAUSE.search(failure)
    if cause is None or cause[1] in SAID_ALREADY:
        return None
    rule = RULE.search(failure)
    return "workflow_task_failed", {**told, "cause": cause[1], "said": rule[0] if rule else None}
