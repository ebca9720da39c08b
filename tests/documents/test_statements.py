"""The documents say what there is: settings and their defaults, requests, commands, and pages to read on."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

import baton.api.app
from baton.application.control import ControlError
from baton.application.settings import Settings
from baton.cli.doctor.examination import CHECKS
from baton.cli.main import RecipeGroup, app
from baton.domain.contexts import REGISTRY
from baton.domain.shared.refusals import Refusal
from baton.domain.step.signal_rules import NOT_REACHED
from tests.support.documents.document_player import PLANT
from tests.support.documents.fenced_blocks import ROOT, documents
from tests.support.documents.shift_aggregate import subclasses
from tests.support.tables import for_each

assert baton.api.app, "the operations and refusals of the edge are declared by importing it"

PAGES = {page: (ROOT / page).read_text() for page in documents()}
DOCUMENTS = "\n".join(PAGES.values())
SERVED = "\n".join(text for page, text in PAGES.items() if page != Path("docs/coverage.md"))
"""The pages without the one that lists what is specified and missing."""
OPERATING = "\n".join(text for page, text in PAGES.items() if page.parent.name == "operating")
ROW = re.compile(r"^\| `([A-Z_]+)` \| (.+) \|$", re.MULTILINE)
ROWS = [(name, said) for name, said in ROW.findall(DOCUMENTS) if name.lower() in Settings.model_fields]
JSON_VALUE = re.compile(r"`([\[{].*?[\]}])`")
DEFAULT = re.compile(r" \(`?([\w.]+)`?\)(?:$|[.,:;])")
"""What stands in brackets at the end of a part of a sentence."""
INLINE_DEFAULT = re.compile(r"`([A-Z_]+)` \(`?([\w.]+)`?\)")
DEFAULTS = [(name, found) for name, said in ROWS for found in DEFAULT.findall(said)] + INLINE_DEFAULT.findall(DOCUMENTS)
REQUEST = re.compile(r"\b(GET|POST|PATCH|PUT|DELETE) (/[\w{}/.-]*)")
COMMAND = re.compile(r"`(?:\.venv/bin/)?baton ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
CHECK = re.compile(r"baton doctor --only ([a-z]+)")
CODE = re.compile(r"`(\w+Error)`")
FOREIGN = {"NonDeterministicError"}
"""What the engine calls it."""
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^):]+))?\)")
DECISION = re.compile(r"^\| \d+ \| .+ \|$", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
METRIC = re.compile(r"`?\b(baton_[a-z_]+)\b")
NAMED_PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
EDGE = {"/", "/health", "/readyz", "/metrics", "/docs", "/mcp"}
"""What is served and is no operation."""


def named_pages() -> Iterator[str]:
    """Yield every page that sources, tests and templates name."""
    for room in ("src", "tests", ".github"):
        for path in (ROOT / room).rglob("*"):
            if path.suffix in (".py", ".md", ".yml", ".html"):
                yield from NAMED_PAGE.findall(path.read_text())


@for_each("name", sorted(name.upper() for name in Settings.model_fields))
def test_a_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in DOCUMENTS or f"`{name}=" in DOCUMENTS


@for_each(("name", "example"), [(name, found) for name, said in ROWS for found in JSON_VALUE.findall(said)])
def test_an_example_of_a_setting_is_accepted(name: str, example: str) -> None:
    Settings(**{name.lower(): json.loads(example)})


@for_each(("name", "default"), DEFAULTS)
def test_a_documented_default_is_the_default(name: str, default: str) -> None:
    chosen = Settings.model_fields[name.lower()].default
    assert default in (str(chosen), json.dumps(chosen, default=str).strip('"'))


def test_the_plant_of_the_tours_is_one_that_the_service_takes() -> None:
    assert Settings(simulated_devices=json.loads(PLANT.read_text())).simulated_devices


@for_each("request_line", sorted({" ".join(found) for found in REQUEST.findall(SERVED)}))
def test_a_request_can_be_made(request_line: str) -> None:
    method, path = request_line.split()
    assert path in EDGE or (method, without_names(path.rstrip("."))) in known_requests()


@cache
def known_requests() -> set[tuple[str, str]]:
    return {(operation.method, without_names(operation.path)) for operation in REGISTRY}


@for_each("code", sorted(set(CODE.findall(OPERATING)) - FOREIGN))
def test_a_refusal_can_be_met_with(code: str) -> None:
    assert code in {NOT_REACHED, *(error.__name__ for kind in (Refusal, ControlError) for error in subclasses(kind))}


def without_names(path: str) -> str:
    """Return a path without the names of its placeholders, which differ between pages."""
    return re.sub(r"{\w+}", "{}", path)


def command_names(command: Any, *above: str) -> Iterator[tuple[str, ...]]:
    """Yield every command of the command line, with the names of its groups; `conduct` also takes a recipe by itself."""
    for name, inner in getattr(command, "commands", {}).items():
        yield (*above, name, "")
        if not hasattr(inner, "commands") or isinstance(inner, RecipeGroup):
            yield (*above, name)
        yield from command_names(inner, *above, name)


@for_each("words", sorted(set(COMMAND.findall(DOCUMENTS))))
def test_a_command_can_be_given(words: tuple[str, str]) -> None:
    assert words in known_commands() or words[:1] in known_commands()


@cache
def known_commands() -> set[tuple[str, ...]]:
    return set(command_names(typer.main.get_command(app)))


@for_each("name", sorted(set(CHECK.findall(DOCUMENTS))))
def test_a_check_of_the_doctor_can_be_asked_for(name: str) -> None:
    assert name in CHECKS


@for_each("page", [*PAGES, Path("SECURITY.md"), Path("CHANGELOG.md")])
def test_a_link_leads_somewhere(page: Path) -> None:
    for link, place in LINK.findall((ROOT / page).read_text()):
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), link
        assert not place or place in anchors_of(target), f"{link}#{place}"


@for_each("page", sorted(named_pages()))
def test_a_page_that_the_sources_name_is_there(page: str) -> None:
    assert (ROOT / page).exists()


@for_each("name", sorted(set(METRIC.findall(PAGES[Path("docs/operating/alerts.md")]))))
def test_a_metric_is_served(name: str) -> None:
    assert f'"{name}"' in (ROOT / "src" / "api" / "metrics.py").read_text()


def test_the_index_of_decisions_lists_each_by_its_title() -> None:
    index = PAGES[Path("docs/decisions/README.md")]
    numbered = sorted(page for page in PAGES if page.parent.name == "decisions" and page.name[0].isdigit())
    titles = [PAGES[page].partition("\n")[0].removeprefix("# ").split(". ", 1) for page in numbered]
    rows = [f"| {number} | [{title}]({page.name}) |" for page, (number, title) in zip(numbered, titles, strict=True)]
    assert DECISION.findall(index) == rows


@cache
def anchors_of(page: Path) -> set[str]:
    """Return the names that the headings of a page, or the lines of a module, can be linked by."""
    if page.suffix == ".py":
        return {f"L{number}" for number, _ in enumerate(page.read_text().splitlines(), start=1)}
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(page.read_text())}
