"""Names of outputs: template words by which the files of a recipe are named by run, sample and day, so that no run writes
over the files of another. They are replaced when steps are pinned; only ids are used, since names may be personal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Value
from baton.domain.recipe import steps as kinds
from baton.domain.recipe.steps import RecipeStep, Step
from baton.domain.shared.file_addresses import BELIEVED_COPIES, address_key
from baton.domain.shared.reads import Reads, members_by_key

NO_RUN, NO_SUBJECT = "no-run", "no-subject"
WORD = re.compile(r"\{(run|subject|date)\}")


class OverwrittenOutput(Value):
    """An address that a step would write to, and the registered copies whose bytes are there."""

    uri: str
    distribution_ids: tuple[UUID, ...]
    """The registered copies whose bytes are there."""


OverwrittenOutputs = Annotated[
    tuple[OverwrittenOutput, ...],
    Field(description="A caution: what programs would write to although a registered copy is there."),
]


def template_words(run_id: UUID | None, subject_id: UUID | None, begun_at: datetime) -> dict[str, str]:
    """Return what each template word stands for; the day is that on which the run began, in UTC."""
    return {
        "run": NO_RUN if run_id is None else id_part(run_id),
        "subject": NO_SUBJECT if subject_id is None else id_part(subject_id),
        "date": begun_at.astimezone(UTC).date().isoformat(),
    }


def id_part(id: UUID) -> str:
    """Return the last twelve digits of an id: short enough for the file name of a detector, and as it is shown."""
    return str(id)[-12:]


def with_named_outputs(steps: Sequence[Step], words: Mapping[str, str]) -> tuple[Step, ...]:
    """Return the steps with the template words replaced in what they write to signals, pass to actions, and in addresses of
    files."""
    return tuple(_with_names(step, words) for step in steps)


def _with_names(step: Step, words: Mapping[str, str]) -> Step:
    named = partial(replace_words, words=words)
    match step:
        case kinds.SetpointStep(value=str()):
            return step.model_copy(update={"value": named(step.value)})
        case kinds.ActionStep(params=params) if params:
            return step.model_copy(update={"params": {name: named(value) for name, value in step.params.items()}})
        case kinds.ComputeStep():
            uris, output_uri = tuple(map(named, step.input_uris)), named(step.output_uri)
            return step.model_copy(update={"input_uris": uris, "output_uri": output_uri})
    return step


def replace_words(value: object, words: Mapping[str, str]) -> Any:
    """Return a text with its template words replaced; any other value is returned as it is."""
    return WORD.sub(lambda word: words[word[1]], value) if isinstance(value, str) else value


def overwritten_outputs(steps: Iterable[RecipeStep], words: Mapping[str, str]) -> Reads[tuple[OverwrittenOutput, ...]]:
    """Return the addresses that programs of these steps would write to although a registered copy is there."""
    outputs = [step.output_uri for step in steps if isinstance(step, kinds.RecipeComputeStep)]
    uris = sorted({replace_words(uri, words) for uri in outputs if uri is not None})
    keys = {uri: address_key(uri) for uri in uris}
    found = yield from members_by_key(BELIEVED_COPIES, *keys.values())
    return tuple(OverwrittenOutput(uri=uri, distribution_ids=found[key]) for uri, key in keys.items() if key in found)
