"""How a run starts and goes on: the request, the gates in their order, and the same gates asked all at once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue

from baton.domain.campaign.campaign import OPEN, Campaign, CampaignRunAdded
from baton.domain.caution.banner import AcknowledgedCaution, banner, cautions_in_scope
from baton.domain.caution.caution import Caution, CautionTarget, CautionTargetKind
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError
from baton.domain.equipment.scope import asset_scope
from baton.domain.kernel import Call, IdSet, JudgedCreation, JudgedVerb, Outcome, Query, Value
from baton.domain.operation.conduct.grants import RUN_ISSUED, ask_grants, needed_grants
from baton.domain.recipe.lifecycle import DEPRECATED
from baton.domain.recipe.method import Method
from baton.domain.recipe.parameters import merged_parameters
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.plan_binding import missing_families
from baton.domain.recipe.plan_roles import unbound_roles
from baton.domain.recipe.plan_wires import PlanWireAssetNotBoundError, PlanWirePortNotFoundError, check_wires
from baton.domain.recipe.practice import Practice
from baton.domain.run import gates
from baton.domain.run.gates import FOOTING_REFUSALS, RESUMING, Execution, Footing, execution_of, footing_of
from baton.domain.run.run import HELD, Parameters, Run, RunResumed, RunStarted, run
from baton.domain.shared.gates import AskedGateVerdict, CommandVerdict, GateVerdict, judged, verdict_on
from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.reads import Reads, required_if_given
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import Word
from baton.domain.shared.writes import Also, Answer
from baton.domain.subject.subject import IN_PLACE, Subject, SubjectStatus

MOST_PINS = 64


class InvalidRunNameError(Invalid, context="run"):
    """A run needs a name that is not blank."""


class InvalidRunParametersError(Invalid, context="run"):
    """The effective parameters break the method's schema, or there is none, or a unit changed under a stored value."""


class InvalidPinnedCalibrationsError(Invalid, context="run"):
    """A run pins at most 64 calibration revisions."""


class InvalidRunExternalRefError(Invalid, context="run"):
    """An external reference has a scheme of 1 to 50 and a value of 1 to 200 characters, neither of them blank."""


class RunBoundPlanDeprecatedError(Conflict, context="run"):
    """The plan is Deprecated and takes no new runs."""


class RunSubjectNotMountableError(Conflict, context="run"):
    """The subject is not mounted."""


class RunFamiliesNotSatisfiedError(Conflict, context="run"):
    """No asset of the plan is of a family that the method needs any more."""


class RunRequiredRolesUnboundError(Conflict, context="run"):
    """A role that must be played has no asset bound to it."""


class RunCannotJoinCampaignError(Conflict, context="run"):
    """The campaign is over and takes no more runs."""


class RunRequest(Value):
    """What is asked for when a run is to start."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    plan_id: UUID
    subject_id: UUID | None = None
    raid: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    override_parameters: dict[str, JsonValue] = {}
    pinned_calibration_ids: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    trigger_source: Annotated[str, Word(500)] | None = None
    external_refs: Annotated[dict[str, str], Field(max_length=100)] = {}
    campaign_id: UUID | None = None
    decided_by_decision_id: UUID | None = None


@dataclass(frozen=True)
class Start:
    """A request to start a run, and everything it is judged by."""

    request: RunRequest
    execution: Execution
    footing: Footing
    subject: Subject | None
    campaign: Campaign | None
    cautions: tuple[Caution, ...]

    @property
    def plan(self) -> Plan:
        return self.execution.plan

    @property
    def method(self) -> Method:
        return self.execution.method

    def effective_parameters(self) -> Parameters:
        """The plan's defaults with the request merged in; refused where the method's schema does not admit them."""
        merged, _ = merged_parameters(
            self.plan.default_parameters,
            self.request.override_parameters,
            written=self.method.units_at(self.plan.parameters_schema_revision),
            schema=self.method.parameters_schema,
            refusal=InvalidRunParametersError,
        )
        return merged

    def acknowledged_cautions(self) -> tuple[AcknowledgedCaution, ...]:
        """The cautions that starting the run acknowledges; they never refuse it."""
        scope = self.footing.scope
        return banner(self.cautions, scope.bound_ids, scope.ancestor_ids, work_of(self.plan), self.footing.now)


def work_of(plan: Plan) -> frozenset[CautionTarget]:
    """What a run is made by, as cautions name it."""
    return frozenset({CautionTarget(kind=CautionTargetKind.PLAN, id=plan.id)})


def start_of(request: RunRequest, call: Call) -> Reads[Start]:
    """Load everything a start is judged by; what is missing is 404."""
    execution = yield from execution_of(request.plan_id)
    scope = yield from asset_scope(execution.plan.asset_ids)
    subject = yield from required_if_given(Subject, request.subject_id)
    campaign = yield from required_if_given(Campaign, request.campaign_id)
    footing = yield from footing_of(call.new_id, request.subject_id, execution.method, scope, call)
    cautions = yield from cautions_in_scope(scope.bound_ids, scope.ancestor_ids, work_of(execution.plan))
    return Start(request, execution, footing, subject, campaign, cautions)


def plan_current(start: Start) -> None:
    """The plan is not Deprecated; its practice and method are not asked again."""
    if start.plan.status is DEPRECATED:
        raise RunBoundPlanDeprecatedError(
            f"The plan {start.plan.name} is Deprecated; start the run on a current plan.", reason="deprecated"
        )


def subject_mounted(start: Start) -> None:
    """There is no subject, or it sits on an asset."""
    if start.subject is not None and start.subject.status not in IN_PLACE:
        advice = "mount it first" if start.subject.status is SubjectStatus.RECEIVED else "start with one that is mounted"
        raise RunSubjectNotMountableError(
            f"The subject is {start.subject.status.value}; {advice}.",
            reason="subject_not_mounted",
            facts={"subject_id": str(start.subject.id), "status": start.subject.status.value},
        )


def families_covered(start: Start) -> None:
    """The plan's assets still are of every family the method needs."""
    if missing := missing_families(start.method.needed_family_ids, start.footing.plan_assets):
        raise RunFamiliesNotSatisfiedError(
            "The plan's assets have changed and no longer cover the families the method needs; plan with other assets.",
            reason="families_missing",
            facts={"missing_family_ids": list(map(str, missing))},
        )


