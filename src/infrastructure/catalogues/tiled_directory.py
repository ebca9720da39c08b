"""A directory that Tiled serves: `<facility>/<year>/<run>/<dataset>.h5`, each a link to the file where it is, and beside it
a hidden file with what the record knows of it. Nothing is copied, and a link is all that ever goes."""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from baton.application.ports import CatalogueRefusedError, CatalogueUnavailableError
from baton.domain.data.catalogue import CataloguedDataset, origin_metadata
from baton.domain.data.dataset import DatasetStatus
from baton.domain.data.distribution import DistributionStatus
from baton.domain.data.values import ChecksumAlgorithm, scheme_of
from baton.domain.shared.deployment import CatalogueName
from baton.infrastructure.data_files import DataFiles, FileUnreachableError
from baton.infrastructure.files import replace_file, replace_link

NO_RUN = "no-run"
MAX_NAME_BYTES = 100  # of what a name contributes to that of a file; an id and a suffix come after it
SUFFIXES = {
    "application/x-hdf5": ".h5",
    "application/x-hdf": ".h5",
    "application/vnd.hdfgroup.hdf5": ".h5",
    "image/tiff": ".tif",
    "image/jpeg": ".jpg",
    "text/csv": ".csv",
    "application/x-npy": ".npy",
    "application/x-netcdf": ".nc",
    "application/x-parquet": ".parquet",
}  # by which Tiled finds the reader of each form


class TiledDirectory:
    """Links the file of every dataset that has one under the data roots."""

    name = CatalogueName.TILED

    def __init__(self, directory: Path, files: DataFiles) -> None:
        self._directory = directory
        self._files = files

    async def aclose(self) -> None:
        return

    async def enter(self, shown: CataloguedDataset) -> bool:
        try:
            return await asyncio.to_thread(self._enter, shown)
        except OSError as error:
            detail = f"TILED_DIRECTORY cannot be written ({error.strerror}); see to it, and it is tried again."
            raise CatalogueUnavailableError(detail, reason="unreachable") from error

    def _enter(self, shown: CataloguedDataset) -> bool:
        link = self._directory / link_path(shown)
        uris = list(linkable_uris(shown))
        if not uris:
            self._remove(link)
            return False
        target = self._real_path(uris)
        link.parent.mkdir(parents=True, exist_ok=True)
        replace_file(metadata_path(link), json.dumps(metadata_of(shown), indent=1, sort_keys=True).encode())
        replace_link(link, target)
        return True

    def _real_path(self, uris: list[str]) -> Path:
        """Return where the first of these files is that the service may read, links on the way resolved."""
        causes = []
        for uri in uris:
            try:
                opened = self._files.open(uri)
            except FileUnreachableError as error:
                causes.append(str(error))
                continue
            try:
                return Path(os.readlink(f"/proc/self/fd/{opened}"))
            finally:
                os.close(opened)
        raise CatalogueRefusedError(f"{causes[0]} Mend that, then retry the entry.")

    def _remove(self, link: Path) -> None:
        for path in (link, metadata_path(link)):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # other datasets are in it, or it was never made
            link.parent.rmdir()


def linkable_uris(shown: CataloguedDataset) -> Iterator[str]:
    """Yield where a dataset's file may be linked from: Verified copies, other copies, then the address it was registered
    with. Directories are not linked, nor anything of a Discarded dataset."""
    dataset = shown.dataset
    if dataset.status is DatasetStatus.DISCARDED or dataset.checksum.algorithm is not ChecksumAlgorithm.SHA256:
        return
    usable = [copy for copy in shown.copies if copy.status is not DistributionStatus.STALE]
    usable.sort(key=lambda copy: copy.status is not DistributionStatus.VERIFIED)
    addresses = [copy.uri for copy in usable] if shown.copies else [dataset.uri]
    yield from (uri for uri in addresses if scheme_of(uri) == "file")


def link_path(shown: CataloguedDataset) -> PurePosixPath:
    """Return the place of a dataset's link below the directory; it never changes, and no name leads out of it."""
    dataset, run = shown.dataset, shown.run
    folder = NO_RUN if run is None else f"{safe_name(run.name)}_{run.id}"
    own = PurePosixPath(urlsplit(dataset.uri).path).suffix
    suffix = SUFFIXES.get(dataset.encoding.media_type, own if re.fullmatch(r"\.[A-Za-z0-9]{1,10}", own) else "")
    name = f"{safe_name(dataset.name.removesuffix(suffix))}_{dataset.id}{suffix}"
    return PurePosixPath(shown.facility_code, str(dataset.created_at.year), folder, name)


def safe_name(name: str) -> str:
    """Return a name as a part of a file's: letters, digits, `-` and `_` only, since Tiled takes what follows a dot for the
    form of the file, and a slash or two dots lead elsewhere."""
    plain = re.sub(r"[^\w-]+", "_", name).strip("_")
    return plain.encode()[:MAX_NAME_BYTES].decode(errors="ignore") or "unnamed"


def metadata_path(link: Path) -> Path:
    """Return where the metadata of a linked file are; Tiled does not take a hidden file for data."""
    return link.with_name(f".{link.name}.json")


def metadata_of(shown: CataloguedDataset) -> dict[str, object]:
    """Return what the metadata file says of a dataset."""
    return {"name": shown.dataset.name, "facility_code": shown.facility_code, **origin_metadata(shown)}
