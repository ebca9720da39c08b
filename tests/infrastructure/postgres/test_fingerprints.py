"""Fingerprints of projections change with the code that computes their rows, and with nothing else."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path

import pytest

from baton.domain.contexts import REGISTRY
from baton.infrastructure.postgres.projection_tables import CodeFingerprints, code_fingerprints
from tests.support.tables import for_each

PRINT = (
    "from baton.domain.contexts import REGISTRY\n"
    "from baton.infrastructure.postgres.projection_tables import code_fingerprints\n"
    "print(sorted(code_fingerprints(REGISTRY.projections).items()))"
)
USED = """
SCALE = 5

def scaled(value):
    return value * SCALE

class Kind:
    unit = "mm"

def unused(value):
    return value
"""
FOLD = '''
from functools import lru_cache

from baton.domain import used
from baton.domain.kernel import Command
from baton.domain.used import Kind, scaled as to_scale

FACTOR, OFFSET = 2, 3
LABELS = frozenset({"a", "b", "c"})
TEXT = f"{OFFSET}"
PLAIN = """
several
lines
"""


class Later:
    number: int = 1


class Length(Kind):
    """A length."""

    later: "Later"

    @property
    def half(self):
        return self.value / 2


class Ask(Command):
    """Ask for it."""

    times: int = 1


def helper(value):
    if value:
        value += 1
        value += 7
    return value


@lru_cache
def cached(value):
    return value


def unused(value):
    return value


def fold(state, event, offset=3):
    kinds = Length, Ask, PLAIN, to_scale(used.scaled(1))
    return [helper(cached(one)) * FACTOR + offset for one in state if event in LABELS and TEXT and kinds]
'''
Digest = Callable[[str, str], str]


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Digest:
    """The digest of the function `fold` in a module of the domain with this source, beside the module that it uses."""
    numbers = count()

    def digest(fold: str = FOLD, used: str = USED) -> str:
        directory = tmp_path / str(next(numbers))
        directory.mkdir()
        modules = []
        for name, source in (("baton.domain.used", used), ("baton.domain.invented", fold)):
            path = directory / f"{name}.py"
            path.write_text(source)
            spec = spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            modules.append(module_from_spec(spec))
            monkeypatch.setitem(sys.modules, name, modules[-1])
            spec.loader.exec_module(modules[-1])
        return CodeFingerprints().digest(modules[1].fold)

    return digest


@pytest.fixture(scope="module")
def fingerprints() -> dict[str, str]:
    return dict(code_fingerprints(REGISTRY.projections))


@pytest.mark.server
def test_every_process_computes_the_same(fingerprints: dict[str, str]) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "11"}
    other = subprocess.run([sys.executable, "-c", PRINT], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(sorted(fingerprints.items()))


def test_lines_comments_docstrings_and_other_definitions_do_not_count(digest: Digest) -> None:
    documented = FOLD.replace("offset=3):\n", 'offset=3):\n    """Fold.\n\n    Twice."""\n\n    # by hand\n')
    documented = documented.replace('"""A length."""', '"""A length, and\nmore."""  # in millimetres')
    documented = documented.replace('"c"})\n', '"c"})  # all of them\n"""The labels."""\n')
    unused = "def unused(value):\n    return value"
    other = documented.replace(unused, f"{unused} + 1")
    assert digest("\n\n# a comment" + other, USED.replace(unused, f"{unused} + 1")) == digest(FOLD, USED)


@for_each(
    ("old", "new"),
    [
        ("helper(cached(one)) *", "helper(cached(one)) +"),
        ("offset=3", "offset=4"),
        ("= 2, 3", "= 3, 3"),
        ('"a", "b", "c"', '"a", "b", "d"'),
        ("        value += 7", "    value += 7"),
        ('f"{OFFSET}"', 'f"{FACTOR}"'),
        ("= 2, 3", "= 2, 4"),
        ("\nlines\n", "\nlines and more\n"),
        ("number: int = 1", "number: int = 2"),
        ("self.value / 2", "self.value // 2"),
        ("@lru_cache\n", ""),
        ("Length(Kind)", "Length"),
    ],
)
def test_what_a_fold_does_and_all_it_uses_counts(digest: Digest, old: str, new: str) -> None:
    assert old in FOLD
    assert digest(FOLD.replace(old, new), USED) != digest(FOLD, USED)


@pytest.mark.parametrize(("old", "new"), [("SCALE = 5", "SCALE = 6"), ("value * SCALE", "value / SCALE"), ('"mm"', '"m"')])
def test_what_other_modules_of_the_domain_give_it_counts(digest: Digest, old: str, new: str) -> None:
    assert old in USED
    assert digest(FOLD, USED.replace(old, new)) != digest(FOLD, USED)


def test_commands_do_not_count_for_no_row_depends_on_them(digest: Digest) -> None:
    assert digest(FOLD.replace("times: int = 1", "times: int = 2"), USED) == digest(FOLD, USED)


def test_a_fold_that_is_not_written_as_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"has no text of .*<lambda>; write it as a function"):
        CodeFingerprints().digest(MADE_BY_LAMBDA)


MADE_BY_LAMBDA = lambda state, event: state  # noqa: E731


def test_each_projection_has_its_own(fingerprints: dict[str, str]) -> None:
    assert len(set(fingerprints.values())) == len(fingerprints) > 30
