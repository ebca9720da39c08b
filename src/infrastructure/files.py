"""Files and links that are written completely or not at all, and checksums of a program's output."""

import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple


def write_once(path: Path, content: bytes) -> None:
    """Create a file if there is none; it is linked to its name only once it is on disk."""
    directory = path.parent
    directory.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=directory, prefix=".") as draft:
        os.fchmod(draft.fileno(), 0o640)
        draft.write(content)
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            os.link(draft.name, path)
    sync(directory)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in the place of one that may be there; a reader finds the one or the other."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(path)


def replace_link(path: Path, target: Path) -> None:
    """Make a symbolic link in the place of one that may be there; a reader finds the one or the other."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(path)


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a directory, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class FileDigest(NamedTuple):
    """The digest of a file, or of a tree with its number of files."""

    algorithm: str
    value: str
    byte_size: int
    entry_count: int | None


class NothingToHashError(Exception):
    """There is no file and no tree of files; the message says what there is instead."""


def checksum(path: Path) -> FileDigest:
    """Return the checksum of a file or tree; it reads everything, so call it in a thread."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            digest, size = _digest(path)
            return FileDigest("sha256", digest.hex(), size, None)
        if stat.S_ISDIR(mode):
            return _tree(path)
    except OSError as error:
        raise NothingToHashError(f"{error.filename or path}: {error.strerror}") from error
    raise NothingToHashError(f"{path} is neither a file nor a directory")


def _tree(root: Path) -> FileDigest:
    """Hash all files in the order of their paths: length of the path, path, digest of the file."""
    files = sorted((_portable(root, path), path) for path in _files(root))
    if not files:
        raise NothingToHashError(f"{root} holds no file")
    whole, total = hashlib.sha256(), 0
    for name, path in files:
        digest, size = _digest(path)
        whole.update(len(name).to_bytes(8, "big") + name + digest)
        total += size
    return FileDigest("sha256-tree", whole.hexdigest(), total, len(files))


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
                    raise NothingToHashError(f"{entry.path} is neither a file nor a directory")


def _portable(root: Path, path: Path) -> bytes:
    try:
        return unicodedata.normalize("NFC", path.relative_to(root).as_posix()).encode()
    except UnicodeEncodeError as error:
        raise NothingToHashError(f"{root} holds a file whose name is no UTF-8") from error


def _digest(path: Path) -> tuple[bytes, int]:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        return digest, file.tell()
