"""Files that pages hand out: pictures, records of other forms, and lines that come page by page."""

from collections.abc import AsyncGenerator
from uuid import UUID

from baton.api.http import Request, Response
from baton.console.page import handles
from baton.console.page_queries import PageQueries
from baton.console.rendering import PAGE_HEADERS
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.domain.kernel import Document, Query


def document_response(document: Document, policy: bytes | None = None, cache: bytes | None = None) -> Response:
    """Return a file; a picture with a style of its own may use that and nothing else."""
    own = {b"content-security-policy": policy, b"cache-control": cache}
    headers = [(name, own.get(name) or value) for name, value in PAGE_HEADERS]
    return Response(200, document.content, [*headers, (b"vary", b"cookie")], content_type=document.media_type.encode())


def serve_export(
    path: str, id_name: str, query: type[Query[Document]], policy: bytes | None = None, **fields: object
) -> None:
    """Answer an address with a file, asked for as the person who wants it; the pages of one come one after the other."""

    @handles("GET", path)
    async def serve(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
        queries = console.queries_of(request, session)
        id = queries.id(id_name)
        document = await queries.ask(query, id, **fields)
        response = document_response(document, policy)
        if document.next_cursor is not None:
            response.stream = further_pages(document, query, id, queries)
        return response


async def further_pages(
    document: Document, query: type[Query[Document]], id: UUID, queries: PageQueries
) -> AsyncGenerator[bytes, None]:
    """Yield this page of a file and those behind it."""
    yield document.content
    while document.next_cursor is not None:
        document = await queries.ask(query, id, cursor=document.next_cursor)
        yield document.content
