"""The OpenAPI document of the service, as the package holds it."""

from functools import cache
from typing import Any

import orjson

from baton.api.documentation import served_document
from baton.application.settings import Settings


@cache
def document() -> dict[str, Any]:
    served: dict[str, Any] = orjson.loads(served_document(Settings(database_url="postgresql://nowhere")))
    return served
