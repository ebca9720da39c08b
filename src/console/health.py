"""Health: what this process knows of the service, and what the doctor finds wrong with it. The doctor stands above the
console, so the composition root hands its examination in; it runs beside the pages, and what it found last is shown."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog

from baton.api.app import UNSETTLED, ServiceHost
from baton.api.streams import OpenStreams
from baton.application.telemetry import ProcessReport, error_location
from baton.domain.step.results import actuation_of
from baton.infrastructure.wall_clock import clock

log = structlog.get_logger()
ANSWER_SECONDS = 2.0  # how long the database may take to say which processes run
FRESH_SECONDS = 15.0  # how long a finding counts as current; while somebody looks, it is renewed after that
LONGEST_SECONDS = 30.0  # how long one examination may take
UNFINISHED = (
    f"The last examination did not end within {LONGEST_SECONDS:.0f} s; a server may hang. Run `baton doctor`, which "
    "prints each finding as it has it."
)
BROKEN = "The last examination could not be made; the log of this process says why. Run `baton doctor`."


@dataclass(frozen=True)
class HealthFinding:
    """What one check of the doctor found, in a sentence that says how to mend it."""

    check: str
    status: Literal["ok", "warning", "wrong"]
    sentence: str


Examine = Callable[[], Awaitable[Sequence[HealthFinding]]]
"""Carries out every check and returns what they found."""


@dataclass(frozen=True)
class Examination:
    """What the doctor found last, and when; `trouble` where it could not look since."""

    at: datetime | None = None
    findings: tuple[HealthFinding, ...] = ()
    trouble: str | None = None
    running: bool = False


@dataclass(frozen=True)
class Readiness:
    """Whether the service can answer: in a word, in a sentence, and with the processes that run."""

    status: Literal["ready", "building", "settling", "unavailable"]
    sentence: str
    processes: tuple[ProcessReport, ...] = ()
    unled_tasks: tuple[str, ...] = ()

    @property
    def look(self) -> str:
        """How it looks."""
        return {"ready": "good", "unavailable": "stop"}.get(self.status, "look")


class ServiceHealth:
    """Reads the state of the service; one examination runs at a time, however many ask for it."""

    def __init__(self, host: ServiceHost, streams: OpenStreams, examine: Examine | None) -> None:
        self._host, self._examine = host, examine
        self.streams = streams
        self.actuation = actuation_of(host.settings.control_routes, host.settings.control_writes_enabled).value
        self._last = Examination()
        self._asked_at = -FRESH_SECONDS
        self._task: asyncio.Task[None] | None = None

    @property
    def examinable(self) -> bool:
        """Whether this process can examine the service."""
        return self._examine is not None

    async def latest(self, wait: float) -> Examination:
        """Return the last examination. One that is old is renewed beside; where there is none, it is waited for so long."""
        if self._examine is not None and self._task is None and time.monotonic() - self._asked_at >= FRESH_SECONDS:
            self._asked_at = time.monotonic()
            self._task = asyncio.create_task(self._renew(self._examine))
        if self._task is not None and self._last.at is None and wait:
            await asyncio.wait({self._task}, timeout=wait)
        last = self._last
        return Examination(last.at, last.findings, last.trouble, self._task is not None)

    async def _renew(self, examine: Examine) -> None:
        last, trouble = self._last, None
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                self._last = Examination(clock(), tuple(await examine()))
        except TimeoutError:
            trouble = UNFINISHED
        except Exception as error:
            log.warning("examination_failed", **error_location(error))
            trouble = BROKEN
        finally:
            self._task = None
        if trouble is not None:
            self._last = Examination(last.at or clock(), last.findings, trouble)

    async def read(self) -> Readiness:
        """Return what `/readyz` says, in words, with the processes that run."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                unbuilt = await self._host.unbuilt_projections()
                unsettled = await self._host.unsettled_enclosures()
                processes, unled = await self._host.fellow_processes()
        except Exception as error:
            because = f"The database does not answer ({type(error).__name__}); see that it runs and can be reached."
            return Readiness("unavailable", because)
        known = (tuple(processes), tuple(unled))
        if unbuilt:
            return Readiness("building", f"{len(unbuilt)} lists are being built; they are there in a moment.", *known)
        if unsettled:
            return Readiness("settling", f"{UNSETTLED} They are: {', '.join(unsettled)}.", *known)
        return Readiness("ready", "The database answers, every list is built and every permit was looked at.", *known)
