"""What `python -m tests.checks` objects to in documents, and what it lets pass."""

import pytest

from tests.checks.__main__ import lost_words, unclear_prose
from tests.support.tables import for_each


def entry(word: str, place: str) -> str:
    return f"| **{word}** | what it means | {place} | nothing else |"


@for_each(
    ("word", "place", "fault"),
    [
        ("Caller", "`src/application/ports.py:Caller`", "does not define Caller"),
        ("Caller", "`src/application/nobody.py:Caller`", "there is no src/application/nobody.py"),
        ("Caller", "application/caller.py", "names no place"),
        ("Walrus", "`src/application/caller.py:Caller`", "says nothing of Walrus"),
        ("Walrus", "`src/plugin.py`", "says nothing of Walrus"),
    ],
)
def test_a_word_of_the_glossary_is_where_it_says(word: str, place: str, fault: str) -> None:
    [complaint] = lost_words(entry(word, place))
    assert fault in complaint


@for_each(
    ("word", "place"),
    [
        ("Caller", "`src/application/caller.py:Caller`"),
        ("Verb", "`src/domain/kernel.py:Verb`"),
        ("Upcaster", "`src/domain/kernel.py:Upcaster`"),
        ("Plugin", "`src/plugin.py`"),
    ],
)
def test_classes_assignments_and_modules_are_places(word: str, place: str) -> None:
    assert list(lost_words(entry(word, place))) == []


def test_a_word_has_one_entry() -> None:
    row = entry("Caller", "`src/application/caller.py:Caller`")
    assert list(lost_words(f"{row}\n{row}")) == ["docs/glossary.md: Caller has two entries"]


@pytest.mark.parametrize(
    "sentence",
    [
        "The work goes on.",
        "The list is filled anew.",
        "A row that stands there.",
        "Who is late says who won.",
        "All is well. What waits is counted.",
        "- **Bold:** Who can\n  read it.",
    ],
)
def test_a_turn_of_phrase_that_readers_stumble_over_is_objected_to(sentence: str) -> None:
    assert len(list(unclear_prose("page.md", f"# Page\n\n{sentence}\n"))) == 1


@pytest.mark.parametrize(
    "text",
    ["Who may do this? The owner.", "# What it is\n", "| Who | What |\n", "Type `anew` there.", "It says what it does."],
)
def test_questions_headings_tables_and_code_pass(text: str) -> None:
    assert list(unclear_prose("page.md", text)) == []


def test_a_document_is_short_unless_it_is_a_table() -> None:
    words = "word " * 1_501
    assert ["1501 words" in complaint for complaint in unclear_prose("page.md", words)] == [True]
    assert list(unclear_prose("docs/glossary.md", words)) == []
