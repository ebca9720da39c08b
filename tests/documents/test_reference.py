"""The reference is what the declarations say, and every way through it leads somewhere."""

import re
from collections.abc import Mapping

import pytest

from baton.domain.contexts import REGISTRY
from tests.documents.reference.__main__ import PLACE
from tests.documents.reference.pages import pages
from tests.documents.reference.refusals import raisers

LINK = re.compile(r"\[[^]]+\]\(([\w-]+\.md)?(?:#([\w-]+))?\)")


@pytest.fixture(scope="module")
def written() -> Mapping[str, str]:
    """The pages as they would be written now."""
    return pages(REGISTRY)


def test_the_pages_are_what_the_declarations_say(written: Mapping[str, str]) -> None:
    kept = {path.name: path.read_text() for path in PLACE.glob("*.md")}
    stale = sorted(
        name for name in kept.keys() | written.keys() if without_lines(kept, name) != without_lines(written, name)
    )
    assert stale == [], "the declarations have changed: run `make reference`, and commit docs/reference"


def without_lines(pages: Mapping[str, str], name: str) -> str | None:
    """A page without the line numbers of its links, which move with every edit of a module."""
    return re.sub(r"#L\d+", "", pages[name]) if name in pages else None


def test_every_link_leads_to_a_heading(written: Mapping[str, str]) -> None:
    headings = {
        name: {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", text, re.M)} for name, text in written.items()
    }
    for name, text in written.items():
        for page, anchor in LINK.findall(text):
            assert (page or name) in headings, f"{name} leads to {page}"
            assert not anchor or anchor in headings[page or name], f"{name} leads to {page}#{anchor}"


def anchor_of(heading: str) -> str:
    """Where readers of Markdown find a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_operation_and_every_event_has_its_place(written: Mapping[str, str]) -> None:
    everything = "\n".join(written.values())
    for operation in REGISTRY:
        assert f"\n### {operation.name}\n" in everything
        assert f"`{operation.method} {operation.path}`, permission `{operation.command_name}`" in everything
    for aggregate in REGISTRY.aggregates.values():
        for event in aggregate.events:
            assert f"\n| `{event}` |" in everything


def test_whoever_got_a_refusal_finds_what_it_means(written: Mapping[str, str]) -> None:
    for refusal in raisers(REGISTRY):
        assert re.search(rf"^\| `{refusal.__name__}` \| {refusal.status} \| .+\. \| .+ \|$", written["refusals.md"], re.M)
    assert (
        "| `RunCannotHoldError` | 409 | `hold_run` is possible only from Running. "
        "Reasons: `held`, `completed`, `stopped`, `aborted`, `truncated`. | [hold_run](run.md#hold_run) |"
    ) in written["refusals.md"]


def test_a_table_of_states_says_where_a_verb_leads(written: Mapping[str, str]) -> None:
    assert "|  | Running | Held | Completed | Stopped | Aborted | Truncated |" in written["run.md"]
    assert "| [hold_run](#hold_run) | Held |  |  |  |  |  |" in written["run.md"]
    assert "| [resume_run](#resume_run) |  | Running |  |  |  |  |" in written["run.md"]
