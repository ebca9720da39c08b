"""The reliability of steps over REST, by what the ledgers of conducts say."""

import csv
from datetime import UTC, datetime
from io import StringIO

from tests.support.workflows.conduct_service import ConductService
from tests.support.workflows.step_json import capture, setpoint


async def test_steps_are_told_by_kind_and_target_with_their_failures(conduct_service: ConductService) -> None:
    begins = datetime.now(UTC).isoformat()
    for steps in ([setpoint("a", 1), setpoint("a", 2), capture("a", "height")], [setpoint("a", 3), capture("nowhere", "x")]):
        _, conduct_id = await conduct_service.start_conduct(*steps)
        await conduct_service.result(conduct_id)
    asked = {"since": begins}
    answer = await conduct_service.operator.get("/step-reliability", **asked)
    assert answer.status_code == 200, answer.text
    found = {(one["kind"], one["target"]): one for one in answer.json()["items"]}
    assert {key: (one["try_count"], one["failure_count"]) for key, one in found.items()} == {
        ("setpoint", "a"): (3, 0),
        ("capture", "a"): (1, 0),
        ("capture", "nowhere"): (1, 1),
    }
    assert sum(found["capture", "nowhere"]["failures"].values()) == 1
    assert found["setpoint", "a"]["median"] <= found["setpoint", "a"]["ninetieth"]
    only = (await conduct_service.operator.get("/step-reliability", **asked, kind="setpoint")).json()["items"]
    assert [one["target"] for one in only] == ["a"]
    table = await conduct_service.operator.get("/step-reliability", **asked, format="csv")
    assert [row["target"] for row in csv.DictReader(StringIO(table.text))] == [
        one["target"] for one in answer.json()["items"]
    ]
