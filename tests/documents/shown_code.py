"""The blocks of code in a document, by the section they stand in."""

import re
from collections import defaultdict
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks_of(document: Path) -> dict[str, list[str]]:
    """The text of each block, in order, under the heading of its section; drawings are none."""
    found: dict[str, list[str]] = defaultdict(list)
    for section in re.split(r"^## ", document.read_text(), flags=re.MULTILINE)[1:]:
        heading, text = section.split("\n", 1)
        found[heading] += [code for language, code in BLOCK.findall(text) if language != "text"]
    return {heading: blocks for heading, blocks in found.items() if blocks}


def prose_of(document: Path) -> str:
    """A document without its blocks of code; drawings stay."""
    return BLOCK.sub(lambda block: block[0] if block[1] == "text" else "", document.read_text())
