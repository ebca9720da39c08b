"""The blocks of code in a document, by the section they stand in."""

import re
from collections import defaultdict
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks_of(document: Path) -> dict[str, list[str]]:
    """The text of each block, in order, under the heading of its section; drawings have no language and are no blocks."""
    found: dict[str, list[str]] = defaultdict(list)
    for section in re.split(r"^## ", document.read_text(), flags=re.MULTILINE)[1:]:
        heading, text = section.split("\n", 1)
        for _, code in BLOCK.findall(text):
            found[heading].append(code)
    return dict(found)
