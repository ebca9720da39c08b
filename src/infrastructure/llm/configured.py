"""The language models of this deployment: which model a reference means, and which adapter calls it."""

import httpx

from baton.application.language_models import OFFLINE, ModelProvider, parse_model_name
from baton.application.settings import MODEL_SETTINGS, Settings
from baton.domain.agent.language_model import SETTING, ModelRef
from baton.infrastructure.llm.anthropic import AnthropicModels
from baton.infrastructure.llm.offline import OfflineModel
from baton.infrastructure.llm.openai_compatible import OpenAiCompatibleModels


class ConfiguredModels:
    """The adapters that there are credentials for. They share one pool of connections."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http: httpx.AsyncClient | None = None
        self._providers = self._make_providers()

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def resolve(self, model_ref: ModelRef) -> ModelRef:
        """Return the model that a reference means now; one that names no known setting stays what it is."""
        if model_ref.provider != SETTING or model_ref.model not in MODEL_SETTINGS:
            return model_ref
        chosen: str | None = getattr(self._settings, model_ref.model.lower())
        return OFFLINE if chosen is None else parse_model_name(chosen)

    def provider(self, model_ref: ModelRef) -> ModelProvider | None:
        """Return the adapter of a model, or None without an adapter or credentials for it."""
        return self._providers.get(self.resolve(model_ref).provider)

    def steering_model(self) -> tuple[ModelProvider, ModelRef] | None:
        if self._settings.decide_model is None:
            return None
        chosen = parse_model_name(self._settings.decide_model)
        provider = self.provider(chosen)
        return None if provider is None else (provider, chosen)

    def _make_providers(self) -> dict[str, ModelProvider]:
        settings, timeout = self._settings, float(self._settings.language_model_timeout_seconds)
        providers: dict[str, ModelProvider] = {OFFLINE.provider: OfflineModel()}
        if settings.anthropic_api_key is not None:
            key, base_url = (
                settings.anthropic_api_key.get_secret_value(),
                settings.anthropic_base_url or "https://api.anthropic.com",
            )
            providers["anthropic"] = AnthropicModels(self._client(), base_url, key, timeout)
        server_url, secret = settings.openai_base_url, settings.openai_api_key
        if server_url is not None or secret is not None:
            key = secret.get_secret_value() if secret is not None else ""
            # The provider's own servers know the limit by its new name only, most others by the old one.
            limit_name = "max_completion_tokens" if server_url is None else "max_tokens"
            providers["openai"] = OpenAiCompatibleModels(
                self._client(), server_url or "https://api.openai.com/v1", key, timeout, limit_name
            )
        return providers

    def _client(self) -> httpx.AsyncClient:
        """Return the pool of connections, made when the first adapter needs it: that takes a while."""
        if self._http is None:
            self._http = httpx.AsyncClient(headers={"Accept": "application/json"}, follow_redirects=False)
        return self._http
