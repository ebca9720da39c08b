"""Files that importers read: text of a bounded size, in UTF-8 or Latin-1."""

from pathlib import Path

MOST_BYTES = 64 * 1024 * 1024


class UnreadableSourceError(ValueError):
    """A file that cannot be imported; the sentence says which, where and why."""


def read_text(path: Path) -> str:
    """Return the text of a file."""
    try:
        if not path.is_file():
            raise UnreadableSourceError(f"{path} is no file; give the path of one.")
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableSourceError(f"{path.name} has more than {MOST_BYTES // 1024**2} MB; split it.")
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableSourceError(f"{path} cannot be read: {error.strerror}.") from None
    if b"\0" in content:
        raise UnreadableSourceError(f"{path.name} is no text: it holds bytes of zero.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
