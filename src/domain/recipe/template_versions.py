"""Which version and content of a recipe, plan, practice or method something was arranged with, and whether it is another one
now: who may write these decides nothing about what others have arranged."""

from collections.abc import Iterable, Sequence
from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Value
from baton.domain.recipe.lifecycle import Template
from baton.domain.registry import Internal
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.refusals import Conflict


class TemplateVersion(Value):
    """The label and the content of a recipe, plan, practice or method at one moment."""

    kind: str
    template_id: UUID
    version_tag: str | None
    content_hash: str = Field(description="The hash of what it says, as 64 hex digits.")

    def __str__(self) -> str:
        return f"{self.version_tag or 'untagged'} ({self.content_hash[:8]})"


ContentHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ArrangedVersions = Annotated[tuple[TemplateVersion, ...], Internal()]
"""The versions that a queue or a schedule conducts a target with, where it gives a command; nobody else can say so."""


class TemplateChange(Value):
    """A recipe, plan, practice or method that is another version than the one that was arranged."""

    kind: str
    template_id: UUID
    name: str
    was: Annotated[TemplateVersion, Field(description="The version that was arranged.")]
    now: Annotated[TemplateVersion, Field(description="The version that is current.")]

    def __str__(self) -> str:
        return f"the {self.kind.lower()} {self.name} was {self.was} and is {self.now}"


class TargetChangedError(Conflict, context="recipe", reason="target_changed", passing=True):
    """What is to be conducted is another version of its recipe, plan, practice or method than the one that was arranged."""


def version_of(template: Template) -> TemplateVersion:
    """Return the present version of a template."""
    kind, tag = template.aggregate.name, template.version_tag
    return TemplateVersion(kind=kind, template_id=template.id, version_tag=tag, content_hash=template.content_hash)


def versions_of(templates: Iterable[Template]) -> tuple[TemplateVersion, ...]:
    """Return the present versions of templates."""
    return tuple(map(version_of, templates))


def versions_digest(versions: Sequence[TemplateVersion]) -> str:
    """Return the digest by which somebody confirms these versions."""
    return content_hash([one.model_dump(mode="json") for one in versions])


def changes_since(kept: Sequence[TemplateVersion], templates: Iterable[Template]) -> tuple[TemplateChange, ...]:
    """Return those of the templates that are not at the version that was kept of them."""
    known = {(one.kind, one.template_id): one for one in kept}
    return tuple(
        TemplateChange(kind=now.kind, template_id=now.template_id, name=getattr(template, "name", ""), was=was, now=now)
        for template in templates
        for now in [version_of(template)]
        if (was := known.get((now.kind, now.template_id))) is not None and was != now
    )


def refuse_changed(kept: Sequence[TemplateVersion], templates: Sequence[Template]) -> None:
    """Refuse to go on with templates that are not at the version that was kept of them; others are not compared."""
    if changes := changes_since(kept, templates):
        told = "; ".join(map(str, changes))
        detail = f"Since this was arranged it has changed: {told}. Confirm the present version, or give another target."
        differs = [one.model_dump(mode="json") for one in changes]
        digest = versions_digest(versions_of(templates))
        raise TargetChangedError(detail, facts={"differs": differs, "confirmed_digest": digest})
