"""A clearance: one filled-in safety form, from draft through review to in force. It is never edited: an amendment is a new
form that goes through the whole review, and the old one stops covering at once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, State, Value, Verb, copy_with
from baton.domain.next_steps import next_call, steps_to_state
from baton.domain.safety import hazards
from baton.domain.safety.clearance_template import ClearanceTemplate, ClearanceTemplateStatus
from baton.domain.safety.hazards import Binding, HazardDeclaration, ReviewDecision, RiskBand, check_ratings, check_targets
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import FacilityCode, check_facility_code, require_facility
from baton.domain.shared.reads import Reads, ask, events_of, require
from baton.domain.shared.refusals import Conflict, Invalid, NextCall, NotFound
from baton.domain.shared.text import FreeText, StateReason, Text
from baton.domain.shared.times import Instant, check_told_time
from baton.domain.shared.writes import Also, Answer, Delist, Enlist, Write

CURRENT = "clearance-current"  # Look-up kind: the clearances that are or may come into force, by what they cover.
ENDED = "clearance-ended"  # Look-up kind: the clearances that never will again, by what they cover.
OF_RUNS = ("Subject", "Asset", "Run")  # The kinds of binding that can let a run start; the others only inform.


class ClearanceStatus(StrEnum):
    DEFINED = "Defined"
    SUBMITTED = "Submitted"
    UNDER_REVIEW = "UnderReview"
    APPROVED = "Approved"
    ACTIVE = "Active"
    EXPIRED = "Expired"
    REJECTED = "Rejected"
    SUPERSEDED = "Superseded"


DEFINED, SUBMITTED, UNDER_REVIEW, APPROVED, ACTIVE, EXPIRED, REJECTED, SUPERSEDED = ClearanceStatus


@dataclass(frozen=True, kw_only=True)
class Clearance(State):
    """A clearance is one filled-in safety form, from draft through review to in force."""

    template_id: UUID
    template_code: str
    facility_code: str
    title: FreeText
    bindings: hazards.Bindings
    """What the form covers, by kind."""
    declarations: hazards.Declarations
    risk_band: RiskBand | None
    review_steps: tuple[hazards.ReviewStep, ...] = ()
    status: ClearanceStatus = DEFINED
    external_id: str | None
    external_id_scheme: str | None
    parent_id: UUID | None
    valid_from: datetime | None
    valid_until: datetime | None
    last_status_changed_at: datetime | None = None
    last_status_reason: FreeText | None = None
    last_reviewed_by: UUID | None = None
    """The actor who reviewed the form last."""
    registered_at: datetime


clearance = Aggregate(Clearance, "/clearances", context="safety")


class ClearanceRegistered(Event, of=clearance):
    """The form was registered; the one it amends, if any, is its parent."""

    template_id: UUID
    template_code: str
    facility_code: str
    title: FreeText
    bindings: hazards.Bindings
    declarations: hazards.Declarations
    risk_band: RiskBand | None
    external_id: str | None
    external_id_scheme: str | None
    valid_from: datetime | None
    valid_until: datetime | None
    parent_id: UUID | None


class ClearanceSubmitted(Event, of=clearance, leads_to=SUBMITTED, dates="last_status_changed_at"):
    """The form was handed in for review."""


class ClearanceReviewStarted(Event, of=clearance, leads_to=UNDER_REVIEW, dates="last_status_changed_at"):
    """The review began, with the role that looks first."""

    first_reviewer_role: str


class ClearanceReviewStepAppended(Event, of=clearance):
    """A reviewer decided."""

    step_index: int
    role: str
    decided_by: UUID
    decision: ReviewDecision
    decided_at: datetime
    notes: FreeText | None


class ClearanceApproved(Event, of=clearance):
    """The review ended in favour of the form, with this validity window."""

    valid_from: datetime | None
    valid_until: datetime | None
    reviewed_by: UUID


class ClearanceRejected(Event, of=clearance):
    """The review ended against the form."""

    reason: StateReason
    reviewed_by: UUID


class ClearanceActivated(Event, of=clearance, leads_to=ACTIVE, dates="last_status_changed_at"):
    """The clearance was made to count; within its validity window it lets runs start."""


class ClearanceExpired(Event, of=clearance):
    """The clearance was taken out of force."""

    reason: StateReason


class ClearanceSuperseded(Event, of=clearance, leads_to=SUPERSEDED, dates="last_status_changed_at"):
    """An amendment took the place of the form, which stopped covering at once."""

    by_clearance_id: UUID


class ClearanceExternalIdAssigned(Event, of=clearance):
    """The facility's own number of the form was filled in."""

    external_id: str
    external_id_scheme: str


