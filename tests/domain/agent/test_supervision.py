"""The supervisor's rule, cell by cell: what it does about a run in an outage, and what it leaves alone."""

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from uuid import UUID

import pytest

from baton.domain.agent.conclusions import RecordAgentDecision, decision_id_of
from baton.domain.agent.debrief import RUN_DEBRIEFER
from baton.domain.agent.rule_agents import (
    RUN_SUPERVISOR,
    SupervisorAction,
    WatchedRun,
    load_watched_run,
    needs_beam,
    next_action,
    outage_reason,
    supervision_decision,
    supervision_decision_id,
)
from baton.domain.equipment.asset_tree import AssetScope
from baton.domain.kernel import instant
from baton.domain.recipe.plan import DefinePlan
from baton.domain.run.run import HoldRun, RunHeld, RunResumed, RunStatus
from baton.domain.supply.coverage import Outage, outage_in
from tests.support.domain.agents import decision_of as decision
from tests.support.domain.agents import seed_agent
from tests.support.domain.assets import LUMEN
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.templates import method, practice
from tests.support.domain.world import START, new_id

HOUR = timedelta(hours=1)
OUTAGE = Outage(new_id(), START + timedelta(minutes=5), "Beam is Unavailable")


@dataclass
class SupervisedRun:
    """A run that needs beam, and the supervisor that watches it."""

    line: Beamline
    agent_id: UUID
    run_id: UUID

    def id_of(self, verb: SupervisorAction, outage: Outage = OUTAGE) -> UUID:
        return supervision_decision_id(verb, self.run_id, outage, self.agent_id)

    def decide(self, verb: SupervisorAction, outage: Outage = OUTAGE) -> None:
        caller, self.line.world.principal_id = self.line.world.principal_id, self.agent_id
        choice = supervision_decision(verb, self.run_id, outage, self.agent_id)
        self.line.world.when(RecordAgentDecision(choice=choice), opening=self.id_of(verb, outage))
        self.line.world.principal_id = caller

    def hold(self, outage: Outage = OUTAGE) -> None:
        hold = HoldRun(
            reason=outage_reason(SupervisorAction.HOLD, outage),
            decided_by_decision_id=self.id_of(SupervisorAction.HOLD, outage),
        )
        self.line.world.when(hold, on=self.run_id)

    def hold_by_somebody(self) -> None:
        self.line.world.when(HoldRun(reason="sample change"), on=self.run_id)

    def resume_by_somebody(self) -> None:
        """Resume the run as a person would who knows more about the beam than the supplies say."""
        self.line.world.given(self.run_id, RunResumed(decided_by_decision_id=None))

    def verb(
        self, outage: Outage = OUTAGE, elapsed: timedelta = HOUR, stop_after: timedelta | None = None
    ) -> SupervisorAction | None:
        seen = self.line.world.fulfil(load_watched_run(self.run_id, outage, self.agent_id))
        return next_action(seen, self.agent_id, outage.since + elapsed, stop_after)


@pytest.fixture
def supervised_run() -> SupervisedRun:
    line = beamline()
    return SupervisedRun(line, seed_agent(line.world, RUN_SUPERVISOR), line.start())


class TestARunThatIsOn:
    def test_is_left_alone_once_somebody_resumed_it_and_that_is_noted_once(self, supervised_run: SupervisedRun) -> None:
        supervised_run.decide(SupervisorAction.HOLD)
        supervised_run.hold()
        supervised_run.resume_by_somebody()
        assert supervised_run.verb() is SupervisorAction.DEFER
        supervised_run.decide(SupervisorAction.DEFER)
        assert supervised_run.verb() is None
        assert supervised_run.verb(elapsed=100 * HOUR, stop_after=HOUR) is None

    def test_is_held_where_only_somebody_else_held_and_resumed_it(self, supervised_run: SupervisedRun) -> None:
        supervised_run.hold_by_somebody()
        supervised_run.resume_by_somebody()
        assert supervised_run.verb() is SupervisorAction.HOLD

    def test_is_held_in_the_next_outage_no_matter_who_resumed_it_in_the_last(self, supervised_run: SupervisedRun) -> None:
        supervised_run.decide(SupervisorAction.HOLD)
        supervised_run.hold()
        supervised_run.resume_by_somebody()
        supervised_run.decide(SupervisorAction.DEFER)
        assert supervised_run.verb(Outage(new_id(), OUTAGE.since + HOUR, "again")) is SupervisorAction.HOLD


