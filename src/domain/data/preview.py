"""The preview of a dataset: a small picture of what its file holds now. The file is read where the API runs, and is not
compared with the dataset's checksum."""

from enum import StrEnum

from baton.domain.data.dataset import Dataset, dataset
from baton.domain.data.distribution import copies_of
from baton.domain.kernel import Call, Query
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import AskPort, Reads
from baton.domain.shared.refusals import Conflict

MAX_TRIED = 8  # Files that are tried, one after the other.


class PreviewUnavailableReason(StrEnum):
    NO_FILE = "no_file"  # No copy is a file that can be read here.
    NO_PICTURE = "no_picture"  # The file holds no array of two or more axes.
    UNREADABLE = "unreadable"  # It is damaged, still being written, too large, or compressed in another way.
    READER_MISSING = "reader_missing"  # What reads files is not installed here.


class DatasetPreviewUnavailableError(Conflict, context="data"):
    """There is no picture of this dataset now; the reason says why."""


@dataset.query(get="/{dataset_id}/preview.png", media_types=["image/png"], refuses=[DatasetPreviewUnavailableError])
class GetDatasetPreview(Query):
    """A small picture of a dataset: the middle frame of the largest array in its HDF5 file, in shades of grey."""

    def answer(self, dataset: Dataset, call: Call) -> Reads[AskPort]:
        copies = yield from copies_of(dataset.id)
        uris = dict.fromkeys((dataset.uri, *(copy.uri for copy in copies)))
        files = tuple(uri for uri in uris if uri.lower().startswith("file:"))
        return AskPort(Ports.preview, (files[:MAX_TRIED],))