ReviewEvent = ClearanceReviewStepAppended | ClearanceApproved | ClearanceRejected


@clearance.evolve
def evolve(clearance: Clearance, event: ReviewEvent | ClearanceExpired | ClearanceExternalIdAssigned) -> Clearance:
    at = event.occurred_at
    match event:
        case ClearanceReviewStepAppended():
            step = hazards.ReviewStep(**dict(event), recorded_at=at)
            return copy_with(clearance, review_steps=(*clearance.review_steps, step))
        case ClearanceApproved():
            approved = copy_with(clearance, status=APPROVED, valid_from=event.valid_from, valid_until=event.valid_until)
            return copy_with(approved, last_status_changed_at=at, last_reviewed_by=event.reviewed_by)
        case ClearanceRejected():
            rejected = copy_with(clearance, status=REJECTED, last_reviewed_by=event.reviewed_by)
            return copy_with(rejected, last_status_changed_at=at, last_status_reason=event.reason)
        case ClearanceExpired():
            return copy_with(clearance, status=EXPIRED, last_status_changed_at=at, last_status_reason=event.reason)
        case ClearanceExternalIdAssigned():
            return copy_with(clearance, external_id=event.external_id, external_id_scheme=event.external_id_scheme)
        case _:
            assert_never(event)


class InvalidClearanceExternalIdError(Invalid, context="safety"):
    """The form's own number is blank, or its scheme stands without a number."""


class InvalidClearanceValidityWindowError(Invalid, context="safety", reason="empty_window"):
    """A clearance must be valid from before it is valid until."""


class InvalidClearanceReviewStepIndexError(Invalid, context="safety", reason="not_next_index"):
    """Review steps are numbered from 0 without a gap."""


class InvalidClearanceReviewTimeError(Invalid, context="safety"):
    """A review step is decided no later than now, and no earlier than its form was registered and the step before it."""


class ClearanceFacilityNotFoundError(NotFound, context="safety"):
    """No facility has this code."""


class ClearanceTemplateNotBindableError(Conflict, context="safety"):
    """Only an Active template takes new clearances."""


ExternalId = Annotated[str, Text(100, InvalidClearanceExternalIdError, "external id")]
ExternalIdScheme = Annotated[str, Text(50, InvalidClearanceExternalIdError, "external id scheme")]
ReviewerRole = Annotated[str, clearance.text("reviewer_role", 50, label="role")]
ReviewerNotes = Annotated[str, clearance.text("reviewer_notes", 2000, label="notes", personal=True)] | Literal[""]


