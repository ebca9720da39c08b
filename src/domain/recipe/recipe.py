"""A recipe: ordered steps with typed holes that realise a capability here, and its closing steps. They change only as a
whole, by a new version; a tag names one content for ever, so that what was registered from it can be expanded again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import (
    Aggregate,
    Call,
    Event,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    Query,
    TimeTravel,
    Value,
    values_of,
)
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.conduct_options import ChosenOptions, OnUnknownOutcome, WatchedGates, first_choices
from baton.domain.recipe.expansion import steps_hash
from baton.domain.recipe.lifecycle import CURRENT, Template, TemplateDeprecated, TemplateStatus, TemplateVersioned
from baton.domain.recipe.patterns import Pattern, PatternSteps, load_pattern_steps
from baton.domain.recipe.plots import RecipePlot, check_plot
from baton.domain.recipe.step_actions import KnownActions, check_actions, load_actions, sent_action_names
from baton.domain.recipe.step_checks import RawSteps, check_steps, read_closing_steps, read_steps
from baton.domain.recipe.steps import RecipeStep
from baton.domain.shared.listing import NamedListQuery, Order, Page, Summary
from baton.domain.shared.reads import Reads, find_all, members_of, require, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, NotFound
from baton.domain.shared.text import OptionalReason
from baton.domain.shared.writes import Enlist

CAPABILITY_RECIPES = "capability-recipe"  # Look-up kind: the recipes of a capability, deprecated ones too.
Steps = tuple[RecipeStep, ...]


class RecipeVersion(Value):
    """The content of a recipe from one moment on, with its own options of conducts; the definition has no tag."""

    version_tag: str | None
    steps: Steps
    closing_steps: Steps
    watch: WatchedGates | None = None
    on_unknown_outcome: OnUnknownOutcome | None = None
    pattern: Pattern | None = None
    """The pattern that the steps were made from; null without one."""
    plot: RecipePlot | None = None
    """What is drawn of its points; null where the steps suggest it."""
    occurred_at: datetime


@dataclass(frozen=True, kw_only=True)
class Recipe(Template):
    """A recipe is ordered steps with typed holes that realise a capability here, and the steps that close them."""

    name: str
    capability_id: UUID
    versions: tuple[RecipeVersion, ...]  # Every content of the recipe, oldest first; the last one counts.
    replaced_by_recipe_id: UUID | None = None

    @property
    def content(self) -> Mapping[str, Any]:
        options = {"watch": self.watch, "on_unknown_outcome": self.on_unknown_outcome}
        return {"capability_id": self.capability_id, "steps": steps_hash(self.steps, self.closing_steps), **options}

    @property
    def steps(self) -> Steps:
        return self.versions[-1].steps

    @property
    def closing_steps(self) -> Steps:
        return self.versions[-1].closing_steps

    @property
    def watch(self) -> WatchedGates | None:
        return self.versions[-1].watch

    @property
    def on_unknown_outcome(self) -> OnUnknownOutcome | None:
        return self.versions[-1].on_unknown_outcome

    @property
    def pattern(self) -> Pattern | None:
        return self.versions[-1].pattern

    @property
    def plot(self) -> RecipePlot | None:
        return self.versions[-1].plot

    @property
    def step_count(self) -> int:
        return len(self.steps)

    @property
    def closing_step_count(self) -> int:
        return len(self.closing_steps)

    def version(self, version_tag: str | None) -> RecipeVersion | None:
        """Return the content first written under a tag (None is the definition), or None."""
        return next((version for version in self.versions if version.version_tag == version_tag), None)


recipe = Aggregate(Recipe, "/recipes", context="recipe")


class RecipeDefined(Event, of=recipe, version=6, upcasters={1: dict, 2: dict, 3: dict, 4: dict, 5: dict}):
    """The steps and closing steps were written down; since version 2 with the options of their conducts, since version 3
    with units, since version 5 with the pattern that they were made from, and since version 6 with their plot."""

    name: str
    capability_id: UUID
    steps: Steps
    closing_steps: Steps
    watch: WatchedGates | None = None
    on_unknown_outcome: OnUnknownOutcome | None = None
    pattern: Pattern | None = None
    plot: RecipePlot | None = None


class RecipeVersioned(TemplateVersioned, of=recipe, version=6, upcasters={1: dict, 2: dict, 3: dict, 4: dict, 5: dict}):
    """All steps and closing steps were replaced under this tag; since version 2 the options of their conducts
    too, since version 3 with units, since version 5 with the pattern that they were made from, and since version 6 with
    their plot."""

    steps: Steps
    closing_steps: Steps
    watch: WatchedGates | None = None
    on_unknown_outcome: OnUnknownOutcome | None = None
    pattern: Pattern | None = None
    plot: RecipePlot | None = None


class RecipeDeprecated(TemplateDeprecated, of=recipe):
    """The recipe was deprecated: no procedure is newly registered from it."""

    replaced_by_recipe_id: UUID | None


@recipe.begin
def begin(event: RecipeDefined) -> Recipe:
    at = event.occurred_at
    content = {name: value for name, value in event if name in RecipeVersion.model_fields}
    first = RecipeVersion(**content, version_tag=None, occurred_at=at)
    return Recipe(id=event.stream_id, created_at=at, name=event.name, capability_id=event.capability_id, versions=(first,))


@recipe.evolve
def evolve(recipe: Recipe, event: RecipeVersioned | RecipeDeprecated) -> Recipe:
    match event:
        case RecipeVersioned():
            version = RecipeVersion(**dict(event), occurred_at=event.occurred_at)
            return recipe.fold_lifecycle(event, versions=(*recipe.versions, version))
        case RecipeDeprecated():
            return recipe.fold_lifecycle(event)
        case _:
            assert_never(event)


class EmptyRecipeStepsError(Invalid, context="recipe"):
    """A recipe has at least one step; closing steps alone do nothing to close."""


class RecipeStepsBesidePatternError(Invalid, context="recipe", reason="both_given"):
    """The steps of a recipe are written down or made from a pattern, not both."""


class InvalidRecipeReplacementError(Invalid, context="recipe", reason="itself"):
    """A recipe cannot be replaced by itself."""


class RecipeVersionTagConflictError(Conflict, context="recipe"):
    """The tag already names other steps or options of this recipe."""


class RecipeVersionNotFoundError(NotFound, context="recipe"):
    """The recipe has no version with this tag."""


GivenPattern = Annotated[
    Pattern | None,
    Field(
        description="A pattern that the steps are made from, in place of steps; draft_steps shows what it becomes.",
        exclude_if=lambda pattern: pattern is None,
    ),
]


GivenPlot = Annotated[
    RecipePlot | None,
    Field(
        description="What is drawn of its points while it is conducted; left out, what its steps suggest.",
        exclude_if=lambda plot: plot is None,
    ),
]


class RecipeSteps(NamedTuple):
    """The capability that steps realise, the steps that their pattern became, where there is one, and their actions."""

    capability: Capability
    drafted: PatternSteps | None
    actions: KnownActions


@recipe.creation()
class DefineRecipe(ChosenOptions, JudgedCreation[RecipeSteps]):
    """Write down the steps that realise a capability here, and those that leave everything safe afterwards."""

    name: Annotated[str, recipe.text("name", 200)]
    capability_id: UUID
    """The capability that the steps realise."""
    steps: RawSteps = ()
    """The steps, one after the other: setpoint, action, check, capture or compute."""
    closing_steps: RawSteps = ()
    pattern: GivenPattern = None
    plot: GivenPlot = None

    def gather(self, call: Call) -> Reads[RecipeSteps]:
        return (yield from load_steps(self, self.capability_id))

    def decide(self, call: Call, given: RecipeSteps) -> Outcome:
        content = read_content(self, given)
        content |= {"name": self.name, "capability_id": self.capability_id, **dict(first_choices(self))}
        return [RecipeDefined(**content), Enlist(CAPABILITY_RECIPES, str(self.capability_id))]


def recipes_in_service(capability_id: UUID) -> Reads[dict[UUID, Recipe]]:
    """Return the recipes of a capability that are not deprecated, oldest first."""
    found = yield from find_all(Recipe, (yield from members_of(CAPABILITY_RECIPES, capability_id)))
    return {id: one for id, one in found.items() if one.status in CURRENT}


@recipe.command(post="/{recipe_id}/version", allowed=CURRENT, leads_to=TemplateStatus.VERSIONED)
class VersionRecipe(ChosenOptions, JudgedVerb[Recipe, RecipeSteps]):
    """Replace all steps, closing steps and options under a tag; the tag may be used again for the same content only."""

    version_tag: Annotated[str, recipe.text("version_tag", 50)]
    steps: RawSteps = ()
    """The steps, one after the other: setpoint, action, check, capture or compute."""
    closing_steps: RawSteps = ()
    pattern: GivenPattern = None
    plot: GivenPlot = None

    def gather(self, recipe: Recipe, call: Call) -> Reads[RecipeSteps]:
        return (yield from load_steps(self, recipe.capability_id))

    def decide(self, recipe: Recipe, call: Call, given: RecipeSteps) -> Outcome:
        content = read_content(self, given)
        named, chosen = recipe.version(self.version_tag), first_choices(self)
        if named is not None and (
            steps_hash(content["steps"], content["closing_steps"]) != steps_hash(named.steps, named.closing_steps)
            or first_choices(named) != chosen
            or named.plot != self.plot
        ):
            detail = f"The tag {self.version_tag} names other steps or options of this recipe already; choose another tag."
            raise RecipeVersionTagConflictError(detail, facts={"version_tag": self.version_tag})
        return [RecipeVersioned(version_tag=self.version_tag, **content, **dict(chosen))]


def load_steps(request: DefineRecipe | VersionRecipe, capability_id: UUID) -> Reads[RecipeSteps]:
    """Load what steps are judged by, and make those of a pattern."""
    capability = yield from require(Capability, capability_id)
    drafted = None if request.pattern is None else (yield from load_pattern_steps(request.pattern))
    made = () if drafted is None else (*drafted.steps, *drafted.closing_steps)
    names = sent_action_names((*request.steps, *request.closing_steps, *made))
    return RecipeSteps(capability, drafted, (yield from load_actions(names)))


def read_content(request: DefineRecipe | VersionRecipe, given: RecipeSteps) -> dict[str, Any]:
    """Return the two lists as steps, and their pattern; refuse them where they are empty, misshapen or inconsistent. What
    returns the axes of a pattern follows the closing steps that were written down."""
    steps, closing_steps = request.steps, request.closing_steps
    if given.drafted is not None:
        if steps:
            raise RecipeStepsBesidePatternError("The recipe has steps and a pattern; give one of them.")
        steps, closing_steps = given.drafted.steps, (*closing_steps, *given.drafted.closing_steps)
    if not steps:
        raise EmptyRecipeStepsError("The recipe has no steps; give at least one, or a pattern.")
    content = {"steps": read_steps(steps), "closing_steps": read_closing_steps(closing_steps)}
    check_steps(**content, schema=given.capability.parameters_schema)
    check_actions(**content, known=given.actions)
    if request.plot is not None:
        check_plot(request.plot, content["steps"])
    return {**content, "pattern": request.pattern, "plot": request.plot}


@recipe.command(post="/{recipe_id}/deprecate", allowed=CURRENT, destructive=True)
class DeprecateRecipe(JudgedVerb[Recipe, None]):
    """Keep procedures from being newly registered from it, and say what replaces it; registered ones are conducted."""

    reason: OptionalReason = None
    replaced_by_recipe_id: UUID | None = None

    def gather(self, recipe: Recipe, call: Call) -> Reads[None]:
        yield from require_if_given(Recipe, self.replaced_by_recipe_id)

    def decide(self, recipe: Recipe, call: Call, facts: None) -> Outcome:
        if self.replaced_by_recipe_id == recipe.id:
            raise InvalidRecipeReplacementError("A recipe cannot replace itself; name another one or none.")
        return [RecipeDeprecated(**dict(self))]


def version_of(recipe: Recipe, version_tag: str | None) -> RecipeVersion:
    """Return the content a tag names; refuse with 404 where there is none."""
    if (version := recipe.version(version_tag)) is None:
        detail = f"The recipe has no version {version_tag}; list its versions for those it has."
        raise RecipeVersionNotFoundError(detail, facts={"version_tag": version_tag})
    return version


class RecipeView(Value):
    """A recipe with one of its contents."""

    id: UUID
    name: str
    capability_id: UUID
    status: TemplateStatus
    version_tag: str | None
    steps: Steps
    closing_steps: Steps
    replaced_by_recipe_id: UUID | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None
    watch: WatchedGates | None
    on_unknown_outcome: OnUnknownOutcome | None
    pattern: Annotated[Pattern | None, Field(description="The pattern that the steps were made from; null without one.")]
    plot: Annotated[RecipePlot | None, Field(description="What is drawn of its points; null where the steps suggest it.")]
    recipe_id: UUID


@recipe.query(get="/{recipe_id}", returns=RecipeView, refuses=[RecipeVersionNotFoundError])
class GetRecipe(TimeTravel[RecipeView]):
    """One recipe, folded from its stream; with a tag, what it said in that version and since when."""

    version_tag: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    """Show what the recipe said under this tag."""

    def answer(self, recipe: Recipe, call: Call) -> Reads[RecipeView]:
        shown = values_of(recipe, RecipeView)
        if self.version_tag is not None:
            version = version_of(recipe, self.version_tag)
            shown |= {name: value for name, value in version if name in RecipeView.model_fields}
            shown["versioned_at"] = version.occurred_at
        return RecipeView.model_construct(**shown)
        yield


@recipe.query(get="/{recipe_id}/versions", returns=Page[RecipeVersion])
class ListRecipeVersions(Query[Page[RecipeVersion]]):
    """Every content of one recipe from its definition on, folded from its stream; all on one page."""

    order: Order = Order.ASC

    def answer(self, recipe: Recipe, call: Call) -> Reads[Page[RecipeVersion]]:
        return Page(recipe.versions if self.order is Order.ASC else recipe.versions[::-1], None)
        yield


class RecipeSummary(Summary):
    recipe_id: UUID
    name: str
    capability_id: UUID
    status: TemplateStatus
    version_tag: str | None
    step_count: int
    closing_step_count: int
    """Number of closing steps."""
    replaced_by_recipe_id: UUID | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None


@recipe.listing(RecipeSummary)
class ListRecipes(NamedListQuery[RecipeSummary]):
    """Recipes in order of definition."""

    status: TemplateStatus | None = None
    capability_id: UUID | None = None
