"""What a dataset and each of its copies say about their bytes: where they are, their checksum, size and encoding."""

import re
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import Field

from baton.domain.kernel import SortedSet, Value
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import FreeText, MayContainPersonalData, unnameable_character

MAX_URI = 2048
MAX_PROFILES = 16
MAX_BYTES = 2**53 - 1  # The largest whole number that every reader of JSON keeps exactly; about nine petabytes.
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:.)")
ACTIVE_SCHEMES = frozenset({"javascript", "vbscript", "data", "about", "view-source"})
"""What a browser would run or make up instead of fetching."""
DIGEST = re.compile(r"[0-9a-f]{64}")

GivenUri = Annotated[str, Field(min_length=1, max_length=MAX_URI), MayContainPersonalData()]
GivenByteSize = Annotated[int, Field(strict=True, description="In bytes.")]
GivenWord = Annotated[str, Field(min_length=1, max_length=200)]


class ChecksumAlgorithm(StrEnum):
    SHA256 = "sha256"  # Of one file.
    SHA256_TREE = "sha256-tree"  # Of the files of a directory, with their paths.


class Checksum(Value):
    """The digest that the bytes must have."""

    algorithm: ChecksumAlgorithm
    value: str
    """The digest, as 64 hex digits."""


class Encoding(Value):
    """The form of the bytes: media type, and the profiles that the content keeps to."""

    media_type: str
    conforms_to: SortedSet[str]


class GivenChecksum(Value):
    """The digest that the bytes must have: `sha256` of a file or `sha256-tree` of a directory, as 64 hex digits."""

    algorithm: GivenWord
    value: GivenWord
    """The digest, as 64 hex digits."""


class GivenEncoding(Value):
    """The form of the bytes: media type, and the URIs of the profiles that the content keeps to, 16 at most."""

    media_type: GivenWord
    conforms_to: Annotated[SortedSet[Annotated[str, Field(min_length=1, max_length=MAX_URI)]], Field(max_length=1000)] = (
        frozenset()
    )


class ContentRefusals(NamedTuple):
    """The classes by which an aggregate refuses a wrong description of bytes."""

    uri: type[Refusal]
    checksum: type[Refusal]
    byte_size: type[Refusal]
    encoding: type[Refusal]


class Content(Value):
    """A description of bytes that was looked at: where they are, their digest, size and form."""

    uri: FreeText
    checksum: Checksum
    byte_size: int
    encoding: Encoding

    @classmethod
    def from_given(
        cls, uri: str, checksum: GivenChecksum, byte_size: int, encoding: GivenEncoding, refuse: ContentRefusals
    ) -> Self:
        """Return the description in these values, or refuse the first wrong one."""
        return cls(
            uri=checked_uri(uri, refuse.uri),
            checksum=_checked_checksum(checksum, refuse.checksum),
            byte_size=_checked_size(byte_size, refuse.byte_size),
            encoding=_checked_encoding(encoding, refuse.encoding),
        )


def checked_uri(given: str, refusal: type[Refusal]) -> str:
    """Return a trimmed URI whose scheme names a place, or refuse it."""
    uri = given.strip()
    if not uri:
        raise refusal("The URI is blank; say where the bytes are.", reason="blank")
    if character := unnameable_character(uri):
        raise refusal(f"The URI holds {character}, which no URI has; leave it out.", reason="control_character")
    if (scheme := SCHEME.match(uri)) is None:
        raise refusal("The URI names no scheme; begin it with file:, https: or the like.", reason="no_scheme")
    if scheme[0].lower() in ACTIVE_SCHEMES:
        detail = f"A URI of the scheme {scheme[0]} names no place that bytes are at; give the address of the bytes."
        raise refusal(detail, reason="scheme_not_allowed")
    return uri


def scheme_of(uri: str) -> str:
    """Return the scheme of a checked URI, in lower case."""
    return uri.partition(":")[0].lower()


def _checked_checksum(given: GivenChecksum, refusal: type[Refusal]) -> Checksum:
    if given.algorithm not in list(ChecksumAlgorithm):
        known = ", ".join(ChecksumAlgorithm)
        raise refusal(f"There is no checksum {given.algorithm!r}; choose one of {known}.", reason="unknown_algorithm")
    if DIGEST.fullmatch(given.value) is None:
        raise refusal("A checksum is 64 lowercase hexadecimal digits; correct it.", reason="not_a_digest")
    return Checksum(algorithm=ChecksumAlgorithm(given.algorithm), value=given.value)


def _checked_size(given: int, refusal: type[Refusal]) -> int:
    if given < 0:
        raise refusal("A size in bytes is 0 or more; correct it.", reason="negative")
    if given > MAX_BYTES:
        raise refusal(f"A size in bytes is {MAX_BYTES} at the most; correct it.", reason="too_large")
    return given


def _checked_encoding(given: GivenEncoding, refusal: type[Refusal]) -> Encoding:
    media_type = given.media_type.strip()
    if not media_type or unnameable_character(media_type):
        raise refusal("The media type is blank or no name; give one such as application/x-hdf5.", reason="media_type")
    if (count := len(given.conforms_to)) > MAX_PROFILES:
        detail = f"Bytes name at most {MAX_PROFILES} profiles, and {count} are given; leave some out."
        raise refusal(detail, reason="too_many_profiles")
    profiles = frozenset(checked_uri(profile, refusal) for profile in given.conforms_to)
    return Encoding(media_type=media_type, conforms_to=profiles)
