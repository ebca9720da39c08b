"""The minter of this deployment's persistent identifiers: DataCite, a local one for development, a package's, or none."""

from baton.application.ports import Minter
from baton.application.settings import PidMinter, Settings
from baton.domain.equipment.values import ExternalIdScheme
from baton.domain.shared.citation import Citation
from baton.domain.shared.ports import MintedIdentifier
from baton.infrastructure.minting.datacite import DataCiteMinter
from baton.infrastructure.plugins import MINTERS

TEST_PREFIXES = {ExternalIdScheme.DOI: "10.5072", ExternalIdScheme.HANDLE: "20.500.12345"}  # they do not resolve


class DeterministicMinter:
    """Mints for development: the same identifier for the same suffix every time, and nothing leaves the process."""

    schemes = frozenset(TEST_PREFIXES)

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        return MintedIdentifier(scheme, f"{TEST_PREFIXES[scheme]}/{suffix}")

    async def tombstone(self, scheme: ExternalIdScheme, value: str, reason: str) -> None:
        return

    async def aclose(self) -> None:
        return


def configured_minter(settings: Settings) -> Minter | None:
    match settings.pid_minter:
        case PidMinter.NONE:
            return None
        case PidMinter.DEVELOPMENT:
            return DeterministicMinter()
        case PidMinter.DATACITE:
            prefix, repository_id = settings.datacite_prefix, settings.datacite_repository_id
            password = settings.datacite_password
            if prefix is None or repository_id is None or password is None:
                raise ValueError("DATACITE_PREFIX, DATACITE_REPOSITORY_ID or DATACITE_PASSWORD is not set")
            return DataCiteMinter(settings.datacite_address, prefix, repository_id, password.get_secret_value())
        case str() as name:
            return MINTERS.make(name)
