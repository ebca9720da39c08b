"""Cautions as agents propose them."""

from typing import Any
from uuid import UUID

TITLE = "The rotary stage loses its reference after an abort"
BODY = "Home the rotary stage again before the next scan, and compare the first two projections."
SEVERITIES = {"ProposeNotice": "Notice", "ProposeCaution": "Caution", "ProposeWarning": "Warning"}


def proposed_caution(choice: str, target_id: UUID, /, **fields: Any) -> dict[str, Any]:
    """A proposal that goes with a choice, as a model writes it."""
    about = {"target_kind": "Asset", "target_id": str(target_id), "category": "Wear", "tags": ["rotary"]}
    defaults = {"severity": SEVERITIES.get(choice, "Caution"), "title": TITLE, "body": BODY}
    return {**about, **defaults, "supersedes_caution_id": None, **fields}


def proposal_fields(choice: str, target_id: UUID, /, *, confidence: float | None = 0.8, **fields: Any) -> dict[str, Any]:
    """The fields of a decision that proposes a caution."""
    inputs = {"proposed_caution": proposed_caution(choice, target_id, **fields)}
    return {"context": "CautionProposal", "choice": choice, "confidence": confidence, "inputs": inputs}
