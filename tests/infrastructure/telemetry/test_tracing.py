"""Traces: one from a request through its workflow to every activity, under the id of the work."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from baton.api.app import create_app
from baton.api.trace_continuation import TraceContinuation
from baton.application.boot_guards import boot_objections
from baton.application.caller import Caller
from baton.application.conduct.conduct_work import ProcedureConductWork
from baton.application.service import Service
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import start_unfinished
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.zone import DefineZone
from baton.infrastructure.telemetry.tracing import RedactingExporter, Tracing, configured_tracing
from baton.infrastructure.temporal.engine import connect
from tests.support.domain.world import OPERATOR, new_id
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import setpoint

TRACE, CALLING = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLING}-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing_pipeline(exporter: InMemorySpanExporter) -> Tracing:
    return Tracing(SimpleSpanProcessor(RedactingExporter(exporter)))


@pytest.fixture
async def stack(database_url: str, temporal: EmbeddedTemporal, tracing_pipeline: Tracing) -> AsyncIterator[ConductStack]:
    async with open_conduct_stack(
        database_url, temporal.address, tracing=tracing_pipeline, simulated_signals={"a": 0}
    ) as stack:
        yield stack


def client_of(runtime: Runtime) -> httpx.AsyncClient:
    app: Any = create_app(runtime)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=60)


def lineage(span: ReadableSpan, spans: list[ReadableSpan]) -> list[str]:
    """The names of a span and of those that it came from."""
    known = {other.context.span_id: other for other in spans}
    names = [span.name]
    while span.parent is not None and span.parent.span_id in known:
        span = known[span.parent.span_id]
        names.append(span.name)
    return names


async def test_one_trace_goes_from_the_request_through_the_workflow_to_the_activity(
    stack: ConductStack, exporter: InMemorySpanExporter
) -> None:
    procedure_id = await stack.register_procedure()
    exporter.clear()
    async with client_of(stack.runtime) as client:
        asked = {"steps": [setpoint("a", 1)], "wait": 60}
        answer = await client.post(f"/procedures/{procedure_id}/conduct", json=asked, headers={"traceparent": PARENT})
    assert answer.json()["succeeded"], answer.text
    spans = [span for span in exporter.get_finished_spans() if f"{span.context.trace_id:032x}" == TRACE]
    assert answer.headers["X-Correlation-Id"] == str(UUID(TRACE))
    assert "RunWorkflow:conduct" in [span.name for span in spans]
    (step,) = [span for span in spans if span.name == "RunActivity:do_step"]
    assert lineage(step, spans) == [
        "RunActivity:do_step",
        "StartActivity:do_step",
        "StartWorkflow:conduct",
        "conduct_procedure",
    ]
    (request,) = [span for span in spans if span.name == "conduct_procedure"]
    assert f"{request.parent.span_id:016x}" == CALLING
    assert request.attributes["baton.target_id"] == str(procedure_id)


async def test_without_a_trace_of_the_callers_the_correlation_id_is_that_of_the_trace(
    stack: ConductStack, exporter: InMemorySpanExporter
) -> None:
    exporter.clear()
    async with client_of(stack.runtime) as client:
        answer = await client.get("/zones")
    (span,) = [span for span in exporter.get_finished_spans() if span.name == "list_zones"]
    assert UUID(int=span.context.trace_id) == UUID(answer.headers["X-Correlation-Id"])


async def test_a_conduct_that_the_worker_starts_is_traced_under_its_correlation_id(
    stack: ConductStack, exporter: InMemorySpanExporter
) -> None:
    procedure_id = await stack.register_procedure()
    work = stack.runtime.works.of(ProcedureConductWork)
    conduct = {"steps": (setpoint("a", 1),), "wait": 0}
    executed = await stack.runtime.commands.execute(ConductProcedure(**conduct), stack.caller, target_id=procedure_id)
    exporter.clear()
    await until(work.unfinished_ids)
    await start_unfinished(stack.runtime, work)
    work_id = UUID((executed.body or {})["work_id"])

    async def done() -> Any:
        return await work.answer(work_id)

    await until(done)
    trace_id = stack.caller.correlation_id.int
    spans = [span for span in exporter.get_finished_spans() if span.context.trace_id == trace_id]
    assert "RunActivity:do_step" in [span.name for span in spans]


async def test_a_refusal_is_told_by_its_code_and_is_no_error(stack: ConductStack, exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    async with client_of(stack.runtime) as client:
        await client.get(f"/zones/{uuid4()}")
    (span,) = [span for span in exporter.get_finished_spans() if span.name == "get_zone"]
    assert (span.attributes["baton.refusal"], span.status.status_code) == ("ZoneNotFoundError", StatusCode.UNSET)
    assert not span.events


def test_what_an_exception_says_does_not_leave_the_process(
    tracing_pipeline: Tracing, exporter: InMemorySpanExporter
) -> None:
    caller = Caller(OPERATOR, SYSTEM_HTTP, new_id())
    with tracing_pipeline.operation(DefineZone.operation, caller, None) as span:
        span.record_exception(ValueError("the sample of J. Doe"))
        span.set_status(Status(StatusCode.ERROR, "ValueError: the sample of J. Doe"))
    (told,) = exporter.get_finished_spans()
    assert (told.status.description, told.events[0].attributes["exception.type"]) == ("ValueError", "ValueError")
    assert "Doe" not in told.to_json()


def test_spans_on_the_console_are_lines_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    tracing_pipeline = configured_tracing(Settings(trace_exporter="console"))
    with tracing_pipeline.operation(DefineZone.operation, Caller(OPERATOR, SYSTEM_HTTP, new_id()), None):
        pass
    tracing_pipeline.close()
    written = capfd.readouterr()
    (line,) = written.err.splitlines()
    assert (json.loads(line)["name"], written.out) == ("define_zone", "")


def test_an_exporter_that_is_not_installed_is_refused_in_one_sentence() -> None:
    assert boot_objections(Settings(trace_exporter="otlp")) == [
        "TRACE_EXPORTER=otlp needs an exporter that is not installed; "
        "install baton-facility[otlp], or choose console or none."
    ]


async def test_nothing_is_there_to_be_traced_by_default(database_url: str, temporal: EmbeddedTemporal) -> None:
    settings = Settings(database_url=database_url, temporal_address=temporal.address)
    runtime = Runtime(settings)
    assert type(runtime.service) is Service
    assert TraceContinuation not in [one.cls for one in create_app(runtime).user_middleware]
    assert (await connect(settings, runtime.tracing)).config()["interceptors"] == []
