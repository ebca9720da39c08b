"""A real server on loopback that speaks the wire formats of language models, or misbehaves."""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.infrastructure.identity_provider import wait_until


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass
class ModelServer:
    """Answers every request from a queue; asked with none left, it says so by a status that nothing expects."""

    port: int = 0
    answers: deque[Response] = field(default_factory=deque)
    rule: Callable[[ReceivedRequest], dict[str, Any]] | None = None
    """What it answers without a queue, whatever it is asked."""
    asked: list[ReceivedRequest] = field(default_factory=list)
    _speaking: threading.Event = field(default_factory=threading.Event)

    @classmethod
    @contextmanager
    def running_server(cls) -> Iterator[Self]:
        server = cls()
        server.speak()
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        server.port = listener.getsockname()[1]
        app = Starlette(routes=[Route("/{path:path}", server._answer, methods=["POST"])])
        serving = uvicorn.Server(
            uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1, ws="none")
        )
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: serving.started)
        try:
            yield server
        finally:
            server.speak()
            serving.should_exit = True
            thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        self.answers.clear()
        self.asked.clear()
        self.speak()

    def silence(self) -> None:
        """Take requests but answer none until `speak`."""
        self._speaking.clear()

    def speak(self) -> None:
        self._speaking.set()

    def says(self, *answers: Response | dict[str, Any]) -> None:
        self.answers += [in_ascii(answer) if isinstance(answer, dict) else answer for answer in answers]

    async def _answer(self, request: Request) -> Response:
        body = json.loads(await request.body())
        asked = ReceivedRequest(request.url.path, dict(request.headers), body)
        self.asked.append(asked)
        if self.rule is not None:
            return JSONResponse(self.rule(asked))
        answer = self.answers.popleft() if self.answers else Response("out of answers", status_code=418)
        await asyncio.to_thread(self._speaking.wait, 30)
        return answer


def in_ascii(answer: dict[str, Any], status: int = 200) -> Response:
    """JSON that spells out every other character, as some servers do; so even half of a surrogate pair gets through."""
    return Response(json.dumps(answer), status, media_type="application/json")


class Anthropic:
    """What the Messages API says."""

    path = "/v1/messages"
    stop_reason = "tool_use"
    used = (412, 88, 30, 7)

    def answer(self, given: Any, stop_reason: str = stop_reason) -> dict[str, Any]:
        block = {"type": "tool_use", "id": "toolu_1", "name": "give_answer", "input": given}
        return self.message([{"type": "text", "text": "Here it is."}, block], stop_reason)

    def message(self, content: list[Any], stop_reason: str) -> dict[str, Any]:
        counted = {"input_tokens": 412, "output_tokens": 88}
        cached = {"cache_creation_input_tokens": 30, "cache_read_input_tokens": 7}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1-20260301"}
        return {**head, "content": content, "stop_reason": stop_reason, "usage": {**counted, **cached}}

    def unusable(self) -> dict[str, dict[str, Any]]:
        return {
            "cut off": self.answer({"verdict": "go"}, "max_tokens"),
            "out of context": self.answer({"verdict": "go"}, "model_context_window_exceeded"),
            "refused": self.message([], "refusal"),
            "empty": self.message([], "end_turn"),
            "only text": self.message([{"type": "text", "text": "I would go."}], "end_turn"),
            "another tool": self.message([{"type": "tool_use", "name": "other", "input": {}}], "tool_use"),
            "no object": self.answer("go"),
            "unfit": self.answer({"verdict": "perhaps"}),
        }


class OpenAi:
    """What a chat-completions API says; here cached tokens are among those of the prompt."""

    path = "/chat/completions"
    stop_reason = "stop"
    used = (405, 88, 0, 7)

    def answer(self, given: Any, stop_reason: str = stop_reason) -> dict[str, Any]:
        return self.message({"content": json.dumps(given)}, stop_reason)

    def message(self, said: dict[str, Any], stop_reason: str) -> dict[str, Any]:
        counted = {"prompt_tokens": 412, "completion_tokens": 88, "total_tokens": 500}
        usage = {**counted, "prompt_tokens_details": {"cached_tokens": 7}}
        choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": stop_reason}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "m-1-20260301",
            "choices": [choice],
            "usage": usage,
        }

    def unusable(self) -> dict[str, dict[str, Any]]:
        return {
            "cut off": self.message({"content": '{"verdict": "go"}'}, "length"),
            "refused": self.message({"content": None, "refusal": "I cannot help with that."}, "stop"),
            "filtered": self.message({"content": ""}, "content_filter"),
            "empty": self.message({"content": ""}, "stop"),
            "no content": self.message({}, "stop"),
            "no choice": {**self.answer({}), "choices": []},
            "malformed": self.message({"content": '{"verdict": '}, "stop"),
            "not a number": self.message({"content": '{"verdict": "go", "sure": NaN}'}, "stop"),
            "no object": self.answer("go"),
            "unfit": self.answer({"verdict": "perhaps"}),
        }


Dialect = Anthropic | OpenAi
