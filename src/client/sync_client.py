"""`Baton`: the client whose methods wait for their answers."""

import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from baton.client.connection import DEFAULT_URL, STREAM_TIMEOUT, connection_options, loss_of, response_of
from baton.client.exchanges import CallScript, ClientSession, NoAnswer, Wait
from baton.client.index import OPERATIONS, OperationEntry
from baton.client.operations import Operations
from baton.client.requests import HttpRequest, HttpResponse
from baton.client.watching import DisplayOptions, NextLine, OpenStream, Watch, event_frames

if TYPE_CHECKING:
    from baton.client.operations import EventView

T = TypeVar("T")


class Baton(Operations):
    """A client of the service at this address, as the holder of the token: every operation is a method."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        **options: Any,
    ) -> None:
        self.http = httpx.Client(**connection_options(url, token), transport=transport)
        self.session = ClientSession(url, **options)

    def call(self, name: str, /, *, idempotency_key: str | None = None, dry_run: bool = False, **arguments: Any) -> Any:
        """Call an operation by its name."""
        return self.invoke(OPERATIONS[name], arguments, idempotency_key, dry_run)

    def invoke(
        self, operation: OperationEntry, arguments: dict[str, object], key: str | None = None, dry_run: bool = False
    ) -> Any:
        return self.carry_out(self.session.call(operation, arguments, key=key, dry_run=dry_run))

    def carry_out(self, exchange: CallScript[T]) -> T:
        """Carry out an exchange to its end."""
        reply: HttpResponse | NoAnswer | None = None
        while True:
            try:
                step = exchange.send(reply)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            match step:
                case Wait(seconds):
                    time.sleep(seconds)
                    reply = None
                case HttpRequest():
                    reply = self._send(step)

    def every(self, name: str, /, **filters: object) -> Iterator[Any]:
        """Yield every item of a list, page by page."""
        return self.every_item(OPERATIONS[name], filters)

    def every_item(
        self, operation: OperationEntry, filters: Mapping[str, object], present: Callable[[object], object] | None = None
    ) -> Iterator[Any]:
        """Yield every item of a list, page by page, as this function presents it."""
        wanted: dict[str, object] = {"limit": 100, **filters}
        while True:
            page = self.invoke(operation, wanted)
            yield from page.items if present is None else map(present, page.items)
            if page.next_cursor is None:
                return
            wanted["cursor"] = page.next_cursor

    def follow_events(self, **filters: object) -> "Iterator[EventView]":
        """Yield every committed event behind the position `after`, or from now on, as it happens, without end."""
        return self.follow(event_frames(self.session, filters))

    def watch(self, frames: Any, work: Any, display: DisplayOptions) -> Watch[Any, Any, Any]:
        """Return what follows work by its frames."""
        return Watch(self, frames, work, display)

    def follow(self, watching: Any) -> Iterator[Any]:
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
                        time.sleep(seconds)
                    case HttpRequest():
                        reply = self._send(step)
                    case OpenStream(request):
                        if stream is not None:
                            stream.close()
                        reply, stream, lines = self._open(request)
                    case NextLine():
                        try:
                            reply = next(lines, NoAnswer("the stream has ended"))
                        except httpx.TransportError as error:
                            reply = NoAnswer(loss_of(error))
                    case frame:
                        yield frame
        finally:
            if stream is not None:
                stream.close()

    def close(self) -> None:
        """Close the connections to the service."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, request: HttpRequest) -> HttpResponse | NoAnswer:
        try:
            answer = self.http.request(
                request.method, request.path, params=list(request.query), content=request.body, headers=dict(request.headers)
            )
        except httpx.TransportError as error:
            return NoAnswer(loss_of(error))
        return response_of(answer, answer.content)

    def _open(self, request: HttpRequest) -> tuple[HttpResponse | NoAnswer, httpx.Response | None, Iterator[str]]:
        headers, timeout = dict(request.headers), STREAM_TIMEOUT
        try:
            asked = self.http.build_request(
                request.method, request.path, params=list(request.query), headers=headers, timeout=timeout
            )
            opened = self.http.send(asked, stream=True)
            content = b"" if opened.status_code == 200 else opened.read()
        except httpx.TransportError as error:
            return NoAnswer(loss_of(error)), None, iter(())
        return response_of(opened, content), opened, opened.iter_lines()
