"""References to records outside: trimmed, and never two under one key."""

import pytest

from baton.domain.shared.identifiers import trimmed_refs
from baton.domain.shared.refusals import Invalid
from tests.support.tables import for_each


class BadReferenceError(Invalid):
    """The reference is none."""


def test_references_are_trimmed_and_in_order() -> None:
    given = {"visit ": " 7", "proposal": "89421"}
    assert list(trimmed_refs(given, BadReferenceError).items()) == [("proposal", "89421"), ("visit", "7")]


@for_each(
    ("refs", "reason"),
    [
        ({" ": "7"}, None),
        ({"visit": "\t"}, None),
        ({"v" * 51: "7"}, None),
        ({"visit": "7" * 201}, None),
        ({"proposal": "89421", " proposal": "90000"}, "repeated"),
    ],
)
def test_a_reference_that_would_be_lost_or_cut_is_refused(refs: dict[str, str], reason: str | None) -> None:
    with pytest.raises(BadReferenceError) as caught:
        trimmed_refs(refs, BadReferenceError)
    assert caught.value.reason == reason
