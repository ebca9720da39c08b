"""Reading signals over REST and MCP: a worker reads them, and each has its value or its error."""

import asyncio
from typing import Any

import pytest

from baton.application.conduct import signal_reader
from baton.application.conduct.signal_reader import SignalReader, sample_of
from baton.application.control import ControlNotConnectedError, Reading, ReadingKind
from baton.application.plant import SimulatedMotor
from baton.domain.conduct.control_signals import ReadSignalsRequest, SignalSamples
from baton.infrastructure.control.devices import Motor
from baton.infrastructure.control.simulator import SimulatedFault, Simulator
from baton.infrastructure.temporal.engine import MAX_BYTES
from tests.support.api.mcp_clients import agent, tool_result
from tests.support.domain.world import new_id
from tests.support.service import Api
from tests.support.tables import for_each
from tests.support.workflows.conduct_service import ConductService

NOTHING = {"kind": None, "unit": None, "quality": None, "quality_detail": None, "time": None, "limits": None}


async def test_each_signal_has_its_value_or_its_error(conduct_service: ConductService) -> None:
    conduct_service.stack.plant.add(Motor(SimulatedMotor(address="x", position=2.5, units="mm", lower=0, upper=10)))
    answer = await conduct_service.operator.post("/signals/read", {"addresses": ["x", "nowhere", "b", "x"]})
    assert answer.status_code == 200, answer.text
    axis, absent, plain = answer.json()["signals"]
    assert (axis["address"], axis["value"], axis["unit"], axis["quality"]) == ("x", 2.5, "mm", "Good")
    assert (axis["control_limits"], axis["limits"], axis["error"]) == ({"low": 0.0, "high": 10.0}, None, None)
    assert axis["time"] is not None
    assert axis["route"] == {"substrate": "in_memory", "simulated": True, "read_only": False}
    assert absent["error"] == {"code": "ControlNotConnectedError", "detail": "nowhere is not connected."}
    assert absent.items() >= NOTHING.items()
    assert (plain["value"], plain["time"], plain["control_limits"]) == (1.5, None, None)


async def test_an_agent_reads_the_same(conduct_service: ConductService) -> None:
    over_rest = (await conduct_service.operator.post("/signals/read", {"addresses": ["b"]})).json()
    async with agent(conduct_service.operator) as client:
        assert await tool_result(client, "read_signals", addresses=["b"]) == over_rest


@pytest.mark.parametrize("addresses", [[], ["a"] * 51, [""], ["é" * 300] * 50])
async def test_only_some_can_be_read_at_once(api: Api, addresses: list[str]) -> None:
    assert (await api.post("/signals/read", {"addresses": addresses})).status_code == 422


async def test_without_an_engine_it_is_refused_at_once(api: Api) -> None:
    answer = await api.post("/signals/read", {"addresses": ["a"]})
    assert (answer.status_code, answer.json()["code"]) == (503, "SignalsUnreadableError"), answer.text
    assert answer.json()["reason"] == "no_worker_answered"


async def test_without_a_worker_it_is_refused_in_time(
    conduct_service: ConductService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal_reader, "ANSWER_SECONDS", 0.5)
    await conduct_service.stack.stop_worker()
    try:
        async with asyncio.timeout(60):
            answers = await asyncio.gather(
                *(
                    conduct_service.operator.post("/signals/read", {"addresses": ["a"]})
                    for _ in range(signal_reader.MAX_QUESTIONS + 1)
                )
            )
    finally:
        await conduct_service.stack.start_worker()
    assert {answer.status_code for answer in answers} == {503}
    reasons = sorted(answer.json()["reason"] for answer in answers)
    assert reasons == [*["no_worker_answered"] * signal_reader.MAX_QUESTIONS, "too_many_at_once"]


async def test_what_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal_reader, "READ_SECONDS", 0.2)
    plant = Simulator({"a": 1, "silent": 2})
    plant.simulate_fault("silent", SimulatedFault.SILENT)
    request = ReadSignalsRequest(request_id=new_id(), addresses=("silent", "a"))
    silent, a = (await SignalReader(plant).read(request)).samples
    assert (silent.error and silent.error.code, a.value) == ("ControlTimeoutError", 1)


@for_each(
    ("reading", "shown"),
    [
        (Reading(value=[1.0, 2.5], kind=ReadingKind.ARRAY), [1.0, 2.5]),
        (Reading(value=[0.125] * 1000, kind=ReadingKind.ARRAY), {"kind": "Array", "shape": [1000]}),
        (Reading(value=[[1] * 40] * 30, kind=ReadingKind.IMAGE), {"kind": "Image", "shape": [30, 40]}),
        (Reading(value={"x": [1] * 100, "y": [2] * 100}, kind=ReadingKind.TABULAR), {"kind": "Tabular", "shape": [2]}),
        (Reading(value="x" * 500), {"kind": "Text", "shape": [500]}),
        (Reading(value=float("nan")), "nan"),
    ],
)
def test_what_is_large_is_shown_by_kind_and_shape(reading: Reading, shown: Any) -> None:
    assert sample_of(reading).value == shown


async def test_the_largest_answer_is_small_enough_for_the_engine() -> None:
    class Verbose(Simulator):
        async def read(self, address: str) -> Reading:
            if address.endswith("9"):
                raise ControlNotConnectedError("é" * 5000)
            words = "é" * 1000
            return Reading(value="é" * 98, units=words, quality_detail=words, sampled_at=self._time.now())

    addresses = tuple(f"a{number}" for number in range(50))
    motors = [Motor(SimulatedMotor(address=address, lower=-1.2345678901234567e-300, upper=1e300)) for address in addresses]
    read = await SignalReader(Verbose(devices=motors)).read(ReadSignalsRequest(request_id=new_id(), addresses=addresses))
    assert isinstance(read, SignalSamples)
    assert len(read.samples) == 50
    assert len(read.model_dump_json().encode()) < MAX_BYTES
