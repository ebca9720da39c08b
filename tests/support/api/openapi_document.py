"""The OpenAPI document of the service, made when it is first read and once for all who read it."""

from functools import cache
from typing import Any

from baton.api.openapi import openapi_document
from baton.application.settings import Settings
from baton.domain.contexts import REGISTRY


@cache
def document() -> dict[str, Any]:
    return openapi_document(REGISTRY, Settings(database_url="postgresql://nowhere"))
