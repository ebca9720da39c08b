"""Requests as part of their callers' traces."""

from typing import Any

from opentelemetry.context import attach, detach
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from baton.api.http import Receive, Scope, Send, header

FIELDS = ("traceparent", "tracestate")


class Continued:
    """An application whose spans continue the trace that a request's `traceparent` names."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        carrier = {name: value for name in FIELDS if (value := header(scope, name.encode())) is not None}
        token = attach(self._propagator.extract(carrier))
        try:
            await self._app(scope, receive, send)
        finally:
            detach(token)