class ClearanceForm(Value):
    """A filled-in form, as it is registered first or in place of another."""

    template_id: UUID
    facility_code: FacilityCode
    title: Annotated[str, clearance.text("title", 200, personal=True)]
    bindings: Annotated[tuple[Binding, ...], Field(max_length=100)]
    declarations: Annotated[tuple[HazardDeclaration, ...], Field(max_length=100)] = ()
    risk_band: RiskBand | None = None
    external_id: ExternalId | None = None
    external_id_scheme: ExternalIdScheme | None = None
    valid_from: Instant | None = None
    valid_until: Instant | None = None

    def load_template(self) -> Reads[ClearanceTemplate]:
        """Return the template of this form; refuse where it or the facility does not exist."""
        template = yield from require(ClearanceTemplate, self.template_id)
        yield from require_facility(self.facility_code, ClearanceFacilityNotFoundError)
        return template

    def register(self, template: ClearanceTemplate, parent_id: UUID | None) -> Outcome:
        """Return the beginning of this form's own stream."""
        check_facility_code(self.facility_code)
        if not self.bindings:
            raise hazards.InvalidClearanceBindingsError(
                "The clearance covers nothing; bind it to at least one subject, asset, run, procedure or outside reference.",
                reason="empty",
            )
        check_ratings(self.declarations)
        if self.external_id is None and self.external_id_scheme is not None:
            detail = "external_id_scheme stands without an external_id; give both or leave the scheme out."
            raise InvalidClearanceExternalIdError(detail, reason="scheme_without_id")
        check_targets(self.declarations, self.bindings)
        check_window(self.valid_from, self.valid_until)
        status = template.status
        if status is not ClearanceTemplateStatus.ACTIVE:
            detail = f"The template {template.code} is {status.value}; use one that is Active."
            facts = {"template_id": template.id, "status": status}
            refusal = ClearanceTemplateNotBindableError(detail, reason=status.value.lower(), facts=facts)
            refusal.next_steps = steps_to_state(template, ClearanceTemplateStatus.ACTIVE)
            raise refusal
        form = {**dict(self), "template_code": template.code, "parent_id": parent_id}
        if self.external_id is not None and self.external_id_scheme is None:
            form["external_id_scheme"] = template.code
        return [ClearanceRegistered(**form), *(Enlist(CURRENT, key) for key in binding_keys(self.bindings))]


def binding_keys(bindings: Iterable[Binding]) -> list[str]:
    """Return the look-up keys of what can let a run start."""
    records = (one for one in bindings if isinstance(one, hazards.RecordBinding))
    return sorted({f"{one.kind}:{one.id}" for one in records if one.kind in OF_RUNS})


def leave_current_lookup(clearance: Clearance) -> Iterator[Write]:
    """Yield the move of a clearance that will not be in force again out of the look-up that every run asks."""
    for key in binding_keys(clearance.bindings):
        yield Delist(CURRENT, key)
        yield Enlist(ENDED, key)


def check_window(valid_from: datetime | None, valid_until: datetime | None) -> None:
    """Refuse a window that is empty or inverted."""
    if valid_from is not None and valid_until is not None and valid_from >= valid_until:
        raise InvalidClearanceValidityWindowError(
            "The clearance would end before it begins; set valid_from before valid_until."
        )


@clearance.creation()
class RegisterClearance(ClearanceForm, JudgedCreation[ClearanceTemplate]):
    """Register a filled-in safety form; it covers nothing until it has been reviewed, approved and activated."""

    def gather(self, call: Call) -> Reads[ClearanceTemplate]:
        return (yield from self.load_template())

    def decide(self, call: Call, template: ClearanceTemplate) -> Outcome:
        return self.register(template, None)


ONE_PERSON = (
    "Nothing here keeps one person from filling in, reviewing and approving a form (CLEARANCE_FOUR_EYES is off); have "
    "somebody else look at it all the same."
)


def remark_on_review(four_eyes: bool) -> list[Answer]:
    """Return the remark on a form that one person may fill in and approve; nothing where a second person must approve it."""
    return [] if four_eyes else [Answer({"four_eyes": False, "remark": ONE_PERSON})]


@clearance.command(post="/{clearance_id}/submit", allowed=[DEFINED], leads_to=SUBMITTED)
class SubmitClearance(JudgedVerb[Clearance, bool]):
    """Hand the form in for review."""

    def gather(self, clearance: Clearance, call: Call) -> Reads[bool]:
        return (yield from ask(DeploymentPort.deployment)).clearance_four_eyes

    def decide(self, clearance: Clearance, call: Call, four_eyes: bool) -> Outcome:
        return [ClearanceSubmitted(), *remark_on_review(four_eyes)]


