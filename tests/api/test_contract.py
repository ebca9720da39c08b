"""The OpenAPI document is true: whatever it admits is answered as it says, whatever it excludes is refused.

Cases come from the document alone. Where they name objects at random, most are pointed at objects that exist, so that
verbs get past the door.
"""

import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from uuid import UUID

import pytest
import requests
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core import NOT_SET
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
from schemathesis.generation.meta import coverage_scenario

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.client.exchanges import is_id
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import History
from baton.domain.registry import Operation, snake_case
from tests.support.api.list_samples import CATALOGUES
from tests.support.api.module_service import ModuleService, running_module_service
from tests.support.api.openapi_document import document
from tests.support.api.operation_states import PEER, prepare_operation
from tests.support.api.promised_answers import schema
from tests.support.api.samples import create_samples
from tests.support.databases import fresh_database
from tests.support.tables import for_each

load_all_checks()
HISTORIES = [operation for operation in REGISTRY if issubclass(operation.input, History)]
"""They are all derived in the same way; a few of them stand for the rest."""
CASES = int(os.environ.get("CONTRACT_CASES", "1"))
"""How many cases of each operation the document admits, and how many it excludes; `make soak` tries them all."""
OPERATIONS = [
    operation for operation in REGISTRY if not operation.name.startswith("stream_") and operation not in HISTORIES[3:]
][:: 3 if CASES == 1 else 1]
"""Operations whose answer has an end: every third one, and all where more than one case of each is asked for."""
WAITING_OPERATIONS = {operation.name for operation in REGISTRY if "wait" in operation.input.model_fields}
HOLDS_ALL = "hold_everything"  # what others share is held by it too, so they come before, or resume it
KEY_NUMBERS = itertools.count()
AT_HAND = 30 * CASES
"""Among how many cases those are chosen, since to make them all takes long."""
EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "1"))
"""How many random cases there are of an operation."""
ONE_IN = 10
"""Of how many operations one is tried with random cases too."""
TRIED: Counter[Any] = Counter()
"""How many cases of a kind were tried over all operations."""
READING = ("read_signals", "resolve_signals")
"""The queries that need a worker, at least where control limits are asked for."""
(SERVER_ERROR,) = CHECKS.get_by_names(["not_a_server_error"])
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
OTHER_MEANINGS = {"dismiss_event_in_reaction": {"event_id": "logged_event_id"}}
"""What some operations mean by a reference that others mean differently."""