class TestARunThatIsHeld:
    @pytest.mark.parametrize(
        ("elapsed", "stop_after", "expected"),
        [
            (100 * HOUR, None, None),
            (HOUR - timedelta(microseconds=1), HOUR, None),
            (HOUR, HOUR, SupervisorAction.STOP),
            (2 * HOUR, HOUR, SupervisorAction.STOP),
            (timedelta(0), timedelta(0), SupervisorAction.STOP),
        ],
    )
    def test_is_stopped_when_the_outage_took_as_long_as_was_set(
        self,
        supervised_run: SupervisedRun,
        elapsed: timedelta,
        stop_after: timedelta | None,
        expected: SupervisorAction | None,
    ) -> None:
        supervised_run.decide(SupervisorAction.HOLD)
        supervised_run.hold()
        assert supervised_run.verb(elapsed=elapsed, stop_after=stop_after) is expected

    def test_is_stopped_again_where_the_decision_was_not_carried_out(self, supervised_run: SupervisedRun) -> None:
        supervised_run.decide(SupervisorAction.HOLD)
        supervised_run.hold()
        supervised_run.decide(SupervisorAction.STOP)
        assert supervised_run.verb(stop_after=HOUR) is SupervisorAction.STOP

    def test_is_left_alone_where_somebody_else_held_it(self, supervised_run: SupervisedRun) -> None:
        supervised_run.hold_by_somebody()
        assert supervised_run.verb(stop_after=HOUR) is None

    def test_is_left_alone_where_somebody_held_it_after_resuming_it(self, supervised_run: SupervisedRun) -> None:
        supervised_run.decide(SupervisorAction.HOLD)
        supervised_run.hold()
        supervised_run.resume_by_somebody()
        supervised_run.hold_by_somebody()
        assert supervised_run.verb(stop_after=HOUR) is None

    def test_is_left_alone_where_it_was_held_in_an_earlier_outage(self, supervised_run: SupervisedRun) -> None:
        earlier = Outage(new_id(), OUTAGE.since - HOUR, "before")
        supervised_run.decide(SupervisorAction.HOLD, earlier)
        supervised_run.hold(earlier)
        assert supervised_run.verb(stop_after=timedelta(0)) is None

    def test_is_left_alone_where_another_supervisor_held_it(self, supervised_run: SupervisedRun) -> None:
        agent_id = seed_agent(supervised_run.line.world, RUN_DEBRIEFER)
        other = SupervisedRun(supervised_run.line, agent_id, supervised_run.run_id)
        other.decide(SupervisorAction.HOLD)
        other.hold()
        assert supervised_run.verb(stop_after=HOUR) is None


def test_the_whole_table(supervised_run: SupervisedRun) -> None:
    """Every combination of what the rule looks at, against the rule as a sentence says it."""
    for status, decided, carried, elapsed, stop_after in product(
        RunStatus,
        [frozenset(), frozenset({SupervisorAction.HOLD}), frozenset({SupervisorAction.HOLD, SupervisorAction.DEFER})],
        *[[False, True]] * 3,
    ):
        if carried and SupervisorAction.HOLD not in decided:
            continue
        run = supervised_run.line.run(supervised_run.run_id)
        held = RunHeld(reason=None, decided_by_decision_id=supervised_run.id_of(SupervisorAction.HOLD))
        decisions = frozenset(map(supervised_run.id_of, decided))
        seen = WatchedRun(replace(run, status=status), OUTAGE, [held] if carried else [], decisions)
        now = OUTAGE.since + (HOUR if elapsed else timedelta(0))
        expected = None
        if status is RunStatus.RUNNING and not carried:
            expected = SupervisorAction.HOLD
        elif status is RunStatus.RUNNING and SupervisorAction.DEFER not in decided:
            expected = SupervisorAction.DEFER
        elif status is RunStatus.HELD and carried and elapsed and stop_after:
            expected = SupervisorAction.STOP
        assert next_action(seen, supervised_run.agent_id, now, HOUR if stop_after else None) is expected, (
            status,
            decided,
            carried,
        )


