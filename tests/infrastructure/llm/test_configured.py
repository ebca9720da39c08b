"""Which models a deployment has: what its settings name, who answers for that, and what it must not start with."""

from typing import Any

import pytest

from baton.application.boot_guards import boot_objections
from baton.application.language_models import OFFLINE, parse_model_name
from baton.application.settings import HIDDEN, Settings, shown_settings
from baton.domain.agent.language_model import ModelRef
from baton.infrastructure.llm.offline import OfflineModel
from baton.infrastructure.llm.providers import AnthropicModels, ConfiguredModels, OpenAiCompatibleModels
from tests.support.infrastructure.model_requests import SOUND, chat_request
from tests.support.infrastructure.model_server import Anthropic, ModelServer, OpenAi
from tests.support.tables import for_each

DEBRIEFER = ModelRef(provider="setting", model="RUN_DEBRIEFER_MODEL")
DRAFTER = ModelRef(provider="setting", model="CAUTION_DRAFTER_MODEL")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def configured_models(**settings: Any) -> ConfiguredModels:
    return ConfiguredModels(Settings(**settings))


def ref(text: str) -> ModelRef:
    return parse_model_name(text)


@for_each(
    ("text", "provider", "model", "pin"),
    [
        ("anthropic/m-1", "anthropic", "m-1", None),
        ("openai/org/model-7b:q4", "openai", "org/model-7b:q4", None),
        (" openai/m-1@m-1-20260601 ", "openai", "m-1", "m-1-20260601"),
        ("offline/rules-1", "offline", "rules-1", None),
    ],
)
def test_a_setting_names_a_model(text: str, provider: str, model: str, pin: str | None) -> None:
    assert parse_model_name(text) == ModelRef(provider=provider, model=model, snapshot_pin=pin)


@for_each(
    ("text", "why"),
    [
        ("m-1", "is no model"),
        ("/m-1", "is no model"),
        ("anthropic/", "is no model"),
        ("anthropic/m 1", "is no model"),
        ("anthropic/m-1@", "is no model"),
        ("anthropic/m-1@a@b", "is no model"),
        ("acme/m-1", "names the provider acme"),
        ("setting/RUN_DEBRIEFER_MODEL", "names the provider setting"),
        ("offline/rules-2", "write offline/rules-1"),
        (f"anthropic/{'m' * 201}", "is too long"),
    ],
)
def test_what_names_no_model_keeps_a_process_from_starting(text: str, why: str) -> None:
    for name in ("run_debriefer_model", "caution_drafter_model", "decide_model"):
        (objection,) = boot_objections(Settings(**{name: text}))
        assert objection.startswith(name.upper())
        assert why in objection


def test_a_provider_without_credentials_does_not() -> None:
    chosen = {"run_debriefer_model": "anthropic/m-1", "caution_drafter_model": "openai/m-2", "decide_model": "openai/m-2"}
    assert boot_objections(Settings(**chosen, decide_substrates=["llm"])) == []


@for_each(
    ("settings", "said"),
    [
        ({"decide_substrates": ["llm"]}, "set DECIDE_MODEL"),
        ({"decide_substrates": ["llm"], "decide_model": "offline/rules-1"}, "does not steer"),
    ],
)
def test_a_steering_model_must_be_one_that_steers(settings: dict[str, Any], said: str) -> None:
    (objection,) = boot_objections(Settings(**settings))
    assert said in objection


async def test_a_reference_to_a_setting_is_what_the_setting_names() -> None:
    models = configured_models(run_debriefer_model="anthropic/m-1@m-1-20260601")
    assert models.resolve(DEBRIEFER) == ModelRef(provider="anthropic", model="m-1", snapshot_pin="m-1-20260601")
    assert models.resolve(DRAFTER) == OFFLINE
    assert models.resolve(ref("openai/m-2")) == ref("openai/m-2")


async def test_unset_the_offline_model_answers() -> None:
    models = configured_models()
    assert isinstance(models.provider(DEBRIEFER), OfflineModel)
    assert isinstance(models.provider(OFFLINE), OfflineModel)


@for_each(
    ("settings", "providers"),
    [
        ({}, {"anthropic": None, "openai": None}),
        ({"anthropic_base_url": "http://127.0.0.1:1"}, {"anthropic": None, "openai": None}),
        ({"anthropic_api_key": "k"}, {"anthropic": AnthropicModels, "openai": None}),
        ({"openai_api_key": "k"}, {"anthropic": None, "openai": OpenAiCompatibleModels}),
        ({"openai_base_url": "http://127.0.0.1:1"}, {"anthropic": None, "openai": OpenAiCompatibleModels}),
    ],
)
async def test_without_credentials_nobody_answers(settings: dict[str, Any], providers: dict[str, Any]) -> None:
    models = configured_models(**settings)
    for name, kind in providers.items():
        found = models.provider(ref(f"{name}/m-1"))
        assert found is None if kind is None else isinstance(found, kind)
    await models.aclose()


@for_each("model", [ModelRef(provider="setting", model="DATABASE_URL"), ModelRef(provider="acme", model="m-1")])
async def test_nobody_answers_for_what_is_no_model_here(model: ModelRef) -> None:
    models = configured_models(database_url="postgresql://nowhere")
    assert models.resolve(model) == model
    assert models.provider(model) is None


async def test_the_settings_lead_to_the_servers(server: ModelServer) -> None:
    models = configured_models(
        anthropic_api_key="first-key",
        anthropic_base_url=f"{server.url}/one/",
        openai_base_url=f"{server.url}/two/v1",
        openai_api_key="second-key",
        run_debriefer_model="anthropic/m-1",
        caution_drafter_model="openai/m-2",
    )
    for setting, dialect in ((DEBRIEFER, Anthropic()), (DRAFTER, OpenAi())):
        server.says(dialect.answer(SOUND))
        provider, resolved = models.provider(setting), models.resolve(setting)
        assert provider is not None
        await provider.chat(chat_request(model_ref=resolved))
    first, second = server.asked
    assert (first.path, first.headers["x-api-key"], first.body["model"]) == ("/one/v1/messages", "first-key", "m-1")
    assert (second.path, second.headers["authorization"]) == ("/two/v1/chat/completions", "Bearer second-key")
    assert (second.body["model"], second.body["max_tokens"]) == ("m-2", 1024)
    await models.aclose()


async def test_a_model_steers_where_one_is_configured() -> None:
    assert configured_models().steering_model() is None
    assert configured_models(decide_model="openai/m-2").steering_model() is None
    models = configured_models(decide_model="openai/m-2@m-2-x", openai_base_url="http://127.0.0.1:1")
    steering = models.steering_model()
    assert steering is not None
    assert isinstance(steering[0], OpenAiCompatibleModels)
    assert steering[1] == ModelRef(provider="openai", model="m-2", snapshot_pin="m-2-x")
    await models.aclose()


def test_keys_are_not_shown() -> None:
    settings = Settings(
        anthropic_api_key="first-key", openai_api_key="second-key", openai_base_url="https://me:second-key@models.example"
    )
    shown = shown_settings(settings)
    assert (shown["ANTHROPIC_API_KEY"], shown["OPENAI_API_KEY"]) == (HIDDEN, HIDDEN)
    assert "-key" not in str(shown) + repr(settings)
    assert shown_settings(Settings())["OPENAI_API_KEY"] is None
