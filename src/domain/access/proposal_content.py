"""The fields of a proposal that are kept beside its stream; they are removed when an actor in them is forgotten."""

from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from baton.domain.shared.writes import Record


@dataclass(frozen=True)
class ProposalContent(Record):
    """What was asked for and the groups that the proposer's token told, while the proposal is open; what it would have
    recorded; and its outcome. A proposal without it cannot be carried out."""

    relation: ClassVar[str] = "proposal_contents"
    key: ClassVar[tuple[str, ...]] = ("proposal_id",)
    proposal_id: UUID
    target_id: UUID | None  # What the command is about.
    request: dict[str, Any] | None
    would: list[dict[str, Any]]
    answer: dict[str, Any] | None = None
    refusal: dict[str, Any] | None = None
    proven_group_ids: list[UUID] = field(default_factory=list)
