"""Checksums of what programs leave behind: one file, or a whole tree of files."""

import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Checksum(NamedTuple):
    """The digest of a file, or of a tree and how many files it has."""

    algorithm: str
    value: str
    byte_size: int
    entry_count: int | None


class NothingToHash(Exception):
    """There is no file and no tree of files here; the message says what there is instead."""


def checksum(path: Path) -> Checksum:
    """The checksum of a file or tree. Reads everything, so call it beside the event loop."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            digest, size = _digest(path)
            return Checksum("sha256", digest.hex(), size, None)
        if stat.S_ISDIR(mode):
            return _tree(path)
    except OSError as error:
        raise NothingToHash(f"{error.filename or path}: {error.strerror}") from error
    raise NothingToHash(f"{path} is neither a file nor a directory")


def _tree(root: Path) -> Checksum:
    """One running hash over the files by path: length of the path, path, digest of the file."""
    files = sorted((_portable(root, path), path) for path in _files(root))
    if not files:
        raise NothingToHash(f"{root} holds no file")
    whole, total = hashlib.sha256(), 0
    for name, path in files:
        digest, size = _digest(path)
        whole.update(len(name).to_bytes(8, "big") + name + digest)
        total += size
    return Checksum("sha256-tree", whole.hexdigest(), total, len(files))


def _files(root: Path) -> Iterator[Path]:
    directories = [root]
    while directories:
        with os.scandir(directories.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    directories.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)
                else:
                    raise NothingToHash(f"{entry.path} is neither a file nor a directory")


def _portable(root: Path, path: Path) -> bytes:
    """The path below the root in the form that is the same on every file system."""
    try:
        return unicodedata.normalize("NFC", path.relative_to(root).as_posix()).encode()
    except UnicodeEncodeError as error:
        raise NothingToHash(f"{root} holds a file whose name is no UTF-8") from error


def _digest(path: Path) -> tuple[bytes, int]:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        return digest, file.tell()
