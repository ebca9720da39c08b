"""How a persistent identifier is issued by a registry: which ones this deployment issues, and who is assigned one."""

import re
from typing import TYPE_CHECKING, Any, ClassVar

from baton.domain.equipment.pidinst import PidinstRecord, citation_of
from baton.domain.equipment.values import ExternalIdEvent, ExternalIdScheme, IdentifierSuffix
from baton.domain.kernel import Call, Command, Outcome
from baton.domain.shared.ports import MintedIdentifier, Ports
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import ExternalIdMintingNotConfiguredError, Invalid
from baton.domain.shared.writes import Answer

if TYPE_CHECKING:
    from baton.domain.equipment.asset import Asset
    from baton.domain.equipment.fixture import Fixture

SUFFIX = re.compile(r"[-._;()/:*~$=a-zA-Z0-9]+")  # What registries accept behind their prefix.


class InvalidExternalIdSuffixError(Invalid, context="equipment"):
    """A suffix has letters of a to z, digits, and -._;()/:*~$= only."""


def refuse_unminted(scheme: ExternalIdScheme) -> Reads[None]:
    """Refuse to mint where no registry is configured that issues identifiers of this scheme."""
    deployment = yield from ask(Ports.deployment)
    if not deployment.minted_schemes:
        raise ExternalIdMintingNotConfiguredError(
            "No identifier registry is configured here; set PID_MINTER, or ask the operator of the service to.",
            reason="no_minter",
        )
    if scheme not in deployment.minted_schemes:
        issued = ", ".join(sorted(deployment.minted_schemes))
        raise ExternalIdMintingNotConfiguredError(
            f"The configured registry issues {issued} and no {scheme.value}; ask for {issued}.",
            reason="scheme_not_minted",
            facts={"external_id_schemes": sorted(deployment.minted_schemes)},
        )


class ExternalIdAssignment(Command):
    """A command that has a persistent identifier minted for what it is about, which keeps it for good."""

    assignment: ClassVar[type[ExternalIdEvent]]
    external_id_scheme: ExternalIdScheme
    suffix: IdentifierSuffix | None = None

    def refuse_second(self, holder: "Asset | Fixture") -> None:
        """Refuse to replace an identifier."""
        if holder.external_id is not None:
            raise self.cannot(
                "already_assigned",
                f"The {holder.aggregate.label} has a persistent identifier already; it keeps that one.",
                external_id_scheme=holder.external_id_scheme,
                external_id=holder.external_id,
            )

    def mint(self, holder: "Asset | Fixture", record: PidinstRecord) -> Reads[MintedIdentifier]:
        """Have the registry issue an identifier and publish the record with it; the suffix defaults to the holder's id."""
        yield from refuse_unminted(self.external_id_scheme)
        suffix = self.suffix or str(holder.id)
        if not SUFFIX.fullmatch(suffix):
            raise InvalidExternalIdSuffixError(
                "The suffix has characters that no registry accepts; use letters of a to z, digits, and -._;()/:*~$= only."
            )
        return (yield from ask(Ports.mint, self.external_id_scheme, suffix, citation_of(record)))

    def decide(self, holder: Any, call: Call, minted: MintedIdentifier) -> Outcome:
        assigned = self.assignment(external_id_scheme=minted.scheme, external_id=minted.value)
        return [assigned, Answer(assigned.model_dump(mode="json"))]
