"""What a step submits and another activity collects: a program, or an action that can be found again after a crash."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from baton.application.conduct import step_effects
from baton.application.conduct.actions import ActionCall, FindableAction, HoldableAction, NotBegun, PreparedAction, Token
from baton.application.conduct.compute import Compute, JobSpec
from baton.application.conduct.step_effects import Effect, EffectResult
from baton.application.control import Fence, FencedControl
from baton.domain.recipe.steps import RecipeActionStep, RecipeComputeStep
from baton.domain.shared.deployment import DeclaredRoute
from baton.domain.step.plain_values import plain
from baton.domain.step.results import ActuationKind, merged_kind, touched_kind


class SubmittedWork(Protocol):
    """Work that a step begins once and collects."""

    @property
    def needs_token(self) -> bool:
        """Return whether something must be prepared before it is begun, so that the ledger can keep what it is found by."""

    def with_token(self, token: Token) -> Self:
        """Return the submission with what it is found by."""

    def as_begun(self, marker: Mapping[str, Any]) -> Self:
        """Return the submission as the ledger's row of its beginning has it."""

    def preparation(self) -> Effect[Token]:
        """Return the effect that makes ready; nothing is begun by it."""

    def submission(self) -> Effect[str]:
        """Return the effect that begins the work and results in its id."""

    def search(self) -> Effect[str | NotBegun | None]:
        """Return the effect that finds what was begun under the key; a row in the ledger says that it may have been."""

    def resumption(self, job_id: str) -> Effect[None] | None:
        """Return the effect that has paused work continue; None where it never pauses."""

    def collection(self, job_id: str) -> Effect[EffectResult]:
        """Return the effect that waits for the work and fetches its results."""


@dataclass(frozen=True)
class SubmittedProgram:
    """The program of a compute step."""

    compute: Compute
    step: RecipeComputeStep
    job: JobSpec
    fence: Fence
    needs_token: bool = False

    def with_token(self, token: Token) -> Self:
        return self

    def as_begun(self, marker: Mapping[str, Any]) -> Self:
        return self

    def preparation(self) -> Effect[Token]:
        raise AssertionError("a program needs no token")

    def submission(self) -> Effect[str]:
        return step_effects.submission(self.compute, self.step, self.job, self.fence)

    def search(self) -> Effect[str | NotBegun | None]:
        async def find() -> str | NotBegun | None:
            return await self.compute.find(self.job.submission_key)

        return Effect(self.submission().says, find, lambda: self.compute.actuation_kind, marked=False)

    def resumption(self, job_id: str) -> Effect[None] | None:
        return None

    def collection(self, job_id: str) -> Effect[EffectResult]:
        return step_effects.collection(self.compute, self.step, self.job, job_id)


@dataclass(frozen=True)
class SubmittedAction:
    """An action that can be found again."""

    action: FindableAction
    step: RecipeActionStep
    call: ActionCall
    routes: tuple[DeclaredRoute, ...]

    @property
    def needs_token(self) -> bool:
        return isinstance(self.action, PreparedAction)

    @property
    def says(self) -> dict[str, Any]:
        """Return what every row of the step says."""
        own = {"name": self.step.name, "params": plain(self.call.params), "submission_key": str(self.call.key)}
        return own | ({"token": dict(self.call.token)} if self.call.token else {})

    def with_token(self, token: Token) -> Self:
        return replace(self, call=replace(self.call, token=token))

    def as_begun(self, marker: Mapping[str, Any]) -> Self:
        key = type(self.call.key)(marker["submission_key"]) if "submission_key" in marker else self.call.key
        return replace(self, call=replace(self.call, key=key, token=marker.get("token", {})))

    def preparation(self) -> Effect[Token]:
        assert isinstance(self.action, PreparedAction), "only such an action needs a token"
        action = self.action
        return Effect(self.says, lambda: step_effects.result_of(action.prepare(self.call)), self._kind, marked=False)

    def submission(self) -> Effect[str]:
        async def submit() -> str:
            return await self.action.submit(self.call)

        async def withdraw() -> None:
            if isinstance(found := await self.action.find(self.call), str):
                await self.action.stop(self.call, found)

        return Effect(self.says, submit, self._kind, marked=True, repeatable=False, withdraw=withdraw)

    def search(self) -> Effect[str | NotBegun | None]:
        return Effect(self.says, lambda: step_effects.result_of(self.action.find(self.call)), self._kind, marked=False)

    def resumption(self, job_id: str) -> Effect[None] | None:
        if not isinstance(self.action, HoldableAction):
            return None
        action = self.action
        return Effect(self.says, lambda: step_effects.result_of(action.resume(self.call, job_id)), self._kind, marked=False)

    def collection(self, job_id: str) -> Effect[EffectResult]:
        async def collect() -> EffectResult:
            result = await self.action.collect(self.call, job_id)
            measured = {"measurements": [plain(one.model_dump()) for one in result.measurements]}
            return EffectResult({"result_data": plain(result.data), **(measured if result.measurements else {})})

        async def withdraw() -> None:
            await self.action.stop(self.call, job_id)

        return Effect({**self.says, "job_id": job_id}, collect, self._kind, marked=False, withdraw=withdraw)

    def _kind(self) -> ActuationKind | None:
        """Return what the action was done on: by its own word where it gives one, besides the routes of what it touched."""
        own: ActuationKind | None = getattr(self.action, "actuation_kind", None)
        touched = self.call.control.touched if isinstance(self.call.control, FencedControl) else ()
        found = (own, touched_kind(touched, self.routes))
        return merged_kind(found)
