"""Reading signals for a question: a worker reads all of them at once, and what it answers stays small."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from baton.application.conduct.signal_limits import control_limits
from baton.application.control import Control, ControlError, ControlTimeoutError, Reading, ReadingKind
from baton.application.long_work import Pace, carries_out
from baton.application.ports import Engine, EngineUnavailableError, Job
from baton.domain.conduct.control_signals import (
    MAX_READ,
    ReadSignalsRequest,
    SignalError,
    SignalSample,
    SignalSamples,
    SignalsUnreadableError,
)
from baton.domain.equipment.signals import SignalLimits
from baton.domain.step.plain_values import plain, shape

READ_SECONDS = 4.0  # that all signals together have to be read
ANSWER_SECONDS = 5.0  # and that the answer may take in all
MAX_VALUE_BYTES = 200  # of a value in an answer; a larger one is its kind and shape
MAX_TEXT_BYTES = {"unit": 40, "quality_detail": 80, "error": 300}
MAX_QUESTIONS = 4  # that are put to workers at once, since each holds a database connection while it waits
UNIT_SECONDS = 60.0  # for which a stated unit is remembered
RETRY_SECONDS = 5.0  # after which a signal that could not be read is asked again
MAX_KNOWN_UNITS = 10_000
WORKFLOW = "read-signals"


@dataclass(frozen=True)
class SignalReader:
    """Reads signals, in a worker."""

    control: Control

    @carries_out("read_signals", Pace.QUICK)
    async def read(self, request: ReadSignalsRequest) -> SignalSamples:
        """Read all signals at once; one that does not answer in time has that as its error."""
        reads = [asyncio.ensure_future(self._sample(address)) for address in request.addresses]
        try:
            await asyncio.wait(reads, timeout=READ_SECONDS)
            error = SignalError(code=ControlTimeoutError.__name__, detail=f"No answer came within {READ_SECONDS:g} s.")
            late = SignalSample(error=error)
            return SignalSamples(samples=tuple(read.result() if read.done() else late for read in reads))
        finally:
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)

    async def _sample(self, address: str) -> SignalSample:
        try:
            reading, limits = await asyncio.gather(self.control.read(address), control_limits(self.control, address))
        except ControlError as error:
            return SignalSample(error=SignalError(code=type(error).__name__, detail=cut(str(error), "error")))
        sample = sample_of(reading)
        return sample.model_copy(update={"control_limits": limits})


def sample_of(reading: Reading) -> SignalSample:
    """Return a reading as an answer holds it."""
    value = plain(reading.value)
    is_large = len(json.dumps(value, ensure_ascii=False).encode()) > MAX_VALUE_BYTES
    if is_large or reading.kind in (ReadingKind.IMAGE, ReadingKind.TABULAR):
        value = summary_of(reading)
    return SignalSample(
        value=value,
        kind=reading.kind.value,
        unit=None if reading.units is None else cut(reading.units, "unit"),
        quality=reading.quality.value,
        quality_detail=None if reading.quality_detail is None else cut(reading.quality_detail, "quality_detail"),
        time=reading.sampled_at,
    )


def summary_of(reading: Reading) -> dict[str, str | list[int]]:
    """Return the kind and shape of a value that is too large to be shown: columns of a table, characters of a text."""
    kind = "Text" if isinstance(reading.value, str) else reading.kind.value
    lengths = [len(reading.value)] if isinstance(reading.value, str | Mapping) else shape(reading.value)
    return {"kind": kind, "shape": lengths}


def cut(text: str, what: str) -> str:
    """Return a text of the control system as far as it may go, with a sign where it continues."""
    encoded, most = plain(text).encode(), MAX_TEXT_BYTES[what]
    return encoded.decode() if len(encoded) <= most else f"{encoded[: most - 3].decode(errors='ignore')}…"


class SignalQuestions:
    """Has signals read by a worker, through the engine."""

    def __init__(self, engine: Engine, new_id: Callable[[], UUID], clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._new_id = new_id
        self._clock = clock
        self._open = 0
        self._units: dict[str, tuple[float, str | None]] = {}  # by address, with the time at which it was asked

    async def read_signals(self, request: ReadSignalsRequest) -> Sequence[SignalSample]:
        """Return what a worker reads; refuse where none answers in time, or too many ask."""
        if self._open >= MAX_QUESTIONS:
            detail = f"{MAX_QUESTIONS} requests are reading signals already; ask again in a few seconds."
            raise SignalsUnreadableError(detail, reason="too_many_at_once")
        self._open += 1
        try:
            job = Job(WORKFLOW, request.workflow_id, request, summary=f"read {len(request.addresses)} signals")
            return (await self._engine.answer(job, SignalSamples, ANSWER_SECONDS)).samples
        except EngineUnavailableError as error:
            detail = "No worker read the signals in time; see that the workflow engine and a worker run, and ask again."
            raise SignalsUnreadableError(detail, reason="no_worker_answered") from error
        finally:
            self._open -= 1

    async def stated_limits(self, addresses: Sequence[str]) -> Mapping[str, SignalLimits | None]:
        """Return the limits that the control system states for each signal; None where it states none, or nobody could ask
        in time."""
        samples: Sequence[SignalSample] = ()
        with suppress(SignalsUnreadableError):
            request = ReadSignalsRequest(request_id=self._new_id(), addresses=tuple(addresses[:MAX_READ]))
            samples = await self.read_signals(request)
        return {address: sample.control_limits for address, sample in zip(addresses, samples, strict=False)}

    async def stated_units(self, addresses: Sequence[str]) -> Mapping[str, str | None]:
        """Return the unit that the control system states for each signal; None where it states none, or nobody could ask in
        time. An answer is kept for a minute, since the write compares again."""
        asked_at = self._clock()
        if len(self._units) > MAX_KNOWN_UNITS:
            self._units.clear()
        old = asked_at - UNIT_SECONDS
        missing = [address for address in dict.fromkeys(addresses) if self._units.get(address, (old,))[0] <= old]
        for part in (missing[first : first + MAX_READ] for first in range(0, len(missing), MAX_READ)):
            samples: Sequence[SignalSample] = [SignalSample()] * len(part)
            if self._clock() - asked_at < ANSWER_SECONDS:
                with suppress(SignalsUnreadableError):
                    samples = await self.read_signals(ReadSignalsRequest(request_id=self._new_id(), addresses=tuple(part)))
            for address, sample in zip(part, samples, strict=True):
                was_read = sample.kind is not None
                self._units[address] = (asked_at if was_read else old + RETRY_SECONDS, sample.unit)
        return {address: self._units[address][1] for address in addresses}
