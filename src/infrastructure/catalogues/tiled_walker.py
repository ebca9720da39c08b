"""A walker for Tiled that gives each linked file the metadata beside it; Tiled's own reads what is in the file and no more.
It needs nothing but Tiled: `tiled serve directory DIR --walker baton.infrastructure.catalogues.tiled_walker:walk`."""

import asyncio
import json
from pathlib import Path
from typing import Any

METADATA = "baton"  # the key of a node's metadata under which ours are, apart from those of the file


async def walk(
    node: Any, path: Path, files: list[Path], directories: list[Path], settings: Any
) -> tuple[list[Path], list[Path]]:
    """Register the files that have metadata beside them, and leave the others to the next walker."""
    from tiled.client.register import register_single_item  # only Tiled's own environment has it

    others = []
    for file in files:
        beside = file.with_name(f".{file.name}.json")
        if not beside.is_file():
            others.append(file)
        elif await register_single_item(node, file, is_directory=False, settings=settings) is not None:
            key, metadata = settings.key_from_filename(file.name), {METADATA: json.loads(beside.read_bytes())}
            await asyncio.to_thread(_add_metadata, node, key, metadata)
    return others, directories


def _add_metadata(node: Any, key: str, metadata: dict[str, Any]) -> None:
    registered = node[key]
    registered.update_metadata({**dict(registered.metadata), **metadata})
