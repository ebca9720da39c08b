"""Datasets as catalogues are told of them, made of plain states."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from baton.domain.data.catalogue import CataloguedDataset
from baton.domain.data.dataset import Dataset, DatasetIntent
from baton.domain.data.distribution import AccessProtocol, Distribution
from baton.domain.data.values import Checksum, ChecksumAlgorithm, Encoding
from tests.support.domain.world import OPERATOR, new_id

REGISTERED_AT = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)
CHECKSUM = Checksum(algorithm=ChecksumAlgorithm.SHA256, value="ab" * 32)
HDF5 = Encoding(media_type="application/x-hdf5", conforms_to=frozenset())


def shown_dataset(uri: str = "file:///data/pellet/scan_001.h5", **fields: Any) -> CataloguedDataset:
    """A dataset of no run, without copies."""
    unknown = dict.fromkeys(
        (
            *("producing_run_id", "producing_procedure_id", "producing_run_end_state", "producing_actuation_kind"),
            "subject_id",
        )
    )
    values = {"derived_from": frozenset(), "used_calibration_ids": frozenset(), "intent": DatasetIntent.TRIAL}
    content = {"name": "scan_001.h5", "uri": uri, "checksum": CHECKSUM, "byte_size": 6, "encoding": HDF5}
    dataset = Dataset(id=new_id(), created_at=REGISTERED_AT, **{**unknown, **values, **content, **fields})
    return CataloguedDataset(dataset, None, (), None, "lumen", "Lumen Light Source")


def copy_at(shown: CataloguedDataset, uri: str, **fields: Any) -> Distribution:
    """A copy of the dataset."""
    content = {"checksum": CHECKSUM, "byte_size": 6, "encoding": HDF5, "access_protocol": AccessProtocol.POSIX}
    whose = {
        "dataset_id": shown.dataset.id,
        "supply_id": new_id(),
        "registered_at": REGISTERED_AT,
        "registered_by": OPERATOR,
    }
    return Distribution(id=new_id(), created_at=REGISTERED_AT, uri=uri, **{**content, **whose, **fields})


def with_dataset(shown: CataloguedDataset, **changes: Any) -> CataloguedDataset:
    return shown._replace(dataset=replace(shown.dataset, **changes))
