"""How a procedure is registered: by itself, or from a recipe whose steps it will conduct."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.kernel import Call, IdSet, JudgedCreation, Outcome
from baton.domain.procedure.procedure import PHASES, ProcedureRecipeExpanded, ProcedureRegistered, procedure
from baton.domain.recipe.capability import Capability, ExecutorShape
from baton.domain.recipe.conduct_options import ChosenOptions, first_choices
from baton.domain.recipe.expansion import EXPANDER_VERSION, InvalidProcedureBindingsError, binding_units, expansion_of
from baton.domain.recipe.lifecycle import DEPRECATED
from baton.domain.recipe.recipe import Recipe
from baton.domain.recipe.step_actions import KnownActions, action_names, check_actions, load_actions
from baton.domain.recipe.steps import binding_names
from baton.domain.registry import Internal
from baton.domain.run.run import Run
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.reads import Reads, require, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, Refusal
from baton.domain.shared.schema import check_values
from baton.domain.shared.writes import Enlist
from baton.domain.step.programs import allowed_programs, check_programs


class InvalidProcedureIterationCapError(Invalid, context="operation"):
    """Patience lasts for at least one iteration."""


class ProcedureBoundCapabilityDeprecatedError(Conflict, context="operation", reason="deprecated"):
    """The capability is Deprecated and takes no new procedures."""


class ProcedureBoundRecipeDeprecatedError(Conflict, context="operation", reason="deprecated"):
    """The recipe is Deprecated and takes no new procedures."""


class ProcedureCapabilityExecutorMismatchError(Conflict, context="operation", reason="executor_shape"):
    """The capability is not to be realised by procedures."""


class ProcedureBindingsStaleError(Conflict, context="operation", reason="stale_bindings"):
    """The recipe refers to a parameter that its capability does not have any more."""


class ProcedureExpansionNotDeterministicError(Refusal, context="operation"):
    """The recipe expanded differently twice in a row; nothing was registered."""


class ProcedureRequest(ChosenOptions):
    """What is asked for when a procedure is to be registered."""

    name: Annotated[str, procedure.text("name", 200, personal=True)]
    kind: Annotated[str, procedure.text("kind", 50)]
    target_asset_ids: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    parent_run_id: UUID | None = None
    max_consecutive_unconverged_iterations: Annotated[int, Field(strict=True, le=2**31 - 1)] | None = None

    def phase_entries(self) -> list[Enlist]:
        """Return the look-up entry of a phase of a run."""
        return [] if self.parent_run_id is None else [Enlist(PHASES, str(self.parent_run_id))]


def check_cap(cap: int | None) -> None:
    """Refuse patience for less than one iteration."""
    if cap is not None and cap < 1:
        raise InvalidProcedureIterationCapError("The cap allows no iteration at all; give 1 or more, or leave it out.")


def check_capability_current(capability: Capability) -> None:
    """Refuse a capability that takes no new procedures."""
    if capability.status is DEPRECATED:
        raise ProcedureBoundCapabilityDeprecatedError(f"The capability {capability.code} is Deprecated; name a current one.")


def check_executor(capability: Capability) -> None:
    """Refuse a capability that procedures do not realise."""
    if ExecutorShape.PROCEDURE not in capability.executor_shapes:
        raise ProcedureCapabilityExecutorMismatchError(
            f"The capability {capability.code} is realised by methods only; name one that allows PROCEDURE.",
            facts={"executor_shapes": sorted(capability.executor_shapes)},
        )


@procedure.creation()
class RegisterProcedure(ProcedureRequest, JudgedCreation[Capability | None]):
    """Plan a task on some assets, to be carried out by hand or conducted with steps given then."""

    capability_id: UUID | None = None

    def gather(self, call: Call) -> Reads[Capability | None]:
        return (yield from require_if_given(Capability, self.capability_id))

    def decide(self, call: Call, capability: Capability | None) -> Outcome:
        check_cap(self.max_consecutive_unconverged_iterations)
        if capability is not None:
            check_capability_current(capability)
            check_executor(capability)
        return [ProcedureRegistered(**dict(self), recipe_id=None), *self.phase_entries()]


class RecipeSource(NamedTuple):
    """What a procedure is registered from, and its bindings as the run completes them."""

    recipe: Recipe
    capability: Capability
    bindings: dict[str, Any]
    overridden: tuple[str, ...]
    programs: frozenset[str]
    actions: KnownActions

    @property
    def units(self) -> dict[str, str]:
        """The units of the bindings that steps write and compare, as the capability declares them."""
        steps = (*self.recipe.steps, *self.recipe.closing_steps)
        return binding_units(steps, self.capability.parameters_schema)


@procedure.creation(path="/recipes/{recipe_id}/procedures")
class RegisterProcedureFromRecipe(ProcedureRequest, JudgedCreation[RecipeSource]):
    """Plan a task with a recipe's steps; what the request does not bind is taken from the parent run's parameters."""

    recipe_id: UUID
    bindings: dict[str, JsonValue] = {}
    launch_id: Annotated[UUID | None, Internal()] = None

    def gather(self, call: Call) -> Reads[RecipeSource]:
        """Load what the procedure is made from, and refuse it and its bindings before the request's own texts are judged."""
        recipe = yield from require(Recipe, self.recipe_id)
        capability = yield from require(Capability, recipe.capability_id)
        run = yield from require_if_given(Run, self.parent_run_id)
        programs = yield from allowed_programs((*recipe.steps, *recipe.closing_steps))
        actions = yield from load_actions(action_names(recipe.steps, recipe.closing_steps))
        return self.source(recipe, capability, {} if run is None else run.effective_parameters, programs, actions)

    def source(
        self,
        recipe: Recipe,
        capability: Capability,
        parameters: Mapping[str, object],
        programs: frozenset[str],
        actions: KnownActions,
    ) -> RecipeSource:
        """Return what the procedure is registered from, completed by the parameters of a run; refuse an unfit recipe,
        capability or bindings."""
        if recipe.status is DEPRECATED:
            raise ProcedureBoundRecipeDeprecatedError(f"The recipe {recipe.name} is Deprecated; use a current one.")
        check_capability_current(capability)
        wanted = frozenset(binding_names((*recipe.steps, *recipe.closing_steps)))
        known = (capability.parameters_schema or {}).get("properties", {}).keys()
        if gone := sorted(wanted - known):
            raise ProcedureBindingsStaleError(
                f"The capability {capability.code} has no {', '.join(gone)} any more; version the recipe for it.",
                facts={"parameter_names": gone},
            )
        check_executor(capability)
        added = {name: parameters[name] for name in sorted(wanted - self.bindings.keys()) if name in parameters}
        bindings = {**self.bindings, **added}
        differing = (name for name in parameters.keys() & self.bindings if parameters[name] != self.bindings[name])
        check_values(capability.parameters_schema, bindings, InvalidProcedureBindingsError)
        return RecipeSource(recipe, capability, bindings, tuple(sorted(differing)), programs, actions)

    def decide(self, call: Call, source: RecipeSource) -> Outcome:
        recipe, capability, bindings = source.recipe, source.capability, source.bindings
        check_cap(self.max_consecutive_unconverged_iterations)
        expansion = expansion_of(recipe.steps, recipe.closing_steps, bindings, source.units)
        if expansion_of(recipe.steps, recipe.closing_steps, bindings, source.units).steps_hash != expansion.steps_hash:
            raise ProcedureExpansionNotDeterministicError("The recipe expanded differently twice; report this recipe.")
        check_programs(expansion, source.programs)
        check_actions(expansion.steps, expansion.closing_steps, source.actions)
        known = {name: value for name, value in self if name not in ("recipe_id", "bindings")}
        known |= dict(first_choices(self, recipe))
        return [
            ProcedureRegistered(**known, recipe_id=recipe.id, capability_id=capability.id),
            ProcedureRecipeExpanded(
                recipe_id=recipe.id,
                recipe_version=recipe.version_tag,
                capability_id=capability.id,
                capability_version=capability.version_tag,
                bindings=bindings,
                overridden=source.overridden,
                expander_version=EXPANDER_VERSION,
                steps_hash=expansion.steps_hash,
                bindings_hash=content_hash(bindings),
                step_count=expansion.step_count,
                binding_units=source.units,
            ),
            *self.phase_entries(),
        ]
