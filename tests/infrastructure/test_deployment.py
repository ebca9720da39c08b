"""What decisions know about the deployment they are made in."""

from datetime import timedelta
from typing import Any

import pytest

from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.kernel import Call, Outcome
from baton.domain.shared.deployment import Deployment, DeploymentPort
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.writes import Answer
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.zone import DefineZone
from tests.support.domain.world import OPERATOR, new_id


class DeploymentProbe(DefineZone):
    """Decides nothing and says what it was told."""

    def gather(self, call: Call) -> Reads[Any]:
        return (yield from ask(DeploymentPort.deployment))

    def decide(self, call: Call, deployment: Deployment) -> Outcome:
        return [Answer({"ttl": deployment.enclosure_observation_ttl, "facility": deployment.self_facility_code})]


@pytest.mark.parametrize(("settings", "ttl"), [({}, 120), ({"enclosure_observation_ttl_seconds": 30}, 30)])
async def test_a_decision_is_told_how_long_an_observation_counts(
    database_url: str, settings: dict[str, Any], ttl: int
) -> None:
    async with Runtime(Settings(database_url=database_url, **settings)) as runtime:
        told = await runtime.service.execute(DeploymentProbe(name="Hall"), Caller(OPERATOR, SYSTEM_HTTP, new_id()))
    assert told.body == {"ttl": timedelta(seconds=ttl), "facility": "facility"}
