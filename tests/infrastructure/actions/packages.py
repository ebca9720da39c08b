"""A site's package as it is found in the worker's environment."""

import importlib
import sys
from pathlib import Path

import pytest


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, *offers: str) -> None:
    """Install `bl7_actions`, offering these actions."""
    (tmp_path / "bl7_actions.py").write_text(source)
    known = tmp_path / "bl7_actions-1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: bl7-actions\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text("\n".join(["[baton.actions]", *offers]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bl7_actions", raising=False)
    importlib.invalidate_caches()
