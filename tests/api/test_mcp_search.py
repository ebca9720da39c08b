"""The search that finds an operation by a question, a phrase, a name or a code."""

import json
from functools import cache
from pathlib import Path

import pytest

from baton.api.mcp.field_words import SYNONYMS
from baton.api.mcp.search import PHRASES, Index
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.support.tables import for_each

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
OPERATIONS = [operation for operation in REGISTRY if operation.mcp]
WANTED_RATE = 0.9
FEWEST_PHRASES = 3


@cache
def index() -> Index:
    return Index(OPERATIONS)


def hit_rate(file: str) -> tuple[float, list[str]]:
    """The share of questions whose operation is among the first three found, and the questions where it is not."""
    questions = json.loads((DATA / file).read_text())
    missed = [
        asked["question"]
        for asked in questions
        if not {found.name for found in index().rank(asked["question"], OPERATIONS)[:3]} & set(asked["wanted"])
    ]
    return 1 - len(missed) / len(questions), missed


def test_the_wanted_operation_is_among_the_first_three_for_most_questions() -> None:
    rate, missed = hit_rate("mcp_questions.json")
    assert rate >= WANTED_RATE, missed


def test_questions_that_the_search_was_not_made_for_are_mostly_answered_too() -> None:
    rate, missed = hit_rate("mcp_questions_held_out.json")
    assert rate >= WANTED_RATE, missed


def test_the_words_of_the_field_lead_to_operations() -> None:
    said = [one.strip() for line in SYNONYMS.strip().splitlines() for one in line.split(":")[0].split(",")]
    assert len(said) == len(set(said)), "something is said twice"


def test_every_operation_has_phrases_by_which_people_ask_for_it() -> None:
    assert PHRASES.keys() == REGISTRY.operations.keys(), "each operation has its line in phrases.json, and nothing else does"
    few = [name for name, phrases in PHRASES.items() if len(set(phrases)) < FEWEST_PHRASES]
    assert not few, f"these need {FEWEST_PHRASES} phrases that differ, separated by semicolons: {few}"


def test_a_phrase_of_each_operation_finds_it() -> None:
    one_of_each = [(one, PHRASES[one.name][place % len(PHRASES[one.name])]) for place, one in enumerate(OPERATIONS)]
    assert not unfound(one_of_each)


@pytest.mark.soak
def test_every_phrase_finds_its_operation() -> None:
    assert not unfound([(operation, phrase) for operation in OPERATIONS for phrase in PHRASES[operation.name]])


def unfound(said: list[tuple[Operation, str]]) -> list[str]:
    """Return the phrases whose operation is not among the first three found."""
    return [phrase for operation, phrase in said if operation not in index().rank(phrase, OPERATIONS)[:3]]


def test_the_exact_name_and_the_exact_code_come_first() -> None:
    for operation in OPERATIONS:
        assert index().rank(operation.name, OPERATIONS)[0] is operation
    assert index().rank("why RunCannotResumeError", OPERATIONS)[0].name == "resume_run"


@for_each(
    ("words", "first"),
    [
        ("hold visit", "hold_visit"),
        ("hold_visit", "hold_visit"),
        ("Visits", "get_visit"),
        ("check in a visit", "check_in_visit"),
        ("VisitCannotHoldError", "hold_visit"),
        ("erase everything personal", "forget_actor"),
        ("who am I", "get_my_access"),
        ("open a queue", "open_queue"),
        ("facilities and sites", "list_facilities"),
        ("a second person must approve this command", "define_policy"),
        ("which actions are there", "list_actions"),
        ("how do I propose a run", "get_my_access"),
        ("set up a scan from devices and steps", "set_up_plan"),
    ],
)
def test_words_find_operations(words: str, first: str) -> None:
    assert index().rank(words, OPERATIONS)[0].name == first


def test_an_operation_is_found_by_the_causes_of_its_refusals() -> None:
    found = index().rank("already_bound", OPERATIONS)
    assert "bind_actor_subject" in [operation.name for operation in found[:3]]


def test_what_is_not_asked_for_among_is_not_found() -> None:
    visits = [operation for operation in OPERATIONS if operation.name == "hold_visit"]
    assert index().rank("visit", visits) == visits
    assert index().rank("xylophone", OPERATIONS) == []