@clearance.command(post="/{clearance_id}/start-review", allowed=[SUBMITTED], records=ClearanceReviewStarted)
class StartClearanceReview(Verb[Clearance]):
    """Begin the review, naming the role that looks first."""

    first_reviewer_role: ReviewerRole


def barred_reviewers(clearance: Clearance) -> Reads[frozenset[UUID] | None]:
    """Return who may neither review nor approve the form, which is its author; None where the deployment does not ask for
    four eyes."""
    deployment = yield from ask(DeploymentPort.deployment)
    if not deployment.clearance_four_eyes:
        return None
    registered = yield from events_of(clearance.id, ClearanceRegistered)
    return frozenset(event.caller_id for event in registered)


class ClearanceReview(JudgedVerb[Clearance, frozenset[UUID] | None]):
    """A command that judges a form; where the deployment asks for four eyes, not by its author."""

    def gather(self, clearance: Clearance, call: Call) -> Reads[frozenset[UUID] | None]:
        return (yield from barred_reviewers(clearance))

    def refuse_barred(self, call: Call, barred: frozenset[UUID] | None) -> None:
        """Refuse a caller who may not judge this form."""
        if barred is not None and call.principal_id in barred:
            detail = "You registered this clearance, or it is your amendment; somebody else must review and approve it."
            raise self.cannot("same_person", detail)


@clearance.command(post="/{clearance_id}/append-review-step", allowed=[UNDER_REVIEW])
class AppendClearanceReviewStep(ClearanceReview):
    """Record what one reviewer decided; the caller is the reviewer, and only approve and reject end the review."""

    step_index: Annotated[int, Field(ge=0, le=2**31 - 1)]
    """The index of this step of the review, counted from 0."""
    role: ReviewerRole
    """The role in which the reviewer decides, such as BeamlineScientist."""
    decision: ReviewDecision
    """What the reviewer decided."""
    decided_at: Instant | None = None
    """When the reviewer decided; without it, now."""
    notes: ReviewerNotes | None = None

    def decide(self, clearance: Clearance, call: Call, barred: frozenset[UUID] | None) -> Outcome:
        self.refuse_barred(call, barred)
        steps = clearance.review_steps
        if self.step_index != len(steps):
            detail = f"The next review step has the index {len(steps)}; read the clearance for those recorded already."
            raise InvalidClearanceReviewStepIndexError(detail, facts={"next_step_index": len(steps)})
        decided_at = self.decided_at or call.now
        begun, registered = clearance.registered_at, "the registration of the form"
        check_told_time(decided_at, InvalidClearanceReviewTimeError, call.now, begun, registered)
        if steps and decided_at < steps[-1].decided_at:
            detail = "The step would be decided before the last one recorded; record steps in the order of their decisions."
            raise InvalidClearanceReviewTimeError(detail, reason="before_last_step")
        return [ClearanceReviewStepAppended(**{**dict(self), "decided_at": decided_at}, decided_by=call.principal_id)]


@clearance.command(post="/{clearance_id}/approve", allowed=[UNDER_REVIEW], leads_to=APPROVED)
class ApproveClearance(ClearanceReview):
    """End the review in favour; an end of the validity window that is given replaces the registered one."""

    valid_from: Instant | None = None
    valid_until: Instant | None = None

    @classmethod
    def preparation(cls, clearance: Clearance | None) -> Sequence[NextCall]:
        """Return the review step that the form lacks, or will lack when it is made."""
        steps = () if clearance is None else clearance.review_steps
        if steps and steps[-1].decision is ReviewDecision.APPROVED:
            return ()
        known = {"step_index": len(steps), "decision": ReviewDecision.APPROVED.value}
        return [next_call(AppendClearanceReviewStep.operation, clearance, known)]

    def decide(self, clearance: Clearance, call: Call, barred: frozenset[UUID] | None) -> Outcome:
        self.refuse_barred(call, barred)
        if not clearance.review_steps:
            raise self.cannot("no_review_step", "Nobody has reviewed this clearance yet; append a review step first.")
        last = clearance.review_steps[-1].decision
        if last is not ReviewDecision.APPROVED:
            detail = f"The last review step says {last}; append one that says Approved, or reject the clearance."
            raise self.cannot("last_step_not_approved", detail, decision=last)
        valid_from = self.valid_from or clearance.valid_from
        valid_until = self.valid_until or clearance.valid_until
        check_window(valid_from, valid_until)
        approved = ClearanceApproved(valid_from=valid_from, valid_until=valid_until, reviewed_by=call.principal_id)
        return [approved, *remark_on_review(barred is not None)]


