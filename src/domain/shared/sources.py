"""Where an operation or a refusal is declared: `src/...py:line`."""

import re
import sys
from functools import cache
from pathlib import Path

import baton
from baton.domain.registry import Operation
from baton.domain.shared.refusals import Refusal

PACKAGE = Path(baton.__file__).parent


def operation_source(operation: Operation) -> str | None:
    """Return `src/...py:line` of the class that declares an operation, or of its aggregate where that generates it."""
    source = class_source(operation.input)
    return refusal_source(operation.aggregate.NotFound) if source is None and operation.aggregate else source


def refusal_source(refusal: type[Refusal]) -> str | None:
    """Return `src/...py:line` of a refusal, or of the declaration that generates it."""
    if refusal.declared_at is None:
        return class_source(refusal)
    module, line = refusal.declared_at
    return f"{repository_path(module)}:{line}"


def class_source(cls: type[object]) -> str | None:
    """Return `src/...py:line` of a class statement; None for a generated class."""
    line = class_lines(cls.__module__).get(cls.__name__)
    return None if line is None else f"{repository_path(cls.__module__)}:{line}"


def repository_path(module: str) -> str:
    """Return the path of a module in the repository, or its name where it belongs to another distribution."""
    path = Path(sys.modules[module].__file__ or "")
    return f"src/{path.relative_to(PACKAGE)}" if path.is_relative_to(PACKAGE) else module


@cache
def class_lines(module: str) -> dict[str, int]:
    """Return the lines of a module's class statements."""
    try:
        text = Path(sys.modules[module].__file__ or "").read_text()
    except (OSError, UnicodeDecodeError):
        return {}
    return {match[1]: text.count("\n", 0, match.start()) + 1 for match in re.finditer(r"^class (\w+)", text, re.MULTILINE)}
