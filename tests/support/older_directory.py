"""A data directory that an older version left with work under way, and the stack of this version on it.

Each has a folder in `tests/data` with the script that made it; `facts.json` there says how everything stood.
"""

import json
import lzma
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from tests.support.stack import DEADLINE, Stack, eventually, running_stack

T = TypeVar("T")
DATA = Path(__file__).parents[1] / "data"
WHOLE = ("/reactions", "/affordances")
"""Lists that have no pages."""
PATIENT = {"CONDUCT_RESTART_LIMIT_SECONDS": str(10**9)}
"""A conduct that has stood still for longer is given up, and these directories only get older."""
RUNNABLE = ("Defined", "Running", "Held", "Completed")


@dataclass(frozen=True)
class OlderStack:
    """A stack on an older directory, and the facts of how it was left."""

    name: str
    stack: Stack
    facts: dict[str, Any]
    lists: dict[str, list[dict[str, Any]]]

    def wait_for(self, condition: Callable[[], T], within: float = DEADLINE) -> T:
        """Return the first true answer of a condition; it is asked for seldom, since the work takes long."""
        return eventually(condition, within, self.stack.output, pause=0.5)

    def person(self, name: str) -> dict[str, str]:
        """The header of a request by somebody, where the directory names people."""
        return {"X-Principal-Id": self.facts["people"][name]} if "people" in self.facts else {}

    def read(self, path: str, by: str = "boss", **parameters: Any) -> Any:
        """What a question that must succeed is answered."""
        answer = self.stack.client.get(path, params=parameters, headers=self.person(by))
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return answer.json()

    def ask(self, path: str, body: Any, **headers: str) -> Any:
        """Ask for something that may be still to come."""
        answer = self.stack.client.post(path, json=body, headers={**self.person("boss"), **headers})
        assert answer.status_code in (200, 202, 204), f"{path}: {answer.text}"
        return answer.json() if answer.content else None

    def rows(self, path: str, **parameters: Any) -> list[dict[str, Any]]:
        """Every row of a list."""
        found: list[dict[str, Any]] = []
        paging: dict[str, Any] = {} if path in WHOLE else {"limit": 100}
        while True:
            page = self.read(path, **parameters, **paging)
            found += page["items"]
            if page.get("next_cursor") is None:
                return found
            paging["cursor"] = page["next_cursor"]

    def procedure(self, name: str) -> str:
        """Where a procedure of the facts is."""
        return f"/procedures/{self.facts['procedures'][name]['id']}"

    def run(self, name: str) -> str:
        """Where a run of the facts is."""
        return f"/runs/{self.facts['runs'][name]['id']}"

    def wait_until_completed(self, path: str) -> None:
        """Wait until something has come to its good end; no other end is to come."""

        def is_completed() -> bool:
            status = self.read(path)["status"]
            assert status in RUNNABLE, f"{path} is {status}: {self.read(f'{path}/history')}"
            return bool(status == "Completed")

        self.wait_for(is_completed)

    def outcomes(self, path: str) -> dict[tuple[bool, int], Counter[str]]:
        """How often each step of a procedure was begun and done, by the ledger."""
        told: dict[tuple[bool, int], Counter[str]] = defaultdict(Counter)
        for row in self.rows(f"{path}/activities"):
            payload = row["payload"]
            told[bool(payload.get("closing")), payload["step_index"]][payload["result"]] += 1
        return told

    def writes(self, address: str, *, repeats: int | None = None) -> list[float]:
        """Return what was written to an address, in order, by the plant's journal; a setpoint that was cut off is written
        once more, which absolute ones may be."""
        lines = (self.stack.directory / self.facts["journal"]).read_text().splitlines()
        entries = (json.loads(line) for line in lines)
        written = [entry["value"] for entry in entries if (entry["kind"], entry["address"]) == ("write", address)]
        once = [value for value, _ in groupby(written)]
        assert len(written) - len(once) <= (self.repeats if repeats is None else repeats), f"{address}: {written}"
        return once

    @property
    def repeats(self) -> int:
        """How many steps of a conduct may have been begun twice: the one at which everything was killed."""
        return 1 if self.facts.get("killed") else 0

    def assert_scanned_once(self, path: str, address: str, targets: list[float]) -> None:
        """Assert that every step of a scan was begun once and done once, by the ledger and by the plant."""
        assert self.writes(address) == targets
        told = self.outcomes(path)
        assert [index for closing, index in sorted(told) if not closing] == list(range(len(targets)))
        assert all(counted["ok"] == 1 and counted.keys() == {"in_flight", "ok"} for counted in told.values()), told
        assert sum(counted["in_flight"] - 1 for counted in told.values()) <= self.repeats, told

    def angles(self, name: str) -> list[float]:
        """Where a scan of the facts goes."""
        return [20.0 * number for number in range(1, self.facts["procedures"][name]["step_count"] + 1)]

    def search_hutch(self) -> None:
        """Have the interlock permit the hutch again: what it said long ago counts no more."""
        permitted = {"new_status": "Permitted", "reason": "searched"}
        source = {"monitor_ref": {"source_kind": "ProcessVariable", "source_id": "PSS:B:PERMIT"}}
        path = f"/enclosures/{self.facts['hutch']['enclosure_id']}/observe-status"
        self.ask(path, {**permitted, **source}, **{"X-Principal-Id": self.facts["hutch"]["monitor_id"]})

    def wait_until_fired(self, name: str, more: int) -> None:
        """Wait until a schedule has fired so many times more than when it was left, and see that its firings are numbered
        without a gap."""
        fact = self.facts["schedules"][name]
        path, count = f"/schedules/{fact['id']}", fact["firing_count"] + more

        def has_fired() -> bool:
            shown = self.read(path)
            return bool(shown["firing_count"] >= count and shown["last_firings"][0]["outcome"] == "Completed")

        self.wait_for(has_fired)
        fired = [item["payload"] for item in self.rows(f"{path}/history") if item["event_type"] == "ScheduleFired"]
        assert [one["count"] for one in fired] == list(range(1, len(fired) + 1))
        assert len({one["scheduled_at"] for one in fired}) == len(fired) >= count


@contextmanager
def running_older_stack(name: str, directory: Path) -> Iterator[OlderStack]:
    """A stack of this version on what an older one left, unpacked here."""
    kept = DATA / name
    facts = json.loads((kept / "facts.json").read_text())
    lists = json.loads(lzma.decompress((kept / "lists.json.xz").read_bytes()))
    with lzma.open(kept / "directory.tar.xz") as unpacked, tarfile.open(fileobj=unpacked) as tar:
        tar.extractall(directory, filter="tar")
    plant = {"SIMULATION_JOURNAL": str(directory / facts["journal"])}
    with running_stack(directory, **{**facts["settings"], **PATIENT, **plant}) as stack:
        yield OlderStack(name, stack, facts, lists)