def test_the_id_of_a_decision_follows_from_run_outage_and_verb(supervised_run: SupervisedRun) -> None:
    for verb, name in ((SupervisorAction.HOLD, "hold"), (SupervisorAction.STOP, "stop"), (SupervisorAction.DEFER, "defer")):
        cause = f"{name}:{supervised_run.run_id}:{OUTAGE.event_id}"
        assert supervised_run.id_of(verb) == decision_id_of(OUTAGE.since, supervised_run.agent_id, cause)


@pytest.mark.parametrize(
    ("verb", "choice"),
    [(SupervisorAction.HOLD, "Hold"), (SupervisorAction.STOP, "Stop"), (SupervisorAction.DEFER, "SupervisionDeferred")],
)
def test_what_is_put_on_record(supervised_run: SupervisedRun, verb: SupervisorAction, choice: str) -> None:
    supervised_run.decide(verb)
    written = decision(supervised_run.line.world, supervised_run.id_of(verb))
    assert (written.context, written.choice, written.rule) == ("RunSupervision", choice, "agent:RunSupervisor:v1")
    assert (written.decided_by, written.confidence, written.parent_id) == (supervised_run.agent_id, None, None)
    assert written.inputs == {
        "run_id": str(supervised_run.run_id),
        "outage_event_id": str(OUTAGE.event_id),
        "outage_since": instant(OUTAGE.since),
        "beam": "Beam is Unavailable",
    }


def test_the_sentence_that_a_hold_carries_fits_a_reason() -> None:
    long = Outage(new_id(), START, ", ".join(f"Beam {number} is Unavailable" for number in range(100)))
    assert all(1 <= len(outage_reason(verb, long)) <= 500 for verb in SupervisorAction)
    assert "Beam is Unavailable" in outage_reason(SupervisorAction.HOLD, OUTAGE)


def scope_of(line: Beamline, run_id: UUID) -> AssetScope | None:
    scope: AssetScope | None = line.world.fulfil(needs_beam(line.run(run_id)))
    return scope


def test_a_run_whose_method_needs_beam_is_watched_in_its_own_scope(supervised_run: SupervisedRun) -> None:
    scope = scope_of(supervised_run.line, supervised_run.run_id)
    assert scope is not None
    assert supervised_run.line.hutch.camera in scope.assets
    assert supervised_run.line.hutch.beamline in scope.assets


@pytest.mark.parametrize("needed", [[], ["cryogen"], ["photon_beam_2"]])
def test_a_run_that_needs_no_beam_is_not_watched(supervised_run: SupervisedRun, needed: list[str]) -> None:
    world, hutch = supervised_run.line.world, supervised_run.line.hutch
    by_eye = method(world, hutch.capability_id, name="by_eye", needed_supplies=needed)
    dark = world.create(DefinePlan(**hutch.plan_fields(practice_id=practice(world, by_eye, site_id=hutch.site_id))))
    assert world.fulfil(needs_beam(replace(supervised_run.line.run(supervised_run.run_id), plan_id=dark))) is None


def test_a_lost_beam_holds_the_run_from_beginning_to_end(supervised_run: SupervisedRun) -> None:
    """By the supplies alone: available, lost, back, and lost anew."""
    scope = scope_of(supervised_run.line, supervised_run.run_id)
    assert scope is not None
    world = supervised_run.line.world

    def outage() -> Outage | None:
        found: Outage | None = world.fulfil(outage_in(scope, LUMEN))
        return found

    assert outage() is None
    supervised_run.line.lose_beam()
    lost = outage()
    assert lost is not None
    assert (lost.since, lost.detail) == (world.now, "Beam is Unavailable")
    assert supervised_run.verb(lost) is SupervisorAction.HOLD
    supervised_run.decide(SupervisorAction.HOLD, lost)
    supervised_run.hold(lost)
    assert supervised_run.verb(lost, HOUR, None) is None
    assert supervised_run.verb(lost, HOUR, HOUR) is SupervisorAction.STOP
