"""How a run starts, resumes and is adjusted: the gates in order, and the preflight that asks all of them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.calibration.calibration import Calibration, CalibrationRevisionNotFoundError, Revision, load_revisions
from baton.domain.campaign.campaign import OPEN, Campaign, CampaignRunAdded
from baton.domain.caution.caution import (
    AcknowledgedCaution,
    Caution,
    CautionTarget,
    CautionTargetKind,
    banner,
    cautions_in_scope,
)
from baton.domain.decision.decision import Decision
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, asset_scope
from baton.domain.kernel import Call, IdSet, JudgedCreation, JudgedVerb, Outcome, Value, instant
from baton.domain.recipe.lifecycle import DEPRECATED
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan, missing_families
from baton.domain.recipe.plan_parts import check_wires, unbound_roles
from baton.domain.recipe.practice import Practice
from baton.domain.registry import Internal
from baton.domain.run import gates
from baton.domain.run.gates import RESUME_GATES, Preconditions, load_plan, run_preconditions
from baton.domain.run.run import (
    HELD,
    LIVE,
    LIVE_RUNS,
    RUNNING,
    Parameters,
    Run,
    RunAdjusted,
    RunResumed,
    RunStarted,
    refuse_witnessed,
    run,
)
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.gates import Gate, GateWindow, pass_gates
from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.reads import Reads, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import Word
from baton.domain.shared.writes import Also, Answer, Enlist
from baton.domain.start.fingerprint import RehearsalFingerprint, refuse_outdated, short_hash
from baton.domain.subject.subject import IN_PLACE, Subject, SubjectStatus

MAX_PINS = 64


class InvalidRunNameError(Invalid, context="run", reason="blank"):
    """A run needs a name that is not blank."""


class InvalidRunParametersError(Invalid, context="run"):
    """The effective parameters break the method's schema, or there is none, or a unit changed under a stored value."""


class InvalidPinnedCalibrationsError(Invalid, context="run", reason="too_many"):
    """A run pins at most 64 calibration revisions."""


class InvalidRunExternalRefError(Invalid, context="run"):
    """An external reference has a scheme of 1 to 50 and a value of 1 to 200 characters, neither of them blank."""


class RunBoundPlanDeprecatedError(Conflict, context="run", reason="deprecated"):
    """The plan is Deprecated and takes no new runs."""


class RunSubjectNotMountableError(Conflict, context="run", reason="subject_not_mounted", passing=True):
    """The subject is not mounted."""


class RunFamiliesNotSatisfiedError(Conflict, context="run", reason="families_missing", passing=True):
    """No asset of the plan is of a family that the method needs any more."""


class RunRequiredRolesUnboundError(Conflict, context="run", reason="roles_unbound", passing=True):
    """A role that must be played has no asset bound to it."""


class RunCalibrationLapsedError(Conflict, context="run", reason="calibration_lapsed"):
    """A pinned calibration revision has lapsed, and this deployment starts no run with one."""


class RunCannotJoinCampaignError(Conflict, context="run", reason="campaign_over"):
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


@dataclass(frozen=True, kw_only=True)
class RunStart(Preconditions):
    """A request to start a run, and everything it is judged by."""

    request: RunRequest
    plan: Plan
    method: Method
    subject: Subject | None
    campaign: Campaign | None
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]  # Those that starting the run acknowledges; they never refuse it.
    cautions: tuple[Caution, ...]  # Those in scope, for what else is to be told of them.
    pinned: tuple[tuple[Calibration, Revision], ...]  # The pinned revisions by id, each with its calibration.

    @property
    def lapsed_calibrations(self) -> list[tuple[Calibration, Revision]]:
        """The pinned revisions that are not valid any more."""
        return [(one, pin) for one, pin in self.pinned if not pin.is_valid(self.now)]


def effective_parameters(start: RunStart) -> Parameters:
    """Return the plan's defaults with the request merged in; refuse them where the method's schema does."""
    defaults, revision = start.plan.default_parameters, start.plan.parameters_schema_revision
    return start.method.merged_parameters(defaults, revision, start.request.override_parameters, InvalidRunParametersError)[
        0
    ]


def run_fingerprint(start: RunStart) -> str:
    """Return the part of a rehearsal's fingerprint that a run decides; refuse parameters that its method does."""
    templates = [start.plan.content_hash, start.method.content_hash]
    return short_hash([*templates, effective_parameters(start), sorted(map(str, start.request.pinned_calibration_ids))])


def load_start(request: RunRequest, call: Call) -> Reads[RunStart]:
    """Load everything a start is judged by; refuse with 404 what is missing."""
    plan, method = yield from load_plan(request.plan_id)
    scope = yield from asset_scope(plan.asset_ids)
    subject = yield from require_if_given(Subject, request.subject_id)
    pinned = yield from load_revisions(request.pinned_calibration_ids)
    campaign = yield from require_if_given(Campaign, request.campaign_id)
    yield from require_if_given(Decision, request.decided_by_decision_id)
    facts = yield from run_preconditions(call, call.new_id, request.subject_id, method, scope, resuming=False)
    targets = frozenset({CautionTarget(kind=CautionTargetKind.PLAN, id=plan.id)})
    cautions = yield from cautions_in_scope(scope.bound_ids, scope.ancestor_ids, targets)
    acknowledged = banner(cautions, scope.bound_ids, scope.ancestor_ids, targets, call.now)
    found: dict[str, Any] = {
        "plan": plan,
        "method": method,
        "subject": subject,
        "campaign": campaign,
        "cautions": cautions,
        "pinned": pinned,
    }
    return RunStart(**vars(facts), **found, request=request, acknowledged_cautions=acknowledged)


