"""A capability: the contract of a kind of operation, independent of its executor: the affordances that equipment needs, the
parameters, and whether methods, procedures or both may realise it."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.affordance import Affordance
from baton.domain.kernel import Aggregate, Call, Creation, Event, JudgedVerb, Outcome, SortedSet, Verb
from baton.domain.recipe.lifecycle import CURRENT, Template, TemplateDeprecated, TemplateStatus, TemplateVersioned
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, find_all, members_of, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.schema import Schema, check_declaration
from baton.domain.shared.text import OptionalReason, Remark, Text
from baton.domain.shared.writes import Claim, Delist, Enlist

CODE_PREFIX = "baton.capability."
CAPABILITY_CODE = "capability-code"  # Claim kind: the capability that holds a code, for ever.
CAPABILITIES = "capability"  # Look-up kind: the capabilities that are not Deprecated, all under one key.
ON_OFFER = "on-offer"


class ExecutorShape(StrEnum):
    """What may realise a capability."""

    METHOD = "METHOD"
    PROCEDURE = "PROCEDURE"


@dataclass(frozen=True, kw_only=True)
class Capability(Template):
    """A capability is the contract of a kind of operation, neutral as to who carries it out."""

    code: str
    """The code of the capability."""
    name: str
    description: str | None
    required_affordances: SortedSet[Affordance]
    executor_shapes: SortedSet[ExecutorShape]
    parameters_schema: Schema | None
    replaced_by_capability_id: UUID | None = None

    @property
    def parameters_schema_present(self) -> bool:
        return self.parameters_schema is not None


capability = Aggregate(Capability, "/capabilities", context="recipe")


class CapabilityDefined(Event, of=capability):
    """The contract was defined."""

    code: str
    name: str
    description: str | None
    required_affordances: SortedSet[Affordance]
    executor_shapes: SortedSet[ExecutorShape]
    parameters_schema: Schema | None


class CapabilityVersioned(TemplateVersioned, of=capability):
    """The contract was replaced as a whole."""

    description: str | None
    required_affordances: SortedSet[Affordance]
    executor_shapes: SortedSet[ExecutorShape]
    parameters_schema: Schema | None


class CapabilityDeprecated(TemplateDeprecated, of=capability):
    """The capability was deprecated: no procedure is newly registered for it."""

    replaced_by_capability_id: UUID | None


capability.evolve(Capability.fold_lifecycle)


class InvalidCapabilityCodeError(Invalid, context="recipe"):
    """A capability's code begins with the common prefix and has a name of its own behind it."""


class InvalidCapabilityParametersSchemaError(Invalid, context="recipe"):
    """The parameter schema names the wrong dialect, uses a keyword outside the allowed set or does not compile."""


class InvalidExecutorShapesError(Invalid, context="recipe", reason="empty"):
    """A capability must be realised by methods, by procedures or by both."""


class InvalidCapabilityReplacementError(Invalid, context="recipe", reason="itself"):
    """A capability cannot be replaced by itself."""


class CapabilityCodeAlreadyExistsError(Conflict, context="recipe", reason="code_taken"):
    """The code belongs to another capability, for ever."""


Description = Annotated[str | None, Remark(2000)]


@capability.creation()
class DefineCapability(Creation):
    """Define the contract of a kind of operation: the affordances it needs, its parameters and who may realise it."""

    code: Annotated[str, Text(200, InvalidCapabilityCodeError, "code")]
    """The code of the capability, such as baton.capability.tomography."""
    name: Annotated[str, capability.text("name", 200)]
    required_affordances: SortedSet[Affordance]
    executor_shapes: SortedSet[ExecutorShape]
    description: Description = None
    parameters_schema: Schema | None = None

    def decide(self, call: Call) -> Outcome:
        if self.code == CODE_PREFIX or not self.code.startswith(CODE_PREFIX):
            detail = f"The code must be {CODE_PREFIX} and a name behind it, such as {CODE_PREFIX}tomography."
            raise InvalidCapabilityCodeError(detail, reason="wrong_form", facts={"code": self.code})
        check_contract(self)
        detail = f"The code {self.code} belongs to another capability; use that one or choose another code."
        taken = CapabilityCodeAlreadyExistsError(detail, facts={"code": self.code})
        claim = Claim(CAPABILITY_CODE, unicodedata.normalize("NFC", self.code), rival=taken)
        return [CapabilityDefined(**dict(self)), claim, Enlist(CAPABILITIES, ON_OFFER)]


@capability.command(post="/{capability_id}/version", allowed=CURRENT, leads_to=TemplateStatus.VERSIONED)
class VersionCapability(Verb[Capability]):
    """Replace the contract as a whole: nothing is kept by leaving it out; methods written under the old one stand."""

    version_tag: Annotated[str, capability.text("version_tag", 50)]
    required_affordances: SortedSet[Affordance]
    executor_shapes: SortedSet[ExecutorShape]
    description: Description
    parameters_schema: Schema | None

    def decide(self, capability: Capability, call: Call) -> Outcome:
        check_contract(self)
        return [CapabilityVersioned(**dict(self))]


def check_contract(contract: DefineCapability | VersionCapability) -> None:
    """Refuse a contract that nothing may realise, or whose parameters may not be declared."""
    if not contract.executor_shapes:
        raise InvalidExecutorShapesError("No executor shape is given; name METHOD, PROCEDURE or both.")
    check_declaration(contract.parameters_schema, InvalidCapabilityParametersSchemaError)


@capability.command(post="/{capability_id}/deprecate", allowed=CURRENT, destructive=True)
class DeprecateCapability(JudgedVerb[Capability, None]):
    """Keep procedures from being newly registered for it, and say what replaces it; what refers to it stays as it is."""

    reason: OptionalReason = None
    replaced_by_capability_id: UUID | None = None

    def gather(self, capability: Capability, call: Call) -> Reads[None]:
        yield from require_if_given(Capability, self.replaced_by_capability_id)

    def decide(self, capability: Capability, call: Call, facts: None) -> Outcome:
        if self.replaced_by_capability_id == capability.id:
            raise InvalidCapabilityReplacementError("A capability cannot replace itself; name another one or none.")
        return [CapabilityDeprecated(**dict(self)), Delist(CAPABILITIES, ON_OFFER)]


def capabilities_on_offer() -> Reads[list[Capability]]:
    """Return every capability that is not Deprecated, by code."""
    ids = yield from members_of(CAPABILITIES, ON_OFFER)
    found = yield from find_all(Capability, ids)
    return sorted((one for one in found.values() if one.status in CURRENT), key=lambda one: one.code)


GetCapability = capability.get()


class CapabilitySummary(Summary):
    capability_id: UUID
    code: str
    name: str
    status: TemplateStatus
    version_tag: str | None
    description: str | None
    required_affordances: SortedSet[Affordance]
    executor_shapes: SortedSet[ExecutorShape]
    parameters_schema_present: bool
    replaced_by_capability_id: UUID | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None


@capability.listing(CapabilitySummary)
class ListCapabilities(NamedListQuery[CapabilitySummary]):
    """Capabilities in order of definition."""

    status: TemplateStatus | None = None
    code: Annotated[str, Field(min_length=1, max_length=200)] | None = None
