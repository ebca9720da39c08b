"""What a safety form says: what it covers, which hazards are declared there, and what its reviewers decided."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StrictInt

from baton.domain.kernel import SortedSet, Value
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, MayContainPersonalData, Text


class InvalidClearanceBindingsError(Invalid, context="safety"):
    """A clearance covers at least one thing, and an outside reference needs a scheme and a value that are not blank."""


class InvalidClearanceDeclarationTargetError(Invalid, context="safety"):
    """Hazards are declared only for what the clearance covers."""


class InvalidClearanceMitigationRefError(Invalid, context="safety"):
    """A mitigation must not be blank."""


class InvalidClearanceHazardNotesError(Invalid, context="safety"):
    """Notes on a hazard are empty or have visible text."""


class InvalidHazardClassificationError(Invalid, context="safety"):
    """A hazard rating is out of its scheme's range, or a text of it is blank."""


class RiskBand(StrEnum):
    GREEN = "Green"
    YELLOW = "Yellow"
    RED = "Red"


NfpaSpecial = Literal["OX", "W", "SA", "COR", "ACID", "ALK", "BIO", "POI", "RA", "CRYO"]
GhsCode = Literal["GHS01", "GHS02", "GHS03", "GHS04", "GHS05", "GHS06", "GHS07", "GHS08", "GHS09"]


class RecordBinding(Value):
    """A record that a form covers; it need not exist yet."""

    kind: Literal["Subject", "Asset", "Run", "Procedure"]
    """What kind of record the form covers."""
    id: UUID
    """The id of the record that the form covers; it need not exist yet."""


class ExternalBinding(Value):
    """Something outside this service that a form covers: a proposal, a beamtime request, a visit."""

    kind: Literal["External"]
    scheme: Annotated[str, Text(50, InvalidClearanceBindingsError, "scheme of the outside reference")]
    """What kind of thing it is outside, such as proposal."""
    value: Annotated[str, Text(200, InvalidClearanceBindingsError, "value of the outside reference")]
    """Its number or name outside."""


Binding = Annotated[RecordBinding | ExternalBinding, Field(discriminator="kind")]
Bindings = SortedSet[Binding]


def rating_text(max_length: int, label: str) -> Text:
    """Declare a text of a hazard rating."""
    return Text(max_length, InvalidHazardClassificationError, label)


class NfpaRating(Value):
    """A rating by NFPA 704, each degree from 0 to 4."""

    kind: Literal["NFPA704"]
    health: StrictInt
    flammability: StrictInt
    instability: StrictInt
    special: NfpaSpecial | None = None


class RiskBandRating(Value):
    """A rating by the facility's own bands."""

    kind: Literal["RiskBand"]
    band: RiskBand


class GhsRating(Value):
    """A pictogram of the Globally Harmonized System with its statements."""

    kind: Literal["GHS"]
    code: GhsCode
    """The pictogram, from GHS01 to GHS09."""
    statement_codes: Annotated[tuple[Annotated[str, rating_text(16, "statement code")], ...], Field(max_length=100)] = ()


class SchemeRating(Value):
    """A rating by any other scheme, in that scheme's own words."""

    kind: Literal["Scheme"]
    scheme: Annotated[str, rating_text(50, "scheme")]
    code: Annotated[str, rating_text(100, "code")]
    """The rating, in the scheme's own code."""
    severity_label: Annotated[str, rating_text(100, "severity label")] | Literal[""] = ""


HazardClassification = Annotated[NfpaRating | RiskBandRating | GhsRating | SchemeRating, Field(discriminator="kind")]
"""A hazard in the terms of one scheme; severity is never converted between schemes."""
Mitigation = Annotated[str, Text(200, InvalidClearanceMitigationRefError, "mitigation", personal=True)]
HazardNotes = Annotated[str, Text(2000, InvalidClearanceHazardNotesError, "notes", personal=True)] | Literal[""] | None


class HazardDeclaration(Value):
    """The hazards of one thing the form covers, and what is done about them."""

    target: Binding
    """What the hazards belong to; one of the things that the form covers."""
    classifications: Annotated[tuple[HazardClassification, ...], Field(max_length=100)] = ()
    mitigations: Annotated[tuple[Mitigation, ...], Field(max_length=100)] = ()
    notes: HazardNotes = None


Declarations = Annotated[SortedSet[HazardDeclaration], MayContainPersonalData()]


class ReviewDecision(StrEnum):
    APPROVED = "Approved"
    REJECTED = "Rejected"
    REQUESTED_CHANGES = "RequestedChanges"


class ReviewStep(Value):
    """What one reviewer decided."""

    step_index: int
    """The index of this step of the review, counted from 0."""
    role: str
    """The role in which the reviewer decided."""
    decided_by: UUID
    decision: ReviewDecision
    """What the reviewer decided."""
    decided_at: datetime
    """When the reviewer decided, as the reviewer says."""
    recorded_at: datetime
    """When the step was recorded."""
    notes: FreeText | None


def check_ratings(declarations: Iterable[HazardDeclaration]) -> None:
    """Refuse a degree outside the range of its scheme."""
    ratings = (rating for declaration in declarations for rating in declaration.classifications)
    for rating in ratings:
        for name in ("health", "flammability", "instability") if isinstance(rating, NfpaRating) else ():
            degree = getattr(rating, name)
            if not 0 <= degree <= 4:
                detail = f"The NFPA 704 degree of {name} is {degree}; give one from 0 to 4."
                raise InvalidHazardClassificationError(detail, reason="out_of_range", facts={"degree": name})


def check_targets(declarations: Iterable[HazardDeclaration], bindings: Iterable[Binding]) -> None:
    """Refuse hazards of something that the form does not cover."""
    covered = set(bindings)
    for declaration in declarations:
        if declaration.target not in covered:
            detail = "A declaration's target is not among the bindings; bind it too, or drop the declaration."
            raise InvalidClearanceDeclarationTargetError(detail, facts={"target": declaration.target})