def plan_current(start: RunStart) -> None:
    """The plan is not Deprecated; its practice and method are not asked again."""
    if start.plan.status is DEPRECATED:
        raise RunBoundPlanDeprecatedError(f"The plan {start.plan.name} is Deprecated; start the run on a current plan.")


def subject_mounted(start: RunStart) -> None:
    """There is no subject, or it sits on an asset."""
    if start.subject is not None and start.subject.status not in IN_PLACE:
        advice = "mount it first" if start.subject.status is SubjectStatus.RECEIVED else "start with one that is mounted"
        facts = {"subject_id": str(start.subject.id), "status": start.subject.status.value}
        detail = f"The subject is {start.subject.status.value}; {advice}."
        may_return = start.subject.status is SubjectStatus.RECEIVED
        raise RunSubjectNotMountableError(detail, facts=facts, passing=may_return)


def families_covered(start: RunStart) -> None:
    """The plan's assets still are of every family the method needs."""
    if missing := missing_families(start.method.needed_family_ids, [start.scope.assets[id] for id in start.plan.asset_ids]):
        detail = "The plan's assets have changed and no longer cover the families the method needs; plan with other assets."
        raise RunFamiliesNotSatisfiedError(detail, facts={"missing_family_ids": list(map(str, missing))})


def parameters_valid(start: RunStart) -> None:
    """The effective parameters obey the method's schema."""
    effective_parameters(start)


def wires_connected(start: RunStart) -> None:
    """Every wire of the plan still connects ports that exist, of assets of the plan."""
    check_wires(start.plan, start.scope.assets)


def roles_played(start: RunStart) -> None:
    """Every role of the method that is not optional has an asset bound to it."""
    if missing := unbound_roles(start.plan, start.method):
        detail = f"No asset of the plan plays {', '.join(missing)}; bind one with bind_plan_role."
        raise RunRequiredRolesUnboundError(detail, facts={"role_names": list(missing)})


def campaign_open(start: RunStart) -> None:
    """There is no campaign to join, or it is not over."""
    if start.campaign is not None and start.campaign.status not in OPEN:
        detail = f"The campaign is {start.campaign.status.value}; start the run without it or in an open one."
        facts = {"campaign_id": str(start.campaign.id), "status": start.campaign.status.value}
        raise RunCannotJoinCampaignError(detail, facts=facts)


def name_given(start: RunStart) -> None:
    """The name is not blank."""
    if not start.request.name.strip():
        raise InvalidRunNameError("The name is blank; give it at least one visible character.")


def pins_bounded(start: RunStart) -> None:
    """No more calibration revisions are pinned than a run keeps."""
    if (count := len(start.request.pinned_calibration_ids)) > MAX_PINS:
        detail = f"A run pins at most {MAX_PINS} calibration revisions, and {count} are given; leave some out."
        raise InvalidPinnedCalibrationsError(detail, facts={"count": count})


def calibrations_valid(start: RunStart) -> None:
    """No pinned calibration revision has lapsed, where the deployment refuses such runs."""
    if start.deployment.lapsed_calibrations_refused and (lapsed := start.lapsed_calibrations):
        detail = f"{lapse_sentence(lapsed)} Pin later revisions, or append one with append_calibration_revision."
        raise RunCalibrationLapsedError(detail, facts={"revision_ids": [str(pin.revision_id) for _, pin in lapsed]})


def lapse_sentence(lapsed: Collection[tuple[Calibration, Revision]]) -> str:
    """Return which pinned revisions have lapsed, and when."""
    named = (f"the {one.quantity} of {one.target_id} at {instant(ends)}" for one, pin in lapsed if (ends := pin.valid_until))
    return f"Pinned calibrations have lapsed: {', '.join(named)}."


def calibrations_window(start: RunStart) -> GateWindow:
    """Return when the first pinned revision lapses, where none has."""
    ends = (pin.valid_until for _, pin in start.pinned if pin.valid_until is not None)
    return GateWindow(until=None if start.lapsed_calibrations else min(ends, default=None))


def calibrations_remark(start: RunStart) -> str | None:
    """Return what the gate lets pass."""
    lapsed = start.lapsed_calibrations
    return f"{lapse_sentence(lapsed)} This deployment allows that." if lapsed else None


def refs_bounded(start: RunStart) -> None:
    """Every external reference has a scheme and a value within bounds."""
    trimmed_refs(start.request.external_refs, InvalidRunExternalRefError)


