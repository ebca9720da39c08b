"""The files of the package that are made from its declarations."""

from pathlib import Path

import pytest

import baton
from baton.cli.generated_files import GENERATED_FILES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", GENERATED_FILES)
def test_a_generated_file_holds_what_the_declarations_give(name: str) -> None:
    packaged = (Path(baton.__file__).parent / name).read_bytes()
    remedy = f"{name} is older than the declarations; make it with `python -m baton.cli.generated_files`"
    assert packaged == GENERATED_FILES[name](), remedy
