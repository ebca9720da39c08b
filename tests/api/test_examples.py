"""Every operation has an example, and a service that is furnished for it does what the example asks for, and answers as the
OpenAPI document promises."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.shared.examples import EXAMPLES, PLACEHOLDER, fill
from tests.support.api.example_states import CALLERS, MAKERS, PEER, prepare_example
from tests.support.api.list_samples import CATALOGUES
from tests.support.api.module_service import ModuleService, running_module_service
from tests.support.api.promised_answers import compare_with_document
from tests.support.api.rehearsed_commands import RehearsingApi
from tests.support.api.samples import create_samples
from tests.support.databases import fresh_database
from tests.support.service import Api

NEEDS_MORE = {
    "bind_actor_subject": (400, "InvalidActorSubjectError"),  # an identity provider, with which nobody is believed by header
    "get_dataset_preview": (409, "DatasetPreviewUnavailableError"),  # a file under DATA_ROOTS
    "get_published_artifact": (404, "PublishedArtifactNotFoundError"),  # a worker, which writes the artifact
    "read_signals": (503, "SignalsUnreadableError"),  # a worker, which reads them
}
"""The operations that need more than this service has, with the refusal that says so."""


@pytest.fixture(scope="module")
def service(postgres: EmbeddedPostgres, template: str) -> Iterator[ModuleService]:
    settings = {"federation_peers": {PEER: {"address": "http://127.0.0.1:9"}}, **CATALOGUES}
    with fresh_database(postgres, template) as url, running_module_service(url, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def shared_ids(service: ModuleService) -> dict[str, str]:
    """One of everything."""
    return service.run(create_samples(service.api))


def test_every_operation_has_an_example() -> None:
    assert [operation.name for operation in REGISTRY if operation.example is None] == []
    assert EXAMPLES.keys() <= REGISTRY.operations.keys()


@pytest.mark.parametrize("operation", list(REGISTRY), ids=lambda operation: operation.name)
def test_an_example_is_carried_out(operation: Operation, service: ModuleService, shared_ids: dict[str, str]) -> None:
    answer = service.run(try_example(service.api, operation, shared_ids))
    if operation.name in NEEDS_MORE:
        assert (answer.status_code, answer.json()["code"]) == NEEDS_MORE[operation.name]
    else:
        assert answer.status_code < 300, answer.text
        if not operation.name.startswith("stream_"):
            compare_with_document(answer)


async def try_example(api: Api, operation: Operation, shared: dict[str, str]) -> httpx.Response:
    """Return the answer to an operation's example, once everything is there that it speaks of; a command is given as a dry
    run first, which must say what the command records."""
    ids = await prepare_example(api, operation, shared)
    caller = CALLERS.get(operation.name)
    for name in sorted({*PLACEHOLDER.findall(str(operation.example)), *([caller] if caller else [])} - ids.keys()):
        ids[name] = await MAKERS[name](api, ids)
    acting = api.acting_as(ids[caller]) if caller else api
    return await call(RehearsingApi.of(acting), operation, fill(operation.example, ids.__getitem__))


async def call(api: Api, operation: Operation, arguments: dict[str, Any]) -> httpx.Response:
    """Return the answer to a request with these arguments; of a stream, its head."""
    path = operation.path.format(**arguments)
    fields = {name: value for name, value in arguments.items() if name not in operation.placeholders}
    if operation.has_body:
        return await api.request(operation.method, path, json=fields)
    if not operation.name.startswith("stream_"):
        return await api.get(path, **fields)
    async with api.client.stream("GET", path, params=fields) as answer:
        return answer
