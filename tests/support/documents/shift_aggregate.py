"""The aggregate that `docs/developing.md` shows, declared as a part of the domain for as long as a block lasts."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import baton.domain
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Registry
from baton.domain.shared.refusals import Refusal
from tests.support.documents.fenced_blocks import code_of

MODULE = "baton.domain.shift.shift"


@contextmanager
def declared_aggregate(source: str, directory: Path) -> Iterator[Registry]:
    """Import the source as `baton.domain.shift.shift`, and forget it at the end."""
    package = directory / "shift"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "shift.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("aggregates", "operations", "projections", "permissions"):
            patch.setattr(REGISTRY, name, getattr(REGISTRY, name).copy())
        patch.setattr(baton.domain, "__path__", [*baton.domain.__path__, str(directory)])
        importlib.invalidate_caches()
        importlib.import_module(MODULE)
        try:
            yield REGISTRY
        finally:
            for refusal in subclasses(Refusal):
                if refusal.context == "shift":
                    refusal.__module__ = __name__  # it outlives the block, and is none of the service
            del sys.modules[MODULE], sys.modules["baton.domain.shift"], baton.domain.shift  # type: ignore[attr-defined]


def subclasses(of: type[Refusal]) -> Iterator[type[Refusal]]:
    """Yield every class of refusal."""
    for found in of.__subclasses__():
        yield found
        yield from subclasses(found)


def aggregate_source() -> str:
    """Return the module of the aggregate as the page shows it."""
    (module,) = code_of(Path("docs/developing.md"))["An aggregate"]
    return module
