"""The adapters on the wire: what is sent, what is taken, and what is said when nothing is."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from starlette.responses import JSONResponse, Response

from baton.application.language_models import (
    LanguageModelAuthenticationError,
    LanguageModelInvalidRequestError,
    LanguageModelRateLimitError,
    LanguageModelSchemaValidationError,
    LanguageModelServerError,
    LanguageModelTimeoutError,
    ModelProvider,
    Usage,
    chat_with_retry,
)
from baton.domain.agent.language_model import ModelRef
from baton.domain.agent.prompts import PROMPTS, Prompt
from baton.infrastructure.llm.providers import BOUNDS, AnthropicModels, OpenAiCompatibleModels, can_be_strict, strict_schema
from tests.support.infrastructure.identity_provider import dripping_answer
from tests.support.infrastructure.model_requests import SCHEMA, SOUND, RecordedSleep, chat_request
from tests.support.infrastructure.model_server import Anthropic, Dialect, ModelServer, OpenAi, in_ascii
from tests.support.tables import for_each

KEY = "my-own-passphrase"
DIALECTS: list[Dialect] = [Anthropic(), OpenAi()]
AdapterFactory = Callable[..., ModelProvider]


@pytest.fixture
def make_adapter(server: ModelServer, http: httpx.AsyncClient) -> AdapterFactory:
    def adapter(dialect: Dialect, timeout: float = 10, key: str = KEY, url: str = server.url) -> ModelProvider:
        kind = AnthropicModels if isinstance(dialect, Anthropic) else OpenAiCompatibleModels
        return kind(http, url, key, timeout)

    return adapter


def dialect_name(dialect: Dialect) -> str:
    return type(dialect).__name__


each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=dialect_name)


@each_dialect
async def test_what_a_call_took_is_counted_once(dialect: Dialect, make_adapter: AdapterFactory, server: ModelServer) -> None:
    server.says(dialect.answer(SOUND))
    response = await make_adapter(dialect).chat(chat_request())
    fresh, output, written, read = dialect.used
    assert response.usage == Usage(
        input_tokens=fresh, output_tokens=output, cache_creation_input_tokens=written, cache_read_input_tokens=read
    )
    assert (response.stop_reason, response.model_id) == (dialect.stop_reason, "m-1-20260301")


@each_dialect
async def test_a_server_that_counts_nothing_is_taken_too(
    dialect: Dialect, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    bare = {key: value for key, value in dialect.answer(SOUND).items() if key not in ("usage", "model", "id")}
    server.says(bare)
    response = await make_adapter(dialect).chat(chat_request())
    assert (response.parsed, response.usage) == (SOUND, Usage(input_tokens=0, output_tokens=0))
    assert response.model_id == "m-1"


@pytest.mark.parametrize(
    ("given", "kept"), [("m\x00-\ud8001", "m-1"), ("\x00", None), (" \x1b ", None)], ids=["some", "nothing", "blank"]
)
@each_dialect
async def test_labels_are_kept_without_what_cannot_be(
    dialect: Dialect, given: str, kept: str | None, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says({**dialect.answer(SOUND, given), "model": given})
    response = await make_adapter(dialect).chat(chat_request())
    assert (response.model_id, response.stop_reason) == (kept or "m-1", kept or "unknown")


@each_dialect
async def test_what_a_provider_says_of_its_failure_can_be_kept(
    dialect: Dialect, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says(in_ascii({"error": {"message": "broken\x00 and\ud800 lost"}}, 400))
    with pytest.raises(LanguageModelInvalidRequestError, match="broken  and  lost"):
        await make_adapter(dialect).chat(chat_request())


@pytest.mark.parametrize(
    ("dialect", "case"),
    [(dialect, case) for dialect in DIALECTS for case in dialect.unusable()],
    ids=lambda one: one if isinstance(one, str) else dialect_name(one),
)
async def test_an_answer_without_use_still_cost_something(
    dialect: Dialect, case: str, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says(dialect.unusable()[case])
    with pytest.raises(LanguageModelSchemaValidationError) as refused:
        await make_adapter(dialect).chat(chat_request())
    assert refused.value.usage is not None
    assert refused.value.usage.output_tokens == 88
    assert refused.value.model_id == "m-1-20260301"


@each_dialect
@pytest.mark.parametrize("body", ["<html>busy</html>", '{"id": ', "[]", ""])
async def test_an_answer_that_is_none_is_the_servers_fault(
    dialect: Dialect, body: str, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says(Response(body))
    with pytest.raises(LanguageModelServerError):
        await make_adapter(dialect).chat(chat_request())


@each_dialect
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (301, LanguageModelInvalidRequestError),
        (400, LanguageModelInvalidRequestError),
        (401, LanguageModelAuthenticationError),
        (403, LanguageModelAuthenticationError),
        (404, LanguageModelInvalidRequestError),
        (413, LanguageModelInvalidRequestError),
        (429, LanguageModelRateLimitError),
        (500, LanguageModelServerError),
        (502, LanguageModelServerError),
        (529, LanguageModelServerError),
    ],
)
async def test_a_status_has_its_error(
    dialect: Dialect, status: int, error: type[Exception], make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says(Response("no JSON at all", status, headers={"location": "/elsewhere"}))
    with pytest.raises(error) as refused:
        await make_adapter(dialect).chat(chat_request())
    assert type(refused.value) is error
    assert str(status) in str(refused.value)


@each_dialect
async def test_a_silent_server_is_given_up(dialect: Dialect, make_adapter: AdapterFactory, server: ModelServer) -> None:
    server.silence()
    with pytest.raises(LanguageModelTimeoutError, match=r"within 0\.2 s"):
        await make_adapter(dialect, timeout=0.2).chat(chat_request())


@each_dialect
async def test_a_server_that_drips_is_given_up_too(
    dialect: Dialect, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says(dripping_answer())
    with pytest.raises(LanguageModelTimeoutError):
        await make_adapter(dialect, timeout=0.3).chat(chat_request())


@each_dialect
async def test_a_server_that_is_not_there_cannot_be_asked(dialect: Dialect, make_adapter: AdapterFactory) -> None:
    with pytest.raises(LanguageModelServerError, match="ConnectError"):
        await make_adapter(dialect, url="http://127.0.0.1:1").chat(chat_request())


@each_dialect
@pytest.mark.parametrize(
    ("said", "slept"), [("3", 3.0), ("0", 0.5), ("900", 8.0), ("-1", 0.5), ("tomorrow", 0.5), (None, 0.5)]
)
async def test_a_provider_may_say_how_long_to_wait(
    dialect: Dialect, said: str | None, slept: float, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    sleeper = RecordedSleep()
    server.says(Response("", 429, headers={} if said is None else {"retry-after": said}), dialect.answer(SOUND))
    assert (await chat_with_retry(make_adapter(dialect), chat_request(), sleeper)).parsed == SOUND
    assert sleeper.slept == [slept]


@each_dialect
@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        "sk-ant-REDACTED",
        "sk-abcd***********wxyz",
        "Bearer abc.def",
        "api_key=hunter2",
        '"api-key": "hunter2"',
        "0123456789abcdef0123456789abcdef",
    ],
)
async def test_no_error_tells_a_key(
    dialect: Dialect, secret: str, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    said = f"Incorrect credentials ({secret}) were sent; see the documentation. " + "And so on. " * 50
    server.says(JSONResponse({"error": {"message": said}}, 401))
    with pytest.raises(LanguageModelAuthenticationError) as refused:
        await make_adapter(dialect).chat(chat_request())
    told = str(refused.value)
    assert "Incorrect credentials" in told
    assert "***" in told
    assert not any(part in told for part in (secret, "hunter2", "abc.def", "wxyz"))
    assert len(told) <= 200
    assert refused.value.__cause__ is None


@each_dialect
async def test_a_pinned_snapshot_is_asked_in_the_models_stead(
    dialect: Dialect, make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says(dialect.answer(SOUND))
    await make_adapter(dialect).chat(
        chat_request(model_ref=ModelRef(provider="acme", model="m-1", snapshot_pin="m-1-20260101"))
    )
    assert server.asked[0].body["model"] == "m-1-20260101"


async def test_the_answer_is_asked_for_as_the_input_of_a_tool(make_adapter: AdapterFactory, server: ModelServer) -> None:
    server.says(Anthropic().answer(SOUND))
    await make_adapter(Anthropic()).chat(chat_request(max_output_tokens=77))
    (sent,) = server.asked
    assert sent.path == "/v1/messages"
    assert (sent.headers["x-api-key"], sent.headers["anthropic-version"]) == (KEY, "2023-06-01")
    (tool,) = sent.body.pop("tools")
    assert tool["input_schema"] == SCHEMA
    assert sent.body == {
        "model": "m-1",
        "max_tokens": 77,
        "system": "Say go or stay.",
        "messages": [{"role": "user", "content": '{"wind": "fair"}'}],
        "tool_choice": {"type": "tool", "name": tool["name"], "disable_parallel_tool_use": True},
    }


async def test_the_answer_is_asked_for_by_a_strict_schema(make_adapter: AdapterFactory, server: ModelServer) -> None:
    server.says(OpenAi().answer(SOUND))
    await make_adapter(OpenAi()).chat(chat_request(max_output_tokens=77))
    (sent,) = server.asked
    assert (sent.path, sent.headers["authorization"]) == ("/chat/completions", f"Bearer {KEY}")
    form = sent.body.pop("response_format")
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    assert form["json_schema"]["schema"] == strict_schema(SCHEMA)
    assert sent.body == {
        "model": "m-1",
        "max_tokens": 77,
        "messages": [{"role": "system", "content": "Say go or stay."}, {"role": "user", "content": '{"wind": "fair"}'}],
    }


async def test_a_server_of_ones_own_needs_no_key(make_adapter: AdapterFactory, server: ModelServer) -> None:
    server.says(OpenAi().answer(SOUND))
    await make_adapter(OpenAi(), key="").chat(chat_request())
    assert "authorization" not in server.asked[0].headers


OPTIONAL = {**SCHEMA, "required": ["verdict"]}


async def test_a_schema_that_cannot_be_strict_goes_as_it_is_and_still_counts(
    make_adapter: AdapterFactory, server: ModelServer
) -> None:
    server.says(OpenAi().answer({"verdict": "go"}), OpenAi().answer({"verdict": "perhaps"}))
    model = make_adapter(OpenAi())
    assert (await model.chat(chat_request(structured_output_schema=OPTIONAL))).parsed == {"verdict": "go"}
    form = server.asked[0].body["response_format"]["json_schema"]
    assert (form["strict"], form["schema"]) == (False, OPTIONAL)
    with pytest.raises(LanguageModelSchemaValidationError):
        await model.chat(chat_request(structured_output_schema=OPTIONAL))


@for_each(
    ("schema", "strict"),
    [
        (SCHEMA, True),
        (OPTIONAL, False),
        ({**SCHEMA, "additionalProperties": True}, False),
        ({"anyOf": [SCHEMA]}, False),
        ({**SCHEMA, "properties": {**SCHEMA["properties"], "sure": {"oneOf": [{"type": "number"}]}}}, False),
        ({**SCHEMA, "properties": {**SCHEMA["properties"], "sure": {"anyOf": [OPTIONAL, {"type": "null"}]}}}, False),
        ({**SCHEMA, "properties": {**SCHEMA["properties"], "sure": {"anyOf": [SCHEMA, {"type": "null"}]}}}, True),
    ],
)
def test_strict_is_what_closes_and_requires_everything(schema: dict[str, Any], strict: bool) -> None:
    assert can_be_strict(schema) is strict


def test_a_strict_schema_says_its_bounds_in_words() -> None:
    text = {"type": "string", "minLength": 80, "maxLength": 4000, "description": "The account."}
    listed = {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 8}
    bounded = {"anyOf": [{"enum": [1, "x"]}, {"type": "null"}], "default": None}
    schema = {"type": "object", "properties": {"text": text, "tags": listed, "choice": bounded}}
    assert strict_schema(schema)["properties"] == {
        "text": {"type": "string", "description": "The account. (minLength 80, maxLength 4000)"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "description": "(maxItems 8)"},
        "choice": {"anyOf": [{"type": ["integer", "string"], "enum": [1, "x"]}, {"type": "null"}]},
    }
    Draft202012Validator.check_schema(strict_schema(schema))


def keys_in(schema: Any) -> set[str]:
    """Every key of a schema, however deep."""
    match schema:
        case dict():
            return set(schema).union(*map(keys_in, schema.values()))
        case list():
            return set().union(*map(keys_in, schema))
    return set()


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=lambda prompt: prompt.name)
def test_the_strict_form_of_every_prompt_has_no_bounds_at_any_depth(prompt: Prompt) -> None:
    assert can_be_strict(prompt.schema)
    assert keys_in(prompt.schema) & set(BOUNDS)
    form = strict_schema(prompt.schema)
    assert keys_in(form).isdisjoint(BOUNDS)
    assert keys_in(form).isdisjoint({"default", "$schema"})
    Draft202012Validator.check_schema(form)
