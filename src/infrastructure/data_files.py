"""Files that the service may read: regular files whose real place is under one of the configured directories."""

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote_to_bytes

READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
CAUSES = {
    errno.ENOENT: "There is no such file.",
    errno.ENOTDIR: "There is no such file: a part of its path is no directory.",
    errno.EACCES: "The service may not read this file; correct its permissions.",
    errno.ENAMETOOLONG: "There is no such file: its path is too long.",
    errno.ELOOP: "There is no such file: its links lead in a circle.",
}


class FileUnreachableError(Exception):
    """A file cannot be read here; the message says why, and names no path."""


class DirectoryNamedError(FileUnreachableError):
    """The address leads to a directory."""


class DataFiles:
    """The files under the data roots. What a path leads to is judged once it is open, so that nobody can exchange it
    between the judgement and the reading; a hard link is a file of the directory it is in."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)

    def open(self, uri: str) -> int:
        """Return a descriptor that reads the regular file under a `file:` URI; the caller closes it."""
        path = path_of(uri)
        if not self._roots:
            raise FileUnreachableError("No directory of data files is configured; set DATA_ROOTS.")
        self._refuse_outside(os.path.realpath(path))  # So that a file elsewhere is not told from none.
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)  # Reads nothing and waits for nothing, whatever it is.
        except OSError as error:
            raise _unreachable(error) from error
        try:
            return self._open_for_reading(place)
        finally:
            os.close(place)

    def _open_for_reading(self, place: int) -> int:
        link = f"/proc/self/fd/{place}"
        try:
            self._refuse_outside(os.readlink(os.fsencode(link)))
            mode = os.fstat(place).st_mode
            if stat.S_ISDIR(mode):
                raise DirectoryNamedError("This is a directory; name a file in it.")
            if not stat.S_ISREG(mode):
                raise FileUnreachableError("This is no regular file, but a device, pipe or socket.")
            return os.open(link, READING)
        except OSError as error:
            raise _unreachable(error) from error

    def _refuse_outside(self, real_path: bytes) -> None:
        path = Path(os.fsdecode(real_path))
        if not any(path.is_relative_to(os.path.realpath(root)) for root in self._roots):
            raise FileUnreachableError("The file is outside the directories of data files (DATA_ROOTS).")


def path_of(uri: str) -> bytes:
    """Return the absolute path that a `file:` URI of this host names."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "file":
        raise FileUnreachableError("This is no file: URI.")
    if rest.startswith("//"):
        host, slash, after = rest[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            raise FileUnreachableError("The URI names another host; leave the host out of a file: URI.")
        rest = slash + after
    if not rest.startswith("/"):
        raise FileUnreachableError("The URI names no absolute path; write file:///directory/name.")
    if "?" in rest or "#" in rest:
        raise FileUnreachableError("A file: URI has neither query nor fragment; write %3F for ? and %23 for #.")
    try:
        path = unquote_to_bytes(rest)
    except UnicodeError as error:
        raise FileUnreachableError("The path of the URI is no text.") from error
    if b"\0" in path:
        raise FileUnreachableError("No path holds the character NUL.")
    return path


def _unreachable(error: OSError) -> FileUnreachableError:
    cause = CAUSES.get(error.errno or 0, f"The file cannot be opened ({errno.errorcode.get(error.errno or 0, 'unknown')}).")
    return FileUnreachableError(cause)
