"""The console: pages are rendered for the person who asks, kept live while they are looked at, and every form leads to the
declared command it is the form of."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode
from zoneinfo import ZoneInfo

from baton.api.app import ApiParts
from baton.api.edge import Routes, as_refusal
from baton.api.errors import RequestValidationError, RouteNotFoundError, error_body
from baton.api.http import ClientDisconnected, Receive, Request, Response
from baton.api.parsing import refuse_nul
from baton.application.caller import Caller
from baton.application.identity import InvalidTokenError, UnauthenticatedError
from baton.console.actions import CommandForms, referring_page, typed_in
from baton.console.desk import Desk, Held, HouseRules
from baton.console.health import Examine, ServiceHealth
from baton.console.in_process import AnyRefusal, problem_of
from baton.console.live import LiveReader, LiveView, LiveViews, ViewKey
from baton.console.page import PAGES, ConsolePage, Handler, MenuGroup, Region
from baton.console.rendering import html_response, redirect, serve_static, shared_templates
from baton.console.sessions import ConsoleSession, Sessions, comes_from_elsewhere, refuse_foreign_sender
from baton.console.sign_in import SignIn
from baton.console.units import load_units, unit_registry
from baton.console.uploads import read_file_form
from baton.domain.access.edge_queries import GetMyAccess
from baton.domain.contexts import REGISTRY
from baton.domain.shared.refusals import Refusal
from baton.infrastructure.wall_clock import clock


@dataclass
class Console:
    """Serves every page of the console."""

    parts: ApiParts
    zone: ZoneInfo
    examine: Examine | None = None
    pages: Routes[ConsolePage] = field(default_factory=Routes)

    def __post_init__(self) -> None:
        host = self.parts.host
        self.templates = shared_templates(self.zone)
        self.rules, self.health = HouseRules.of(host.settings), ServiceHealth(host, self.parts.streams, self.examine)
        self.sessions = Sessions(self.parts.authentication, host.authorizer)
        self.live = LiveViews(host.feed, host.listener, self.render_live, self.parts.streams)
        self.actions = CommandForms(self)
        self._preparation: asyncio.Future[None] | None = None
        self.sign_in = SignIn(self)
        for page in PAGES:
            self.pages.add("GET", page.path, page)

    def add_routes(self) -> None:
        """Route every page, the forms, the live stream and the files."""
        add = self.parts.edge.add
        add("GET", "/", lead_to_console, "console_root", "console", open=True)
        for page in PAGES:
            add("GET", page.path, self.guard(PageEndpoint(self, page)), f"console{page.path}", "console", open=True)
        for (method, path), handler in PAGES.handlers.items():
            add(method, path, self.guard(HandlerEndpoint(self, handler)), f"console{path}", "console", open=True)
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
                session = await self.sessions.open(request, caller.correlation_id)
                if session.new_cookies and comes_from_elsewhere(request):
                    return self.come_again(request)
                response: Response = await endpoint(request, session)
            except (UnauthenticatedError, InvalidTokenError) as refusal:
                return self._ask_to_sign_in(request, refusal)
            except ClientDisconnected:
                raise
            except Exception as error:
                response = await self.refusal_page(request, session, as_refusal(error, caller.correlation_id), caller)
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
        self.templates.load_all()
        unit_registry()

    def _ask_to_sign_in(self, request: Request, refusal: Refusal) -> Response:
        """Lead to the sign-in, and from there back to the page."""
        if comes_from_elsewhere(request):
            return self.come_again(request)
        if request.header(b"accept") == "text/event-stream":
            return Response(401, b"", [(b"cache-control", b"no-store")])
        address = address_of(request) if request.scope["method"] == "GET" else referring_page(request) or "/console"
        reason = {} if isinstance(refusal, UnauthenticatedError) else {"refused": refusal.reason or ""}
        return redirect("/console/login?" + urlencode({"next": address, **reason}))

    def come_again(self, request: Request) -> Response:
        """Have a person who followed a link of another site come once more: from here, their cookies come along."""
        return html_response(self.templates.render("again.html", {"address": address_of(request)}))

    async def refusal_page(
        self, request: Request, session: ConsoleSession | None, refusal: AnyRefusal, caller: Caller
    ) -> Response:
        """Return a page that says why something was refused."""
        problem = problem_of(refusal)
        if isinstance(refusal, Refusal):
            problem = error_body(refusal, "console", caller.correlation_id)
        shell = await self.shell(request, session, None, title="Refused")
        return html_response(self.templates.render("refused.html", {**shell, "problem": problem}), refusal.status)

    def desk(self, session_caller: Caller, held: Held, **options: Any) -> Desk:
        """Return a desk for one rendering."""
        known: dict[str, Any] = {"rules": self.rules, "health": self.health, **options}
        return Desk(self.parts.host.service, session_caller, held, self.zone, clock(), **known)

    def desk_of(self, request: Request, session: ConsoleSession) -> Desk:
        """Return the desk of a request."""
        refuse_nul(request.path, "path")
        return self.desk(
            session.caller, session.held, path=request.path, query=query_of(request), position=seen_position(request)
        )

    async def shell(
        self, request: Request, session: ConsoleSession | None, page: ConsolePage | None, title: str, **more: Any
    ) -> dict[str, Any]:
        """Return what every page shows around its own content."""
        name = None
        if session is not None:
            me = await self.desk(session.caller, session.held).ask(GetMyAccess)
            name = me["name"] or (
                "Local operator" if me["principal_id"] == str(session.caller.principal_id) and me["kind"] is None else None
            )
        return {
            "title": title,
            "page": page,
            "menu": PAGES.menu(),
            "groups": MenuGroup,
            "person": name,
            "form_token": session.form_token if session else "",
            "signed_in": session is not None and self.sign_in.needed,
            "zone": self.zone.key,
            "address": address_of(request),
            "facility": self.parts.host.settings.self_facility_code,
            "said": session and session.read_message(said_in(request)),
            **more,
        }

    async def page_response(
        self,
        request: Request,
        session: ConsoleSession,
        page: ConsolePage,
        desk: Desk,
        own: Mapping[str, Any],
        status: int = 200,
    ) -> Response:
        """Return a page: its regions, and what its own template shows besides them."""
        about = page.title
        if page.name is not None and all(desk.may(operation) for operation in page.asks[:1]):
            about = await page.name(desk)
        regions = await self.render_regions(page, desk, frozenset(page.regions))
        shell = await self.shell(request, session, page, title=about, halts=halt_addresses(page, desk))
        context = {**shell, "regions": regions, "path": desk.path, "query": desk.query, "desk": desk, **own}
        return html_response(self.templates.render(page.template, context), status)

    async def render_regions(self, page: ConsolePage, desk: Desk, names: frozenset[str]) -> dict[str, str]:
        """Return these regions of a page, each rendered as the person may see it."""
        wanted = [name for name in page.regions if name in names]
        rendered = await asyncio.gather(
            *(self._region(page.regions[name], page, desk) for name in wanted), return_exceptions=True
        )
        for one in rendered:
            if isinstance(one, BaseException):
                raise one
        return dict(zip(wanted, map(str, rendered), strict=True))

    async def _region(self, region: Region, page: ConsolePage, desk: Desk) -> str:
        try:
            desk.require(region.asks)
            context = await region.load(desk)
        except Refusal as refusal:
            if refusal.status >= 500 or (refusal.status == 404 and desk.recorded):
                raise
            return self.templates.render("region_refused.html", {"refusal": refusal, "region": region})
        return self.templates.render(
            region.template, {"desk": desk, "page": page, "path": desk.path, "query": desk.query, **context}
        )

    async def render_live(self, view: LiveView, names: frozenset[str], position: int) -> Mapping[str, str]:
        """Render regions of a view for all who share it."""
        turns = self.parts.streams.reading
        desk = self.desk(
            view.caller, view.key.held, path=view.path, query=view.query, position=position, turns=turns, recorded=False
        )
        return await self.render_regions(view.page, desk, names)

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
            held, groups = await self.sessions.permissions(caller), await self.sessions.proven_groups(caller)
            shared = ViewKey(page.path, address, held)
            keys = (shared, replace(shared, person=(caller.principal_id, groups)))
            return [LiveView(key, page, caller, path, query) for key in keys]

        reader = LiveReader(self.live, request, caller, make_views)
        return self.parts.streams.respond(reader.frames())


@dataclass(frozen=True)
class PageEndpoint:
    """Serves one page."""

    console: Console
    page: ConsolePage

    async def __call__(self, request: Request, session: ConsoleSession) -> Response:
        desk = self.console.desk_of(request, session)
        desk.require(self.page.needs)
        own = await self.page.load(desk) if self.page.load is not None else {}
        return await self.console.page_response(request, session, self.page, desk, own)


@dataclass(frozen=True)
class HandlerEndpoint:
    """Serves what a page sends besides the forms of commands."""

    console: Console
    handler: Handler

    async def __call__(self, request: Request, session: ConsoleSession) -> Response:
        if request.scope["method"] != "GET":
            body = await request.body()
            content_type = request.header(b"content-type") or ""
            is_upload = content_type.lower().startswith("multipart/")
            session.check_form(read_file_form(content_type, body).typed if is_upload else typed_in(body))
            request.receive = receive_again(body)
            await load_units()
        response: Response = await self.handler(self.console, request, session)
        return response


def receive_again(body: bytes) -> Receive:
    """Return what lets a body be read once more."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def halt_addresses(page: ConsolePage, desk: Desk) -> dict[str, Any]:
    """Return the addresses of the halt bar's three buttons: about the page's own thing, or everything that is live; and
    whether the one that asks nothing further becomes a proposal."""
    kind = page.halts
    holding = REGISTRY.operations["hold_everything" if kind is None else f"hold_{kind.lower()}"]
    return {**own_halts(page, desk, kind), "proposed": desk.proposes(holding)}