@pytest.fixture(scope="module")
def service(postgres: EmbeddedPostgres, template: str) -> Iterator[ModuleService]:
    settings = {"federation_peers": {PEER: {"address": "http://127.0.0.1:9"}}, **CATALOGUES}
    with fresh_database(postgres, template) as url, running_module_service(url, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def connection(service: ModuleService) -> Iterator[HTTPConnection]:
    """A bare connection: a client that looks for proxies, cookies and redirects costs more than the service."""
    with closing(HTTPConnection(service.api.base_url.removeprefix("http://"), timeout=60)) as connection:
        yield connection


def send(case: Case, connection: HTTPConnection) -> Response:
    """Return the answer to a case; a connection that was idle for too long is opened again."""
    request = requests.Request(**case.as_transport_kwargs(base_url=f"http://{connection.host}:{connection.port}")).prepare()
    assert request.method is not None
    for last in (False, True):
        try:
            headers = {name: value for name, value in request.headers.items() if name.lower() != "accept-encoding"}
            connection.request(request.method, request.path_url, request.body, headers)
            answer = connection.getresponse()
        except ConnectionError:
            connection.close()
            if last:
                raise
        else:
            answered = {name.lower(): answer.headers.get_all(name, []) for name in answer.headers}
            return Response(answer.status, answered, answer.read(), request, elapsed=0.0, verify=False)
    raise AssertionError


@pytest.fixture(scope="module")
def shared_ids(service: ModuleService) -> dict[str, str]:
    """One of everything."""
    return service.run(create_samples(service.api))


@for_each(("number", "operation"), enumerate(OPERATIONS))
def test_an_operation_keeps_what_the_document_promises(
    service: ModuleService, connection: HTTPConnection, shared_ids: dict[str, str], number: int, operation: Operation
) -> None:
    ids = service.run(prepare_operation(service.api, operation, shared_ids))

    def check(case: Case, always: bool = False) -> bool:
        """Check the answer to a case, and return whether the case met an object in a state that allows the command."""
        point_at_samples(case, ids, always)
        response = send(case, connection)
        if operation.name in READING and response.status_code == 503:
            assert response.json()["code"] == "SignalsUnreadableError", "there is no worker here to read signals"
            case.validate_response(response, checks=[promise for promise in PROMISES if promise is not SERVER_ERROR])
            return False
        case.validate_response(response, checks=PROMISES, additional_checks=[check_valid_data_is_accepted])
        return is_positive(case) and passed_state_check(operation, response)

    for case in cases_of(operation, GenerationMode.NEGATIVE)[:CASES]:
        check(case)
    possible = not operation.allowed
    for tried, case in enumerate(cases_of(operation, GenerationMode.POSITIVE)):
        if tried >= CASES and possible:
            break
        possible |= check(case, always=tried >= CASES)
    if operation.has_body and (number % ONE_IN == 0 or CASES > ONE_IN):
        check_random_cases(operation, check)
    if operation.name == HOLDS_ALL:
        for kind in ("run", "queue", "schedule"):
            service.run(service.api.post(f"/{kind}s/{shared_ids[f'{kind}_id']}/resume", {}))
    assert possible, "no case met an object in a state that allows the command"


def check_random_cases(operation: Operation, check: Callable[[Case], object]) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    def check_case(case: Case) -> None:
        check(case)

    config = HypothesisTestConfig(project=schema().config, modes=[HypothesisTestMode.FUZZING])
    create_test(operation=schema()[operation.path][operation.method], test_func=check_case, config=config)()


def cases_of(operation: Operation, mode: GenerationMode) -> list[Case]:
    """Return cases that the document admits or excludes, those first whose kind was tried least so far."""
    described = schema()[operation.path][operation.method]
    generation = schema().config.generation_for(operation=described, phase="coverage")
    made = schema().iter_coverage_cases(described, generation_modes=[mode], generation_config=generation)
    kinds: dict[Any, list[Case]] = defaultdict(list)
    for case in itertools.islice(made, AT_HAND):
        kinds[coverage_scenario(case)].append(case)
    turns = itertools.zip_longest(*(kinds[kind] for kind in sorted(kinds, key=lambda kind: TRIED[kind])))
    chosen = [case for turn in turns for case in turn if case is not None]
    TRIED.update(coverage_scenario(case) for case in chosen[:CASES])
    return chosen


def passed_state_check(operation: Operation, response: Any) -> bool:
    """Whether a command got past the look at its object's state, whatever it came to then."""
    if response.status_code < 300 or operation.allowed is None or operation.aggregate is None:
        return True
    refusal = response.json()
    if refusal["code"] in ("IdempotencyConflictError", "RequestValidationError", operation.aggregate.NotFound.__name__):
        return False
    states = {snake_case(state.value) for option in operation.allowed for state in type(option)}
    return refusal.get("reason", "") not in states | {operation.state_reason}


def check_valid_data_is_accepted(context: Any, response: Any, case: Case) -> bool | None:
    """Data that the document admits is never called malformed, except by rules that no schema can express; and whatever it
    is refused with, the operation lists."""
    if response.status_code >= 400 and response.status_code != 405:
        listed = (*case.operation.definition.raw["x-refusals"], *document()["x-refusals"])
        assert response.json()["code"] in listed, response.json()
    if response.status_code == 422 and is_positive(case):
        body = response.json()
        if body["code"] == "RequestValidationError":
            faults = body["errors"]
            assert all(
                is_beyond_a_schema(fault, case.body) or follows_from_inner_fault(fault, faults) for fault in faults
            ), body
    return None


def follows_from_inner_fault(fault: dict[str, Any], faults: list[dict[str, Any]]) -> bool:
    """Whether a fault only follows from one inside it: a list whose one item is malformed counts as empty."""
    place = fault["loc"]
    return any(other["loc"][: len(place)] == place != other["loc"] for other in faults)


def is_beyond_a_schema(fault: dict[str, Any], body: Any) -> bool:
    """Whether a fault is about several fields together, about how JSON spells (NUL, integers with a fraction), or about
    a time that has no form in UTC."""
    if fault["type"] == "value_error":
        part, *place = fault["loc"]
        together = not place or (part == "body" and isinstance(faulty_part(body, place), dict))
        return together or "within the years" in fault["msg"]
    return fault["type"] in ("string_nul", "int_type")


def faulty_part(body: Any, place: list[Any]) -> Any:
    """What a fault is about; the names of alternatives stand in its place too, and nowhere in the body."""
    for part in place:
        if (isinstance(body, dict) and part in body) or (isinstance(body, list) and isinstance(part, int)):
            body = body[part]
    return body


def is_positive(case: Case) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_positive


def point_at_samples(case: Case, ids: dict[str, str], always: bool) -> None:
    """Points most or all references of a valid case at objects that exist, and takes away what would only stop it at the
    door."""
    if case.operation.definition.raw["operationId"] in WAITING_OPERATIONS:
        case.body = body_without_wait(case.body)
    if not is_positive(case):
        return
    name = case.operation.definition.raw["operationId"]
    kind = case.operation.path.split("/{")[0].rstrip("/").rsplit("/", 1)[-1]
    known = {**ids, **{name: ids[target] for name, target in REFERENCES.items()}}
    known |= {reference: ids[target] for reference, target in OTHER_MEANINGS.get(name, {}).items()}
    if kind in PARENTS:
        known["parent_id"] = ids[PARENTS[kind]]
    for part in (case.path_parameters, case.query, case.body):
        replace_references(part, known, always)
    for part in (case.query, case.body):
        if isinstance(part, dict):
            remove_obstacles(part)
    key = case.headers.get("Idempotency-Key") if case.headers else None
    if key and len(key) < 200:
        case.headers["Idempotency-Key"] = f"{key}-{next(KEY_NUMBERS)}"


def body_without_wait(body: Any) -> Any:
    """The same body, waiting for nothing: no engine runs here that could finish any work."""
    if isinstance(body, dict) and type(body.get("wait", 30)) is int and 0 <= body.get("wait", 30) <= 60:
        return {**body, "wait": 0}
    return {"wait": 0} if body is NOT_SET else body


def remove_obstacles(asked: dict[str, Any]) -> None:
    """Asks for no position that never comes, and keeps to one past and to pages that exist."""
    if str(asked.get("min_position", "")).isdigit():
        asked["min_position"] = int(asked["min_position"]) % 10
    if len(asked.get("cursor") or "") < 5:
        asked.pop("cursor", None)
    if {"as_of", "as_of_version"} <= asked.keys():
        del asked["as_of"]


def replace_references(value: Any, known: dict[str, str], always: bool) -> None:
    if isinstance(value, list):
        for item in value:
            replace_references(item, known, always)
    elif isinstance(value, dict):
        for name, item in value.items():
            target = known.get(referred_id_name(name, known))
            if target is None:
                replace_references(item, known, always)
            elif isinstance(item, list):
                value[name] = [choose_id(one, target, always) for one in item]
            else:
                value[name] = choose_id(item, target, always)


def referred_id_name(name: str, known: dict[str, str]) -> str:
    """Which of the known ids a name refers to: `needed_family_ids` to `family_id`."""
    parts = name.removesuffix("s").split("_")
    ends = ("_".join(parts[start:]) for start in range(len(parts)))
    return next((end for start, end in enumerate(ends) if end in known and (start == 0 or end != "id")), name)


def choose_id(generated: Any, known: str, always: bool) -> Any:
    """Mostly or always what is known in place of what was generated; what is no id stays, unless a name is known for it."""
    if isinstance(generated, str) and not is_id(known):
        return known if always or len(generated) % 4 else generated
    try:
        return known if UUID(generated).int % 4 or always else generated
    except (AttributeError, TypeError, ValueError):
        return generated
