"""The OpenAPI document is true: whatever it admits is answered as it says, whatever it excludes is refused.

Cases come from the document alone. Where they name objects at random, most are pointed at objects that exist, so that
verbs get past the door.
"""

import itertools
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks

from api.app import REGISTRY
from api.openapi import openapi_document
from application.settings import Settings
from cli.embedded.postgres import EmbeddedPostgres
from tests.api.furnishing import furnished
from tests.api.serving import Served, served, shared_database

load_all_checks()
DOCUMENT = openapi_document(REGISTRY, Settings(database_url="postgresql://nowhere"))
ENDLESS = "stream_events"
PATIENT = {operation.name for operation in REGISTRY if "wait" in operation.input.model_fields}
NUMBERS = itertools.count()
schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(operation_id=ENDLESS)
schema.config.generation.update(max_examples=8)
schema.config.phases.coverage.unexpected_methods = {"OPTIONS", "TRACE"}
PROMISES = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
        "unsupported_method",
        "allow_header_conformance",
    ]
)
REFERENCES = {
    "to_parent_id": "asset_id",
    "controller_id": "asset_id",
    "target_id": "asset_id",
    "id": "asset_id",
    "permitted_principal_id": "actor_id",
    "evaluated_principal_id": "actor_id",
    "asserted_by": "actor_id",
    "authored_by": "actor_id",
    "decided_by": "actor_id",
    "site_id": "facility_id",
    "pinned_calibration_id": "revision_id",
}
"""What references are to, where their names do not end with it."""
PARENTS = {
    "assets": "asset_id",
    "frames": "frame_id",
    "mounts": "mount_id",
    "visits": "visit_id",
    "facilities": "facility_id",
    "decisions": "decision_id",
}
"""Where there are parents, which are of the same kind."""


@pytest.fixture(scope="module")
def service(postgres: EmbeddedPostgres, template: str) -> Iterator[Served]:
    with shared_database(postgres, template) as url, served(url) as running:
        yield running


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.fixture(scope="module")
def lasting(service: Served) -> dict[str, str]:
    """Objects for operations that change nothing."""
    return service.run(furnished(service.api))


@pytest.fixture
def fresh(service: Served) -> dict[str, str]:
    """Objects for one operation to use up."""
    return service.run(furnished(service.api))


@schema.include(method="GET").parametrize()
@settings(suppress_health_check=list(HealthCheck), database=None)
def test_a_query_keeps_what_the_document_promises(
    case: Case, service: Served, session: requests.Session, lasting: dict[str, str]
) -> None:
    check(case, service, session, lasting)


@schema.exclude(method="GET").parametrize()
@settings(suppress_health_check=list(HealthCheck), database=None)
def test_a_command_keeps_what_the_document_promises(
    case: Case, service: Served, session: requests.Session, fresh: dict[str, str]
) -> None:
    check(case, service, session, fresh)


def check(case: Case, service: Served, session: requests.Session, ids: dict[str, str]) -> None:
    grounded(case, ids)
    response = case.call(base_url=service.api.base_url, session=session)
    case.validate_response(response, checks=PROMISES, additional_checks=[valid_data_has_a_valid_form])


def valid_data_has_a_valid_form(context: Any, response: Any, case: Case) -> bool | None:
    """Data that the document admits is never called malformed, except by rules that no schema can express."""
    if response.status_code == 422 and is_positive(case):
        body = response.json()
        if body["code"] == "RequestValidationError":
            assert all(is_beyond_a_schema(fault) for fault in body["detail"]), body
    return None


def is_beyond_a_schema(fault: dict[str, Any]) -> bool:
    """Whether a fault is about several fields together, or about how JSON spells: NUL, and integers with a fraction."""
    return fault["type"] in ("string_nul", "int_type") or (fault["type"] == "value_error" and len(fault["loc"]) == 1)


def is_positive(case: Case) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_positive


def grounded(case: Case, ids: dict[str, str]) -> None:
    """Points most references of a valid case at objects that exist, and takes away what would only stop it at the door."""
    if not is_positive(case):
        return
    kind = case.operation.path.split("/{")[0].rstrip("/").rsplit("/", 1)[-1]
    known = {**ids, **{name: ids[target] for name, target in REFERENCES.items()}}
    if kind in PARENTS:
        known["parent_id"] = ids[PARENTS[kind]]
    for part in (case.path_parameters, case.query, case.body):
        pointed(part, known)
    unhindered(case.query or {})
    if case.operation.definition.raw["operationId"] in PATIENT:
        case.body = {**case.body, "wait": 0} if isinstance(case.body, dict) else {"wait": 0}
    key = case.headers.get("Idempotency-Key") if case.headers else None
    if key and len(key) < 200:
        case.headers["Idempotency-Key"] = f"{key}-{next(NUMBERS)}"


def unhindered(query: dict[str, Any]) -> None:
    """Asks for no position that never comes, and keeps to one past and to pages that exist."""
    if str(query.get("min_position", "")).isdigit():
        query["min_position"] = int(query["min_position"]) % 10
    if len(query.get("cursor") or "") < 5:
        query.pop("cursor", None)
    if {"as_of", "as_of_version"} <= query.keys():
        del query["as_of"]


def pointed(value: Any, known: dict[str, str]) -> None:
    if isinstance(value, list):
        for item in value:
            pointed(item, known)
    elif isinstance(value, dict):
        for name, item in value.items():
            target = known.get(referred(name, known))
            if target is None:
                pointed(item, known)
            elif isinstance(item, list):
                value[name] = [existing(one, target) for one in item]
            else:
                value[name] = existing(item, target)


def referred(name: str, known: dict[str, str]) -> str:
    """Which of the known ids a name refers to: `needed_family_ids` to `family_id`."""
    one = name.removesuffix("s")
    return one if one in known else next((id for id in known if id != "id" and one.endswith(f"_{id}")), name)


def existing(generated: Any, known: str) -> Any:
    """Mostly the known id in place of a generated one; what is no id stays."""
    try:
        return known if UUID(generated).int % 4 else generated
    except (AttributeError, TypeError, ValueError):
        return generated
