"""Agents at work on a real engine: from the event in the log to the decision, the entry in the logbook and the caution."""

from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from baton.application.agents.model_consultation import BudgetLock
from baton.application.agents.rule_agents import RunListBehindError, RunSupervisor
from baton.application.language_models import ChatRequest
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.agent.agent import SpendingTurn
from baton.infrastructure.postgres.projections import Projector
from baton.infrastructure.temporal.engine import connect
from baton.infrastructure.wall_clock import new_id
from baton.testing.ports import ScriptedModel
from tests.support.api.rest_beamline import beamline
from tests.support.service import running_api
from tests.support.waiting import until
from tests.support.workflows.agent_stack import DEBRIEFER, DRAFTER, PROMOTER, SUPERVISOR, agent_stack, constant_models

FAULT = {"reason": "rotary stage encoder offline"}


async def test_the_worked_example(database_url: str, temporal: EmbeddedTemporal, tmp_path: Path) -> None:
    async with agent_stack(database_url, temporal.address, logbook_mirror_directory=tmp_path) as facility:
        api = facility.api
        budget = {"monthly_cost_cap": 40.0, "daily_token_cap": 200000}
        assert (await api.post(f"/agents/{DRAFTER}/update-budget", budget)).status_code == 204
        line = await beamline(api)
        run_id = await line.start_run()
        await api.execute(f"/runs/{run_id}/abort", {"reason": "Mira Okafor found the stage encoder offline"})

        (debrief,) = await facility.decisions(context="RunDebrief")
        assert (debrief["choice"], debrief["decided_by"]) == ("EquipmentAbort", DEBRIEFER)
        entries = await facility.logbook(run_id)
        assert [(entry["entry_kind"], entry["decision_id"]) for entry in entries] == [("Debrief", debrief["id"])]
        assert entries[0]["text"] == debrief["reasoning"]
        (copy,) = await until(lambda: list(tmp_path.glob("*/*.txt")), within=60)
        assert (copy.stem, copy.read_text()) == (debrief["id"], debrief["reasoning"])

        (proposal,) = await facility.decisions(context="CautionProposal")
        assert proposal["decided_by"] == DRAFTER
        happened = [event["event_type"] for event in await facility.events(f"/runs/{run_id}")]
        assert happened[:2] == ["RunStarted", "RunAborted"]
        assert sorted(happened[2:]) == sorted(["DecisionDebriefRequested"] * 2 + ["RunNarrativeLogbookOpened"])
        ended = (await facility.events(f"/runs/{run_id}"))[1]
        client = await connect(Settings(temporal_address=temporal.address, app_env="test"))
        history = await client.get_workflow_handle(f"debrief:{DEBRIEFER}:{ended['event_id']}").fetch_history()
        told = str(history.to_json())
        assert "conclude" in told
        assert not any(word in told for word in ("Okafor", "Synopsis", "EquipmentAbort")), "no text of anybody"
        calls = (await facility.read(f"/decisions/{debrief['id']}/inferences"))["items"]
        assert [(call["provider_name"], call["cost"]) for call in calls] == [("offline", 0.0)]

        regenerate = {"parent_decision_id": debrief["id"], "wait": 60}
        again = await api.post(f"/runs/{run_id}/regenerate-debrief", regenerate, Idempotency_Key="once-more")
        assert again.status_code == 201, again.text
        second = await facility.read(f"/decisions/{again.json()['decision_id']}")
        assert (second["parent_id"], second["inputs"]["trigger"]) == (debrief["id"], "on-demand")
        assert len(await facility.logbook(run_id, 2)) == 2
        repeated = await api.post(f"/runs/{run_id}/regenerate-debrief", regenerate, Idempotency_Key="once-more")
        assert (repeated.status_code, repeated.json()) == (200, again.json())
        work = await facility.read(f"/work-items/{again.json()['decision_id']}")
        assert (work["state"], work["answer"]) == ("done", again.json())


class Target:
    """What is proposed to be warned of, as soon as it is known."""

    id = ""

    def propose_notice(self, request: ChatRequest) -> dict[str, Any]:
        proposed = {
            "target_kind": "Asset",
            "target_id": self.id,
            "category": "Wear",
            "severity": "Notice",
            "title": "The bearing is worn",
            "body": "Turn it by hand before the next scan and listen for the noise.",
            "tags": [],
            "supersedes_caution_id": None,
        }
        reasoning = "The stage made a noise before it stopped, and will again."
        return {"choice": "ProposeNotice", "confidence": 0.9, "reasoning": reasoning, "proposed_caution": proposed}


async def test_a_proposal_is_promoted_by_rule_where_that_is_on(database_url: str, temporal: EmbeddedTemporal) -> None:
    target = Target()
    settings: dict[str, Any] = {"caution_promoter_enabled": True, "run_debriefer_enabled": False}
    async with agent_stack(
        database_url, temporal.address, models=constant_models(ScriptedModel(target.propose_notice)), **settings
    ) as facility:
        line = await beamline(facility.api)
        target.id = line.rotary_id
        run_id = await line.start_run()
        await facility.api.execute(f"/runs/{run_id}/abort", FAULT)
        (promotion,) = await facility.decisions(context="CautionPromotion")
        assert (promotion["choice"], promotion["decided_by"]) == ("Promote", PROMOTER)
        cautions = await facility.read("/cautions", target_kind="Asset", target_id=line.rotary_id)
        assert [caution["authored_by"] for caution in cautions["items"]] == [PROMOTER]
        refused = await facility.api.post(f"/decisions/{promotion['parent_id']}/promote")
        assert refused.json()["code"] == "CautionProposalAlreadyPromotedError"
        assert await facility.decisions(0, context="RunDebrief") == []


