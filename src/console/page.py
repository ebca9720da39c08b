"""Pages as declarations: a path, what is asked for it, and the regions that it is made of. The menu, the permissions that a
page takes, its live stream and its documentation follow from them; a region is rendered again while a person has it open."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from baton.domain.kernel import Query
from baton.domain.registry import Operation

if TYPE_CHECKING:
    from baton.console.page_queries import PageQueries

Context = dict[str, Any]
"""What a template is filled with."""
Loader = Callable[["PageQueries"], Awaitable[Context]]
SECOND = 1.0  # the interval of what is not on the log: progress of conducts, contacts of workers


MENU_ORDER = (
    *("Now", "Start", "Queue", "Waiting", "Approvals"),
    *("Shift", "Runs", "Data", "Equipment", "Safety", "Agents", "Calendar"),
    *("People", "Health", "Records"),
)
"""The pages of the menu, in the order of need."""


class MenuGroup(StrEnum):
    """The parts of the menu, in order."""

    WORK = "work"
    RECORD = "record"
    HOUSE = "house"


@dataclass(frozen=True)
class Region:
    """A part of a page that is rendered and replaced as a whole. It is shown to those who may ask everything in `asks`; it
    changes with events of the streams it watches, and every so many seconds where `every` says so. Those who may do the same
    share one rendering, unless it is personal: what it shows depends on who looks."""

    name: str
    template: str
    load: Loader
    asks: tuple[Operation, ...]
    watches: frozenset[str]
    every: float | None
    personal: bool = False

    @property
    def element_id(self) -> str:
        return f"region-{self.name}"


FRAME: dict[str, Region] = {}
"""The regions of the frame around every page, by their names; what they ask, they do without where it is not permitted."""


def frame_region(name: str, *, watches: Sequence[str], every: float, personal: bool = False) -> Callable[[Loader], Loader]:
    """Declare a region of the frame by the function that loads what its template shows."""

    def declare(load: Loader) -> Loader:
        FRAME[name] = Region(name, f"frame/{name}.html", load, (), frozenset(watches), every, personal)
        return load

    return declare


@dataclass
class ConsolePage:
    """A page of the console. Its template lays out the regions; those of the sheet stand in the menu."""

    path: str
    title: str
    doc: str
    template: str = "page.html"
    menu: MenuGroup | None = None
    under: "ConsolePage | None" = None  # the page of the menu that it belongs to, where its path does not say so
    halts: str | None = None  # the aggregate whose verbs the halt bar has; None for everything that is live
    own_regions: dict[str, Region] = field(default_factory=dict)
    name: Callable[["PageQueries"], Awaitable[str]] | None = None  # what the page is about, for its title
    load: Loader | None = None  # what its template shows besides the regions, made for one person and not live
    needs: tuple[Operation, ...] = ()  # what is asked for that

    def region(
        self,
        name: str,
        *,
        asks: Sequence[type[Query] | Operation],
        watches: Sequence[str] = (),
        every: float | None = None,
        template: str | None = None,
        personal: bool = False,
    ) -> Callable[[Loader], Loader]:
        """Declare a region by the function that loads what its template shows. The streams of the aggregates that it asks
        about are watched, and those named besides; what asks a personal query is personal."""
        operations = tuple(one if isinstance(one, Operation) else one.operation for one in asks)
        own = {one.aggregate.name for one in operations if one.aggregate is not None}

        def declare(load: Loader) -> Loader:
            stem = self.template.removesuffix(".html")
            chosen = template or f"{stem}/{name}.html"
            watched = frozenset({*own, *watches})
            is_personal = personal or any(getattr(one.input, "personal", False) for one in operations)
            self.own_regions[name] = Region(name, chosen, load, operations, watched, every, is_personal)
            return load

        return declare

    def loads(self, *, asks: Sequence[type[Query] | Operation]) -> Callable[[Loader], Loader]:
        """Declare what the page's own template shows besides its regions: what is made for one person, such as a form."""
        self.needs = tuple(one if isinstance(one, Operation) else one.operation for one in asks)

        def declare(load: Loader) -> Loader:
            self.load = load
            return load

        return declare

    def title_from(self, load: Callable[["PageQueries"], Awaitable[str]]) -> Callable[["PageQueries"], Awaitable[str]]:
        """Declare what the page is about, as its title says it."""
        self.name = load
        return load

    @property
    def regions(self) -> dict[str, Region]:
        """Its own regions, and those of the frame around every page."""
        return {**self.own_regions, **FRAME}

    @property
    def asks(self) -> tuple[Operation, ...]:
        """Everything that the page asks, each once."""
        regions = (operation for region in self.regions.values() for operation in region.asks)
        return tuple(dict.fromkeys((*self.needs, *regions)))

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names of what stands in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


Handler = Callable[[Any, Any, Any], Awaitable[Any]]
"""Answers what a page sends besides the forms of commands: gets the console, the request and the session."""


class Pages:
    """Every page by its path; the one place that the menu and the routes are derived from."""

    def __init__(self) -> None:
        self._pages: dict[str, ConsolePage] = {}
        self.handlers: dict[tuple[str, str], Handler] = {}

    def declare(self, page: ConsolePage) -> ConsolePage:
        """Add a page; its path must be free."""
        if page.path in self._pages:
            raise TypeError(f"the page {page.path} is declared twice")
        self._pages[page.path] = page
        return page

    def __iter__(self) -> Iterator[ConsolePage]:
        return iter(self._pages.values())

    def __contains__(self, path: str) -> bool:
        return path in self._pages

    def menu(self) -> Mapping[MenuGroup, list[ConsolePage]]:
        """Return the pages of each part of the menu, in its order."""
        pages = sorted((page for page in self if page.menu is not None), key=lambda page: MENU_ORDER.index(page.title))
        return {group: [page for page in pages if page.menu is group] for group in MenuGroup}


PAGES = Pages()


def handles(method: str, path: str) -> Callable[[Handler], Handler]:
    """Declare what answers a request of a page under /console that is no form of a command; what it posts is checked."""

    def declare(handler: Handler) -> Handler:
        PAGES.handlers[method, f"/console{path}"] = handler
        return handler

    return declare


def page(path: str, title: str, doc: str, **options: Any) -> ConsolePage:
    """Declare a page under /console."""
    return PAGES.declare(ConsolePage(f"/console{path}", title, doc, **options))
