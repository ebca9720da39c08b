"""A dry run answers what a command would record, or its refusal, and records nothing; `test_examples.py` has every command
rehearsed."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.support.api.list_samples import CATALOGUES
from tests.support.api.module_service import ModuleService, running_module_service
from tests.support.api.rehearsed_commands import DRY_RUN, RehearsingApi
from tests.support.databases import fresh_database


@pytest.fixture(scope="module")
def service(postgres: EmbeddedPostgres, template: str) -> Iterator[ModuleService]:
    with fresh_database(postgres, template) as url, running_module_service(url, **CATALOGUES) as running:
        yield running


def test_what_is_claimed_already_is_refused_in_a_dry_run_too(service: ModuleService) -> None:
    api = RehearsingApi.of(service.api)
    facility = {"code": f"site-{uuid4().hex[:8]}", "display_name": "North", "kind": "Site"}
    assert service.run(api.post("/federation/facilities", facility)).status_code == 201
    assert service.run(api.post("/federation/facilities", facility)).status_code == 409


def rehearse(service: ModuleService, path: str, body: Any, **headers: str) -> Any:
    """Return the answer to a dry run."""
    return service.run(service.api.request("POST", path, json=body, headers={**DRY_RUN, **headers}))


def test_a_dry_run_shows_the_event_and_the_answer(service: ModuleService) -> None:
    said = rehearse(service, "/zones", {"name": "Hall"}).json()
    (event,) = said["would"]
    assert (event["stream"], event["event_type"], event["payload"]["name"]) == ("Zone", "ZoneDefined", "Hall")
    assert event["stream_id"] == event["payload"]["zone_id"] == said["answer"]["zone_id"]
    assert UUID(said["answer"]["zone_id"]).version == 7
    assert event["ids_are_examples"]
    assert service.run(service.api.get(f"/zones/{said['answer']['zone_id']}")).status_code == 404


def test_a_dry_run_claims_no_key(service: ModuleService) -> None:
    key = uuid4().hex
    assert rehearse(service, "/zones", {"name": "Hall"}, **{"Idempotency-Key": key}).status_code == 200
    other = service.run(service.api.post("/zones", {"name": "Hutch"}, Idempotency_Key=key))
    assert (other.status_code, "Idempotency-Replayed" in other.headers) == (201, False)


@pytest.mark.parametrize("prefer", ["handling=dry_run", "handling=dryrun", "respond-async, handling=rehearse", "handling"])
def test_a_dry_run_that_is_spelled_wrongly_is_refused(service: ModuleService, prefer: str) -> None:
    refused = service.run(service.api.post("/zones", {"name": "Hall"}, Prefer=prefer))
    assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["header", "Prefer"])


@pytest.mark.parametrize("prefer", ["handling=lenient", "return=minimal", "wait=10; foo=bar, handling=strict"])
def test_other_preferences_mean_nothing(service: ModuleService, prefer: str) -> None:
    assert service.run(service.api.post("/zones", {"name": "Hall"}, Prefer=prefer)).status_code == 201


@pytest.mark.parametrize("prefer", ['Handling="dry-run"', "return=minimal, handling=dry-run; foo=1", "handling = dry-run"])
def test_a_dry_run_may_be_spelled_as_headers_may(service: ModuleService, prefer: str) -> None:
    assert service.run(service.api.post("/zones", {"name": "Hall"}, Prefer=prefer)).status_code == 200
