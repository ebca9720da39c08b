"""What is done with each kind of block: it is played, parsed, or shown only, and why."""

import ast
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

from baton.application.settings import Settings
from baton.domain.contexts import REGISTRY
from tests.support.documents.fenced_blocks import ROOT, Block

PLAYED = frozenset({"console", "python", "output"})
SHOWN_ONLY = {
    "text": "drawings, trees, and what is seen on a terminal that moves",
    "sh": "what starts the service or runs the tests, which the tests do in ways of their own",
}
EXECUTED_ELSEWHERE = {
    Path("docs/changing-events.md"): "tests/documents/test_changing_events.py runs its programs",
    Path("docs/extending.md"): "tests/documents/test_extending.py runs its programs",
    Path("docs/developing.md"): "tests/documents/test_developing.py runs its programs",
}
MAKE = re.compile(r"\bmake ([a-z]+)")


def is_played(block: Block) -> bool:
    """Whether a block is played from the page it stands on."""
    return block.kind in PLAYED and block.page not in EXECUTED_ELSEWHERE


def objections(block: Block) -> list[str]:
    """What is wrong with a block, by itself."""
    match block.kind:
        case "console" | "output" | "text":
            return []
        case "python":
            return parse_errors(ast.parse, block.text)
        case "toml":
            return parse_errors(tomllib.loads, block.text)
        case "json":
            return parse_errors(json.loads, block.text) or parse_errors(validate_described_json, block.about, block.text)
        case "sh":
            targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            return [f"there is no `make {name}`" for name in MAKE.findall(block.text) if name not in targets]
        case "":
            return ["say of what kind it is, behind the opening fence"]
        case kind:
            return [f"nobody knows what to do with a block of kind {kind}"]


def validate_described_json(about: str, text: str) -> None:
    """Validate JSON as what its block names: the value of a setting, or the body of a command."""
    if not about:
        return
    if about.lower() in Settings.model_fields:
        Settings(**{about.lower(): json.loads(text)})
        return
    command = next(operation.input for operation in REGISTRY if operation.input.__name__ == about)
    command.model_validate_json(text)


def parse_errors(read: Callable[..., object], *text: str) -> list[str]:
    """Return the error that reading a text raises, if any."""
    try:
        read(*text)
    except (ValueError, SyntaxError, StopIteration) as error:
        return [f"{type(error).__name__}: {error}"]
    return []
