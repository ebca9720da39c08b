"""Text that no database holds, NUL and lone surrogates, where it may come in: paths, headers and the subjects of tokens."""

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.support.api.example_reads import cause
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.service import Api, running_api

UNSTORABLE = ("%00", "x%00y", "%ED%A0%80", "x%ED%B0%80")
PLACED = [(operation, name) for operation in REGISTRY for name in operation.placeholders]
"""Every operation with every parameter of its path."""


async def send_raw(api: Api, lines: Iterable[bytes]) -> int:
    """Send a request as it is written, and return the status of the answer."""
    place = urlsplit(api.base_url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(b"".join(line + b"\r\n" for line in (*lines, b"")))
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


def path_with(operation: Operation, name: str, text: str) -> str:
    """Return the path of an operation with this text at one of its parameters, and ids at the others."""
    return operation.path.format(**{one: text if one == name else str(uuid4()) for one in operation.placeholders})


@pytest.mark.parametrize("text", UNSTORABLE)
async def test_no_parameter_of_any_path_takes_it(api: Api, text: str) -> None:
    answers: dict[str, int] = {}
    for operation, name in PLACED:
        head = f"{operation.method} {path_with(operation, name, text)} HTTP/1.1".encode()
        kind = b"Content-Type: application/json"
        answers[f"{operation.name}.{name}"] = await send_raw(api, [head, b"Host: localhost", kind, b"Content-Length: 0"])
    expected = {400} if "%00" in text else {400, 404, 422}
    assert {place: status for place, status in answers.items() if status not in expected} == {}
    assert len(answers) > 250


async def test_a_refused_path_says_what_is_wrong(api: Api) -> None:
    refused = await api.get("/actors/%00")
    assert cause(refused) == (400, "UnstorableTextError", None)
    assert "NUL" in refused.json()["detail"]
    assert "leave it out" in refused.json()["detail"]


async def test_no_page_takes_it(api: Api) -> None:
    for path in ("/console/runs/%00", "/console/queues/x%00", "/console/static/%00", "/refusals/%00", "/nowhere/%00"):
        assert (await api.get(path)).status_code == 400, path


@pytest.mark.parametrize("name", ["Idempotency-Key", "X-Principal-Id", "Last-Event-ID", "Prefer", "traceparent", "Cookie"])
@pytest.mark.parametrize("value", [b"a\0b", b"a\xed\xa0\x80b"])
async def test_no_header_that_is_kept_takes_it(api: Api, name: str, value: bytes) -> None:
    body = b'{"name": "Hall"}'
    head = [b"POST /zones HTTP/1.1", b"Host: localhost", b"Content-Length: %d" % len(body), name.encode() + b": " + value]
    status = await send_raw(api, [*head, b"", body])
    assert status < 500, (name, status)
    assert status in (400, 422) or (b"\0" not in value and name != "Idempotency-Key"), (name, status)


@pytest.mark.parametrize("subject", ["a\0b", "a\ud800b", "\udfff"])
async def test_no_subject_of_a_token_has_it(database_url: str, issuer: Issuer, subject: str) -> None:
    required: dict[str, Any] = {"require_authenticated_principal": True, "identity_providers": [issuer.provider()]}
    async with running_api(database_url, **required) as api:
        answer = await api.with_token(issuer.token(subject)).get("/me")
        assert cause(answer) == (401, "InvalidTokenError", "malformed")
