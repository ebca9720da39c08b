"""What cannot be written never reaches the log: a model that says it has given no answer."""

from typing import Any

import pytest

from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.agent.caution_proposal import DRAFT
from baton.domain.agent.conclusions import AgentTask, ConclusionOrder
from baton.domain.agent.debrief import DEBRIEF
from baton.domain.agent.seeded_agents import SEEDED
from baton.testing.ports import ScriptedModel
from tests.support.api.rest_beamline import beamline
from tests.support.application.memory_agents import NO_ACTION, VERDICT
from tests.support.infrastructure.database_observer import Connection, rows
from tests.support.service import Api
from tests.support.workflows.agent_stack import constant_models

KEPT = """
SELECT payload::text FROM events UNION ALL SELECT to_jsonb(spent)::text FROM entries_decision_inferences AS spent
"""


def with_nul(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "reasoning": f"{answer['reasoning']} Unheard-of\x00 words follow."}


@pytest.mark.parametrize(("task", "answer"), [(DEBRIEF, VERDICT), (DRAFT, NO_ACTION)], ids=["debrief", "draft"])
async def test_an_answer_with_a_nul_is_put_on_record_as_none(
    api: Api, owner: Connection, task: AgentTask, answer: dict[str, Any]
) -> None:
    line = await beamline(api)
    run_id = await line.start_run()
    await api.execute(f"/runs/{run_id}/abort", {"reason": "rotary stage encoder offline"})
    ended = (await api.get(f"/runs/{run_id}/history")).json()["items"][-1]
    told = ConclusionOrder(
        kind=task.kind,
        agent_id=SEEDED[task.kind].id,
        run_id=run_id,
        terminal_event_id=ended["event_id"],
        correlation_id=ended["correlation_id"],
    )
    async with Runtime(Settings(database_url=api.database_url, app_env="test")) as runtime:
        runtime.agents.consultation.models = constant_models(ScriptedModel(with_nul(answer)))
        await runtime.agents.take_lease(told)
        await runtime.agents.conclude(told)
    kept = [text for (text,) in await rows(owner, KEPT)]
    assert any("LanguageModelSchemaValidationError" in text for text in kept)
    assert any('"scripted-1"' in text for text in kept)
    assert not any("Unheard-of" in text or r"\u0000" in text for text in kept)
