"""The catalogues that a deployment's settings name."""

from baton.application.ports import Catalogue
from baton.application.settings import Settings
from baton.infrastructure.catalogues.scicat import SciCat
from baton.infrastructure.catalogues.tiled_directory import TiledDirectory
from baton.infrastructure.data_files import DataFiles


def configured_catalogues(settings: Settings, files: DataFiles) -> tuple[Catalogue, ...]:
    """Return the catalogues that datasets are entered into; without a setting, none."""
    catalogues: list[Catalogue] = []
    token, group, contact = settings.scicat_token, settings.scicat_owner_group, settings.scicat_contact_email
    if settings.scicat_address is not None and token is not None and group is not None and contact is not None:
        prefix = settings.scicat_pid_prefix or settings.self_facility_code
        catalogues.append(SciCat(settings.scicat_address, token.get_secret_value(), group, contact, prefix))
    if settings.tiled_directory is not None:
        catalogues.append(TiledDirectory(settings.tiled_directory, files))
    return tuple(catalogues)
