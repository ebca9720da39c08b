"""Writes the reference: `python -m tests.documents.reference`."""

from pathlib import Path

from baton.domain.contexts import REGISTRY
from tests.documents.reference.pages import pages

PLACE = Path(__file__).parents[3] / "docs" / "reference"

if __name__ == "__main__":
    PLACE.mkdir(exist_ok=True)
    written = pages(REGISTRY)
    for stale in {path.name for path in PLACE.glob("*.md")} - written.keys():
        (PLACE / stale).unlink()
    for name, text in written.items():
        (PLACE / name).write_text(text)
