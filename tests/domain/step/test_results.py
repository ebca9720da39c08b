"""What a result holds of a value: the value itself, or where the ledger has it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.step.results import shown_value
from tests.support.domain.world import new_id
from tests.support.tables import for_each

ENTRY = new_id()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@for_each(
    ("value", "kind", "shape"),
    [
        ([], "Array", [0]),
        ([1.0, 2.0], "Array", [2]),
        ((1, 2, 3), "Array", [3]),
        ([[1, 2, 3], [4, 5, 6]], "Array", [2, 3]),
        ([["a"]], "Array", [1, 1]),
        ({"energy": [1, 2], "flux": [3, 4]}, "Tabular", [2]),
        ({}, "Tabular", [0]),
        ({"kind": "Image", "shape": [512, 512]}, "Image", [512, 512]),
    ],
)
def test_what_is_no_scalar_is_told_by_kind_shape_and_row(value: Any, kind: str, shape: list[int]) -> None:
    assert shown_value(value, ENTRY) == {"kind": kind, "shape": shape, "entry_id": str(ENTRY)}


@given(SCALARS)
def test_a_scalar_is_told_as_it_is(value: Any) -> None:
    assert shown_value(value, ENTRY) is value
