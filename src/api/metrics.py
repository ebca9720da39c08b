"""Prometheus metrics: how often each operation was called, how it ended and how long it took."""

from functools import cache

from prometheus_client import Counter, Histogram

REQUESTS = Counter("baton_requests_total", "Requests by operation and status.", ["operation", "status"])
DURATION = Histogram(
    "baton_request_seconds",
    "Request duration by operation.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)


def observe(operation: str, status: int, seconds: float) -> None:
    """Count one finished request."""
    _counter(operation, status).inc()
    _histogram(operation).observe(seconds)


@cache
def _counter(operation: str, status: int) -> Counter:
    return REQUESTS.labels(operation, str(status))


@cache
def _histogram(operation: str) -> Histogram:
    return DURATION.labels(operation)
