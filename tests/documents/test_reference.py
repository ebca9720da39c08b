"""The reference is what the declarations say, and its links lead to headings."""

import re
from collections.abc import Mapping

import pytest

from baton.domain.contexts import REGISTRY
from tests.documents.reference.__main__ import PLACE
from tests.documents.reference.order import operations_in_order
from tests.documents.reference.pages import pages
from tests.documents.reference.refusals import raisers

pytestmark = pytest.mark.slow

LINK = re.compile(r"\[[^]]+\]\(([\w-]+\.md)?(?:#([\w-]+))?\)")


@pytest.fixture(scope="module")
def reference_pages() -> Mapping[str, str]:
    """The pages as `make reference` would write them now."""
    return pages(REGISTRY)


def test_the_pages_are_what_the_declarations_say(reference_pages: Mapping[str, str]) -> None:
    stored = {path.name: path.read_text() for path in PLACE.glob("*.md")}
    stale = sorted(
        name
        for name in stored.keys() | reference_pages.keys()
        if without_lines(stored, name) != without_lines(reference_pages, name)
    )
    assert stale == [], "the declarations have changed: run `make reference`, and commit docs/reference"


def without_lines(pages: Mapping[str, str], name: str) -> str | None:
    """Return a page without the line numbers of its links, which move with every edit of a module."""
    return re.sub(r"#L\d+", "", pages[name]) if name in pages else None


def test_every_link_leads_to_a_heading(reference_pages: Mapping[str, str]) -> None:
    headings = {
        name: {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", text, re.M)}
        for name, text in reference_pages.items()
    }
    for name, text in reference_pages.items():
        for page, anchor in LINK.findall(text):
            assert (page or name) in headings, f"{name} leads to {page}"
            assert not anchor or anchor in headings[page or name], f"{name} leads to {page}#{anchor}"


def anchor_of(heading: str) -> str:
    """Return the anchor of a Markdown heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_operations_are_listed_in_one_order_whichever_module_was_imported_first() -> None:
    assert list(REGISTRY) == operations_in_order(REGISTRY)


def test_every_operation_and_every_event_has_its_place(reference_pages: Mapping[str, str]) -> None:
    everything = "\n".join(reference_pages.values())
    for operation in REGISTRY:
        assert f"\n### {operation.name}\n" in everything
        assert f"`{operation.method} {operation.path}`, permission `{operation.command_name}`" in everything
    for aggregate in REGISTRY.aggregates.values():
        for event in aggregate.events:
            assert f"\n| `{event}` |" in everything


def test_every_refusal_is_explained_in_the_reference(reference_pages: Mapping[str, str]) -> None:
    for refusal in raisers(REGISTRY):
        assert re.search(
            rf"^\| `{refusal.__name__}` \| {refusal.status} \| .+\. \| .+ \|$", reference_pages["refusals.md"], re.M
        )
    assert (
        "| `RunCannotHoldError` | 409 | `hold_run` is possible only from Running. "
        "Reasons: `held`, `completed`, `stopped`, `aborted`, `truncated`, `witnessed`. | [hold_run](run.md#hold_run) |"
    ) in reference_pages["refusals.md"]


def test_a_table_of_states_says_where_a_verb_leads(reference_pages: Mapping[str, str]) -> None:
    assert "|  | Running | Held | Completed | Stopped | Aborted | Truncated |" in reference_pages["run.md"]
    assert "| [hold_run](#hold_run) | Held |  |  |  |  |  |" in reference_pages["run.md"]
    assert "| [resume_run](#resume_run) |  | Running |  |  |  |  |" in reference_pages["run.md"]
