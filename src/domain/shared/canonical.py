"""One canonical JSON for hashes, fingerprints and signatures: NFC strings, then RFC 8785."""

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from uuid import UUID


def canonical_json(value: object) -> bytes:
    """Return the one byte form of a JSON value; 25 and 25.0 are the same number."""
    return _write(value).encode()


def content_hash(value: object) -> str:
    """Return the SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def derived_uuid7(milliseconds: int, namespace: str, name: str) -> UUID:
    """Return a UUIDv7-shaped id that anyone can derive again: the trigger's time, the rest from a hash."""
    digest = int.from_bytes(hashlib.sha256(f"{namespace}\0{name}".encode()).digest()[:10], "big")
    bits = (milliseconds & (2**48 - 1)) << 80 | digest
    return UUID(int=bits & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62))


def _write(value: object) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return json.dumps(unicodedata.normalize("NFC", value), ensure_ascii=False)
        case int() | float():
            return _number(value)
        case UUID():
            return json.dumps(str(value))
        case Mapping():
            members = {unicodedata.normalize("NFC", str(key)): item for key, item in value.items()}
            ordered = sorted(members, key=lambda key: key.encode("utf-16-be"))
            return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_write(members[key])}" for key in ordered) + "}"
        case Sequence():
            return "[" + ",".join(_write(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} has no canonical JSON form")


def _number(value: int | float) -> str:
    """Return ECMAScript's shortest form of the double, as RFC 8785 asks; integers beyond 2**53 keep their digits."""
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)
    if not math.isfinite(value):
        raise ValueError("NaN and infinities have no JSON form")
    if value == 0:
        return "0"
    mantissa, _, exponent_text = repr(abs(float(value))).partition("e")
    whole, _, fraction = mantissa.partition(".")
    significant = (whole + fraction).lstrip("0")
    exponent = int(exponent_text or 0) + len(significant) - len(fraction)
    digits = significant.rstrip("0")
    sign = "-" if value < 0 else ""
    if len(digits) <= exponent <= 21:
        return sign + digits + "0" * (exponent - len(digits))
    if 0 < exponent <= 21:
        return f"{sign}{digits[:exponent]}.{digits[exponent:]}"
    if -6 < exponent <= 0:
        return f"{sign}0.{'0' * -exponent}{digits}"
    power = exponent - 1
    point = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}e{'+' if power > 0 else '-'}{abs(power)}"
