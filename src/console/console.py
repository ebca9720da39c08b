"""The console: pages are rendered for the person who asks, kept live while they are looked at, and every form leads to the
declared command it is the form of."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlencode
from zoneinfo import ZoneInfo

from baton.api.app import ApiParts
from baton.api.edge import Routes, as_refusal
from baton.api.errors import RouteNotFoundError
from baton.api.http import ClientDisconnected, Receive, Request, Response
from baton.api.parsing import refuse_nul
from baton.application.caller import Caller
from baton.application.identity import InvalidTokenError, UnauthenticatedError
from baton.console.actions import CommandForms, referring_page, typed_in
from baton.console.health import Examine
from baton.console.live import LiveReader, LiveView, LiveViews, ViewKey
from baton.console.page import PAGES, ConsolePage, Handler
from baton.console.page_queries import HeldPermissions, MissingPermissionError
from baton.console.rendering import redirect, serve_static
from baton.console.sessions import ConsoleSession, comes_from_elsewhere, refuse_foreign_sender
from baton.console.shell import ConsoleShell, address_of, parameters_in, query_of
from baton.console.sign_in import SignIn
from baton.console.units import load_units
from baton.console.uploads import read_file_form
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.units import unit_registry


@dataclass
class Console:
    """Serves every page of the console."""

    shell: ConsoleShell
    pages: Routes[ConsolePage] = field(default_factory=Routes)

    def __post_init__(self) -> None:
        host, streams = self.shell.parts.host, self.shell.parts.streams
        self.live = LiveViews(host.feed, host.listener, self.render_live, streams)
        self.actions, self.sign_in = CommandForms(self.shell), SignIn(self.shell)
        self._preparation: asyncio.Future[None] | None = None
        for page in PAGES:
            self.pages.add("GET", page.path, page)

    def add_routes(self) -> None:
        """Route every page, the forms, the live stream and the files."""
        add = self.shell.parts.edge.add
        add("GET", "/", lead_to_console, "console_root", "console", open=True)
        for page in PAGES:
            add("GET", page.path, self.guard(PageEndpoint(self.shell, page)), f"console{page.path}", "console", open=True)
        for (method, path), handler in PAGES.handlers.items():
            add(method, path, self.guard(HandlerEndpoint(self.shell, handler)), f"console{path}", "console", open=True)
        add("GET", "/console/live", self.guard(self.stream), "console_live", "console", open=True)
        add("GET", "/console/do/{operation}", self.guard(self.actions.show), "console_form", "console", open=True)
        add("POST", "/console/do/{operation}", self.guard(self.actions.submit), "console_action", "console", open=True)
        add("GET", "/console/login", self.sign_in.show, "console_login", "console", open=True)
        add("POST", "/console/login", self.sign_in.submit, "console_login", "console", open=True)
        add("POST", "/console/logout", self.guard(self.sign_in.leave), "console_logout", "console", open=True)
        add("GET", "/console/static/{name}", serve_static, "console_static", "console", open=True)

    def guard(self, endpoint: Any) -> Any:
        """Return an endpoint that knows who asks, and whose refusals are pages."""

        async def answer_as_page(request: Request, caller: Caller) -> Response:
            session = None
            try:
                refuse_foreign_sender(request)
                session = await self.shell.sessions.open(request, caller.correlation_id)
                if session.new_cookies and comes_from_elsewhere(request):
                    return self.shell.come_again(request)
                response: Response = await endpoint(request, session)
            except (UnauthenticatedError, InvalidTokenError) as refusal:
                return self._ask_to_sign_in(request, refusal)
            except ClientDisconnected:
                raise
            except Exception as error:
                response = await self.shell.refusal_page(request, session, as_refusal(error, caller.correlation_id), caller)
            if session is not None:
                response.headers += session.new_cookies
            self._prepare()
            return response

        return answer_as_page

    def _prepare(self) -> None:
        """Once the first page was answered, have everything loaded that others need: that takes a second or two."""
        if self._preparation is None:
            self._preparation = asyncio.ensure_future(asyncio.to_thread(self._load_parts))

    def _load_parts(self) -> None:
        self.shell.templates.load_all()
        unit_registry()

    def _ask_to_sign_in(self, request: Request, refusal: Refusal) -> Response:
        """Lead to the sign-in, and from there back to the page."""
        if comes_from_elsewhere(request):
            return self.shell.come_again(request)
        if request.header(b"accept") == "text/event-stream":
            return Response(401, b"", [(b"cache-control", b"no-store")])
        address = address_of(request) if request.scope["method"] == "GET" else referring_page(request) or "/console"
        reason = {} if isinstance(refusal, UnauthenticatedError) else {"refused": refusal.reason or ""}
        return redirect("/console/login?" + urlencode({"next": address, **reason}))

    async def render_live(self, view: LiveView, names: frozenset[str], position: int) -> Mapping[str, str]:
        """Render regions of a view for all who share it."""
        turns = self.shell.parts.streams.reading
        queries = self.shell.queries(
            view.caller, view.key.held, path=view.path, query=view.query, position=position, turns=turns, recorded=False
        )
        return await self.shell.render_regions(view.page, queries, names)

    async def stream(self, request: Request, session: ConsoleSession) -> Response:
        """Answer `GET /console/live`: the page at an address, as it changes."""
        at, _, parameters = query_of(request).get("at", "").partition("?")
        match = self.pages.match("GET", unquote(at))
        if not isinstance(match, tuple):
            raise RouteNotFoundError("There is no page at this address.")
        page, path = match
        refuse_nul(path, "path")
        query = {name: value for name, value in parameters_in(parameters).items() if name not in PERSONAL}
        caller, address = session.caller, f"{at}?{urlencode(query)}"

        async def make_views() -> list[LiveView]:
            held, groups = await self.shell.sessions.permissions(caller), await self.shell.sessions.proven_groups(caller)
            shared = ViewKey(page.path, address, held)
            keys = (shared, replace(shared, person=(caller.principal_id, groups)))
            return [LiveView(key, page, caller, path, query) for key in keys]

        refuse_blind(page, session.held)
        reader = LiveReader(self.live, request, caller, make_views)
        return self.shell.parts.streams.respond(reader.frames(), caller, granted=session.held.holds_any)


def refuse_blind(page: ConsolePage, held: HeldPermissions) -> None:
    """Raise where a person may see no region of a page; those that ask nothing show what the person may see otherwise."""
    asked = [region.asks for region in page.regions.values()]
    if not any(all(map(held.may, asks)) if asks else held.holds_any for asks in asked):
        raise MissingPermissionError(next(asks for asks in asked if asks))


@dataclass(frozen=True)
class PageEndpoint:
    """Serves one page."""

    shell: ConsoleShell
    page: ConsolePage

    async def __call__(self, request: Request, session: ConsoleSession) -> Response:
        queries = self.shell.queries_of(request, session)
        queries.require(self.page.needs)
        own = await self.page.load(queries) if self.page.load is not None else {}
        return await self.shell.page_response(request, session, self.page, queries, own)


@dataclass(frozen=True)
class HandlerEndpoint:
    """Serves what a page sends besides the forms of commands."""

    shell: ConsoleShell
    handler: Handler

    async def __call__(self, request: Request, session: ConsoleSession) -> Response:
        if request.scope["method"] != "GET":
            body = await request.body()
            content_type = request.header(b"content-type") or ""
            is_upload = content_type.lower().startswith("multipart/")
            session.check_form(read_file_form(content_type, body).typed if is_upload else typed_in(body))
            request.receive = receive_again(body)
            await load_units()
        response: Response = await self.handler(self.shell, request, session)
        return response


def receive_again(body: bytes) -> Receive:
    """Return what lets a body be read once more."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


PERSONAL = ("said", "position")
"""What an address says to one person after a command; it is no part of the live page that all share."""


async def lead_to_console(request: Request, caller: Caller) -> Response:
    """Answer `GET /`."""
    return redirect("/console")


def add_console(parts: ApiParts, examine: Examine | None = None) -> None:
    """Add the console to an API application, with what examines the service where this process can."""
    from baton.console import pages  # noqa: F401  # every page declares itself

    Console(ConsoleShell(parts, ZoneInfo(parts.host.settings.facility_time_zone), examine)).add_routes()