def own_halts(page: ConsolePage, desk: Desk, kind: str | None) -> dict[str, str]:
    """Return the addresses of the halt bar's buttons."""
    if kind is None:
        scope = {"asset_id": desk.query["beamline"]} if desk.query.get("beamline") else {}
        fields = urlencode({**scope, "reason": HELD_HERE})
        choose = urlencode({"back": page.path, **scope})
        return {
            "hold": f"/console/do/hold_everything?{fields}",
            "stop": f"/console/halt?verb=stop&{choose}",
            "abort": f"/console/halt?verb=abort&{choose}",
        }
    id_name, label = REGISTRY.aggregates[kind].id_name, kind.lower()
    target = {id_name: desk.path[id_name]}
    stop = f"/console/do/stop_run?{urlencode(target)}" if kind == "Run" else "/console/halt?verb=stop"
    hold, abort = urlencode({**target, "reason": HELD_HERE}), urlencode(target)
    return {"hold": f"/console/do/hold_{label}?{hold}", "stop": stop, "abort": f"/console/do/abort_{label}?{abort}"}


HELD_HERE = "Held from the console."
PERSONAL = ("said", "position")
"""What an address says to one person after a command; it is no part of the live page that all share."""


def query_of(request: Request) -> dict[str, str]:
    """Return the parameters of an address; the last of each name counts."""
    return parameters_in(request.query.decode("latin-1"))


def parameters_in(query: str) -> dict[str, str]:
    """Return the parameters of a query string; refuse one that cannot be read."""
    try:
        found = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=1000, errors="strict"))
    except ValueError:
        raise RequestValidationError.at("query", msg="The query string cannot be read", type="query_parsing") from None
    refuse_nul(found, "query")
    return found


def said_in(request: Request) -> str:
    """Return the message that an address carries; none where it cannot be read."""
    return dict(parse_qsl(request.query.decode("latin-1"))).get("said", "")


def address_of(request: Request) -> str:
    """Return the address of a page within this service."""
    query = request.query.decode("latin-1")
    return quote(request.scope["path"], safe="/") + (f"?{query}" if query else "")


def seen_position(request: Request) -> int:
    """Return the place of the log that the person's last command was recorded at."""
    text = query_of(request).get("position", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


async def lead_to_console(request: Request, caller: Caller) -> Response:
    """Answer `GET /`."""
    return redirect("/console")


def add_console(parts: ApiParts, examine: Examine | None = None) -> None:
    """Add the console to an API application, with what examines the service where this process can."""
    from baton.console import pages  # noqa: F401  # every page declares itself

    Console(parts, ZoneInfo(parts.host.settings.facility_time_zone), examine).add_routes()
