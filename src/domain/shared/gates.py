"""What a gate found. A gate is a pure rule over loaded facts; what it refuses as is the affair of whoever passes it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from baton.domain.shared.refusals import Refusal


@dataclass(frozen=True)
class Finding:
    """Why a gate stays closed: for want of everything it asks for, or of a part of it."""

    total: bool
    reason: str
    detail: str
    facts: Mapping[str, Any]

    def refusal(self, total: type[Refusal], partial: type[Refusal], **facts: Any) -> Refusal:
        """This finding in the words of its caller, which has a class for each of the two cases and may know more."""
        return (total if self.total else partial)(self.detail, reason=self.reason, facts={**self.facts, **facts})


class GateVerdict(BaseModel):
    """What one gate says: whether it lets pass and, if not, the refusal that whoever has to pass it would get."""

    gate: str
    passed: bool
    code: str | None = None
    reason: str | None = None
    detail: str | None = None
    facts: dict[str, Any] | None = None
    subjects: tuple[UUID, ...]


class CommandVerdict(BaseModel):
    """Whether a command would pass all its gates and, if not, the first that refuses it."""

    command: str
    passed: bool
    refused_by: str | None


class AskedGateVerdict(GateVerdict):
    """What one gate says, and the commands that have to pass it."""

    asked_by: tuple[str, ...]


def verdict_on(command: str, verdicts: Iterable[AskedGateVerdict]) -> CommandVerdict:
    """What these verdicts mean for a command."""
    shut = next((one.gate for one in verdicts if command in one.asked_by and not one.passed), None)
    return CommandVerdict(command=command, passed=shut is None, refused_by=shut)


def judged(gate: str, subjects: Iterable[UUID], judge: Callable[[], None]) -> GateVerdict:
    """What a gate says about these subjects, by the rule that refuses or does not."""
    about = tuple(sorted(subjects))
    try:
        judge()
    except Refusal as refusal:
        return closed(gate, about, refusal)
    return GateVerdict(gate=gate, passed=True, subjects=about)


def closed(gate: str, subjects: Iterable[UUID], refusal: Refusal) -> GateVerdict:
    """What a gate says that refuses."""
    return GateVerdict(
        gate=gate,
        passed=False,
        code=refusal.code,
        reason=refusal.reason,
        detail=refusal.detail,
        facts=refusal.facts,
        subjects=tuple(sorted(subjects)),
    )
