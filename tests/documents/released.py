"""Keeps the OpenAPI document of a release: `python -m tests.documents.released`, once its version is set."""

import gzip
import json
from pathlib import Path
from typing import Any

from tests.support.api.openapi_document import document

RELEASED = Path(__file__).parents[1] / "data" / "released" / "openapi.json.gz"


def released_document() -> dict[str, Any]:
    """Return the document of the last release."""
    read: dict[str, Any] = json.loads(gzip.decompress(RELEASED.read_bytes()))
    return read


if __name__ == "__main__":
    RELEASED.parent.mkdir(exist_ok=True)
    RELEASED.write_bytes(gzip.compress(json.dumps(document(), sort_keys=True).encode(), mtime=0))
    print(f"{RELEASED.name} is the document of version {document()['info']['version']}")
