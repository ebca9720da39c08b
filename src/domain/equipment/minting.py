"""How a persistent identifier comes from a registry: which ones this deployment issues, and what is published with them."""

import re

from baton.domain.equipment.pidinst import PidinstRecord, citation_of
from baton.domain.equipment.values import ExternalIdScheme
from baton.domain.shared.ports import MintedIdentifier, Ports
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import ExternalIdMintError, ExternalIdMintingNotConfiguredError, Invalid

SUFFIX = re.compile(r"[-._;()/:*~$=a-zA-Z0-9]+")
"""What registries accept behind their prefix."""


class InvalidExternalIdSuffixError(Invalid, context="equipment"):
    """A suffix has letters of a to z, digits, and -._;()/:*~$= only."""


MINT_REFUSALS = (ExternalIdMintingNotConfiguredError, InvalidExternalIdSuffixError, ExternalIdMintError)
"""Everything that can keep an identifier from being issued."""


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


def mint_identifier(scheme: ExternalIdScheme, suffix: str, record: PidinstRecord) -> Reads[MintedIdentifier]:
    """Have the registry issue an identifier under this suffix and publish the record with it."""
    yield from refuse_unminted(scheme)
    if not SUFFIX.fullmatch(suffix):
        raise InvalidExternalIdSuffixError(
            "The suffix has characters that no registry accepts; use letters of a to z, digits, and -._;()/:*~$= only."
        )
    return (yield from ask(Ports.mint, scheme, suffix, citation_of(record)))
