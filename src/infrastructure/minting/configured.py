"""Which registry issues this deployment's persistent identifiers."""

from typing import assert_never

from baton.application.minting import Minter
from baton.application.settings import PidMinter, Settings
from baton.infrastructure.minting.datacite import DataCiteMinter
from baton.infrastructure.minting.development import DeterministicMinter


def configured_minter(settings: Settings) -> Minter | None:
    """The adapter that the settings name; None where nothing is minted."""
    match settings.pid_minter:
        case PidMinter.NONE:
            return None
        case PidMinter.DEVELOPMENT:
            return DeterministicMinter()
        case PidMinter.DATACITE:
            prefix, repository_id, password = (
                settings.datacite_prefix,
                settings.datacite_repository_id,
                settings.datacite_password,
            )
            if prefix is None or repository_id is None or password is None:
                raise ValueError("DATACITE_PREFIX, DATACITE_REPOSITORY_ID or DATACITE_PASSWORD is not set")
            return DataCiteMinter(settings.datacite_address, prefix, repository_id, password.get_secret_value())
        case _:
            assert_never(settings.pid_minter)
