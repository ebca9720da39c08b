"""What a gate found. A gate is a pure rule over loaded facts; what it refuses as is the affair of whoever passes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from domain.shared.refusals import Refusal


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
