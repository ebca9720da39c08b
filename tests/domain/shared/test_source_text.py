"""Definitions as they are written: where a module is cut agrees with the parser, for every module of the domain."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from baton.domain.contexts import REGISTRY
from baton.domain.shared.source_text import STRING_OR_COMMENT, ModuleSource, module_source, on_one_line

assert REGISTRY.operations, "every module of the domain is imported"
MODULES = sorted(name for name in sys.modules if name.startswith("baton.domain."))
MODULE = '''
"""Text."""
from baton.domain.shared.text import (
    FreeText,
    Text as Words,
)

if TYPE_CHECKING:
    from baton.domain.kernel import Event

    alias = 1
else:

    def alias():
        return """
def hidden():
    pass
"""


FIRST, *REST = "#", '"', "'"  # a comment with "quotes"
LEFT = RIGHT = {
    "key": 1,
}
typed: int = 3


@mark(
    one=1,
)
class Thing:
    """A thing."""

    def method(self) -> int:
        return 1

    @property
    def other(self) -> int:
        def local() -> int:
            return 2

        return local()
'''


def parsed_definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield each name that is defined at the top of a module, with its statement."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(name)):
                yield name, statement
            case ast.Assign(targets=targets):
                names = (node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
                yield from ((node.id, statement) for node in names if isinstance(node.ctx, ast.Store))
            case ast.If(body=then, orelse=otherwise):
                yield from parsed_definitions([*then, *otherwise])


def test_every_definition_of_the_domain_is_found_whole() -> None:
    faults = []
    for name in MODULES:
        source = module_source(name)
        text = Path(sys.modules[name].__file__ or "").read_text()
        tree, lines = ast.parse(text), text.splitlines()
        expected: dict[str, list[str]] = {}
        for defined, statement in parsed_definitions(tree.body):
            first = min(one.lineno for one in (statement, *getattr(statement, "decorator_list", ())))
            written = "\n".join(lines[first - 1 : statement.end_lineno])
            expected.setdefault(defined, []).extend(code_of(dedent(STRING_OR_COMMENT.sub(on_one_line, written))))
        found = {defined: code_of(text) for defined, text in source.definitions.items()}
        faults += [f"{name}.{one}" for one in expected.keys() | found.keys() if expected.get(one) != found.get(one)]
        imports = [one for one in tree.body if isinstance(one, ast.ImportFrom)]
        pairs = {alias.asname or alias.name: (one.module, alias.name) for one in imports for alias in one.names}
        faults += [f"imports of {name}"] if pairs != source.imports else []
    assert len(MODULES) > 150
    assert faults == []


def code_of(text: str) -> list[str]:
    """Return the lines of a text without blank ones, and without the documentation below a constant."""
    return [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith('"')]


def test_a_module_is_cut_into_its_definitions() -> None:
    source = ModuleSource(MODULE)
    assert source.definitions.keys() == {"alias", "FIRST", "REST", "LEFT", "RIGHT", "typed", "Thing"}
    assert source.imports == {
        "FreeText": ("baton.domain.shared.text", "FreeText"),
        "Words": ("baton.domain.shared.text", "Text"),
    }
    assert source.definitions["FIRST"].rstrip() == """FIRST, *REST = "#", '"', "'\""""
    assert source.definitions["Thing"].startswith("@mark(\n    one=1,\n)\nclass Thing:\n")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("Thing.method", "def method(self) -> int:\n    return 1"),
        ("Thing.other", "@property\ndef other(self) -> int:"),
        ("Thing.other.<locals>.local", "@property\ndef other(self) -> int:"),
    ],
)
def test_a_method_has_a_text_of_its_own_and_a_local_function_that_of_the_one_around_it(name: str, first: str) -> None:
    text = ModuleSource(MODULE).definition(name)
    assert text is not None
    assert text.startswith(first)


@pytest.mark.parametrize("name", ["Missing", "Thing.missing", "<lambda>"])
def test_a_name_that_is_not_written_has_no_text(name: str) -> None:
    assert ModuleSource(MODULE).definition(name) is None


def test_a_module_without_source_says_so() -> None:
    with pytest.raises(TypeError, match="sys has no source beside it"):
        module_source("sys")
