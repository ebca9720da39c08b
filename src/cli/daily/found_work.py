"""Runs and procedures by the names that people know them by."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from baton.cli.messages import refuse

if TYPE_CHECKING:
    from baton.client import Baton

LIVE = ("Running", "Held")
SHOWN_CANDIDATES = 10


@dataclass(frozen=True)
class FoundWork:
    """A run or a procedure, as far as lists tell of it."""

    kind: Literal["run", "procedure"]
    id: UUID
    name: str
    status: str
    since: datetime | None = None
    parent_run_id: UUID | None = None
    lost: bool = False  # whether the engine lost its conduct

    @property
    def target(self) -> dict[str, Any]:
        """The argument that names it in a call about it."""
        return {f"{self.kind}_id": self.id}

    def __str__(self) -> str:
        return f"{self.kind} {self.id} ({self.name}, {self.status})"


def find_work(client: "Baton", name: str, states: Collection[str] = LIVE) -> FoundWork:
    """Return the run or procedure of this name or id: of several with one name the only one in these states. Exit where
    there is none, or where the name leaves open which."""
    from baton.client.exchanges import is_id

    found = list(with_id(client, UUID(name)) if is_id(name) else with_name(client, name))
    fitting = [one for one in found if one.status in states]
    match fitting or found:
        case [work]:
            return work
        case []:
            refuse(f"There is no run and no procedure {name!r}; `baton ps` shows what is live.")
        case several:
            listed = "; ".join(map(str, several[:SHOWN_CANDIDATES]))
            more = f" and {len(several) - SHOWN_CANDIDATES} more" if len(several) > SHOWN_CANDIDATES else ""
            refuse(f"{len(several)} runs or procedures are called {name!r}; name one by its id: {listed}{more}.")


def with_name(client: "Baton", name: str) -> Iterator[FoundWork]:
    """Yield every run and procedure with exactly this name."""
    yield from (found_run(row) for row in client.every("list_runs", name=name))
    yield from (found_procedure(row) for row in client.every("list_procedures", name=name))


def with_id(client: "Baton", id: UUID) -> Iterator[FoundWork]:
    """Yield the run or procedure with this id."""
    from baton.client.refusals import NotFound

    with suppress(NotFound):
        run = client.call("get_run", run_id=id)
        yield FoundWork("run", id, run.name, run.status)
    with suppress(NotFound):
        procedure = client.call("get_procedure", procedure_id=id)
        yield FoundWork("procedure", id, procedure.name, procedure.status)


def live_work(client: "Baton") -> Iterator[FoundWork]:
    """Yield every run and procedure that is Running or Held."""
    for status in LIVE:
        yield from (found_run(row) for row in client.every("list_runs", status=status))
    for status in LIVE:
        yield from (found_procedure(row) for row in client.every("list_procedures", status=status))


def found_run(row: Any) -> FoundWork:
    """Return a run of a list."""
    since = row.running_since if row.status == "Running" else row.updated_at
    return FoundWork("run", row.run_id, row.name, row.status, since, lost=is_lost(row))


def found_procedure(row: Any) -> FoundWork:
    """Return a procedure of a list."""
    since = row.last_status_changed_at or row.registered_at
    return FoundWork("procedure", row.procedure_id, row.name, row.status, since, row.parent_run_id, is_lost(row))


def is_lost(row: Any) -> bool:
    """Return whether something is Running on the record alone, since the engine lost its conduct."""
    return bool(row.lost) and row.status == "Running"
