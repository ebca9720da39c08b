"""Every built-in action, conducted as JSON asks for it, on a real control server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.actions.registry import BUILT_IN
from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelAccess
from tests.api.serving import shared_database
from tests.workflows.steps import action
from tests.workflows.theatre import Theatre, opened_theatre

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
}
"""Of every built-in action parameters as JSON gives them, and what it answers among other things."""


@pytest.fixture(scope="module")
async def hall(postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, ioc: None) -> AsyncIterator[Theatre]:
    """The service on a real socket, and a worker at the beamline's Channel Access server."""
    control = ChannelAccess(CaprotoClient(), read_timeout=30)
    with shared_database(postgres, template) as url:
        async with opened_theatre(url, temporal.address, control=control) as hall:
            yield hall
    await control.close()


@pytest.mark.parametrize("from_recipe", [False, True], ids=["over REST", "from a recipe"])
@pytest.mark.parametrize("name", BUILT_IN)
async def test_every_built_in_action_is_conducted_from_json(hall: Theatre, data: Path, name: str, from_recipe: bool) -> None:
    params, answered = CONDUCTS[name]
    step = action(name, **params)
    if from_recipe:
        procedure_id = await hall.stage.from_recipe([step])
        conduct_id = await hall.conduct(procedure_id)
    else:
        procedure_id, conduct_id = await hall.conducting(step)
    result = await hall.result(conduct_id)
    assert (result["succeeded"], result["failure"]) == (True, None)
    said = await answer_of(hall, procedure_id)
    assert {key: said[key] for key in answered} == answered
    assert result["substrate_writes"]["bl7:cam1:AcquireTime"] == 0.01
    if name == "stream":
        assert Path(said["uri"].removeprefix("file://")).parent == data


async def answer_of(hall: Theatre, procedure_id: UUID) -> Any:
    """What the ledger says that an action answered."""
    (row,) = [row for row in await hall.stage.ledger(procedure_id) if row["mark"] == "outcome"]
    return row["result_data"]
