"""The HTML of a page, as far as tests ask about it: its elements, their attributes and its text."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from typing import Self

from tests.support.service import Api

ADDRESSES = ("href", "src", "action", "formaction", "data", "poster", "xlink:href", "srcset", "ping", "background")
"""The attributes that lead somewhere or load something."""
FOREIGN_ELEMENTS = frozenset({"style", "base", "iframe", "object", "embed", "frame", "applet"})
HEADING = re.compile("h[1-6]")
VOID = frozenset({"input", "img", "meta", "link", "br", "hr", "wbr", "source", "col", "area", "track"})


@dataclass(frozen=True)
class Element:
    """One element: its name, its attributes, whether it is part of a picture, and the text inside."""

    tag: str
    attributes: Mapping[str, str]
    pictured: bool
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")


class PageSource(HTMLParser):
    """A page that was parsed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []

    @classmethod
    def of(cls, html: str) -> Self:
        source = cls()
        source.feed(html)
        source.close()
        return source

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = self._add(tag, attrs)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, attrs)

    def _add(self, tag: str, attrs: list[tuple[str, str | None]]) -> Element:
        pictured = bool(self._open) and (self._open[-1].pictured or self._open[-1].tag == "svg")
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, pictured))
        return self.elements[-1]

    def handle_endtag(self, tag: str) -> None:
        if any(element.tag == tag for element in reversed(self._open)):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.texts.append(data)

    def all(self, *tags: str) -> list[Element]:
        """Return every element with one of these names, but for those of pictures."""
        return [element for element in self.elements if element.tag in tags and not element.pictured]

    def value(self, name: str) -> str:
        """Return the value of the first field with this name."""
        return next(element.get("value") for element in self.elements if element.get("name") == name)

    def filled_in(self) -> dict[str, str]:
        """Return what a browser sends of the fields of a page with one form, as they are filled in."""
        found, select = {}, ""
        for element in self.elements:
            name = element.get("name")
            match element.tag:
                case "input" if name and (element.get("type") != "checkbox" or "checked" in element.attributes):
                    found[name] = element.get("value")
                case "textarea":
                    found[name] = element.text
                case "select":
                    select = name
                case "option" if "selected" in element.attributes:
                    found[select] = element.get("value")
        return found

    def faults(self) -> Iterator[str]:
        """Yield what a page may not hold under its policy: anything inline, and anything of another origin."""
        for element in self.elements:
            if element.tag in FOREIGN_ELEMENTS:
                yield f"an element {element.tag}"
            if element.tag == "script" and (not element.get("src") or element.text):
                yield "an inline script"
            if element.tag == "form" and element.get("method") == "post" and not self._goes_to_console(element):
                yield f"a form that posts to {element.get('action')!r}"
            for name, value in element.attributes.items():
                if name == "style" or name.startswith("on"):
                    yield f"an inline {name} of {element.tag}"
                if name in ADDRESSES and not is_own(value):
                    yield f"{name} of {element.tag} to {value!r}"

    def _goes_to_console(self, form: Element) -> bool:
        return "action" not in form.attributes or form.get("action").startswith("/console/")

    def disorder(self) -> Iterator[str]:
        """Yield what keeps a person who does not see it from finding their way on a page."""
        for tag in ("h1", "title", "main"):
            if len(found := self.all(tag)) != 1 or (tag != "main" and not found[0].text):
                yield f"{len(found)} elements {tag}, or empty"
        ids = Counter(element.get("id") for element in self.elements if element.get("id"))
        yield from (f"the id {one} stands {count} times" for one, count in ids.items() if count > 1)
        for element in self.elements:
            for name in ("for", "aria-labelledby", "aria-describedby", "aria-controls", "list"):
                yield from (f"{name} names {one!r}, which is nowhere" for one in element.get(name).split() if one not in ids)
        for nav in self.all("nav", "aside"):
            if not nav.get("aria-label") and not nav.get("aria-labelledby"):
                yield f"a {nav.tag} without a label"
        levels = [int(heading.tag[1]) for heading in self.elements if HEADING.fullmatch(heading.tag)]
        if any(after > before + 1 for before, after in pairwise(levels)):
            yield f"headings that skip a level: {levels}"
        yield from (f"a th without a scope: {one.text!r}" for one in self.all("th") if not one.get("scope"))
        silent = [link for link in self.all("a") if not (link.text or link.get("aria-label"))]
        yield from (f"a link without text to {link.get('href')}" for link in silent)


def is_own(address: str) -> bool:
    """Return whether an address leads to this service: a path of it, a query, or a part of the page."""
    return address.startswith(("#", "?", "data:image/")) or (address.startswith("/") and address[1:2] not in ("/", "\\"))


async def load(api: Api, path: str, **query: str) -> PageSource:
    """Return the page at an address."""
    answer = await api.request("GET", path, **({"params": query} if query else {}))  # an address may have its own query
    assert answer.status_code == 200, answer.text
    return PageSource.of(answer.text)
