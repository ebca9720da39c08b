"""Runs that were measured before a witness was there: from a Tiled server into the journal, under the same keys."""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from baton_bluesky.callback import BatonWitness
from baton_bluesky.follow import hand_over
from baton_bluesky.journal import subdirectories
from baton_bluesky.keys import run_id, timestamp_text
from baton_bluesky.service import BatonService, NoServiceError
from baton_bluesky.tiled_catalog import TiledCatalog, TiledError, TiledRun

RUNS_AHEAD = 20
"""Number of runs that are read before the service has them."""
STILL_MEASURED = 86_400.0
"""A run without an end that began within a day may be under way."""
LIVE = ("Running", "Held")
LOOK_SECONDS = 0.1
BAR = 30  # Characters.


class Fate(StrEnum):
    """What becomes of a run that is found."""

    RECORDED = "recorded"
    ON_RECORD = "on record already"
    UNDER_WAY = "perhaps under way"
    UNREADABLE = "not readable"


@dataclass(frozen=True)
class FoundRun:
    """A run of the catalogue, and what becomes of it."""

    run: TiledRun
    fate: Fate


class Backfill:
    """Reads runs from a catalogue and hands them to a witness; what has ended on record is left as it is."""

    def __init__(self, catalog: TiledCatalog, witness: BatonWitness, service: BatonService) -> None:
        self._catalog, self._witness, self._service = catalog, witness, service

    def find(self, since: float | None, now: float) -> list[FoundRun]:
        """Return the runs that began since a time, and what becomes of each."""
        return [FoundRun(run, self._fate(run, now)) for run in self._catalog.runs(since)]

    def record(self, found: Iterable[FoundRun], tell: Callable[[int, FoundRun], None]) -> None:
        """Journal runs, no faster than they are sent."""
        for number, one in enumerate(found, 1):
            fate = one.fate
            if fate is Fate.RECORDED:
                fate = self._journal(one.run)
            tell(number, FoundRun(one.run, fate))
            self.wait_for_delivery(RUNS_AHEAD)

    @property
    def waiting(self) -> int:
        """Number of runs that are journaled and not delivered."""
        return len(subdirectories(self._witness.journal_directory))

    def wait_for_delivery(self, most: int = 0) -> None:
        """Wait until no more runs than this are on their way, and say what the sender waits for."""
        told = self._witness.standing().last_error
        while self.waiting > most:
            time.sleep(LOOK_SECONDS)
            if (trouble := self._witness.standing().last_error) != told:
                told = trouble
                print(f"\n{trouble}", file=sys.stderr, flush=True)

    def _journal(self, run: TiledRun) -> Fate:
        try:
            documents = list(self._catalog.documents(run))  # all of a run or nothing
        except (TiledError, KeyError, TypeError, ValueError):
            return Fate.UNREADABLE
        for name, document in documents:
            hand_over(self._witness, name, document)
        if run.stop is None:
            self._witness.give_up(run.uid)
        self._witness.flush(60)
        return Fate.RECORDED

    def _fate(self, run: TiledRun, now: float) -> Fate:
        try:
            began = float(run.start["time"])
            id = run_id(run.uid, timestamp_text(began))
        except (KeyError, TypeError, ValueError):
            return Fate.UNREADABLE
        answer = self._service.get(f"/runs/{id}")
        if answer.status not in (200, 404):
            raise NoServiceError(f"Baton answers {answer.sentence}")
        if answer.status == 200 and answer.body.get("status") not in LIVE:
            return Fate.ON_RECORD
        return Fate.UNDER_WAY if run.stop is None and now - began < STILL_MEASURED else Fate.RECORDED


def backfill(work: Backfill, since: float | None, dry_run: bool) -> int:
    """Record the runs of a catalogue, with a progress bar; return the exit status."""
    try:
        found = work.find(since, time.time())
        print(summary(found), flush=True)
        if dry_run:
            return 0
        fates: list[FoundRun] = []

        def tell(number: int, one: FoundRun) -> None:
            fates.append(one)
            show_progress(number, len(found), one.run.uid)

        work.record(found, tell)
        show_progress(len(found), len(found), "until the service has them")
        work.wait_for_delivery()
    except (TiledError, NoServiceError) as error:
        print(f"\n{error} Start it again, and it continues.", file=sys.stderr)
        return 1
    print(f"\n{summary(fates)}")
    return 1 if any(one.fate is Fate.UNREADABLE for one in fates) else 0


def summary(found: Iterable[FoundRun]) -> str:
    """Return how many runs have each fate, in a line."""
    fates = [one.fate for one in found]
    counts = [f"{number} {fate.value}" for fate in Fate if (number := fates.count(fate))]
    return f"{len(fates)} runs: {', '.join(counts) or 'none to record'}"


def show_progress(number: int, total: int, what: str) -> None:
    """Draw the bar; where nobody looks, a line for each hundredth."""
    if sys.stderr.isatty():
        full = BAR * number // max(total, 1)
        print(f"\r[{'#' * full}{' ' * (BAR - full)}] {number}/{total} {what:<40.40}", end="", file=sys.stderr, flush=True)
    elif number == total or number % max(total // 100, 1) == 0:
        print(f"{number}/{total} {what}", file=sys.stderr, flush=True)
