"""The documents say what there is."""

from pathlib import Path

import pytest

from application.settings import Settings

ROOT = Path(__file__).parents[1]
DOCUMENTS = "\n".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("name", sorted(name.upper() for name in Settings.model_fields))
def test_a_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in DOCUMENTS or f"`{name}=" in DOCUMENTS
