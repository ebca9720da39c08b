"""What every provider of models promises, the scripted one included: an answer that fits, or an error that says which."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

import httpx
import pytest
from starlette.responses import JSONResponse, Response

from baton.application.language_models import (
    LanguageModelAuthenticationError,
    LanguageModelError,
    LanguageModelInvalidRequestError,
    LanguageModelRateLimitError,
    LanguageModelSchemaValidationError,
    LanguageModelServerError,
    LanguageModelTimeoutError,
    ModelProvider,
    chat_with_retry,
)
from baton.infrastructure.llm.providers import AnthropicModels, OpenAiCompatibleModels
from baton.testing.ports import ScriptedModel
from tests.support.infrastructure.model_requests import SOUND, RecordedSleep, chat_request
from tests.support.infrastructure.model_server import Anthropic, Dialect, ModelServer, OpenAi

KEY = "a-key-of-no-form"
STATUSES: dict[type[LanguageModelError], int] = {
    LanguageModelRateLimitError: 429,
    LanguageModelServerError: 503,
    LanguageModelAuthenticationError: 401,
    LanguageModelInvalidRequestError: 400,
}
Said = dict[str, Any] | type[LanguageModelError]


class Bench(Protocol):
    """A provider that can be made to answer and to fail."""

    def model(self, *said: Said) -> ModelProvider: ...

    @property
    def calls(self) -> int: ...


class WiredModel:
    """An adapter and the server that it asks."""

    def __init__(self, server: ModelServer, http: httpx.AsyncClient, dialect: Dialect) -> None:
        self.server, self.http, self.dialect = server, http, dialect

    def model(self, *said: Said) -> ModelProvider:
        self.server.says(*(self._response(one) for one in said))
        if isinstance(self.dialect, Anthropic):
            return AnthropicModels(self.http, self.server.url, KEY, 10)
        return OpenAiCompatibleModels(self.http, self.server.url, KEY, 10)

    def _response(self, said: Said) -> Response | dict[str, Any]:
        if isinstance(said, dict):
            return self.dialect.answer(said)
        return JSONResponse({"error": {"type": "some_error", "message": "as arranged"}}, STATUSES[said])

    @property
    def calls(self) -> int:
        return len(self.server.asked)


class Scripted:
    def __init__(self) -> None:
        self._made = ScriptedModel()

    def model(self, *said: Said) -> ModelProvider:
        self._made = ScriptedModel(*(one if isinstance(one, dict) else one("as arranged") for one in said))
        return self._made

    @property
    def calls(self) -> int:
        return len(self._made.requests)


@pytest.fixture(params=["anthropic", "openai", "scripted"])
async def bench(request: pytest.FixtureRequest, server: ModelServer, http: httpx.AsyncClient) -> AsyncIterator[Bench]:
    match request.param:
        case "anthropic":
            yield WiredModel(server, http, Anthropic())
        case "openai":
            yield WiredModel(server, http, OpenAi())
        case _:
            yield Scripted()


async def test_an_answer_comes_parsed_with_what_it_took_and_who_gave_it(bench: Bench) -> None:
    response = await bench.model(SOUND).chat(chat_request())
    assert response.parsed == SOUND
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens > 0
    assert response.stop_reason
    assert response.model_id
    assert bench.calls == 1


@pytest.mark.parametrize("answer", [{"verdict": "perhaps", "sure": 1}, {"verdict": "go"}, {**SOUND, "mood": "fair"}, {}])
async def test_an_answer_that_does_not_fit_is_an_error_that_tells_what_it_took(bench: Bench, answer: dict[str, Any]) -> None:
    with pytest.raises(LanguageModelSchemaValidationError) as refused:
        await bench.model(answer).chat(chat_request())
    assert refused.value.usage is not None
    assert refused.value.usage.input_tokens > 0
    assert refused.value.model_id
    assert "perhaps" not in str(refused.value)


ANYTHING = {"type": "object"}


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\r", "\x7f", "\x85", "\ud800"], ids=ascii)
@pytest.mark.parametrize("place", ["text", "listed", "key"])
async def test_an_answer_that_cannot_be_kept_is_an_error_like_any_other(bench: Bench, character: str, place: str) -> None:
    broken = f"the stage{character} slips"
    answer = {"text": {"why": broken}, "listed": {"tags": [["sound"], ["a", broken]]}, "key": {"at": {broken: 1}}}[place]
    with pytest.raises(LanguageModelSchemaValidationError) as refused:
        await bench.model(answer).chat(chat_request(structured_output_schema=ANYTHING))
    assert refused.value.usage is not None
    assert refused.value.usage.input_tokens > 0
    assert refused.value.model_id
    assert "slips" not in str(refused.value)


async def test_lines_tabs_and_every_script_can_be_kept(bench: Bench) -> None:
    answer = {"why": "one\n\ttwo", "tags": ["山田", "Ökostrom", "📷", "נ"]}
    assert (await bench.model(answer).chat(chat_request(structured_output_schema=ANYTHING))).parsed == answer


@pytest.mark.parametrize("error", STATUSES, ids=lambda error: error.__name__)
async def test_every_failure_has_its_class(bench: Bench, error: type[LanguageModelError]) -> None:
    with pytest.raises(error, match="as arranged") as refused:
        await bench.model(error).chat(chat_request())
    assert type(refused.value) is error
    assert (refused.value.usage, refused.value.model_id) == (None, None)


@pytest.mark.parametrize("error", [LanguageModelRateLimitError, LanguageModelServerError])
async def test_what_passes_is_asked_again(bench: Bench, error: type[LanguageModelError]) -> None:
    sleeper = RecordedSleep()
    response = await chat_with_retry(bench.model(error, error, SOUND), chat_request(), sleeper)
    assert response.parsed == SOUND
    assert (bench.calls, sleeper.slept) == (3, [0.5, 1.0])


async def test_the_third_failure_is_the_last(bench: Bench) -> None:
    sleeper = RecordedSleep()
    with pytest.raises(LanguageModelServerError):
        await chat_with_retry(bench.model(*[LanguageModelServerError] * 3), chat_request(), sleeper)
    assert (bench.calls, len(sleeper.slept)) == (3, 2)


@pytest.mark.parametrize("said", [LanguageModelAuthenticationError, LanguageModelInvalidRequestError, {"verdict": "stay"}])
async def test_what_does_not_pass_is_asked_once(bench: Bench, said: Said) -> None:
    with pytest.raises(LanguageModelError):
        await chat_with_retry(bench.model(said), chat_request(), RecordedSleep())
    assert bench.calls == 1


async def test_a_script_that_ran_out_fails_loudly() -> None:
    model = ScriptedModel(SOUND, LanguageModelTimeoutError("slow"), lambda asked: {**SOUND, "sure": len(asked.system) / 100})
    assert (await model.chat(chat_request())).parsed == SOUND
    with pytest.raises(LanguageModelTimeoutError):
        await model.chat(chat_request())
    assert (await model.chat(chat_request(system="Say."))).parsed["sure"] == 0.04
    with pytest.raises(AssertionError, match="more often"):
        await model.chat(chat_request())
    assert [one.system for one in model.requests] == ["Say go or stay.", "Say go or stay.", "Say.", "Say go or stay."]
