"""What a document shows of an answer, and what it may leave out."""

from typing import Any

import pytest

from tests.support.documents.printed_answers import MisfitError, fit_answer, json_lines, page_lines, parts_of
from tests.support.documents.transcript_comparison import TranscriptMatch, are_alike
from tests.support.tables import for_each

ONE, TWO, THREE = (f"01a1dd05-0000-7000-8000-00000000000{digit}" for digit in "123")
LONG: dict[str, Any] = {
    "items": [{"name": "Rotary stage " * 5, "status": "Active", "ids": [ONE, TWO], "empty": {}} for _ in range(3)],
    "text": "word " * 40,
    "next_cursor": None,
}


def renewed_answer(before: str, answer: str) -> str:
    return "\n".join(page_lines(fit_answer(before, answer, are_alike)))


@for_each(
    ("before", "answer", "after"),
    [
        ('{"a": 1, ...}', '{"a":2,"b":3}', '{"a": 2, ...}'),
        ('{"a": [1, ...]}', '{"a":[1,2,3]}', '{"a": [1, ...]}'),
        ('[..., {"b": 2, ...}, ...]', '[{"b":1},{"b":2,"c":3},{"b":4}]', '[..., {"b": 2, ...}, ...]'),
        ('{"text": "It was..."}', '{"text":"It was late."}', '{"text": "It was..."}'),
        ("HTTP/1.1 200 OK\n...\n{}", "HTTP/1.1 200 OK\ndate: today\n\n{}", "HTTP/1.1 200 OK\n...\n{}"),
        ('id: 1\ndata: {"a": 1, ...}', 'id: 2\ndata: {"a":3,"b":4}', 'id: 2\ndata: {"a": 3, ...}'),
        ('{"say": "a \\"...\\" b"}', '{"say":"a \\"...\\" b"}', '{"say": "a \\"...\\" b"}'),
    ],
)
def test_what_was_left_out_stays_left_out(before: str, answer: str, after: str) -> None:
    assert renewed_answer(before, answer) == after


@for_each(
    ("before", "answer"),
    [
        ('{"a": 1}', '{"a":1,"b":2}'),
        ('{"a": 1, "b": 2, ...}', '{"a":1}'),
        ("[1, 2]", "[1,2,3]"),
        ('[..., {"b": 9}, ...]', '[{"b":1}]'),
        ("{}", "refused"),
        ("one", "one\ntwo"),
        ("one\ntwo", "one"),
        ("...\nthree", "one\ntwo"),
    ],
)
def test_what_is_not_as_shown_does_not_fit(before: str, answer: str) -> None:
    with pytest.raises(MisfitError):
        fit_answer(before, answer, are_alike)


def test_json_is_laid_out_to_fit_the_page_and_can_be_read_back() -> None:
    lines = json_lines(LONG)
    assert len(lines) > 3
    assert [line for line in lines if len(line) > 120 and "word" not in line] == []
    [read] = parts_of("\n".join(lines))
    assert read.value == LONG  # type: ignore[union-attr]


def test_an_id_of_the_document_is_one_id_of_the_run() -> None:
    transcript_match = TranscriptMatch()
    assert transcript_match.differences(f"asset {ONE} of {ONE} at position 7", f"asset {TWO} of {TWO} at position 9") == []
    assert transcript_match.in_run(f"/assets/{ONE}?min_position=7&limit=7") == f"/assets/{TWO}?min_position=9&limit=7"
    assert transcript_match.differences(f"asset {ONE}", f"asset {THREE}") == [
        f"the id {ONE} was {TWO} before, and is {THREE} now"
    ]
    assert transcript_match.differences(f"asset {THREE}", f"asset {TWO}") == [
        f"the id {THREE} is the one that is {ONE} elsewhere"
    ]


@for_each(
    ("document", "run"),
    [
        ("status Held", "status Running"),
        (f"asset {ONE}", "asset none"),
        ("00000000-0000-0000-0000-000000000010", "00000000-0000-0000-0000-000000000020"),
        ('"version": 3', '"version": 4'),
    ],
)
def test_what_does_not_vary_must_be_the_same(document: str, run: str) -> None:
    assert TranscriptMatch().differences(document, run)


def test_times_and_spans_vary() -> None:
    document = "at 2026-11-15T19:24:36.935514+00:00, ready in 5.9 s, succeeded after 0:00:18: all"
    run = "at 2027-01-01T00:00:00Z, ready in 12.3 s, succeeded after 0:01:00: all"
    assert TranscriptMatch().differences(document, run) == []
