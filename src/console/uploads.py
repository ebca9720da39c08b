"""Uploads: what a form sends that carries a file, in parts between boundaries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from baton.api.errors import RequestValidationError
from baton.api.parsing import refuse_nul

MOST_PARTS = 100
LONGEST_NAME = 200
BOUNDARY = re.compile(r'multipart/form-data\s*;(?:.*;)?\s*boundary=(?:"([ -!#-~]{1,70})"|([!-:<-~]{1,70}))\s*(?:;.*)?', re.I)
FIELD_NAME, FILE_NAME = re.compile(r'[;\s]name="([^"]*)"', re.I), re.compile(r'[;\s]filename="([^"]*)"', re.I)


@dataclass(frozen=True)
class UploadedFile:
    """A file as a browser sends it; its name is what somebody called it, and leads nowhere."""

    name: str
    content: bytes


@dataclass(frozen=True)
class FileForm:
    """What was typed into the fields of a form, and the file that was chosen, if any."""

    typed: dict[str, str]
    file: UploadedFile | None = None


def read_file_form(content_type: str, body: bytes) -> FileForm:
    """Return what a form with a file sends; several values of one field stand on lines of their own."""
    typed: dict[str, str] = {}
    file = None
    try:
        for name, file_name, content in parts_of(content_type, body):
            if file_name is None:
                text = content.decode()
                typed[name] = f"{typed[name]}\n{text}" if typed.get(name) else text
            elif file_name:
                file = UploadedFile(re.split(r"[/\\]", file_name)[-1][-LONGEST_NAME:], content)
    except ValueError:
        raise RequestValidationError.at("body", msg="The form cannot be read", type="form_parsing") from None
    refuse_nul({**typed, "file": file.name if file else ""}, "body")
    return FileForm(typed, file)


def parts_of(content_type: str, body: bytes) -> Iterator[tuple[str, str | None, bytes]]:
    """Yield the name of each part, what its file is called where it is one, and its content."""
    if (found := BOUNDARY.fullmatch(content_type)) is None:
        raise ValueError("no boundary")
    boundary = b"\r\n--" + (found[1] or found[2]).encode("ascii")
    _, *parts = (b"\r\n" + body).split(boundary, MOST_PARTS + 1)
    if not parts or len(parts) > MOST_PARTS or not parts[-1].startswith(b"--"):
        raise ValueError("no end, or too many parts")
    for part in parts[:-1]:
        head, divided, content = part.partition(b"\r\n\r\n")
        name, file_name = (pattern.search(head.decode()) for pattern in (FIELD_NAME, FILE_NAME))
        if not divided or name is None:
            raise ValueError("no name")
        yield name[1], None if file_name is None else file_name[1].replace("%22", '"'), content
