"""Fingerprints of projections change with the code that computes their rows, and with nothing else."""

import os
import subprocess
import sys
from types import FunctionType

import pytest

from baton.domain.contexts import REGISTRY
from baton.infrastructure.postgres.projection_tables import CodeFingerprints, code_fingerprints

PRINT = (
    "from baton.domain.contexts import REGISTRY\n"
    "from baton.infrastructure.postgres.projection_tables import code_fingerprints\n"
    "print(sorted(code_fingerprints(REGISTRY.projections).items()))"
)
FOLD = """
FACTOR = 2
LABELS = frozenset({"a", "b", "c"})

def helper(value):
    return value + 1

def fold(state, event, offset=3):
    return [helper(one) * FACTOR + offset for one in state if event in LABELS]
"""


def digest(source: str) -> str:
    """Return the digest of the function `fold` of a module of the domain with this source."""
    names = {"__name__": "baton.domain.invented"}
    exec(compile(source, "invented.py", "exec"), names)
    fold = names["fold"]
    assert isinstance(fold, FunctionType)
    return CodeFingerprints().digest(fold)


@pytest.fixture(scope="module")
def fingerprints() -> dict[str, str]:
    return dict(code_fingerprints(REGISTRY.projections))


def test_every_process_computes_the_same(fingerprints: dict[str, str]) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "11"}
    other = subprocess.run([sys.executable, "-c", PRINT], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(sorted(fingerprints.items()))


def test_lines_comments_and_docstrings_do_not_count() -> None:
    documented = FOLD.replace("offset=3):\n", 'offset=3):\n    """Fold."""\n    # by hand\n')
    assert digest("\n\n# a comment" + documented) == digest(FOLD)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("helper(one) *", "helper(one) +"),
        ("offset=3", "offset=4"),
        ("FACTOR = 2", "FACTOR = 3"),
        ('"a", "b", "c"', '"a", "b", "d"'),
        ("return value + 1", "return value + 2"),
    ],
)
def test_what_a_fold_does_and_all_it_uses_counts(old: str, new: str) -> None:
    assert digest(FOLD.replace(old, new)) != digest(FOLD)


def test_each_projection_has_its_own(fingerprints: dict[str, str]) -> None:
    assert len(set(fingerprints.values())) == len(fingerprints) > 30
