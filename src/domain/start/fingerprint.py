"""The fingerprint of a rehearsal: a short hash of each kind of thing that its verdict rests on, so that a start which names
it can say what has changed since. How old a value is, and how long steps usually take, is no part of it."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from baton.domain.recipe.expansion import Expansion
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.refusals import Conflict
from baton.domain.steering.steering import SteeringSpace

DIGITS = 12  # Of each hash.
CHANGED = {
    "run": "the plan, its method or its parameters",
    "steps": "the steps, or where they begin",
    "limits": "the limits of the signals",
    "values": "the values that conducts left in the signals",
}  # What a start compares, in words.


class RehearsalOutdatedError(Conflict, context="operation", reason="basis_changed"):
    """What the rehearsal rested on that a start names has changed since."""


class Fingerprint(NamedTuple):
    """The hashes of what a rehearsal rests on; the last is of what its caller gave, which no start compares."""

    run: str
    steps: str
    limits: str
    values: str
    given: str

    def __str__(self) -> str:
        return ".".join(self)


LENGTH = (DIGITS + 1) * len(Fingerprint._fields) - 1
RehearsalFingerprint = Annotated[str, Field(min_length=LENGTH, max_length=LENGTH, description="Its rehearsal's.")]


class StepsBasis(NamedTuple):
    """The steps of one procedure as they would be walked."""

    steps: Expansion
    words: Mapping[str, str] = {}
    """What the template words in them were replaced with, which says nothing of the steps."""
    boundary: int = 0
    space: SteeringSpace | None = None

    @property
    def document(self) -> Sequence[Any]:
        """Return what decides the verdicts on them, as JSON."""
        text = self.steps.model_dump_json()
        for word, value in self.words.items():
            text = text.replace(value, f"{{{word}}}")
        hashed = sha256(text.encode()).hexdigest()  # a tenth of the time of `steps_hash`
        return [hashed, self.boundary, None if self.space is None else self.space.model_dump(mode="json")]


def short_hash(value: object) -> str:
    """Return the hash of a JSON value that is a part of a fingerprint."""
    return content_hash(value)[:DIGITS]


def refuse_outdated(rehearsed: str | None, **now: str) -> None:
    """Refuse a start that names a rehearsal, where one of these hashes is another one now."""
    if rehearsed is None:
        return
    then = dict(zip(Fingerprint._fields, rehearsed.split("."), strict=False))
    if changed := [name for name, found in now.items() if then.get(name) != found]:
        said = " and ".join(CHANGED[name] for name in changed)
        detail = f"Since the rehearsal, {said} changed; rehearse it again, or start without its fingerprint."
        raise RehearsalOutdatedError(detail, facts={"changed": changed})
