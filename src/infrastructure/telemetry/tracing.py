"""Tracing: spans of operations, their exporter, and what they must not contain. The id of a trace that begins here is the
correlation id of its work, and a caller's trace gives the work its correlation id."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import TypeVar
from uuid import UUID

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from temporalio.contrib.opentelemetry import TracingInterceptor

from baton.application.boot_guards import OTLP_EXPORTER
from baton.application.caller import Caller
from baton.application.ports import CommandResult
from baton.application.queries import ShownAnswer
from baton.application.service import ProgressListener, Service
from baton.application.settings import Settings, TraceExporter
from baton.domain.kernel import Command, Query
from baton.domain.registry import Operation
from baton.domain.shared.refusals import Refusal

T = TypeVar("T")

SERVICE = "baton"
MESSAGES = ("exception.message", "exception.stacktrace")  # they may quote input, and do not leave the process

_work: ContextVar[UUID | None] = ContextVar("work", default=None)


class Tracing:
    def __init__(self, processor: SpanProcessor) -> None:
        resource = Resource.create({"service.name": SERVICE})
        self._provider = TracerProvider(resource=resource, id_generator=CorrelatedIds(), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer(SERVICE)
        self.interceptor = TracingInterceptor(self._tracer)

    def trace_service(self, service: Service) -> Service:
        return TracedService(**vars(service), tracing=self)

    @contextmanager
    def operation(self, operation: Operation, caller: Caller, target_id: UUID | None) -> Iterator[Span]:
        """Open the span of one command or query; part of the caller's trace if there is one."""
        ids = {name: getattr(caller, name) for name in ("principal_id", "surface_id", "correlation_id")}
        attributes = {f"baton.{name}": str(id) for name, id in {**ids, "target_id": target_id}.items() if id is not None}
        attributes["baton.context"] = operation.context
        with (
            self.trace_of(caller.correlation_id),
            self._tracer.start_as_current_span(
                operation.name, None, SpanKind.SERVER, attributes, record_exception=False, set_status_on_exception=False
            ) as span,
        ):
            try:
                yield span
            except Refusal as refusal:
                span.set_attribute("baton.refusal", refusal.code)
                if refusal.status >= 500:
                    span.set_status(Status(StatusCode.ERROR, refusal.code))
                raise
            except Exception as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise

    @contextmanager
    def trace_of(self, work: UUID | None) -> Iterator[None]:
        """Give a trace that begins inside the block this correlation id as its id."""
        token = _work.set(work)
        try:
            yield
        finally:
            _work.reset(token)

    def close(self) -> None:
        self._provider.shutdown()


@dataclass(frozen=True)
class TracedService(Service):
    tracing: Tracing

    async def execute(
        self,
        command: Command,
        caller: Caller,
        *,
        target_id: UUID | None = None,
        key: str | None = None,
        on_progress: ProgressListener | None = None,
    ) -> CommandResult:
        with self.tracing.operation(command.operation, caller, target_id) as span:
            executed = await super().execute(command, caller, target_id=target_id, key=key, on_progress=on_progress)
            span.set_attribute("baton.position", executed.position)
            return executed

    async def show(self, query: Query[T], caller: Caller, *, target_id: UUID | None = None) -> ShownAnswer[T]:
        with self.tracing.operation(query.operation, caller, target_id):
            return await super().show(query, caller, target_id=target_id)


class CorrelatedIds(RandomIdGenerator):
    def generate_trace_id(self) -> int:
        work = _work.get()
        return work.int if work else super().generate_trace_id()


class RedactingExporter(SpanExporter):
    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([without_messages(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def without_messages(span: ReadableSpan) -> ReadableSpan:
    status = span.status
    if status.description is None and not span.events:
        return span
    attributes = [event.attributes or {} for event in span.events]
    kept = [{name: value for name, value in one.items() if name not in MESSAGES} for one in attributes]
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        events=[Event(event.name, attributes, event.timestamp) for event, attributes in zip(span.events, kept, strict=True)],
        links=span.links,
        kind=span.kind,
        status=Status(status.status_code, (status.description or "").partition(":")[0] or None),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def configured_tracing(settings: Settings) -> Tracing:
    exporter: SpanExporter
    if settings.trace_exporter is TraceExporter.CONSOLE:  # standard output may carry a protocol
        exporter = ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: span.to_json(indent=None) + "\n")
    else:
        exporter = import_module(OTLP_EXPORTER).OTLPSpanExporter()  # not installed everywhere
    return Tracing(BatchSpanProcessor(RedactingExporter(exporter)))
