"""The shell of the console: what surrounds every page, and how a page and its regions are rendered for a person."""

import asyncio
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode
from zoneinfo import ZoneInfo

from baton.api.app import ApiParts
from baton.api.errors import RequestValidationError, error_body
from baton.api.http import Request, Response
from baton.api.parsing import refuse_nul
from baton.application.caller import Caller
from baton.console.health import Examine, ServiceHealth
from baton.console.in_process import AnyRefusal, problem_of
from baton.console.page import PAGES, ConsolePage, MenuGroup, Region
from baton.console.page_queries import DeploymentRules, HeldPermissions, PageQueries
from baton.console.rendering import html_response, shared_templates
from baton.console.sessions import ConsoleSession, Sessions
from baton.domain.contexts import REGISTRY
from baton.domain.shared.refusals import Refusal
from baton.domain.views.my_access import GetMyAccess
from baton.infrastructure.wall_clock import clock


@dataclass
class ConsoleShell:
    """Renders the pages of the console; endpoints and handlers get it."""

    parts: ApiParts
    zone: ZoneInfo
    examine: InitVar[Examine | None] = None

    def __post_init__(self, examine: Examine | None) -> None:
        host = self.parts.host
        self.templates = shared_templates(self.zone)
        self.rules, self.health = DeploymentRules.of(host.settings), ServiceHealth(host, self.parts.streams, examine)
        self.sessions = Sessions(self.parts.authentication, host.authorizer)

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

    def queries(self, session_caller: Caller, held: HeldPermissions, **options: Any) -> PageQueries:
        """Return a queries for one rendering."""
        known: dict[str, Any] = {"rules": self.rules, "health": self.health, **options}
        return PageQueries(self.parts.host.service, session_caller, held, self.zone, clock(), **known)

    def queries_of(self, request: Request, session: ConsoleSession) -> PageQueries:
        """Return the queries of a request."""
        refuse_nul(request.path, "path")
        return self.queries(
            session.caller, session.held, path=request.path, query=query_of(request), position=seen_position(request)
        )

    async def shell(
        self, request: Request, session: ConsoleSession | None, page: ConsolePage | None, title: str, **more: object
    ) -> dict[str, Any]:
        """Return what every page shows around its own content."""
        name = None
        if session is not None:
            me = await self.queries(session.caller, session.held).ask(GetMyAccess)
            local = me.principal_id == session.caller.principal_id and me.kind is None
            name = me.name or ("Local operator" if local else None)
        return {
            "title": title,
            "page": page,
            "menu": PAGES.menu(),
            "groups": MenuGroup,
            "person": name,
            "form_token": session.form_token if session else "",
            "signed_in": session is not None and self.parts.host.settings.tokens_required,
            "zone": self.zone.key,
            "address": address_of(request),
            "facility": self.parts.host.settings.self_facility_code,
            "said": session and session.read_message(flash_message(request)),
            **more,
        }

    async def page_response(
        self,
        request: Request,
        session: ConsoleSession,
        page: ConsolePage,
        queries: PageQueries,
        own: Mapping[str, object],
        status: int = 200,
    ) -> Response:
        """Return a page: its regions, and what its own template shows besides them."""
        about = page.title
        if page.name is not None and all(queries.may(operation) for operation in page.asks[:1]):
            about = await page.name(queries)
        regions = await self.render_regions(page, queries, frozenset(page.regions))
        shell = await self.shell(request, session, page, title=about, halts=halt_addresses(page, queries))
        context = {**shell, "regions": regions, "path": queries.path, "query": queries.query, "queries": queries, **own}
        return html_response(self.templates.render(page.template, context), status)

    async def render_regions(self, page: ConsolePage, queries: PageQueries, names: frozenset[str]) -> dict[str, str]:
        """Return these regions of a page, each rendered as the person may see it."""
        wanted = [name for name in page.regions if name in names]
        rendered = await asyncio.gather(
            *(self._region(page.regions[name], page, queries) for name in wanted), return_exceptions=True
        )
        for one in rendered:
            if isinstance(one, BaseException):
                raise one
        return dict(zip(wanted, map(str, rendered), strict=True))

    async def _region(self, region: Region, page: ConsolePage, queries: PageQueries) -> str:
        try:
            queries.require(region.asks)
            context = await region.load(queries)
        except Refusal as refusal:
            if refusal.status >= 500 or (refusal.status == 404 and queries.recorded):
                raise
            return self.templates.render("region_refused.html", {"refusal": refusal, "region": region})
        return self.templates.render(
            region.template, {"queries": queries, "page": page, "path": queries.path, "query": queries.query, **context}
        )


def halt_addresses(page: ConsolePage, queries: PageQueries) -> dict[str, object]:
    """Return the addresses of the halt bar's three buttons: about the page's own thing, or everything that is live; and
    whether the one that asks nothing further becomes a proposal."""
    kind = page.halts
    holding = REGISTRY.operations["hold_everything" if kind is None else f"hold_{kind.lower()}"]
    return {**own_halts(page, queries, kind), "proposed": queries.proposes(holding)}


def own_halts(page: ConsolePage, queries: PageQueries, kind: str | None) -> dict[str, str]:
    """Return the addresses of the halt bar's buttons."""
    if kind is None:
        scope = {"asset_id": queries.query["beamline"]} if queries.query.get("beamline") else {}
        fields = urlencode({**scope, "reason": HELD_HERE})
        choose = urlencode({"back": page.path, **scope})
        return {
            "hold": f"/console/do/hold_everything?{fields}",
            "stop": f"/console/halt?verb=stop&{choose}",
            "abort": f"/console/halt?verb=abort&{choose}",
        }
    id_name, label = REGISTRY.aggregates[kind].id_name, kind.lower()
    target = {id_name: queries.path[id_name]}
    stop = f"/console/do/stop_run?{urlencode(target)}" if kind == "Run" else "/console/halt?verb=stop"
    hold, abort = urlencode({**target, "reason": HELD_HERE}), urlencode(target)
    return {"hold": f"/console/do/hold_{label}?{hold}", "stop": stop, "abort": f"/console/do/abort_{label}?{abort}"}


HELD_HERE = "Held from the console."


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


def flash_message(request: Request) -> str:
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