def parameters_valid(start: Start) -> None:
    """The effective parameters obey the method's schema."""
    start.effective_parameters()


def wires_connected(start: Start) -> None:
    """Every wire of the plan still connects ports that exist, of assets of the plan."""
    check_wires(start.plan, start.footing.scope.assets)


def roles_played(start: Start) -> None:
    """Every role of the method that is not optional has an asset bound to it."""
    if missing := unbound_roles(start.plan, start.method):
        raise RunRequiredRolesUnboundError(
            f"No asset of the plan plays {', '.join(missing)}; bind one with bind_plan_role.",
            reason="roles_unbound",
            facts={"role_names": list(missing)},
        )


def campaign_open(start: Start) -> None:
    """There is no campaign to join, or it is not over."""
    if start.campaign is not None and start.campaign.status not in OPEN:
        raise RunCannotJoinCampaignError(
            f"The campaign is {start.campaign.status.value}; start the run without it or in an open one.",
            reason="campaign_over",
            facts={"campaign_id": str(start.campaign.id), "status": start.campaign.status.value},
        )


def name_given(start: Start) -> None:
    """The name is not blank."""
    if not start.request.name.strip():
        raise InvalidRunNameError("The name is blank; give it at least one visible character.", reason="blank")


def pins_bounded(start: Start) -> None:
    """No more calibration revisions are pinned than a run keeps; whether they exist is not asked."""
    if (count := len(start.request.pinned_calibration_ids)) > MOST_PINS:
        raise InvalidPinnedCalibrationsError(
            f"A run pins at most {MOST_PINS} calibration revisions, and {count} are given; leave some out.",
            reason="too_many",
            facts={"count": count},
        )


def refs_bounded(start: Start) -> None:
    """Every external reference has a scheme and a value within bounds."""
    trimmed_refs(start.request.external_refs, InvalidRunExternalRefError)


@dataclass(frozen=True)
class Gate:
    """One gate of a start: its name, its rule and the ids of what it asks about."""

    name: str
    judge: Callable[[Start], None]
    subjects: Callable[[Start], Iterable[UUID]] = lambda start: ()


def on_footing(rule: Callable[[Footing], None], subjects: Callable[[Footing], Iterable[UUID]]) -> Gate:
    """A gate that asks only about what the run stands on, and that a held run passes again."""
    return Gate(rule.__name__, lambda start: rule(start.footing), lambda start: subjects(start.footing))


def _clearance_ids(footing: Footing) -> Iterable[UUID]:
    return (clearance.id for clearance in footing.clearances)


def _supply_ids(footing: Footing) -> Iterable[UUID]:
    return (supply.id for supply in footing.supplies)


def _asset_ids(start: Start) -> Iterable[UUID]:
    return start.plan.asset_ids


GATES = (
    on_footing(gates.clearance_present, _clearance_ids),
    on_footing(gates.clearance_active, _clearance_ids),
    on_footing(gates.supply_present, _supply_ids),
    on_footing(gates.supply_available, _supply_ids),
    on_footing(gates.enclosure_permitted, lambda footing: footing.scope.enclosure_ids),
    Gate("plan_current", plan_current, lambda start: (start.plan.id,)),
    Gate("subject_mounted", subject_mounted, lambda start: (start.subject.id,) if start.subject else ()),
    on_footing(gates.assets_in_service, lambda footing: footing.scope.bound_ids),
    Gate("families_covered", families_covered, lambda start: start.method.needed_family_ids),
    Gate("parameters_valid", parameters_valid, lambda start: (start.method.id,)),
    Gate("wires_connected", wires_connected, _asset_ids),
    Gate("roles_played", roles_played, _asset_ids),
    Gate("campaign_open", campaign_open, lambda start: (start.campaign.id,) if start.campaign else ()),
    Gate("name_given", name_given),
    Gate("pins_bounded", pins_bounded, lambda start: start.request.pinned_calibration_ids),
    Gate("refs_bounded", refs_bounded),
)
"""Everything a start must pass, in order, after nothing was found missing; that the new run has no stream comes first."""
MISSING = (
    Plan.aggregate.NotFound,
    Practice.aggregate.NotFound,
    Method.aggregate.NotFound,
    Asset.aggregate.NotFound,
    Subject.aggregate.NotFound,
    Campaign.aggregate.NotFound,
    AncestorWalkDepthExceededError,
)


