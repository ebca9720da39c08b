"""A server without our search attributes is given them, or does without: work is never kept from starting."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey

from baton.application.ports import CalendarEntry, Job
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.messages import conduct_workflow_id
from baton.domain.schedule.calendar import EveryCalendar
from baton.infrastructure.temporal.attributes import NAMES, add_missing_attributes, missing_attributes
from baton.infrastructure.temporal.calendars import TemporalCalendars
from baton.infrastructure.temporal.engine import TemporalEngine
from baton.infrastructure.wall_clock import clock
from tests.support.infrastructure.temporal_namespaces import new_namespace
from tests.support.workflows.conduct_stack import open_conduct_stack
from tests.support.workflows.step_json import setpoint

STATE = SearchAttributeKey.for_keyword("BatonState")
CREATE = "temporal operator search-attribute create --namespace"


@pytest.fixture
async def bare_namespace(temporal: EmbeddedTemporal) -> Client:
    """A namespace that nobody prepared."""
    return await new_namespace(temporal.address)


def engine_of(client: Client) -> TemporalEngine:
    return TemporalEngine(
        Settings(temporal_address=client.service_client.config.target_host, temporal_namespace=client.namespace)
    )


def job(attributes: dict[str, str]) -> Job:
    return Job("conduct", f"conduct:{uuid4()}", "nothing", attributes)


async def attributes_of(client: Client, id: str) -> Any:
    return (await client.get_workflow_handle(id).describe()).typed_search_attributes


async def test_work_starts_without_attributes_that_the_server_lacks_and_that_is_said_once(bare_namespace: Client) -> None:
    engine, first, second = engine_of(bare_namespace), job({"BatonState": "Opened"}), job({"BatonState": "Opened"})
    with capture_logs() as lines:
        assert await engine.start(first)
        assert not await engine.start(first), "it runs already"
        assert await engine.start(second)
    assert STATE not in await attributes_of(bare_namespace, first.id)
    (line,) = lines
    assert (line["event"], line["workflow_id"]) == ("search_attributes_refused", first.id)
    assert line["run"] == f"{CREATE} {bare_namespace.namespace} --name BatonState --type Keyword"


async def test_once_the_server_has_them_work_starts_with_them(bare_namespace: Client) -> None:
    engine, first, second = engine_of(bare_namespace), job({"BatonState": "Opened"}), job({"BatonState": "Opened"})
    await engine.start(first)
    await add_missing_attributes(bare_namespace)
    await engine.start(second)
    assert (await attributes_of(bare_namespace, second.id))[STATE] == "Opened"


async def test_a_worker_gives_the_server_what_it_lacks(bare_namespace: Client) -> None:
    assert await missing_attributes(bare_namespace) == list(NAMES)
    assert await add_missing_attributes(bare_namespace) is None
    assert await missing_attributes(bare_namespace) == []


async def test_what_a_worker_cannot_add_is_told_with_what_an_operator_would_type(bare_namespace: Client) -> None:
    other = {"BatonState": IndexedValueType.INDEXED_VALUE_TYPE_INT}
    await bare_namespace.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace=bare_namespace.namespace, search_attributes=other)
    )
    assert (
        await add_missing_attributes(bare_namespace)
        == f"{CREATE} {bare_namespace.namespace} --name BatonState --type Keyword"
    )


async def test_a_worker_that_may_not_even_ask_is_none_the_worse(temporal: EmbeddedTemporal) -> None:
    client = await Client.connect(temporal.address, namespace="nowhere")
    assert str(await add_missing_attributes(client)).startswith(
        f"{CREATE} nowhere --name BatonFacility --type Keyword --name "
    )


async def test_a_conduct_comes_to_its_end_on_a_server_without_attributes(database_url: str, bare_namespace: Client) -> None:
    place = {"temporal_namespace": bare_namespace.namespace, "simulated_signals": {"a": 0}}
    async with open_conduct_stack(database_url, bare_namespace.service_client.config.target_host, **place) as stage:
        procedure_id, result = await stage.conduct_steps([setpoint("a", 1)])
        assert result["succeeded"]
        assert STATE not in await attributes_of(bare_namespace, conduct_workflow_id(procedure_id))


async def test_a_calendar_stays_as_put_without_attributes_that_the_server_lacks(bare_namespace: Client) -> None:
    calendars = TemporalCalendars(engine_of(bare_namespace).connected_client, clock)
    yearly = EveryCalendar(every=31_536_000)
    entry = CalendarEntry("schedule:1", "schedule-firing", yearly, attributes={"BatonState": "Opened"})
    turn = CalendarEntry("turn", "supervise-runs", yearly)
    with capture_logs() as lines:
        for one in (entry, turn):
            await calendars.put(one)
        view = await calendars.view(entry)
    assert view is not None
    assert view.as_defined, "a calendar that has no attributes does not tell that the server knows them"
    assert [line["event"] for line in lines] == ["search_attributes_refused"]
    await add_missing_attributes(bare_namespace)
    await calendars.put(entry)
    for known, as_defined in ((entry, True), (replace(entry, attributes={}), False)):
        view = await calendars.view(known)
        assert view is not None
        assert view.as_defined is as_defined
