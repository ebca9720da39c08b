"""Examples: the arguments of one call of every operation, from `examples.json`. An id is written as what stands there, such
as `<asset_id>`. What an operation needs besides the ids of its path is in the file; those need not be."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

EXAMPLES: dict[str, dict[str, Any]] = json.loads(files(__package__).joinpath("examples.json").read_bytes())
"""By the name of an operation, its fields."""
PLACEHOLDER = re.compile(r"<(\w+)>")


def fill(example: object, value: Callable[[str], str]) -> Any:
    """Return an example with the value of each placeholder in its place."""
    match example:
        case dict():
            return {name: fill(part, value) for name, part in example.items()}
        case list():
            return [fill(part, value) for part in example]
        case str():
            return PLACEHOLDER.sub(lambda found: value(found[1]), example)
        case _:
            return example