GATES: tuple[Gate[RunStart], ...] = (
    *(*gates.CLEARANCE_GATES, *gates.SUPPLY_GATES, gates.ENCLOSURE_GATE),
    Gate(plan_current, lambda start: (start.plan.id,)),
    Gate(subject_mounted, lambda start: (start.subject.id,) if start.subject else ()),
    gates.ASSET_GATE,
    Gate(families_covered, lambda start: start.method.needed_family_ids),
    Gate(parameters_valid, lambda start: (start.method.id,)),
    Gate(wires_connected, lambda start: start.plan.asset_ids),
    Gate(roles_played, lambda start: start.plan.asset_ids),
    Gate(campaign_open, lambda start: (start.campaign.id,) if start.campaign else ()),
    Gate(name_given),
    Gate(pins_bounded, lambda start: start.request.pinned_calibration_ids),
    Gate(
        *(calibrations_valid, lambda start: start.request.pinned_calibration_ids),
        *(calibrations_window, calibrations_remark),
    ),
    Gate(refs_bounded),
)  # The gates of a start in order, after everything it refers to was found.
NAMED = (Plan, Practice, Method, Asset, Subject, Campaign, Decision)
REFUSALS = (*(state.aggregate.NotFound for state in NAMED), CalibrationRevisionNotFoundError, AncestorWalkDepthExceededError)


class RunStartedAnswer(AnswerForm):
    """The new run, the parameters that govern it, and the cautions it was started under."""

    run_id: UUID
    effective_parameters: dict[str, Any]
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]


@run.creation(returns=RunStartedAnswer, gated=True)
class StartRun(RunRequest, JudgedCreation[RunStart]):
    """Execute a plan: pass every gate, merge the parameters, and acknowledge the cautions on it and its assets."""

    fingerprint: RehearsalFingerprint | None = None
    launch_id: Annotated[UUID | None, Internal()] = None

    def gather(self, call: Call) -> Reads[RunStart]:
        return (yield from load_start(self, call))

    def decide(self, call: Call, start: RunStart) -> Outcome:
        pass_gates(GATES, start)
        refuse_outdated(self.fingerprint, run=run_fingerprint(start))
        parameters, cautions = effective_parameters(start), start.acknowledged_cautions
        refs = trimmed_refs(self.external_refs, InvalidRunExternalRefError)
        asked = {name: getattr(self, name) for name in RunRequest.model_fields}
        started = RunStarted(
            **{**asked, "name": self.name.strip(), "external_refs": refs},
            effective_parameters=parameters,
            parameters_schema_revision=start.method.parameters_schema_revision,
            acknowledged_cautions=cautions,
            launch_id=self.launch_id,
        )
        answer = RunStartedAnswer(run_id=call.new_id, effective_parameters=parameters, acknowledged_cautions=cautions)
        joined = [Also(Campaign, self.campaign_id, [CampaignRunAdded(run_id=call.new_id)])] if self.campaign_id else []
        live = Enlist(LIVE_RUNS, str(self.plan_id))
        return [started, live, *joined, Answer(answer.model_dump(mode="json"))]


@run.command(post="/{run_id}/resume", allowed=[HELD], leads_to=RUNNING, gated=True)
class ResumeRun(JudgedVerb[Run, Preconditions]):
    """Let a held run go on, if its preconditions still hold; nothing resumes by itself."""

    decided_by_decision_id: UUID | None = None

    def gather(self, run: Run, call: Call) -> Reads[Preconditions]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        plan, method = yield from load_plan(run.plan_id)
        scope = yield from asset_scope(plan.asset_ids)
        return (yield from run_preconditions(call, run.id, run.subject_id, method, scope, resuming=True))

    def decide(self, run: Run, call: Call, facts: Preconditions) -> Outcome:
        pass_gates(RESUME_GATES, facts)
        return [RunResumed(decided_by_decision_id=self.decided_by_decision_id)]


class InvalidRunAdjustPatchError(Invalid, context="run", reason="empty"):
    """An adjustment changes at least one parameter."""


@run.command(post="/{run_id}/adjust", allowed=LIVE)
class AdjustRun(JudgedVerb[Run, Method]):
    """Merge a patch into the parameters of a run that is on: a value sets, null deletes, objects merge."""

    parameters_patch: dict[str, JsonValue]
    reason: Annotated[str, run.text("adjust_reason", 500, label="reason", personal=True)]
    decided_by_decision_id: UUID | None = None

    def gather(self, run: Run, call: Call) -> Reads[Method]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        _, method = yield from load_plan(run.plan_id)
        if run.status in LIVE and not self.parameters_patch:
            raise InvalidRunAdjustPatchError("The patch is empty; name at least one parameter.")
        return method

    def require(self, run: Run) -> None:
        refuse_witnessed(self, run)

    def decide(self, run: Run, call: Call, method: Method) -> Outcome:
        stored, written = run.effective_parameters, run.parameters_schema_revision
        merged, _ = method.merged_parameters(stored, written, self.parameters_patch, InvalidRunParametersError)
        revision, by = method.parameters_schema_revision, call.principal_id
        changes = {**dict(self), "effective_parameters": merged}
        return [RunAdjusted(**changes, parameters_schema_revision=revision, adjusted_by=by)]
