"""Every built-in action, conducted as JSON asks for it, on a real control server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelAccess
from baton.infrastructure.plugins import BUILT_IN
from tests.support.databases import fresh_database
from tests.support.workflows.conduct_service import ConductService, open_conduct_service
from tests.support.workflows.step_json import action

CAMERA = {"detector": "bl7:cam1", "dwell": 0.01}
COLLECTING = {**CAMERA, "trigger_mode": "Internal", "repetitions": 2}
CONDUCTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "collect": (COLLECTING, {"repetitions": 2, "state": "Idle"}),
    "discrete": (
        {**COLLECTING, "axis": "bl7:focus", "points": [0.1, 0, 0.2], "wait": 0},
        {"points": 3, "repetitions": 2, "state": "Idle"},
    ),
    "continuous": (
        {**COLLECTING, "axis": "bl7:rot", "start": 0, "stop": 5, "rate": 100},
        {"start": 0.0, "stop": 5.0, "state": "Idle"},
    ),
    "stream": ({**CAMERA, "events": 3}, {"events": 3}),
    "settle": ({"seconds": 0.05}, {"seconds": 0.05}),
}
"""Of every built-in action parameters as JSON gives them, and what it answers among other things."""


@pytest.fixture(scope="module")
async def conduct_service(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, ioc: None
) -> AsyncIterator[ConductService]:
    """The service on a real socket, and a worker at the beamline's Channel Access server."""
    control = ChannelAccess(CaprotoClient(), read_timeout=30)
    with fresh_database(postgres, template) as url:
        async with open_conduct_service(url, temporal.address, control=control) as conduct_service:
            yield conduct_service
    await control.close()


@pytest.mark.parametrize("from_recipe", [False, True], ids=["over REST", "from a recipe"])
@pytest.mark.parametrize("name", BUILT_IN)
async def test_every_built_in_action_is_conducted_from_json(
    conduct_service: ConductService, data: Path, name: str, from_recipe: bool
) -> None:
    params, answered = CONDUCTS[name]
    step = action(name, **params)
    if from_recipe:
        procedure_id = await conduct_service.stack.register_from_recipe([step])
        conduct_id = await conduct_service.conduct(procedure_id)
    else:
        procedure_id, conduct_id = await conduct_service.start_conduct(step)
    result = await conduct_service.result(conduct_id)
    assert (result["succeeded"], result["failure"]) == (True, None)
    said = await answer_of(conduct_service, procedure_id)
    assert {key: said[key] for key in answered} == answered
    assert result["substrate_writes"].get("bl7:cam1:AcquireTime") == params.get("dwell")
    if name == "stream":
        assert Path(said["uri"].removeprefix("file://")).parent == data


async def answer_of(conduct_service: ConductService, procedure_id: UUID) -> Any:
    """What the ledger says that an action answered."""
    (row,) = [row for row in await conduct_service.stack.ledger(procedure_id) if row["mark"] == "outcome"]
    return row["result_data"]
