"""A decision that a record names exists: every command that takes one asks for it before anything else."""

from typing import Any

from baton.domain.contexts import REGISTRY
from baton.domain.decision.decision import Decision
from baton.domain.registry import Operation
from baton.domain.run.run import Run
from tests.support.domain.lifecycles.run import RUN
from tests.support.domain.world import expect_refusal, new_id
from tests.support.tables import for_each

CITING = [one for one in REGISTRY if one.kind == "command" and "decided_by_decision_id" in one.input.model_fields]
OF_A_RUN = [one.name for one in CITING if one.name in RUN.verbs]


@for_each("operation", CITING)
def test_a_command_that_cites_a_decision_may_be_refused_because_there_is_none(operation: Operation) -> None:
    assert Decision.aggregate.NotFound in operation.refusals, operation.name


@for_each("name", OF_A_RUN)
def test_a_decision_behind_what_is_done_to_a_run_exists(name: str) -> None:
    """The decision is asked for before the run's status and before the reason."""
    for status in RUN.ways["status"]:
        world, id, scene = RUN.prepare_verb(name, {"status": status})
        fields: dict[str, Any] = {**RUN.verbs[name].given(scene), "decided_by_decision_id": new_id()}
        if "reason" in fields:
            fields["reason"] = " "
        before = world.state(Run, id)
        with expect_refusal("DecisionNotFoundError") as caught:
            world.when(REGISTRY.operations[name].input(**fields), on=id)  # type: ignore[arg-type]
        assert caught.value.facts == {"missing_ids": [str(fields["decided_by_decision_id"])]}
        assert world.state(Run, id) == before


def test_there_are_commands_that_cite_decisions() -> None:
    assert sorted(OF_A_RUN) == ["abort_run", "adjust_run", "hold_run", "resume_run", "stop_run", "truncate_run"]
    assert len(CITING) >= 13
