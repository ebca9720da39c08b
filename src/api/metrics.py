"""Prometheus metrics: requests by operation, status and duration, and the state of the running processes."""

from collections.abc import Iterable
from functools import cache

from prometheus_client import Counter, Gauge, Histogram

from baton.application.telemetry import ProcessReport

REQUESTS = Counter("baton_requests_total", "Requests by operation and status.", ["operation", "status"])
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
DURATION = Histogram("baton_request_seconds", "Request duration by operation.", ["operation"], buckets=BUCKETS)
UNLED = Gauge("baton_unled_tasks", "Tasks that one process should do for all, and none does.")
RESTARTS = Gauge("baton_task_restarts", "How often a running process had to start a task again.", ["process", "task"])
SKEW = Gauge("baton_clock_skew_seconds", "How far the clock of a running process is ahead of the database's.", ["process"])
DROPPED = Gauge("baton_dropped_log_lines", "Log lines that a running process could not write.", ["process"])


def observe_processes(processes: Iterable[ProcessReport], unled: Iterable[str]) -> None:
    """Set the gauges of the running processes and drop those of processes that are gone."""
    UNLED.set(len(list(unled)))
    RESTARTS.clear()
    DROPPED.clear()
    SKEW.clear()
    for process in processes:
        DROPPED.labels(process.name).set(process.dropped_lines)
        SKEW.labels(process.name).set(process.clock_skew)
        for task, restarts in process.restarts.items():
            RESTARTS.labels(process.name, task).set(restarts)


def observe(operation: str, status: int, seconds: float) -> None:
    """Count one finished request."""
    counter_of(operation, str(status)).inc()
    histogram_of(operation).observe(seconds)


counter_of, histogram_of = cache(REQUESTS.labels), cache(DURATION.labels)
