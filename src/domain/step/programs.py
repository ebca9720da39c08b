"""Programs that steps run: a deployment allows them by name."""

from collections.abc import Iterable

from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.steps import RecipeComputeStep, RecipeStep, located_steps
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import Conflict
from baton.domain.shared.text import shorten


class ComputeProgramNotAllowedError(Conflict, context="operation", reason="program_not_allowed"):
    """A step runs a program that this deployment does not allow."""


def allowed_programs(steps: Iterable[RecipeStep]) -> Reads[frozenset[str]]:
    """Return the programs that the deployment allows; none where the steps run none."""
    if not any(isinstance(step, RecipeComputeStep) for step in steps):
        return frozenset()
    deployment = yield from ask(DeploymentPort.deployment)
    return deployment.compute_programs


def check_programs(steps: Expansion, allowed: frozenset[str]) -> None:
    """Refuse a step whose program is not among those allowed, by its exact name."""
    for place, step in located_steps(steps.steps, steps.closing_steps):
        if isinstance(step, RecipeComputeStep) and (program := step.command[0]) not in allowed:
            raise ComputeProgramNotAllowedError(
                f"{place} runs {shorten(program)}, which this deployment does not allow; use a program that it does, or "
                "have it added to COMPUTE_PROGRAMS.",
                facts={"program": program, **place._asdict()},
            )


def refuse_unlisted_programs(steps: Expansion) -> Reads[None]:
    """Refuse steps that run a program which the deployment does not allow."""
    check_programs(steps, (yield from allowed_programs((*steps.steps, *steps.closing_steps))))