class RunStartedAnswer(BaseModel):
    """The new run, the parameters that govern it, and the cautions it was started under."""

    run_id: UUID
    effective_parameters: dict[str, Any]
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]


@run.creation(
    returns=RunStartedAnswer,
    refuses=[
        *MISSING,
        *FOOTING_REFUSALS,
        RunBoundPlanDeprecatedError,
        RunSubjectNotMountableError,
        RunFamiliesNotSatisfiedError,
        InvalidRunParametersError,
        PlanWireAssetNotBoundError,
        PlanWirePortNotFoundError,
        RunRequiredRolesUnboundError,
        RunCannotJoinCampaignError,
        InvalidRunNameError,
        InvalidPinnedCalibrationsError,
    ],
    essential=True,
)
class StartRun(RunRequest, JudgedCreation[Start]):
    """Execute a plan: pass every gate, merge the parameters, and acknowledge the cautions on it and its assets."""

    def gather(self, call: Call) -> Reads[Start]:
        return (yield from start_of(self, call))

    def decide(self, call: Call, start: Start) -> Outcome:
        for gate in GATES:
            gate.judge(start)
        parameters, cautions = start.effective_parameters(), start.acknowledged_cautions()
        started = RunStarted(
            **{
                **dict(self),
                "name": self.name.strip(),
                "external_refs": trimmed_refs(self.external_refs, InvalidRunExternalRefError),
            },
            effective_parameters=parameters,
            parameters_schema_revision=start.method.parameters_schema_revision,
            acknowledged_cautions=cautions,
        )
        answer = RunStartedAnswer(run_id=call.new_id, effective_parameters=parameters, acknowledged_cautions=cautions)
        joined = [Also(Campaign, self.campaign_id, [CampaignRunAdded(run_id=call.new_id)])] if self.campaign_id else []
        return [started, *joined, Answer(answer.model_dump(mode="json"))]


CONDUCTING = ("ConductRun", *RUN_ISSUED, *needed_grants("ConductProcedure"))
"""What it takes to conduct a run whose phases walk their steps once."""


class Preflight(BaseModel):
    """Every gate's verdict in order; null parameters are such as no run could have.

    `passed` is said of start_run. Of conduct_run, which may follow, only the permissions are asked for here; its phases are
    judged when they are given.
    """

    passed: bool
    commands: tuple[CommandVerdict, ...]
    gates: tuple[AskedGateVerdict, ...]
    effective_parameters: dict[str, Any] | None
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]


@run.query(post="/preflight", returns=Preflight, refuses=MISSING, essential=True)
class PreflightRun(RunRequest, Query):
    """Ask every gate whether this run could start now, and change nothing."""

    def answer(self, call: Call) -> Reads[Preflight]:
        start = yield from start_of(self, call)
        wanted = {"start_run": ("StartRun",), "conduct_run": CONDUCTING}
        permitted = yield from ask_grants(wanted, by_hand=("start_run",))
        judged_gates = [(verdict(gate, start), ("start_run",)) for gate in GATES]
        verdicts = tuple(AskedGateVerdict(**dict(one), asked_by=by) for one, by in (*permitted, *judged_gates))
        commands = tuple(verdict_on(command, verdicts) for command in wanted)
        parameters = {one.gate: one.passed for one in verdicts}["parameters_valid"]
        return Preflight(
            passed=commands[0].passed,
            commands=commands,
            gates=verdicts,
            effective_parameters=start.effective_parameters() if parameters else None,
            acknowledged_cautions=start.acknowledged_cautions(),
        )


def verdict(gate: Gate, start: Start) -> GateVerdict:
    """What a gate says to a start."""
    return judged(gate.name, gate.subjects(start), lambda: gate.judge(start))


@run.command(post="/{run_id}/resume", allowed=[HELD], refuses=[*FOOTING_REFUSALS], essential=True)
class ResumeRun(JudgedVerb[Run, Footing]):
    """Let a held run go on, if what it stands on still carries it; nothing resumes by itself."""

    decided_by_decision_id: UUID | None = None

    def gather(self, run: Run, call: Call) -> Reads[Footing]:
        execution = yield from execution_of(run.plan_id)
        scope = yield from asset_scope(execution.plan.asset_ids)
        return (yield from footing_of(run.id, run.subject_id, execution.method, scope, call, resuming=True))

    def decide(self, run: Run, call: Call, footing: Footing) -> Outcome:
        for gate in RESUMING:
            gate(footing)
        return [RunResumed(decided_by_decision_id=self.decided_by_decision_id)]
