"""`AsyncBaton`: the client whose answers are awaited."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from baton.client.connection import DEFAULT_URL, STREAM_TIMEOUT, connection_options, loss_of, response_of
from baton.client.exchanges import CallScript, ClientSession, NoAnswer, Wait
from baton.client.index import OPERATIONS, OperationEntry
from baton.client.operations import AsyncOperations
from baton.client.requests import HttpRequest, HttpResponse
from baton.client.watching import AsyncWatch, DisplayOptions, NextLine, OpenStream, event_frames

if TYPE_CHECKING:
    from baton.client.operations import EventView

T = TypeVar("T")


class AsyncBaton(AsyncOperations):
    """A client of the service for asynchronous programs: what `Baton` does, awaited."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        **options: Any,
    ) -> None:
        self.http = httpx.AsyncClient(**connection_options(url, token), transport=transport)
        self.session = ClientSession(url, **options)

    async def call(
        self, name: str, /, *, idempotency_key: str | None = None, dry_run: bool = False, **arguments: Any
    ) -> Any:
        """Call an operation by its name."""
        return await self.invoke(OPERATIONS[name], arguments, idempotency_key, dry_run)

    async def invoke(
        self, operation: OperationEntry, arguments: dict[str, object], key: str | None = None, dry_run: bool = False
    ) -> Any:
        return await self.carry_out(self.session.call(operation, arguments, key=key, dry_run=dry_run))

    async def carry_out(self, exchange: CallScript[T]) -> T:
        """Carry out an exchange to its end."""
        reply: HttpResponse | NoAnswer | None = None
        while True:
            try:
                step = exchange.send(reply)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            match step:
                case Wait(seconds):
                    await asyncio.sleep(seconds)
                    reply = None
                case HttpRequest():
                    reply = await self._send(step)

    def every(self, name: str, /, **filters: object) -> AsyncIterator[Any]:
        """Yield every item of a list, page by page."""
        return self.every_item(OPERATIONS[name], filters)

    async def every_item(
        self, operation: OperationEntry, filters: Mapping[str, object], present: Callable[[object], object] | None = None
    ) -> AsyncIterator[Any]:
        """Yield every item of a list, page by page, as this function presents it."""
        wanted: dict[str, object] = {"limit": 100, **filters}
        while True:
            page = await self.invoke(operation, wanted)
            for item in page.items:
                yield item if present is None else present(item)
            if page.next_cursor is None:
                return
            wanted["cursor"] = page.next_cursor

    def follow_events(self, **filters: object) -> "AsyncIterator[EventView]":
        """Yield every committed event behind the position `after`, or from now on, as it happens, without end."""
        return self.follow(event_frames(self.session, filters))

    def watch(self, frames: Any, work: Any, display: DisplayOptions) -> AsyncWatch[Any, Any, Any]:
        """Return what follows work by its frames."""
        return AsyncWatch(self, frames, work, display)

    async def follow(self, watching: Any) -> AsyncIterator[Any]:
        """Yield the frames of work that is watched."""
        reply: Any = None
        stream: httpx.Response | None = None
        try:
            while True:
                try:
                    step = watching.send(reply)
                except StopIteration:
                    return
                reply = None
                match step:
                    case Wait(seconds):
                        await asyncio.sleep(seconds)
                    case HttpRequest():
                        reply = await self._send(step)
                    case OpenStream(request):
                        if stream is not None:
                            await stream.aclose()
                        reply, stream, lines = await self._open(request)
                    case NextLine():
                        try:
                            reply = await anext(lines, NoAnswer("the stream has ended"))
                        except httpx.TransportError as error:
                            reply = NoAnswer(loss_of(error))
                    case frame:
                        yield frame
        finally:
            if stream is not None:
                await stream.aclose()

    async def close(self) -> None:
        """Close the connections to the service."""
        await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, request: HttpRequest) -> HttpResponse | NoAnswer:
        try:
            answer = await self.http.request(
                request.method, request.path, params=list(request.query), content=request.body, headers=dict(request.headers)
            )
        except httpx.TransportError as error:
            return NoAnswer(loss_of(error))
        return response_of(answer, answer.content)

    async def _open(self, request: HttpRequest) -> tuple[HttpResponse | NoAnswer, httpx.Response | None, AsyncIterator[str]]:
        headers, timeout = dict(request.headers), STREAM_TIMEOUT
        try:
            asked = self.http.build_request(
                request.method, request.path, params=list(request.query), headers=headers, timeout=timeout
            )
            opened = await self.http.send(asked, stream=True)
            content = b"" if opened.status_code == 200 else await opened.aread()
        except httpx.TransportError as error:
            return NoAnswer(loss_of(error)), None, no_lines()
        return response_of(opened, content), opened, opened.aiter_lines()


async def no_lines() -> AsyncIterator[str]:
    """Yield nothing."""
    return
    yield