@clearance.command(post="/{clearance_id}/reject", allowed=[UNDER_REVIEW], destructive=True)
class RejectClearance(Verb[Clearance]):
    """End the review against the form, for good."""

    reason: Annotated[str, clearance.text("reject_reason", 500, label="reason", personal=True)]

    def decide(self, clearance: Clearance, call: Call) -> Outcome:
        return [ClearanceRejected(reason=self.reason, reviewed_by=call.principal_id), *leave_current_lookup(clearance)]


@clearance.command(post="/{clearance_id}/activate", allowed=[APPROVED], records=ClearanceActivated)
class ActivateClearance(Verb[Clearance]):
    """Let the clearance count; within its validity window it lets runs start."""


@clearance.command(post="/{clearance_id}/expire", allowed=[ACTIVE], destructive=True)
class ExpireClearance(Verb[Clearance]):
    """Take the clearance out of force, whatever its validity window says."""

    reason: Annotated[str, clearance.text("expire_reason", 500, label="reason", personal=True)]

    def decide(self, clearance: Clearance, call: Call) -> Outcome:
        return [ClearanceExpired(reason=self.reason), *leave_current_lookup(clearance)]


class AmendedClearance(Value):
    """The clearance that takes the place of the amended one."""

    clearance_id: UUID


@clearance.command(post="/{clearance_id}/amend", allowed=[ACTIVE], status=201, returns=AmendedClearance, destructive=True)
class AmendClearance(ClearanceForm, JudgedVerb[Clearance, ClearanceTemplate]):
    """Replace the form by a new one that must be reviewed again; this one stops covering at once, nothing is copied."""

    def gather(self, clearance: Clearance, call: Call) -> Reads[ClearanceTemplate]:
        return (yield from self.load_template())

    def decide(self, clearance: Clearance, call: Call, template: ClearanceTemplate) -> Outcome:
        child_id = call.id_for("amendment")
        return [
            ClearanceSuperseded(by_clearance_id=child_id),
            *leave_current_lookup(clearance),
            Also(Clearance, child_id, self.register(template, clearance.id)),
            Answer({"clearance_id": str(child_id)}),
        ]


@clearance.command(post="/{clearance_id}/assign-external-id", allowed=[DEFINED, SUBMITTED, UNDER_REVIEW, APPROVED, ACTIVE])
class AssignClearanceExternalId(Verb[Clearance]):
    """Fill in the facility's own number of this form; without a scheme, the template's code is the scheme."""

    external_id: ExternalId
    external_id_scheme: ExternalIdScheme | None = None

    def require(self, clearance: Clearance) -> None:
        if clearance.external_id is not None:
            detail = "The clearance has an external id already; amend the clearance if it is wrong."
            ids = {"external_id": clearance.external_id, "external_id_scheme": clearance.external_id_scheme}
            raise self.cannot("already_assigned", detail, **ids)

    def decide(self, clearance: Clearance, call: Call) -> Outcome:
        scheme = self.external_id_scheme or clearance.template_code
        return [ClearanceExternalIdAssigned(external_id=self.external_id, external_id_scheme=scheme)]
