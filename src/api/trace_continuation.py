"""Spans that continue the trace of a request."""

from typing import Any

from opentelemetry.context import attach, detach
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from baton.api.http import Receive, Scope, Send, header


class TraceContinuation:
    """Runs an application so that its spans continue the trace of the request's `traceparent`."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        carrier = {name: header(scope, name.encode()) for name in ("traceparent", "tracestate")}
        token = attach(self._propagator.extract({name: value for name, value in carrier.items() if value is not None}))
        try:
            await self._app(scope, receive, send)
        finally:
            detach(token)
