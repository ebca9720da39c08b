"""A clearance template: a facility's catalog entry for one kind of safety form. Only an Active template takes new
clearances; those registered under it before keep it, whatever becomes of it."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, State, Verb, copy_with
from baton.domain.shared.identifiers import FacilityCode, check_facility_code, require_facility
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, require_if_given
from baton.domain.shared.refusals import Conflict, NotFound
from baton.domain.shared.text import FreeText
from baton.domain.shared.writes import Claim, Release

TEMPLATE_CODE = "clearance-template-code"  # Claim kind: the template that holds a code of a facility until it is Withdrawn.
SEEDED_TITLES = {
    "ESAF": "Experiment safety assessment form (ESAF)",
    "SAF": "Safety approval form (SAF)",
    "AForm": "Experiment declaration and safety form (A-form)",
    "DUO": "Safety form of the digital user office (DUO)",
    "ESRA": "Experiment safety review (ESRA)",
    "ERA": "Experimental risk assessment (ERA)",
    "PLHD": "Local hazard declaration (PLHD)",
    "DOOR": "Safety form of the online user office (DOOR)",
    "BTR": "Beam time request (BTR)",
    "Form9": "List of samples and reagents (Form 9)",
}  # The forms that light sources commonly ask for, by code.


class ClearanceTemplateStatus(StrEnum):
    DRAFT = "Draft"
    ACTIVE = "Active"
    DEPRECATED = "Deprecated"
    WITHDRAWN = "Withdrawn"


DRAFT, ACTIVE, DEPRECATED, WITHDRAWN = ClearanceTemplateStatus


@dataclass(frozen=True, kw_only=True)
class ClearanceTemplate(State):
    """A clearance template is a facility's catalog entry for one kind of safety form."""

    facility_code: str
    code: str
    title: FreeText
    version: int
    supersedes_template_id: UUID | None
    external_ref: FreeText | None
    status: ClearanceTemplateStatus = DRAFT
    defined_at: datetime
    defined_by: UUID


template = Aggregate(ClearanceTemplate, "/clearance-templates", id_name="template_id", context="safety")


class ClearanceTemplateDefined(Event, of=template):
    """The form was entered into the facility's catalog, as a draft."""

    facility_code: str
    code: str
    title: FreeText
    version: int
    supersedes_template_id: UUID | None
    external_ref: FreeText | None
    defined_by: UUID


class ClearanceTemplateActivated(Event, of=template, leads_to=ACTIVE):
    """The template was opened for new clearances."""

    activated_by: UUID


class ClearanceTemplateVersioned(Event, of=template):
    """The form was revised; the other template it replaces, if any, is named."""

    new_version: int
    supersedes_template_id: UUID | None
    versioned_by: UUID


class ClearanceTemplateDeprecated(Event, of=template, leads_to=DEPRECATED):
    """The template was closed for new clearances; its code stays taken."""

    reason: FreeText | None
    deprecated_by: UUID


class ClearanceTemplateWithdrawn(Event, of=template, leads_to=WITHDRAWN):
    """The template was struck from the catalog, and its code is free again."""

    withdrawn_by: UUID


@template.evolve
def evolve(template: ClearanceTemplate, event: ClearanceTemplateVersioned) -> ClearanceTemplate:
    return copy_with(template, version=event.new_version, supersedes_template_id=event.supersedes_template_id)


class ClearanceTemplateFacilityNotFoundError(NotFound, context="safety"):
    """No facility has this code."""


class ClearanceTemplateFacilityMismatchError(Conflict, context="safety"):
    """A template replaces only a template of its own facility."""


@template.creation()
class DefineClearanceTemplate(JudgedCreation[None]):
    """Enter a kind of safety form into a facility's catalog, as a draft."""

    code: Annotated[str, template.text("code", 50)]
    """The code of the kind of form, such as SAF-07."""
    title: Annotated[str, template.text("title", 200, personal=True)]
    facility_code: FacilityCode
    external_ref: Annotated[str, template.text("external_ref", 500, label="document reference", personal=True)] | None = None

    def gather(self, call: Call) -> Reads[None]:
        yield from require_facility(self.facility_code, ClearanceTemplateFacilityNotFoundError)

    def decide(self, call: Call, facts: None) -> Outcome:
        check_facility_code(self.facility_code)
        names = {"facility_code": self.facility_code, "code": self.code}
        detail = f"The facility {self.facility_code} has a template {self.code} already; use it, or withdraw it first."
        taken = template.AlreadyExists(detail, reason="code_taken", facts=names)
        author = call.principal_id
        defined = ClearanceTemplateDefined(**dict(self), version=1, supersedes_template_id=None, defined_by=author)
        return [defined, Claim(TEMPLATE_CODE, code_key(self.facility_code, self.code), rival=taken)]