async def test_a_drafter_promotes_its_own_notice_where_that_is_on(database_url: str, temporal: EmbeddedTemporal) -> None:
    target = Target()
    settings: dict[str, Any] = {"caution_drafter_promotes": True, "run_debriefer_enabled": False}
    async with agent_stack(
        database_url, temporal.address, models=constant_models(ScriptedModel(target.propose_notice)), **settings
    ) as facility:
        line = await beamline(facility.api)
        target.id = line.rotary_id
        run_id = await line.start_run()
        await facility.api.execute(f"/runs/{run_id}/abort", FAULT)
        (promotion,) = await facility.decisions(context="CautionPromotion")
        assert (promotion["choice"], promotion["decided_by"]) == ("Promote", DRAFTER)
        cautions = await facility.read("/cautions", target_kind="Asset", target_id=line.rotary_id)
        assert [caution["authored_by"] for caution in cautions["items"]] == [DRAFTER]


async def test_a_beam_that_goes_holds_the_run_at_once(database_url: str, temporal: EmbeddedTemporal) -> None:
    settings: dict[str, Any] = {"run_supervisor_enabled": True, "run_supervisor_tick_seconds": 3600}
    async with agent_stack(database_url, temporal.address, **settings) as facility:
        line = await beamline(facility.api)
        run_id = await line.start_run()
        await facility.api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
        await until(lambda: facility.has_status(f"/runs/{run_id}", "Held"), within=60)
        (decision,) = await facility.decisions(context="RunSupervision")
        assert (decision["choice"], decision["decided_by"]) == ("Hold", SUPERVISOR)
        held = (await facility.events(f"/runs/{run_id}"))[-1]
        assert held["payload"]["decided_by_decision_id"] == decision["id"]


async def test_a_run_that_the_list_does_not_show_yet_is_held_too(database_url: str) -> None:
    async with running_api(database_url, projecting=False, run_supervisor_enabled=True) as api:
        line = await beamline(api)
        run_id = await line.start_run()
        await api.execute(f"/supplies/{line.supply_id}/mark-unavailable", {"reason": "beam dump"})
        settings = Settings(database_url=database_url, app_env="test", run_supervisor_enabled=True)
        async with Runtime(settings) as runtime:
            with pytest.raises(RunListBehindError):
                await runtime.works.of(RunSupervisor).supervise()
            async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
                while await Projector(database_url).advance(connection):
                    pass
            await runtime.works.of(RunSupervisor).supervise()
        assert (await api.get(f"/runs/{run_id}")).json()["status"] == "Held"


async def test_what_people_see_of_a_subscriber_that_cannot_go_on(database_url: str, temporal: EmbeddedTemporal) -> None:
    async with agent_stack(database_url, temporal.address, working=False) as facility:
        line = await beamline(facility.api)
        run_id = await line.start_run()
        await facility.api.execute(f"/runs/{run_id}/abort", FAULT)
        ended = (await facility.events(f"/runs/{run_id}"))[-1]
        waiting = (await facility.read("/reactions", subscriber_name="run_debriefer"))["items"]
        assert [(row["unprocessed"], row["open_items"]) for row in waiting] == [(1, [])]
        dismissal = {"event_id": ended["event_id"], "reason": "nobody needs to know"}
        dismissed = await facility.api.post("/reactions/run_debriefer/dismiss-event", dismissal)
        assert dismissed.status_code == 201, dismissed.text
        await facility.start_worker()
        await facility.decisions(context="CautionProposal")
        (decision,) = await facility.decisions(context="ReactionDismissal")
        assert decision["inputs"]["event_id"] == ended["event_id"]
        assert await facility.decisions(0, context="RunDebrief") == []


async def test_whose_turn_it_is_not_comes_again(database_url: str, temporal: EmbeddedTemporal) -> None:
    async with agent_stack(database_url, temporal.address, caution_drafter_enabled=False, working=False) as facility:
        line = await beamline(facility.api)
        await facility.api.execute(f"/agents/{DEBRIEFER}/update-budget", {"monthly_cost_cap": None, "daily_token_cap": 1000})
        runtime = await facility.start_worker()
        turns = BudgetLock(runtime.commands)
        assert await turns.take(UUID(DEBRIEFER), new_id())
        run_id = await line.start_run()
        await facility.api.execute(f"/runs/{run_id}/abort", FAULT)

        async def is_waiting() -> bool:
            (row,) = (await facility.read("/reactions", subscriber_name="run_debriefer"))["items"]
            return any(item["attempt"] > 1 for item in row["open_items"])

        await until(is_waiting, within=60)
        async with runtime.store.session() as session:
            (turn,) = await session.records(SpendingTurn, {"agent_id": UUID(DEBRIEFER)})
        await turns.release(UUID(DEBRIEFER), turn.decision_id)
        (debrief,) = await facility.decisions(context="RunDebrief")
        assert debrief["choice"] == "EquipmentAbort"
