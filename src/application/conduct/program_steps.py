"""The programs of compute steps: the job that a step comes to, its submission, and what is collected from it."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from baton.application.conduct.compute import Compute, ComputeError, JobSpec, provide_result, submission_key
from baton.application.conduct.step_effects import EffectResult, Effect, plain
from baton.application.control import Fence
from baton.domain.operation.conduct.messages import StepPlace
from baton.domain.operation.conduct.step_values import Memory, reference_of
from baton.domain.recipe.sentinels import OutputRef
from baton.domain.recipe.steps import RecipeComputeStep


def job_of(step: RecipeComputeStep, place: StepPlace, memory: Memory) -> JobSpec:
    """The job of a step with everything resolved; raises StepFault."""
    return JobSpec(
        submission_key=submission_key(place.conduct_id, place.iteration_index, place.closing, place.step_index),
        command=step.command,
        conduct_id=place.conduct_id,
        input_uris=tuple(memory.value(uri) for uri in step.input_uris),
        output_uri=step.output_uri,
        parameters={name: memory.value(value) for name, value in step.parameters.items()},
    )


def submission(compute: Compute, step: RecipeComputeStep, job: JobSpec, fence: Fence) -> Effect[str]:
    """Have a job begun unless the fence is closed; answers its id. Cut off, it is stopped if it was begun."""

    async def withdraw() -> None:
        if (job_id := await compute.find(job.submission_key)) is not None:
            await end_job(compute, job_id)

    return Effect(
        said_of(step, job),
        lambda: compute.submit(job, fence),
        lambda: compute.actuation_kind,
        marked=True,
        repeatable=False,
        withdraw=withdraw,
    )


def collection(compute: Compute, step: RecipeComputeStep, job: JobSpec, job_id: str) -> Effect[EffectResult]:
    """Wait for a job that was begun, and fetch what it brings. Cut off, it is stopped."""

    async def collect() -> EffectResult:
        result = await provide_result(compute, job_id, writes_artifact=step.output_uri is not None)
        return EffectResult(
            {
                "status": result.status.value,
                "measurements": [plain(item.model_dump()) for item in result.measurements],
                "artifacts": [plain(item.model_dump()) for item in result.artifacts],
            }
        )

    return Effect(
        {**said_of(step, job), "job_id": job_id},
        collect,
        lambda: compute.actuation_kind,
        marked=False,
        withdraw=lambda: end_job(compute, job_id),
    )


async def end_job(compute: Compute, job_id: str) -> None:
    """Have a job stopped and wait until nothing of it runs any more, or nobody can tell."""
    await compute.cancel(job_id)
    with suppress(ComputeError):
        await compute.await_terminal_state(job_id)


def said_of(step: RecipeComputeStep, job: JobSpec) -> Mapping[str, Any]:
    """What the rows of a program say, with the sentinels that its inputs and parameters came from."""
    inputs = {str(index): uri.output_name for index, uri in enumerate(step.input_uris) if isinstance(uri, OutputRef)}
    parameters = {name: found for name, value in step.parameters.items() if (found := reference_of(value))}
    return {
        "command": list(job.command),
        "input_uris": list(job.input_uris),
        "output_uri": job.output_uri,
        "parameters": plain(job.parameters),
        **({"input_refs": inputs} if inputs else {}),
        **({"parameter_refs": parameters} if parameters else {}),
    }
