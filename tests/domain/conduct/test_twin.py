"""The twin of a rehearsal: what is set stays, a motor's readback follows, and nothing moves by itself."""

from hypothesis import given
from hypothesis import strategies as st

from baton.domain.conduct.twin import UNKNOWN, Twin, TwinSignal, TwinValue, ValueSource
from baton.domain.equipment.values import value_field

ADDRESSES = ("bl7:x", "bl7:x.VAL", "bl7:x.RBV", "bl7:x:sub", "bl7:xy", "bl7:cam1", "bl7:cam1:Acquire", "bl7/cam1")
SETTINGS = st.lists(st.tuples(st.sampled_from(ADDRESSES), st.integers()), max_size=20)


def set_value(value: object) -> TwinValue:
    return TwinValue(value, ValueSource.SET)


def twin_of(*addresses: str) -> Twin:
    return Twin(map(TwinSignal, addresses))


@given(SETTINGS)
def test_a_signal_holds_what_was_set_last_and_no_other_moves(settings: list[tuple[str, int]]) -> None:
    twin, expected = twin_of(*ADDRESSES), {value_field(address): UNKNOWN for address in ADDRESSES}
    for address, value in settings:
        twin.set(address, set_value(value))
        expected[value_field(address)] = set_value(value)
        if value_field(address) == "bl7:x.VAL":
            expected["bl7:x.RBV"] = set_value(value)
        assert {key: twin.ask(key) for key in expected} == expected


def test_a_record_and_its_val_field_are_one_signal_and_its_readback_follows() -> None:
    twin = twin_of("bl7:x", "bl7:x.RBV")
    twin.set("bl7:x.VAL", set_value(2.5))
    assert [twin.ask(address).value for address in ("bl7:x", "bl7:x.VAL", "bl7:x.RBV")] == [2.5, 2.5, 2.5]


@given(SETTINGS, st.sampled_from(ADDRESSES))
def test_what_is_forgotten_is_an_address_and_all_below_it(settings: list[tuple[str, int]], forgotten: str) -> None:
    twin = twin_of(*ADDRESSES)
    for address, value in settings:
        twin.set(address, set_value(value))
    before = {address: twin.ask(address) for address in ADDRESSES}
    twin.forget(forgotten)
    root = forgotten.removesuffix(".VAL")
    for address in ADDRESSES:
        gone = address.removesuffix(".VAL") == root or address.startswith((f"{root}:", f"{root}.", f"{root}/"))
        assert twin.ask(address) == (UNKNOWN if gone else before[address])


def test_a_signal_that_nobody_listed_is_unknown_until_it_is_set() -> None:
    twin = Twin()
    assert not twin.ask("bl7:y").known
    twin.set("bl7:y", set_value(None))
    assert twin.ask("bl7:y").known
    assert twin.signal("bl7:y").limits == {}
