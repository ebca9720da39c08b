"""The files of the package that are made from its declarations: `python -m baton.cli.generated_files` writes them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

import baton
from baton.api.openapi import registry_document
from baton.cli.generated.client_index import index_document
from baton.cli.generated.client_stub import stub_text
from baton.domain.contexts import REGISTRY


def openapi_file() -> bytes:
    """Return the OpenAPI document, without what a deployment adds to it."""
    return orjson.dumps(registry_document(REGISTRY))


def index_file() -> bytes:
    """Return the index that the client works from."""
    return orjson.dumps(index_document())


def stub_file() -> bytes:
    """Return the types of the client's operations."""
    return stub_text().encode()


GENERATED_FILES: Mapping[str, Callable[[], bytes]] = {
    "api/openapi.json": openapi_file,
    "client/operations.json": index_file,
    "client/operations.pyi": stub_file,
}
"""What each file holds, by its path in the package."""


def write_generated_files(package: Path) -> None:
    """Write every generated file that is missing, or holds something else, below the directory of the package."""
    for name, make in GENERATED_FILES.items():
        path, content = package / name, make()
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


if __name__ == "__main__":
    write_generated_files(Path(baton.__file__).parent)
