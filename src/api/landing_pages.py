"""The pages that persistent identifiers lead to: what was registered of a thing, for everybody where settings say so."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator
from html import escape
from typing import Annotated
from uuid import UUID

import orjson
from fastapi import Header, Request, Response
from fastapi.responses import HTMLResponse

from baton.api.authentication import Authentication
from baton.api.pages import page_headers
from baton.application.caller import Caller
from baton.application.commands import refuse_denied
from baton.application.service import Service
from baton.domain.data.landing import SHOWN_BY, LandingPage, landing_page_of
from baton.domain.kernel import NIL
from baton.domain.shared.citation import (
    DATACITE_JSON,
    SPDX_LICENSES,
    WEB,
    CitedIdentifier,
    LandingKind,
    PublicPages,
    datacite_json,
    doi_in,
)
from baton.domain.shared.refusals import NotFound, Refusal

AT_ONCE = 4  # Pages that are made at the same time: nobody needs a token to ask for one, and an edition has many members.
LINKED_DATA = "application/ld+json"
TYPES = {"Collection": "Collection", "Dataset": "Dataset", "Instrument": "IndividualProduct", "PhysicalObject": "Thing"}
RELATIONS = {"IsPartOf": "isPartOf", "HasPart": "hasPart", "IsDerivedFrom": "isBasedOn"}
STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
    "dt{font-weight:600;margin-top:1em}dd{margin:0;overflow-wrap:anywhere}.gone{border:2px solid;padding:.5em 1em}"
)


class LandingPageNotFoundError(NotFound):
    """Nothing with this id has a page."""


class LandingPageWithdrawnError(Refusal, status=410):
    """The thing was withdrawn; its page for people says when and why."""


def landing_pages(
    service: Service, authentication: Authentication, public: Collection[PublicPages]
) -> Callable[..., Awaitable[Response]]:
    """Return the endpoint of all pages; one that is not public asks for the permission to read what it shows."""
    free = asyncio.Semaphore(AT_ONCE)

    async def endpoint(request: Request, kind: str, id: str, accept: Annotated[str, Header()] = "") -> Response:
        """Answer `GET /landing/{kind}/{id}`, as HTML, as linked data or as the record of DataCite."""
        correlation_id = request.scope["correlation_id"]
        page, pages = None, PAGES.get(kind)
        if pages is not None and (thing_id := id_in(id)) is not None:
            async with free:
                page = await service.commands.read(landing_page_of(pages, thing_id), Caller(NIL, NIL, correlation_id))
        is_public = page is not None and (kind in public or ("minted" in public and page.identifier is not None))
        if not is_public:
            caller = await authentication.caller(request.scope, correlation_id)
            if page is not None and pages is not None:
                needed = SHOWN_BY[pages].operation.command_name
                refuse_denied(needed, await service.authorizer.authorize(caller, needed))
        if page is None:
            raise LandingPageNotFoundError("Nothing with this id has a page; check the address.")
        response = answer_of(page, accept)
        response.headers["Vary"] = "accept"
        response.headers["Cache-Control"] = "public, max-age=300" if is_public else "no-store"
        return response

    return endpoint


PAGES = {kind.value: kind for kind in LandingKind}


def id_in(text: str) -> UUID | None:
    """Return the id that a part of a path is, or None."""
    try:
        return UUID(text)
    except ValueError:
        return None


def answer_of(page: LandingPage, accept: str) -> Response:
    """Return a page in the form that is asked for; everybody but programs that ask for JSON gets HTML."""
    if "html" in accept or "json" not in accept:
        text = html_page(page)
        return HTMLResponse(text, headers=page_headers(text))
    if page.withdrawal is not None:
        at, reason = page.withdrawal
        raise LandingPageWithdrawnError(
            f"{page.citation.title} was withdrawn on {at.date().isoformat()}: {reason}",
            reason="withdrawn",
            facts={"identifier": page.identifier, "withdrawn_at": at, "withdrawal_reason": reason},
        )
    if LINKED_DATA in accept:
        return Response(orjson.dumps(linked_data(page)), media_type=LINKED_DATA)
    record = datacite_json(page.citation, doi_in(page.identifier))
    return Response(orjson.dumps(record), media_type=DATACITE_JSON if DATACITE_JSON in accept else "application/json")


def linked_data(page: LandingPage) -> dict[str, object]:
    """Return what the page shows in the terms of schema.org."""
    cited, doi = page.citation, doi_in(page.identifier)
    related = {
        name: [{"@id": address_of(one)} for one in cited.related_identifiers if one.relation_type == relation]
        for relation, name in RELATIONS.items()
    }
    days = [f"{one.date}/{one.until or one.date}" for one in cited.dates if one.type == "Collected"]
    parts: dict[str, object] = {
        "identifier": [page.identifier, *(one.identifier for one in cited.alternate_identifiers)],
        "name": cited.title,
        "publisher": {"@type": "Organization", "name": cited.publisher},
        "datePublished": str(cited.publication_year),
        "creator": [
            {"@type": "Person" if one.personal else "Organization", "name": one.name, "identifier": one.identifier}
            for one in cited.creators
        ],
        "keywords": list(cited.subjects),
        "temporalCoverage": days,
        "size": list(cited.sizes),
        "encodingFormat": list(cited.formats),
        "license": cited.license and f"{SPDX_LICENSES}{cited.license}.html",
        "description": [one.text for one in cited.descriptions],
        **related,
    }
    address = f"https://doi.org/{doi}" if doi is not None else cited.landing_page
    head = {"@context": "https://schema.org", "@type": TYPES[cited.resource_type], "@id": address, "url": cited.landing_page}
    return {**head, **{name: value for name, value in parts.items() if value}}


def address_of(cited: CitedIdentifier) -> str:
    """Return the address that an identifier leads to, or the identifier itself where it leads nowhere."""
    return f"https://doi.org/{cited.identifier}" if cited.identifier_type == "DOI" else cited.identifier


def html_page(page: LandingPage) -> str:
    """Return a page for people; that of something withdrawn says when and why, and no more than its name."""
    cited, notice, data = page.citation, "", json.dumps(linked_data(page), ensure_ascii=False).replace("<", "\\u003c")
    script = f'<script type="application/ld+json">{data}</script>'
    if page.withdrawal is not None:
        at, reason = page.withdrawal
        notice = f'<p class="gone">Withdrawn on {at.date().isoformat()}. {escape(reason)}</p>'
        script = ""
    rows = parts_of(page) if page.withdrawal is None else identifiers_of(page)
    listed = "".join(f"<dt>{name}</dt><dd>{'<br>'.join(values)}</dd>" for name, values in rows if values)
    title = escape(cited.title)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>{script}'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body><main><h1>{title}</h1>{notice}<dl>{listed}</dl></main>'
        "</body></html>"
    )


def identifiers_of(page: LandingPage) -> Iterator[tuple[str, list[str]]]:
    """Yield by whom a thing was published, and what it is known by."""
    cited = page.citation
    kind = "DOI" if doi_in(page.identifier) else "Handle"
    own = () if page.identifier is None else (CitedIdentifier(identifier=page.identifier, identifier_type=kind),)
    yield "Identifier", [identifier_link(one) for one in (*own, *cited.alternate_identifiers)]
    yield "Published", [f"{escape(cited.publisher)}, {cited.publication_year}"]


def parts_of(page: LandingPage) -> Iterator[tuple[str, list[str]]]:
    """Yield what the registered metadata say, by name, as HTML."""
    cited = page.citation
    yield "Kind", [escape(cited.specific_type or cited.resource_type)]
    yield from identifiers_of(page)
    yield "Created by", [escape(one.name) for one in cited.creators]
    yield "Hosted by", [escape(one.name) for one in cited.hosts]
    yield "Subjects", [escape(one) for one in cited.subjects]
    last = {one: f" to {one.until}" for one in cited.dates if one.until not in (None, one.date)}
    yield "Dates", [f"{escape(one.information or one.type)}: {one.date}{last.get(one, '')}" for one in cited.dates]
    yield "Related", [f"{one.relation_type}: {identifier_link(one)}" for one in cited.related_identifiers]
    yield "Size", [escape(one) for one in cited.sizes]
    yield "Format", [escape(one) for one in cited.formats]
    license = cited.license and escape(cited.license)
    yield "License", [f'<a href="{SPDX_LICENSES}{license}.html">{license}</a>'] if license else []
    yield "Description", [escape(one.text) for one in cited.descriptions]


def identifier_link(cited: CitedIdentifier) -> str:
    """Return an identifier as HTML, linked where it leads somewhere."""
    address, text = escape(address_of(cited)), escape(cited.identifier)
    return f'<a href="{address}">{text}</a>' if address.startswith(WEB) else text
