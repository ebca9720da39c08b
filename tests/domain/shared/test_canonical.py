"""The canonical JSON form: RFC 8785 on top of NFC strings, and the ids derived from hashes."""

import json
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.shared.canonical import canonical_json, content_hash, derived_uuid7
from tests.support.tables import for_each

RFC_8785_NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)


@for_each(("bits", "text"), RFC_8785_NUMBERS)
def test_numbers_are_written_as_rfc_8785_asks(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(value) == text.encode()


@for_each("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_nan_and_infinities_have_no_form(bits: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(ValueError, match="no JSON form"):
        canonical_json({"value": value})


@for_each(
    ("value", "text"), [(25, "25"), (25.0, "25"), (-0.0, "0"), (2**53, "9007199254740992"), (2**53 + 1, "9007199254740993")]
)
def test_whole_numbers_have_one_form_and_long_integers_keep_their_digits(value: float, text: str) -> None:
    assert canonical_json(value) == text.encode()


def test_booleans_are_not_numbers() -> None:
    assert canonical_json([True, 1, False, 0, None]) == b"[true,1,false,0,null]"


def test_strings_are_escaped_as_rfc_8785_asks() -> None:
    assert canonical_json('€$\u000f\nA\'B"\\\\"/\u007f') == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/\u007f"'.encode()


def test_keys_are_ordered_by_utf_16_code_units() -> None:
    members = {"\uffee": 1, "😀": 2, "€": 3, "ö": 4, "\u0080": 5, "1": 6, "\r": 7}
    assert list(json.loads(canonical_json(members)).values()) == [7, 6, 5, 4, 3, 2, 1]


def test_strings_and_keys_that_look_the_same_are_the_same() -> None:
    composed, decomposed = "\u00e9", "e\u0301"
    assert canonical_json({composed: composed}) == canonical_json({decomposed: decomposed})


def test_ids_are_written_as_text() -> None:
    id = UUID(int=7)
    assert canonical_json({"id": id}) == canonical_json({"id": str(id)})


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="set has no canonical JSON form"):
        canonical_json({"values": {1, 2}})


@given(documents)
def test_the_form_is_json_and_stable(document: Any) -> None:
    form = canonical_json(document)
    assert canonical_json(json.loads(form)) == form


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_float_loses_a_digit(value: float) -> None:
    assert float(canonical_json(value)) == value


@given(st.dictionaries(st.text(), st.integers(), max_size=6), st.randoms())
def test_the_order_of_keys_does_not_count(members: dict[str, int], random: Any) -> None:
    keys = list(members)
    random.shuffle(keys)
    assert content_hash({key: members[key] for key in keys}) == content_hash(members)


def test_a_content_hash_is_sha_256_of_the_form() -> None:
    assert content_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@given(st.integers(0, 2**48 - 1), st.text(), st.text())
def test_a_derived_id_is_a_uuid7_of_its_time_and_comes_out_the_same_again(time: int, namespace: str, name: str) -> None:
    id = derived_uuid7(time, namespace, name)
    assert (id.version, id.variant, id.int >> 80) == (7, "specified in RFC 4122", time)
    assert id == derived_uuid7(time, namespace, name) != derived_uuid7(time, namespace, f"{name}'")