def code_key(facility_code: str, code: str) -> str:
    """Return the form in which two codes of a facility are the same; case is kept."""
    return f"{facility_code}/{unicodedata.normalize('NFC', code)}"


def seeded_template(facility_code: str, code: str, call: Call) -> Outcome:
    """Return the beginning of a template that a site starts with, ready for use at once."""
    title = SEEDED_TITLES.get(code, f"Safety form {code}")
    define = DefineClearanceTemplate(code=code, title=title, facility_code=facility_code)
    return [*define.decide(call, None), ClearanceTemplateActivated(activated_by=call.principal_id)]


@template.command(post="/{template_id}/activate", allowed=[DRAFT], records=ClearanceTemplateActivated)
class ActivateClearanceTemplate(Verb[ClearanceTemplate]):
    """Let clearances be registered under this template."""


@template.command(post="/{template_id}/version", allowed=[ACTIVE])
class VersionClearanceTemplate(JudgedVerb[ClearanceTemplate, ClearanceTemplate | None]):
    """Record that the form was revised, and which other template it replaces, if any."""

    new_version: Annotated[int, Field(ge=2, le=2**31 - 1)]
    supersedes_template_id: UUID | None = None

    def gather(self, template: ClearanceTemplate, call: Call) -> Reads[ClearanceTemplate | None]:
        return (yield from require_if_given(ClearanceTemplate, self.supersedes_template_id))

    def decide(self, template: ClearanceTemplate, call: Call, predecessor: ClearanceTemplate | None) -> Outcome:
        if predecessor is not None and predecessor.id == template.id:
            raise self.cannot("self_reference", "A template cannot replace itself; name another one, or none.")
        if self.new_version != template.version + 1:
            detail = f"The template is at version {template.version}; the next one is {template.version + 1}."
            raise self.cannot("not_next_version", detail, version=template.version)
        if predecessor is not None and predecessor.facility_code != template.facility_code:
            own, other = template.facility_code, predecessor.facility_code
            raise ClearanceTemplateFacilityMismatchError(
                f"The template named belongs to {other}, this one to {own}; name one of the same facility.",
                facts={"facility_code": own, "predecessor_facility_code": other},
            )
        return [ClearanceTemplateVersioned(**dict(self), versioned_by=call.principal_id)]


@template.command(post="/{template_id}/deprecate", allowed=[ACTIVE], records=ClearanceTemplateDeprecated, destructive=True)
class DeprecateClearanceTemplate(Verb[ClearanceTemplate]):
    """Take no new clearances under this template; its code stays taken."""

    reason: Annotated[str, template.text("reason", 500, personal=True)] | None = None


@template.command(post="/{template_id}/withdraw", allowed=[DRAFT, ACTIVE, DEPRECATED], destructive=True)
class WithdrawClearanceTemplate(Verb[ClearanceTemplate]):
    """Strike the template from the catalog; its code is free again."""

    def decide(self, template: ClearanceTemplate, call: Call) -> Outcome:
        release = Release(TEMPLATE_CODE, code_key(template.facility_code, template.code))
        return [ClearanceTemplateWithdrawn(withdrawn_by=call.principal_id), release]


GetClearanceTemplate = template.get(hidden=["created_at"])
COLUMNS = "code title facility_code version status defined_at"


class ClearanceTemplateSummary(Summary):
    time: ClassVar[str] = "defined_at"
    template_id: UUID
    code: str
    title: FreeText
    facility_code: str
    version: int
    status: ClearanceTemplateStatus
    defined_at: datetime


@template.listing(ClearanceTemplateSummary)
class ListClearanceTemplates(NamedListQuery[ClearanceTemplateSummary]):
    """Clearance templates in order of definition."""

    facility_code: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    status: ClearanceTemplateStatus | None = None
    code: Annotated[str, Field(min_length=1, max_length=50)] | None = None
