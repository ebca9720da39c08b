"""The language models of this deployment: which one is meant, and who answers for it."""

import httpx

from baton.application.language_models import OFFLINE, ModelProvider, named_model
from baton.application.settings import MODEL_SETTINGS, Settings
from baton.domain.agent.model_ref import SETTING, ModelRef
from baton.infrastructure.llm.anthropic import AnthropicModels
from baton.infrastructure.llm.offline import OfflineModel
from baton.infrastructure.llm.openai_compatible import OpenAiCompatibleModels

ANTHROPIC_API = "https://api.anthropic.com"
OPENAI_API = "https://api.openai.com/v1"


class ConfiguredModels:
    """Hands out the adapters that there are credentials for. They share one pool of connections."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http: httpx.AsyncClient | None = None
        self._providers = self._made()

    async def aclose(self) -> None:
        """Close every connection."""
        if self._http is not None:
            await self._http.aclose()

    def resolve(self, model_ref: ModelRef) -> ModelRef:
        """The model that a reference comes to now; one that names no known setting stays what it is."""
        if model_ref.provider != SETTING or model_ref.model not in MODEL_SETTINGS:
            return model_ref
        chosen: str | None = getattr(self._settings, model_ref.model.lower())
        return OFFLINE if chosen is None else named_model(chosen)

    def provider(self, model_ref: ModelRef) -> ModelProvider | None:
        """Who answers for a model; None where nobody here does, for want of an adapter or of credentials."""
        return self._providers.get(self.resolve(model_ref).provider)

    def steering(self) -> tuple[ModelProvider, ModelRef] | None:
        """The model that steers conducts, where one is configured."""
        if self._settings.decide_model is None:
            return None
        chosen = named_model(self._settings.decide_model)
        provider = self.provider(chosen)
        return None if provider is None else (provider, chosen)

    def _made(self) -> dict[str, ModelProvider]:
        settings, timeout = self._settings, float(self._settings.language_model_timeout_seconds)
        made: dict[str, ModelProvider] = {OFFLINE.provider: OfflineModel()}
        if settings.anthropic_api_key is not None:
            key = settings.anthropic_api_key.get_secret_value()
            made["anthropic"] = AnthropicModels(self._client(), settings.anthropic_base_url or ANTHROPIC_API, key, timeout)
        base_url, secret = settings.openai_base_url, settings.openai_api_key
        if base_url is not None or secret is not None:
            key = secret.get_secret_value() if secret is not None else ""
            # The provider's own servers know the limit by its new name only, most others by the old one.
            limit_name = "max_completion_tokens" if base_url is None else "max_tokens"
            made["openai"] = OpenAiCompatibleModels(self._client(), base_url or OPENAI_API, key, timeout, limit_name)
        return made

    def _client(self) -> httpx.AsyncClient:
        """The pool of connections, which is made when the first adapter needs it: it takes a while."""
        if self._http is None:
            self._http = httpx.AsyncClient(headers={"Accept": "application/json"}, follow_redirects=False)
        return self._http
