"""The agents that act by rules: one expires clearances, one holds runs that lose their beam, one promotes cautions."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from baton.application.agents.agent_client import AgentClient, in_process
from baton.application.caller import Caller
from baton.application.long_work import LongWork, Recurrence, carries_out, event_memo
from baton.application.ports import EventRow, Job
from baton.application.queries import PROJECTIONS, Queries
from baton.application.settings import Settings
from baton.application.unit_of_work import decode_event, load_event_rows
from baton.domain.agent import rule_agents as rules
from baton.domain.agent.caution_proposal import (
    CAUTION_PROMOTER,
    DRAFT,
    JUDGING_COMMANDS,
    PromoteByRule,
    ProposalOrder,
    promotion_cause,
)
from baton.domain.agent.conclusions import decision_id_of
from baton.domain.agent.prompts import DraftChoice
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.decision.decision import Decision, DecisionRegistered
from baton.domain.equipment.asset_tree import AssetScope
from baton.domain.run.run import LIVE, ListRuns, Run
from baton.domain.safety.clearance import ACTIVE, Clearance, ClearanceExpired, ExpireClearance
from baton.domain.safety.clearance_views import ListClearances
from baton.domain.shared.reads import Reads, find, require
from baton.domain.shared.refusals import Conflict, NotFound, Refusal, UnauthorizedError, Unavailable
from baton.domain.supply.coverage import LEAVING, PHOTON_BEAM, Outage, outage_in, takes_beam_away
from baton.domain.supply.supply import Supply

log = structlog.get_logger()
PAGE = 100
EXPIRER_ID = SEEDED[rules.CLEARANCE_EXPIRER].id
BeamReader = Callable[[AssetScope, str], Reads[Outage | None]]  # whether the beam is lost to some equipment
Outages = dict[frozenset[UUID], Outage | None]  # the outages found in one look, by the assets they concern
ACTING = frozenset({"HoldRun", "StopRun"})  # commands that are refused, where they are, only when the supervisor gives them
SUPERVISOR_ID = SEEDED[rules.RUN_SUPERVISOR].id


@dataclass
class Expirer(LongWork):
    """Expires clearances as the seeded agent, and records a decision about each, once."""

    workflow = "expire-clearances"
    client: AgentClient
    queries: Queries

    @classmethod
    def recurrence(cls, settings: Settings) -> Recurrence:
        return Recurrence(
            "clearance-expirer", cls.workflow, settings.clearance_expirer_tick_seconds, settings.clearance_expirer_enabled
        )

    @carries_out("due_clearances")
    async def due(self, after: str | None) -> rules.DuePage:
        """Return a page of the clearances that have run out by now, and where the next one begins."""
        caller, now = in_process(EXPIRER_ID, self.queries.new_id()), self.queries.clock()
        if denied := await self.client.denied_commands(caller, SEEDED[rules.CLEARANCE_EXPIRER].commands):
            log.warning("expirer_stands_down", denied=denied)
            return rules.DuePage()
        page = await self.queries.ask(ListClearances(status=ACTIVE, due_by=now, limit=PAGE, cursor=after), caller)
        return rules.DuePage(clearance_ids=tuple(row.clearance_id for row in page.items), next_cursor=page.next_cursor)

    @carries_out("expire_clearance")
    async def expire(self, clearance_id: UUID) -> None:
        """Take a clearance out of force if it has run out, and record that this agent did."""
        caller = in_process(EXPIRER_ID, self.queries.new_id())
        clearance = await self.client.read(find(Clearance, clearance_id), caller)
        if clearance is None or clearance.valid_until is None:
            return
        if rules.is_due(clearance, self.queries.clock()) and not await self._expire(clearance_id, caller):
            return
        rows = await load_event_rows(self.queries.store, clearance_id, ClearanceExpired)
        if rows and rows[-1].principal_id == EXPIRER_ID:
            what = (clearance_id, clearance.valid_until, EXPIRER_ID)
            await self.client.record(rules.expiry_decision(*what), rules.expiry_decision_id(*what), caller)

    async def _expire(self, clearance_id: UUID, caller: Caller) -> bool:
        try:
            await self.client.execute(ExpireClearance(reason=rules.EXPIRY_REASON), caller, target_id=clearance_id)
        except UnauthorizedError as refusal:
            log.warning("expirer_denied", clearance_id=str(clearance_id), reason=refusal.reason)
            return False
        except (Conflict, NotFound) as refusal:
            log.info("clearance_moved_on", clearance_id=str(clearance_id), code=refusal.code)
        return True


class RunListBehindError(Unavailable):
    """The list of runs does not show everything that was recorded when a look began."""


@dataclass
class RunSupervisor(LongWork):
    """Holds runs that need beam when it is lost, as the seeded agent; a decision comes before every command. It looks at
    regular intervals, and at once where a beam is lost."""

    workflow = "supervise-runs"
    reaction = "run_supervisor"
    wakes_on = LEAVING
    client: AgentClient
    queries: Queries
    settings: Settings
    beam: BeamReader = outage_in
    stood_down: bool = False

    @property
    def enabled(self) -> bool:
        return self.settings.run_supervisor_enabled

    @classmethod
    def recurrence(cls, settings: Settings) -> Recurrence:
        return Recurrence(
            "run-supervisor", cls.workflow, settings.run_supervisor_tick_seconds, settings.run_supervisor_enabled
        )

    @property
    def stop_after(self) -> timedelta | None:
        seconds = self.settings.run_supervisor_stop_after_seconds
        return None if seconds is None else timedelta(seconds=seconds)

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        transition: Any = decode_event(Supply.aggregate, event)
        if not takes_beam_away(transition):
            return ()
        supply = await self.client.read(find(Supply, event.stream_id), Caller.system(event.correlation_id))
        if supply is None or supply.kind != PHOTON_BEAM:
            return ()
        id, memo = f"run-supervisor:{event.event_id}", event_memo(event)
        return (Job(self.workflow, id, None, summary="The beam went", once=True, memo=memo),)

    @carries_out("supervise_runs")
    async def supervise(self) -> None:
        """Look at every run, and act by the rule: at once on those that the list shows, and where it is behind the log,
        again once it has caught up."""
        caller = in_process(SUPERVISOR_ID, self.queries.new_id())
        if denied := await self.client.denied_commands(caller, SEEDED[rules.RUN_SUPERVISOR].commands - ACTING):
            if not self.stood_down:
                log.warning("supervisor_stands_down", denied=denied)
            self.stood_down = True
            return
        self.stood_down = False
        recorded = (await self.queries.store.end()).position
        listed = await self.queries.store.has_passed(PROJECTIONS, recorded)
        await self._look_at_listed(caller)
        if not listed:
            listed = await self.queries.wait_for_projections(recorded)
            await self._look_at_listed(caller)
        if not listed:
            raise RunListBehindError("The list of runs is behind the log, so one may have been missed; look again.")

    async def _look_at_listed(self, caller: Caller) -> None:
        outages: Outages = {}
        for run_id in [id async for id in self._runs(caller)]:
            try:
                await self._supervise(run_id, caller, outages)
            except Unavailable:
                raise
            except Refusal as refusal:
                log.error("run_not_supervised", run_id=str(run_id), code=refusal.code, reason=refusal.reason)

    async def _runs(self, caller: Caller) -> AsyncIterator[UUID]:
        for status in LIVE:
            cursor = None
            while True:
                page = await self.queries.ask(ListRuns(status=status, limit=PAGE, cursor=cursor), caller)
                for row in page.items:
                    yield row.run_id
                if (cursor := page.next_cursor) is None:
                    break

    async def _supervise(self, run_id: UUID, caller: Caller, outages: Outages) -> None:
        run = await self.client.read(find(Run, run_id), caller)
        if run is None or run.status not in LIVE or (scope := await self.client.read(rules.needs_beam(run), caller)) is None:
            return
        if scope.bound_ids not in outages:
            outages[scope.bound_ids] = await self.client.read(self.beam(scope, self.settings.self_facility_code), caller)
        if (outage := outages[scope.bound_ids]) is None:
            return
        seen = await self.client.read(rules.load_watched_run(run_id, outage, SUPERVISOR_ID), caller)
        if (verb := rules.next_action(seen, SUPERVISOR_ID, self.queries.clock(), self.stop_after)) is not None:
            await self._act(verb, run_id, outage, caller)

    async def _act(self, verb: rules.SupervisorAction, run_id: UUID, outage: Outage, caller: Caller) -> None:
        """Record the decision first, then act on it; a run that has moved on meanwhile is left alone."""
        decision_id = rules.supervision_decision_id(verb, run_id, outage, SUPERVISOR_ID)
        decision = rules.supervision_decision(verb, run_id, outage, SUPERVISOR_ID)
        if not await self.client.record(decision, decision_id, caller):
            return
        parts: dict[str, Any] = {"decision_id": decision_id, "outage_event_id": outage.event_id}
        parts |= {"reason": rules.outage_reason(verb, outage), "beam": self.beam}
        try:
            match verb:
                case rules.SupervisorAction.HOLD:
                    await self.client.execute(rules.HoldForBeam(**parts), caller, target_id=run_id)
                case rules.SupervisorAction.STOP:
                    hold_id = rules.supervision_decision_id(rules.SupervisorAction.HOLD, run_id, outage, SUPERVISOR_ID)
                    await self.client.execute(rules.StopForBeam(**parts, hold_id=hold_id), caller, target_id=run_id)
                case rules.SupervisorAction.DEFER:
                    return
        except UnauthorizedError as refusal:
            log.error("supervisor_denied", run_id=str(run_id), verb=verb.value, reason=refusal.reason)
        except (Conflict, NotFound) as refusal:
            log.info("run_moved_on", run_id=str(run_id), verb=verb.value, code=refusal.code)


@dataclass
class Promoter(LongWork):
    """Promotes harmless proposals as the agent of the order: the promoter every one, and a drafter that promotes each
    notice of its own. Decision and caution are one append."""

    workflow = "promote-caution"
    reaction = "caution_promoter"
    wakes_on = (DecisionRegistered,)
    client: AgentClient
    settings: Settings

    @property
    def enabled(self) -> bool:
        return self.settings.caution_promoter_enabled or self.settings.caution_drafter_promotes

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        registered: Any = decode_event(Decision.aggregate, event)
        if registered.context != DRAFT.context:
            return ()
        id, jobs = f"{self.workflow}:{event.stream_id}", []
        if self.settings.caution_drafter_promotes and registered.choice == DraftChoice.PROPOSE_NOTICE:
            jobs.append(self._job(event, f"{id}:{registered.decided_by}", registered.decided_by, DRAFT.kind))
        if self.settings.caution_promoter_enabled:
            jobs.append(self._job(event, id, SEEDED[CAUTION_PROMOTER].id, CAUTION_PROMOTER))
        return jobs

    def _job(self, event: EventRow, id: str, agent_id: UUID, kind: str) -> Job:
        cause = {"event_id": event.event_id, "correlation_id": event.correlation_id}
        order = ProposalOrder(proposal_decision_id=event.stream_id, agent_id=agent_id, **cause)
        attributes = {"BatonFacility": self.settings.self_facility_code, "BatonPrincipal": str(agent_id)}
        summary = f"{kind} on proposal {event.stream_id}"
        return Job(self.workflow, id, order, attributes, summary, once=True, memo=event_memo(event))

    @carries_out("promote_caution")
    async def promote(self, order: ProposalOrder) -> None:
        """Judge a proposal, once; where somebody else promotes it meanwhile it is judged again."""
        proposal_id, agent_id = order.proposal_decision_id, order.agent_id
        caller = in_process(agent_id, order.correlation_id, order.event_id)
        if denied := await self.client.denied_commands(caller, JUDGING_COMMANDS):
            log.warning("promoter_stands_down", agent_id=str(agent_id), denied=denied)
            return
        proposal = await self.client.read(require(Decision, proposal_id), caller)
        decision_id = decision_id_of(proposal.decided_at, agent_id, promotion_cause(proposal_id))
        command = PromoteByRule(
            proposal_decision_id=proposal_id, least_confidence=self.settings.caution_promoter_min_confidence
        )
        while await self.client.read(find(Decision, decision_id), caller) is None:
            try:
                await self.client.execute(command, caller, new_id=decision_id)
                return
            except Decision.aggregate.AlreadyExists:
                continue
            except UnauthorizedError as refusal:
                log.error("promoter_denied", agent_id=str(agent_id), proposal_id=str(proposal_id), reason=refusal.reason)
                return
