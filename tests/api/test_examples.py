"""Every operation has an example, and a service that is furnished for it does what the example asks for, and answers as the
OpenAPI document promises."""

from collections.abc import Iterator

import httpx
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.shared.examples import EXAMPLES
from tests.support.api.list_samples import CATALOGUES
from tests.support.api.module_service import ModuleService, running_module_service
from tests.support.api.operation_states import CALLERS, PEER, call, example_arguments, prepare_operation
from tests.support.api.promised_answers import compare_with_document
from tests.support.api.rehearsed_commands import RehearsingApi
from tests.support.api.samples import create_samples
from tests.support.databases import fresh_database
from tests.support.service import Api
from tests.support.tables import for_each

NEEDS_MORE = {
    "bind_actor_subject": (400, "InvalidActorSubjectError"),  # an identity provider, with which nobody is believed by header
    "compare_runs": (409, "NoRunToCompareError"),  # a run of the same plan that completed before
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


@for_each("operation", REGISTRY)
def test_an_example_is_carried_out(service: ModuleService, shared_ids: dict[str, str], operation: Operation) -> None:
    answer = service.run(try_example(service.api, operation, shared_ids))
    if operation.name in NEEDS_MORE:
        assert (answer.status_code, answer.json()["code"]) == NEEDS_MORE[operation.name]
    else:
        assert answer.status_code < 300, answer.text
        if not operation.name.startswith("stream_"):
            compare_with_document(answer)


async def try_example(api: Api, operation: Operation, shared: dict[str, str]) -> httpx.Response:
    """Return the answer to an operation's example; a command is given as a dry run first, which must say what the command
    records."""
    ids = await prepare_operation(api, operation, shared)
    arguments = await example_arguments(api, operation, ids)
    caller = CALLERS.get(operation.name)
    return await call(RehearsingApi.of(api.acting_as(ids[caller]) if caller else api), operation, arguments)
