"""The console: pages are rendered for the person who asks, kept live while they are looked at, and every form leads to the
declared command it is the form of."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlencode
from zoneinfo import ZoneInfo

from fastapi import APIRouter

from baton.api.app import ApiParts
from baton.api.edge import Routes, as_refusal, serve
from baton.api.errors import RouteNotFoundError
from baton.api.http import ClientDisconnected, Endpoint, Receive, Request, Response
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

    def add_routes(self, router: APIRouter) -> None:
        """Route every page, the forms, the live stream and the files; a literal segment is preferred to a parameter."""
        sign_in, actions = self.sign_in, self.actions
        routes: list[tuple[str, str, str, Endpoint]] = [
            ("GET", "/", "console_root", lead_to_console),
            ("GET", "/console/live", "console_live", self.guard(self.stream)),
            ("GET", "/console/do/{operation}", "console_form", self.guard(actions.show)),
            ("POST", "/console/do/{operation}", "console_action", self.guard(actions.submit)),
            ("GET", "/console/login", "console_login", sign_in.show),
            ("POST", "/console/login", "console_login", sign_in.submit),
            ("POST", "/console/logout", "console_logout", self.guard(sign_in.leave)),
            ("GET", "/console/static/{name}", "console_static", serve_static),
        ]
        routes += [("GET", one.path, f"console{one.path}", self.guard(PageEndpoint(self.shell, one))) for one in PAGES]
        for (method, path), handler in PAGES.handlers.items():
            routes += [(method, path, f"console{path}", self.guard(HandlerEndpoint(self.shell, handler)))]
        routes.sort(key=lambda route: [segment.startswith("{") for segment in route[1].split("/")])
        routes.append(("GET", "/console/{address:path}", "console_nowhere", self.guard(answer_nowhere)))
        host = self.shell.parts.host
        limits = host.settings.max_request_body_size_bytes, host.service.stopping
        for method, path, name, endpoint in routes:
            router.add_api_route(path, serve(endpoint, *limits), methods=[method], name=name)

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


async def answer_nowhere(request: Request, session: ConsoleSession) -> Response:
    """Refuse an address that no page has."""
    raise RouteNotFoundError("There is no page at this address; the menu has them all.")


async def lead_to_console(request: Request, caller: Caller) -> Response:
    """Answer `GET /`."""
    return redirect("/console")


def add_console(parts: ApiParts, router: APIRouter, examine: Examine | None = None) -> None:
    """Add the routes of the console, with what examines the service where this process can."""
    from baton.console import pages  # noqa: F401  # every page declares itself

    Console(ConsoleShell(parts, ZoneInfo(parts.host.settings.facility_time_zone), examine)).add_routes(router)
