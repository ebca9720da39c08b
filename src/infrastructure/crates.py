"""Crates as zip files: every file is compared with its checksum while it is packed."""

import asyncio
import hashlib
import io
import os
import zipfile
from dataclasses import dataclass

from baton.domain.data.crate import METADATA, ZIP, CrateDraft, CrateFile
from baton.domain.kernel import Document
from baton.infrastructure.data_files import DataFiles, FileUnreachableError

MOST_BYTES = 64 * 1024 * 1024  # of all files in one crate; the others are named by their addresses


@dataclass(frozen=True)
class LocalCrates:
    """Packs the files under the data roots."""

    files: DataFiles
    most_bytes: int = MOST_BYTES

    async def pack(self, draft: CrateDraft) -> Document:
        return Document(ZIP, await asyncio.to_thread(self._pack, draft))

    def _pack(self, draft: CrateDraft) -> bytes:
        whole, left, packed = io.BytesIO(), self.most_bytes, set()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in draft.files:
                if file.byte_size <= left and (content := self._read(file)) is not None:
                    archive.writestr(zipfile.ZipInfo(file.path), content)
                    packed.add(file.dataset_id)
                    left -= len(content)
            archive.writestr(zipfile.ZipInfo(METADATA), draft.metadata(packed))
        return whole.getvalue()

    def _read(self, file: CrateFile) -> bytes | None:
        """Return the bytes of a file; None where they cannot be read here, or are not what was registered."""
        try:
            with os.fdopen(self.files.open(file.uri), "rb") as opened:
                content = opened.read(file.byte_size + 1)
        except (FileUnreachableError, OSError):
            return None
        return content if hashlib.sha256(content).hexdigest() == file.sha256 else None
