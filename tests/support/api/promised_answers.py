"""What the OpenAPI document promises of an answer."""

from functools import cache

import httpx
import schemathesis
from schemathesis.schemas import BaseSchema

from tests.support.api.openapi_document import document


@cache
def schema() -> BaseSchema:
    """Return what the document says."""
    read = schemathesis.openapi.from_dict(document())
    read.config.phases.coverage.unexpected_methods = {"OPTIONS", "TRACE"}
    return read


def compare_with_document(answer: httpx.Response) -> None:
    """Hold an answer against the document."""
    operation = schema().find_operation_by_path(answer.request.method, answer.request.url.path)
    assert operation is not None, answer.request.url
    assert str(answer.status_code) in operation.definition.raw["responses"]
    operation.validate_response(answer)
