"""Log messages of Temporal's SDK as structured lines: what failed and where, without texts that may quote input."""

import logging
import re
from functools import cache
from typing import TYPE_CHECKING

import structlog

from baton.application.telemetry import error_location

if TYPE_CHECKING:
    from temporalio.runtime import Runtime

log = structlog.get_logger()

SDK = logging.getLogger("temporalio")
EVENTS = {"ActivityFailure": "activity_failed", "WorkflowTaskFailure": "workflow_task_failed"}
FIELDS = ("workflow_id", "workflow_type", "run_id", "workflow_run_id", "activity_type", "attempt")
RENAMED = {"workflow_type": "workflow", "workflow_run_id": "run_id", "activity_type": "activity"}
CAUSE = re.compile(r"force_cause: (\w+)")
RULE = re.compile(r"\[TMPRL\d+\][^\"\\]*")  # a violated rule of the SDK, without content
LOGGED_CAUSES = ("Unspecified", "WorkflowWorkerUnhandledFailure")  # the Python part logs these


def configure_sdk_logging() -> None:
    SDK.handlers = [StructuredLogHandler(logging.WARNING)]
    SDK.propagate = False


@cache
def core_runtime() -> "Runtime":
    """Return the SDK's native part, shared by every client of this process; without this it would print its own lines."""
    from temporalio import activity, workflow
    from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

    activity.logger.activity_info_on_message = False
    workflow.logger.workflow_info_on_message = False
    forwarding = LogForwardingConfig(
        logging.getLogger("temporalio.core"),
        append_target_to_name=False,
        prepend_target_on_message=False,
        append_log_fields_to_message=False,
    )
    levels = TelemetryFilter(core_level="WARN", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=levels, forwarding=forwarding)))


class StructuredLogHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if line := core_line(record) if hasattr(record, "temporal_log") else python_line(record):
            log.log(record.levelno, line[0], **line[1])


def python_line(record: logging.LogRecord) -> tuple[str, dict[str, object]]:
    """Return event and fields of a record of the SDK's Python part: an exception of ours, or its own message."""
    place = getattr(record, "temporal_activity", None) or getattr(record, "temporal_workflow", None) or {}
    fields = {RENAMED.get(name, name): place[name] for name in FIELDS if name in place}
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        fields |= error_location(error)
        if error.__cause__ is not None:
            fields["caused_by"] = type(error.__cause__).__name__
    if event := EVENTS.get(getattr(record, "__temporal_error_identifier", "")):
        return event, fields
    return "engine_message", {**fields, "message": record.getMessage().partition(": ")[0]}  # an exception's text follows


def core_line(record: logging.LogRecord) -> tuple[str, dict[str, object]] | None:
    """Return event and fields of a record of the SDK's native part: a nondeterministic workflow, or a server error."""
    fields: dict[str, object] = record.temporal_log.fields  # type: ignore[attr-defined]
    known: dict[str, object] = {name: fields[name] for name in ("run_id", "workflow_id", "error") if name in fields}
    if record.msg != "Failing workflow task":
        return "engine_message", {**known, "message": record.msg}
    failure = str(fields.get("failure", ""))
    cause = CAUSE.search(failure)
    if cause is None or cause[1] in LOGGED_CAUSES:
        return None
    rule = RULE.search(failure)
    return "workflow_task_failed", {**known, "cause": cause[1], "message": rule[0] if rule else None}
