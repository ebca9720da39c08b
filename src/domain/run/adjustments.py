"""How the parameters of a run change while it is on; everything else about it takes a new run."""

from typing import Annotated
from uuid import UUID

from pydantic import JsonValue

from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.recipe.parameters import merged_parameters
from baton.domain.run.gates import Execution, execution_of
from baton.domain.run.run import LIVE, Run, RunAdjusted, run
from baton.domain.run.start import InvalidRunParametersError
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import Invalid


class InvalidRunAdjustPatchError(Invalid, context="run"):
    """An adjustment changes at least one parameter."""


@run.command(post="/{run_id}/adjust", allowed=LIVE, essential=True)
class AdjustRun(JudgedVerb[Run, Execution]):
    """Merge a patch into the parameters of a run that is on: a value sets, null deletes, objects merge."""

    parameters_patch: dict[str, JsonValue]
    reason: Annotated[str, run.text("adjust_reason", 500, label="reason", personal=True)]
    decided_by_decision_id: UUID | None = None

    def gather(self, run: Run, call: Call) -> Reads[Execution]:
        execution = yield from execution_of(run.plan_id)
        if run.status in LIVE and not self.parameters_patch:
            raise InvalidRunAdjustPatchError("The patch is empty; name at least one parameter.", reason="empty")
        return execution

    def decide(self, run: Run, call: Call, execution: Execution) -> Outcome:
        method = execution.method
        merged, _ = merged_parameters(
            run.effective_parameters,
            self.parameters_patch,
            written=method.units_at(run.parameters_schema_revision),
            schema=method.parameters_schema,
            refusal=InvalidRunParametersError,
        )
        return [
            RunAdjusted(
                **dict(self),
                effective_parameters=merged,
                parameters_schema_revision=method.parameters_schema_revision,
                adjusted_by=call.principal_id,
            )
        ]
