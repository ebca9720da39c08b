"""The words of a page, in the order they are read."""

import re
from html import unescape

TAG = re.compile(r"<[^>]+>")


def text_of(html: str) -> str:
    """Return the words of a page's content, with one space between any two."""
    content = html.partition("<main")[2].partition("</main>")[0].partition(">")[2]
    return " ".join(unescape(TAG.sub(" ", content)).split())


def card(page: str, name: str) -> str:
    """Return the part of a page about the thing with this name."""
    return next(part for part in re.findall(r"<article.*?</article>", page) if f">{name}</a>" in part)
