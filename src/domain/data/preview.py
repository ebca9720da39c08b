"""The preview of a dataset: a small picture of its file, which is read where the API runs. Its bytes are not compared with
the dataset's checksum, but a file of another size, or one written to since it was registered or checked, is not shown."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from baton.domain.data.dataset import Dataset, dataset
from baton.domain.data.distribution import STALE, copies_of
from baton.domain.kernel import Call, Document, Query
from baton.domain.shared.reads import AskPort, Reads
from baton.domain.shared.refusals import Conflict

MAX_TRIED = 8  # Files that are tried, one after the other.


class PreviewUnavailableReason(StrEnum):
    NO_FILE = "no_file"  # No copy is a file that can be read here.
    NO_PICTURE = "no_picture"  # The file holds no array of two or more axes.
    UNREADABLE = "unreadable"  # It is damaged, still being written, too large, or compressed in another way.
    READER_MISSING = "reader_missing"  # What reads files is not installed here.
    CHANGED = "changed"  # The file is not what was registered any more.


class DatasetPreviewUnavailableError(Conflict, context="data"):
    """There is no picture of this dataset now; the reason says why."""


class RegisteredFile(NamedTuple):
    """A file with what the record says of it: its size, and when its bytes were known to be right last."""

    uri: str
    byte_size: int
    known_at: datetime


class PreviewPort(Protocol):
    """Takes pictures of files."""

    async def preview(self, files: Sequence[RegisteredFile]) -> Document:
        """Return a picture of the first of these files that can be read here and is as it was registered; raise
        DatasetPreviewUnavailableError where there is none."""


@dataset.query(get="/{dataset_id}/preview.png", media_types=["image/png"], refuses=[DatasetPreviewUnavailableError])
class GetDatasetPreview(Query[Document]):
    """A small picture of a dataset: the middle frame of the largest array in its HDF5 file, in shades of grey.

    A Stale copy is not shown, nor is a file that has another size, or was written to after it was registered or verified.
    """

    def answer(self, dataset: Dataset, call: Call) -> Reads[AskPort]:
        return AskPort(PreviewPort.preview, ((yield from registered_files(dataset)),))


def registered_files(dataset: Dataset) -> Reads[tuple[RegisteredFile, ...]]:
    """Return the files of a dataset that a picture may be taken of; refuse where all of them have changed."""
    copies = yield from copies_of(dataset.id)
    files = {dataset.uri: RegisteredFile(dataset.uri, dataset.byte_size, dataset.created_at)}
    for copy in copies:
        known_at = max(copy.registered_at, copy.verified_at or copy.registered_at)
        files[copy.uri] = RegisteredFile(copy.uri, copy.byte_size, known_at)
    stale = {copy.uri for copy in copies if copy.status is STALE} - {one.uri for one in copies if one.status is not STALE}
    local = [file for uri, file in files.items() if uri.lower().startswith("file:")]
    shown = tuple(file for file in local if file.uri not in stale)
    if local and not shown:
        detail = "Every copy that could be shown is Stale: its bytes are not those that were registered; see why on it."
        raise DatasetPreviewUnavailableError(detail, reason=PreviewUnavailableReason.CHANGED)
    return shown[:MAX_TRIED]
