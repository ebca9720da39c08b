"""The prompts that language models are asked, and the form of their answers; a prompt's id follows from name and version.
The texts are in `prompts.json`. What is asked about never enters them; it is sent as one JSON object, announced as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.domain.caution.caution import CautionCategory, CautionSeverity, CautionTargetKind
from baton.domain.kernel import Value
from baton.domain.shared.canonical import derived_uuid7

TEXTS: Mapping[str, list[str]] = json.loads(files(__package__).joinpath("prompts.json").read_text())
"""The paragraphs of each prompt, and `data_only`, which every one begins with."""


class DebriefChoice(StrEnum):
    """How a run went."""

    NOMINAL_COMPLETION = "NominalCompletion"
    DEGRADED_COMPLETION = "DegradedCompletion"
    OPERATOR_ABORT = "OperatorAbort"
    EQUIPMENT_ABORT = "EquipmentAbort"
    DATA_SUSPECT = "DataSuspect"


class DraftChoice(StrEnum):
    """Whether the next people who work with this should be warned, and how."""

    NO_ACTION = "NoAction"
    PROPOSE_NOTICE = "ProposeNotice"
    PROPOSE_CAUTION = "ProposeCaution"
    PROPOSE_WARNING = "ProposeWarning"
    PROPOSE_SUPERSEDE = "ProposeSupersede"


Confidence = Annotated[float, Field(ge=0, le=1)]


class DebriefAnswer(Value):
    """A verdict on a run and the narrative behind it."""

    choice: DebriefChoice
    confidence: Confidence
    reasoning: Annotated[str, Field(min_length=80, max_length=4000)]


class ProposedCaution(Value):
    """A caution as a model proposes it."""

    target_kind: CautionTargetKind
    target_id: UUID
    category: CautionCategory
    severity: CautionSeverity
    title: Annotated[str, Field(min_length=1, max_length=200)]
    body: Annotated[str, Field(min_length=40, max_length=2000)]
    tags: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=50)], ...], Field(max_length=8)]
    supersedes_caution_id: UUID | None


class DraftAnswer(Value):
    """Whether a caution is proposed, which, and why."""

    choice: DraftChoice
    confidence: Confidence
    reasoning: Annotated[str, Field(min_length=40, max_length=2000)]
    proposed_caution: ProposedCaution | None


@dataclass(frozen=True)
class Prompt:
    """A fixed instruction, the form of its answers, and how long one may be."""

    name: str
    version: int
    answer: type[Value]
    max_output_tokens: int

    @property
    def system(self) -> str:
        """The text of the instruction."""
        return TEXTS["data_only"][0] + "\n\n".join(TEXTS[self.name])

    @property
    def id(self) -> UUID:
        """The id, which is derived; the time in it is any constant, kept for ever."""
        return derived_uuid7(1_760_000_000_000, "prompt", f"{self.name}:{self.version}")

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of an answer; every key is required, so that nothing is left out by mistake."""
        return self.answer.model_json_schema()


RUN_DEBRIEF = Prompt("run-debrief", 1, DebriefAnswer, 1024)
CAUTION_DRAFT = Prompt("caution-draft", 1, DraftAnswer, 2048)
PROMPTS: Mapping[UUID, Prompt] = {prompt.id: prompt for prompt in (RUN_DEBRIEF, CAUTION_DRAFT)}
"""Every prompt of this service, by id."""
