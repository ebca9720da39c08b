"""The OpenAPI document of the service, made when it is first read and once for all who read it."""

from functools import cache
from typing import Any

from api.openapi import openapi_document
from application.settings import Settings
from domain.contexts import REGISTRY


@cache
def document() -> dict[str, Any]:
    return openapi_document(REGISTRY, Settings(database_url="postgresql://nowhere"))
