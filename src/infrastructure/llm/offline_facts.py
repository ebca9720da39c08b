"""What the rules of the offline model read from the facts of a run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from baton.domain.shared.text import UNWRITABLE

Facts = Mapping[str, Any]
LONGEST_WORD = 40

UNNAMED = "Failure"
"""What a failure is called that has no name of its own."""
CHOSEN = frozenset(
    {
        "CancelledError",
        "ProcedureAborted",
        "ProcedureHeldByOperator",
        "ProcedureTruncated",
        "RunAborted",
        "RunStopped",
        "SteeringDriverStoodDown",
        "SubmitterStoodDown",
        "UnauthorizedError",
    }
)
"""Ends of a phase that somebody chose; all others are faults."""
BROKEN_OFF = frozenset({"Aborted", "Held", "Truncated"})
FAULT = re.compile(
    r"(?<!no )(?<!without )\b("
    r"faults?|faulted|failed|failure|errors?|interlock(ed)?|trip(ped)?|offline|disconnected|unresponsive|malfunction\w*"
    r"|time(d)?[- ]?out|stuck|jam(med)?|overheat\w*|leak\w*|crash\w*|collision|alarms?|short circuit|beam (dump|loss|lost)"
    r"|lost (beam|connection|signal|vacuum)|(connection|signal|vacuum) lost)\b",
    re.IGNORECASE,
)
"""Words by which a reason names a fault of the equipment."""


@dataclass(frozen=True)
class Phase:
    """A procedure of the run, as far as the rules ask about it."""

    procedure_id: str
    name: str
    status: str
    error_class: str | None
    message: str
    closing_failed: bool
    caution_target: Facts
    """What its faults are noted on; nothing, where it is not said."""

    @property
    def faulted(self) -> bool:
        """Whether something went wrong that nobody chose."""
        return self.error_class is not None and self.error_class not in CHOSEN

    @property
    def quiet(self) -> bool:
        """Whether nothing is to be told of it: it ended well, or was never begun."""
        return self.status not in BROKEN_OFF and self.error_class is None and not self.closing_failed


def phases_of(facts: Facts) -> Iterator[Phase]:
    for phase in objects(facts, "phases"):
        failure = phase.get("failure")
        failed = failure if isinstance(failure, dict) else {}
        yield Phase(
            procedure_id=said(phase, "procedure_id"),
            name=said(phase, "name"),
            status=word(phase, "status"),
            error_class=word(failed, "error_class") or (UNNAMED if failed else None),
            message=said(failed, "message") or said(failed, "detail"),
            closing_failed=bool(phase.get("closing_failures")),
            caution_target=target if isinstance(target := phase.get("caution_target"), dict) else {},
        )


def objects(facts: Facts, name: str) -> list[dict[str, Any]]:
    """A list of objects among the facts."""
    found = facts.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def texts(facts: Facts, name: str) -> list[str]:
    """A list of texts among the facts that can be repeated."""
    found = facts.get(name)
    return [UNWRITABLE.sub(" ", one) for one in found if isinstance(one, str)] if isinstance(found, list) else []


def said(facts: Facts, name: str) -> str:
    """A text among the facts that can be repeated, or nothing."""
    found = facts.get(name)
    return UNWRITABLE.sub(" ", found) if isinstance(found, str) else ""


def word(facts: Facts, name: str) -> str:
    """A text among the facts that is one word, such as a time, a number or a status, or nothing."""
    found = said(facts, name).strip()
    return found if len(found) <= LONGEST_WORD and len(found.split()) == 1 else ""


def quoted(text: str, words: int) -> str:
    """A text on one line in quotation marks, cut between words, so that no number in it becomes another."""
    parts = text.replace('"', "'").split()
    short = " ".join(part for part in parts[:words] if len(part) <= LONGEST_WORD)
    return f'"{short} ..."' if len(parts) > words else f'"{short}"'
