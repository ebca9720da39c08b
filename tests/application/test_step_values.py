"""Values that no row can hold: whatever the plant or a program says, a step that was done is on the record."""

from collections.abc import Mapping
from typing import Any

import pytest

from baton.application.conduct.actions import ActionRefusedError
from baton.application.control import Control, Quality, Reading, ReadingKind, Timekeeper
from baton.domain.conduct.messages import ConductVerdict
from baton.domain.step.results import Artifact
from baton.infrastructure.compute.in_memory import SimulatedOutcome
from baton.infrastructure.control.devices import PlainSignal
from baton.infrastructure.control.simulator import SimulatedFault
from tests.support.application.memory_conduct import MemoryConduct, failing_body, measurement
from tests.support.workflows.step_json import action, capture, check, compute, setpoint


class Odd:
    """What no JSON knows."""

    def __str__(self) -> str:
        return "odd"


ODD_VALUES: list[tuple[Any, Any]] = [
    (float("nan"), "nan"),
    (float("inf"), "inf"),
    (float("-inf"), "-inf"),
    ("a\0b", "a\ufffdb"),
    ("a\ud800b", "a\ufffdb"),
    ([1.0, float("nan")], [1.0, "nan"]),
    ({"a": [float("nan")], 7: "\0"}, {"a": ["nan"], "7": "\ufffd"}),
    (list(range(1000)), list(range(1000))),
    (list(range(1001)), {"kind": "Array", "shape": [1001]}),
    ([[0.0] * 640] * 480, {"kind": "Array", "shape": [480, 640]}),
    ([[1.0], list(range(5000))], {"kind": "Array", "shape": [2, 1]}),
    ({"counts": list(range(5000))}, {"counts": {"kind": "Array", "shape": [5000]}}),
    (b"\x00\xff", "b'\\x00\\xff'"),
    ({1}, "{1}"),
    (Odd(), "odd"),
    (2**70, 2**70),
    (None, None),
]


class TestOddValues:
    """Whatever a signal, an action or a program says can be stored: a step that was done is on the record."""

    @pytest.mark.parametrize(("read", "stored"), ODD_VALUES)
    async def test_a_reading(self, memory: MemoryConduct, read: Any, stored: Any) -> None:
        memory.plant.set_reading("bl7:b", Reading(value=read, quality_detail="a\0b", kind=ReadingKind.ARRAY))
        tried = [(check("bl7:b", 7), "CheckFailedError"), (capture("bl7:b", "n"), "ControlValueCoercionError")]
        for step, error_class in tried:
            report = await memory.step(await memory.open_conduct([step]))
            failure = report.failure
            if read == 2**70 and step["kind"] == "capture":
                assert report.verdict is ConductVerdict.DONE
            else:
                assert failure is not None
                assert failure.error_class == error_class
            row = memory.rows()[-1]
            assert (row["reading"]["value"], row["reading"]["quality_detail"]) == (stored, "a\ufffdb")

    @pytest.mark.parametrize(("read", "stored"), ODD_VALUES)
    async def test_evidence(self, memory: MemoryConduct, read: Any, stored: Any) -> None:
        memory.plant.add(PlainSignal("bl7:odd", Reading(value=read)))
        memory.plant.simulate_fault("bl7:odd", SimulatedFault.STUCK)
        conduct = await memory.open_conduct([setpoint("bl7:odd", 3, verify=True)])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert memory.rows()[-1]["post_reading"]["value"] == stored

    @pytest.mark.parametrize(("written", "stored"), ODD_VALUES)
    async def test_what_an_action_wrote(self, memory: MemoryConduct, written: Any, stored: Any) -> None:
        async def touch(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            await control.write("bl7:a", written)
            return {}

        memory.actions["touch"] = touch
        conduct = await memory.open_conduct([action("touch")])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert memory.rows()[-1]["writes"] == [["bl7:a", stored]]

    @pytest.mark.parametrize(("measured_", "stored"), ODD_VALUES)
    async def test_what_a_program_measured(self, memory: MemoryConduct, measured_: Any, stored: Any) -> None:
        memory.compute.seed(("find",), SimulatedOutcome(measurements=(measurement("m\0", measured_, units="\0"),)))
        conduct = await memory.open_conduct([compute("find")])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        (found,) = memory.rows()[-1]["measurements"]
        assert (found["name"], found["value"], found["units"]) == ("m\ufffd", stored, "\ufffd")

    async def test_as_many_measurements_as_a_program_likes(self, memory: MemoryConduct) -> None:
        many = tuple(measurement(f"m{number}", number) for number in range(1500))
        memory.compute.seed(("find",), SimulatedOutcome(measurements=many))
        conduct = await memory.open_conduct([compute("find", capture_name="m7")])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        tally = await memory.ledger.tally(conduct.conduct_id, 0)
        assert len(tally.measurements) == 1500
        assert memory.rows()[-1]["captured_value"] == 7

    async def test_an_artifact_with_an_odd_name(self, memory: MemoryConduct) -> None:
        odd = Artifact(uri="file:///a\ud800.h5", checksum_algorithm="sha256", checksum_value="0" * 64, byte_size=1)
        memory.compute.seed(("find",), SimulatedOutcome(artifact=odd))
        conduct = await memory.open_conduct([compute("find", output_uri="file:///a.h5", output_ref_name="found")])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert memory.rows()[-1]["artifact"]["uri"] == "file:///a\ufffd.h5"

    async def test_a_long_list_is_written_whole_and_told_by_its_shape(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", list(range(5000)))])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert len(await memory.value("bl7:a")) == 5000
        written = (await memory.ledger.tally(conduct.conduct_id, 0)).substrate_writes["bl7:a"]
        assert (written["kind"], written["shape"]) == ("Array", [5000])

    async def test_what_an_action_returns(self, memory: MemoryConduct) -> None:
        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            return {"mean": float("nan"), "name\0": "a\0b", "trace": list(range(5000))}

        memory.actions["collect"] = collect
        conduct = await memory.open_conduct([action("collect")])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert memory.rows()[-1]["result_data"] == {
            "mean": "nan",
            "name\ufffd": "a\ufffdb",
            "trace": {"kind": "Array", "shape": [5000]},
        }

    async def test_the_sentence_of_an_error(self, memory: MemoryConduct) -> None:
        memory.actions["collect"] = failing_body(ActionRefusedError("a\0b \ud800"))
        report = await memory.step(await memory.open_conduct([action("collect")]))
        assert report.failure is not None
        assert report.failure.message == "a\ufffdb \ufffd"

    async def test_a_sentence_as_long_as_a_book_is_cut(self, memory: MemoryConduct) -> None:
        memory.plant.set_reading("bl7:b", Reading(value="x" * 100_000))
        conduct = await memory.open_conduct([check("bl7:b", 7)])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert len(report.failure.message) == 500
        assert len(memory.rows()[-1]["reading"]["value"]) == 100_000, "what was read is kept"

    @pytest.mark.parametrize("quality", [Quality.UNCERTAIN, Quality.BAD])
    async def test_what_is_not_to_be_believed_is_not_captured(self, memory: MemoryConduct, quality: Quality) -> None:
        memory.plant.set_reading("bl7:b", Reading(value=1.0, quality=quality))
        report = await memory.step(await memory.open_conduct([capture("bl7:b", "n")]))
        assert report.failure is not None
        assert report.failure.error_class == "CheckFailedError"
