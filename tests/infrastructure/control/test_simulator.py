"""The simulated plant: axes that take time, noise, signals made of others, faults, and what was done to it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.application.control import (
    ControlAccessDeniedError,
    ControlNotConnectedError,
    ControlTimeoutError,
    ControlValueCoercionError,
    ControlWriteRejectedError,
    Quality,
    Reading,
    ReadingKind,
)
from baton.application.plant import SimulatedMotor
from baton.application.settings import Settings
from baton.infrastructure.control.devices import DerivedSignal, Motor, Noise, PlainSignal, peak
from baton.infrastructure.control.simulator import FileJournal, SimulatedFault, Simulator, simulated_plant
from tests.support.fast_clock import SimulatedTime

X = "bl7:stage:x"


@pytest.fixture
def time() -> SimulatedTime:
    return SimulatedTime()


def stage(time: SimulatedTime, **options: Any) -> Simulator:
    return Simulator(devices=[Motor(SimulatedMotor(address=X, velocity=2.0, **options))], time=time)


async def value(plant: Simulator, address: str) -> Any:
    return (await plant.read(address)).value


class TestMotor:
    async def test_a_confirmed_move_takes_its_time(self, time: SimulatedTime) -> None:
        plant = stage(time)
        await plant.write(X, 5)
        assert time.elapsed_seconds == pytest.approx(2.5, abs=0.05)
        assert await value(plant, f"{X}.RBV") == 5

    async def test_an_unconfirmed_move_is_seen_on_its_way(self, time: SimulatedTime) -> None:
        plant = stage(time, units="mm")
        await plant.write(X, 5, wait=False)
        assert time.elapsed_seconds == 0
        await time.sleep(1)
        reading = await plant.read(f"{X}.RBV")
        assert (reading.value, reading.units) == (pytest.approx(2), "mm")
        assert [await value(plant, f"{X}{field}") for field in ("", ".VAL", ".DMOV", ".MOVN")] == [5, 5, 0, 1]
        await time.sleep(2)
        assert [await value(plant, f"{X}{field}") for field in (".RBV", ".DMOV", ".MOVN")] == [5, 1, 0]

    async def test_a_move_longer_than_the_time_out_goes_on_unconfirmed(self, time: SimulatedTime) -> None:
        plant = stage(time)
        with pytest.raises(ControlTimeoutError, match=X):
            await plant.write(X, 100, timeout=30)
        assert time.elapsed_seconds == pytest.approx(30)
        assert await value(plant, f"{X}.RBV") == pytest.approx(60)
        await time.sleep(20)
        assert await value(plant, f"{X}.RBV") == 100

    async def test_stopping_ends_the_move_where_it_is(self, time: SimulatedTime) -> None:
        plant = stage(time)
        moving = asyncio.ensure_future(plant.write(X, 10))
        await time.sleep(1)
        await plant.write(f"{X}.STOP", 1)
        await moving
        assert await value(plant, f"{X}.RBV") == pytest.approx(2)
        assert await value(plant, f"{X}.DMOV") == 1

    async def test_a_second_target_is_reached_from_where_the_axis_is(self, time: SimulatedTime) -> None:
        plant = stage(time)
        await plant.write(X, 10, wait=False)
        await time.sleep(1)
        await plant.write(X, 0)
        assert time.elapsed_seconds == pytest.approx(2, abs=0.05)
        assert await value(plant, f"{X}.RBV") == 0

    async def test_the_velocity_holds_for_the_next_move(self, time: SimulatedTime) -> None:
        plant = stage(time)
        await plant.write(f"{X}.VELO", 10)
        await plant.write(X, 5)
        assert time.elapsed_seconds == pytest.approx(0.5, abs=0.05)
        assert await value(plant, f"{X}.VELO") == 10

    async def test_beyond_the_limits_nothing_moves(self, time: SimulatedTime) -> None:
        plant = stage(time, lower=-1, upper=3)
        for target in (3.1, -2):
            with pytest.raises(ControlWriteRejectedError, match=r"limits are -1\.0 and 3\.0"):
                await plant.write(X, target)
        assert [await value(plant, f"{X}{field}") for field in ("", ".LLM", ".HLM")] == [0, -1, 3]
        assert not plant.writes

    async def test_what_is_read_back_cannot_be_written(self, time: SimulatedTime) -> None:
        plant = stage(time, readback="bl7:encoder")
        for address in ("bl7:encoder", f"{X}.DMOV"):
            with pytest.raises(ControlWriteRejectedError, match=address):
                await plant.write(address, 1)
        assert await value(plant, "bl7:encoder") == 0

    @pytest.mark.parametrize("target", ["five", True, None, [1, 2], float("nan")])
    async def test_a_target_is_a_number(self, time: SimulatedTime, target: Any) -> None:
        with pytest.raises(ControlValueCoercionError, match=X):
            await stage(time).write(X, target)

    async def test_those_who_follow_see_it_move_and_arrive(self, time: SimulatedTime) -> None:
        plant = stage(time)
        stream = plant.subscribe(f"{X}.RBV")
        seen = [(await anext(stream)).value]
        await plant.write(X, 1, wait=False)
        while seen[-1] != 1:
            seen.append((await anext(stream)).value)
        await stream.aclose()
        assert seen == sorted(seen)
        assert len(seen) > 5

    @given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0, 30)), min_size=1, max_size=6))
    def test_an_axis_is_never_faster_than_its_velocity_and_never_beyond_its_target(
        self, moves: list[tuple[float, float]]
    ) -> None:
        async def walk() -> None:
            time = SimulatedTime()
            plant = stage(time)
            for target, seconds in moves:
                before = await value(plant, f"{X}.RBV")
                await plant.write(X, target, wait=False)
                await time.sleep(seconds)
                after = await value(plant, f"{X}.RBV")
                assert abs(after - before) <= 2.0 * seconds + 1e-4
                assert min(before, target) - 1e-9 <= after <= max(before, target) + 1e-9

        asyncio.run(walk())


class TestSignals:
    async def test_noise_is_the_same_for_the_same_seed(self, time: SimulatedTime) -> None:
        def noisy(seed: int) -> Simulator:
            return Simulator(
                devices=[PlainSignal("bl7:ion", Reading(value=10.0), noise=Noise(0.5, seed, "bl7:ion"))], time=time
            )

        first, same, other = [[await value(plant, "bl7:ion") for _ in range(20)] for plant in map(noisy, (1, 1, 2))]
        assert first == same != other
        assert len(set(first)) == 20
        assert all(7 < number < 13 for number in first)

    async def test_a_derived_signal_follows_what_it_is_made_of(self, time: SimulatedTime) -> None:
        bell = DerivedSignal("bl7:sharpness", [f"{X}.RBV"], peak({X: 3.0}, width=1.0, height=100.0, background=2.0))
        plant = Simulator(devices=[Motor(SimulatedMotor(address=X)), bell], time=time)
        heights = []
        for position in (0, 2, 3, 4):
            await plant.write(X, position)
            heights.append(await value(plant, "bl7:sharpness"))
        assert heights[2] == pytest.approx(102)
        assert heights[0] < heights[1] < heights[2] > heights[3]
        assert heights[1] == pytest.approx(heights[3])

    async def test_a_derived_signal_is_as_bad_as_what_it_is_made_of(self, time: SimulatedTime) -> None:
        both = DerivedSignal("bl7:sum", ["a", "b"], lambda a, b: a + b)
        plant = Simulator({"a": 1, "b": 2}, [both], time=time)
        plant.set_reading("b", Reading(value=2, quality=Quality.UNCERTAIN))
        reading = await plant.read("bl7:sum")
        assert (reading.value, reading.quality) == (3, Quality.UNCERTAIN)
        plant.simulate_disconnect("b")
        with pytest.raises(ControlTimeoutError):
            await plant.read("bl7:sum")
        with pytest.raises(ControlWriteRejectedError):
            await plant.write("bl7:sum", 1)

    async def test_a_written_list_is_an_array(self) -> None:
        plant = Simulator({"bl7:regions": 0})
        await plant.write("bl7:regions", [1, 2])
        reading = await plant.read("bl7:regions")
        assert (reading.value, reading.kind) == ([1, 2], ReadingKind.ARRAY)


class TestFaults:
    async def test_a_rejecting_signal_takes_nothing(self) -> None:
        plant = Simulator({X: 1})
        plant.simulate_fault(X, SimulatedFault.REJECTING)
        with pytest.raises(ControlWriteRejectedError, match=X):
            await plant.write(X, 2)
        plant.simulate_fault(X, SimulatedFault.DENYING)
        with pytest.raises(ControlAccessDeniedError, match=X):
            await plant.write(X, 2)
        plant.simulate_fault(X, None)
        await plant.write(X, 3)
        assert await value(plant, X) == 3
        assert plant.writes[X] == 1

    async def test_a_silent_signal_times_out_though_what_was_written_arrives(self, time: SimulatedTime) -> None:
        plant = Simulator({X: 1}, time=time)
        plant.simulate_fault(X, SimulatedFault.SILENT)
        with pytest.raises(ControlTimeoutError):
            await plant.read(X)
        assert time.elapsed_seconds == pytest.approx(5)
        with pytest.raises(ControlTimeoutError):
            await plant.write(X, 2)
        assert time.elapsed_seconds == pytest.approx(35)
        await plant.write(X, 3, wait=False)
        plant.simulate_fault(X, None)
        assert await value(plant, X) == 3
        assert plant.writes[X] == 2

    async def test_a_stuck_readback_stays_where_it_was(self, time: SimulatedTime) -> None:
        plant = stage(time)
        plant.simulate_fault(f"{X}.RBV", SimulatedFault.STUCK)
        await plant.write(X, 4)
        assert await value(plant, f"{X}.RBV") == 0
        plant.simulate_fault(f"{X}.RBV", None)
        assert await value(plant, f"{X}.RBV") == 4

    async def test_bad_quality_is_told_to_those_who_follow(self) -> None:
        plant = Simulator({X: 1})
        stream = plant.subscribe(X)
        assert (await anext(stream)).quality is Quality.GOOD
        plant.simulate_fault(X, SimulatedFault.BAD)
        assert (await anext(stream)).quality is Quality.BAD
        await stream.aclose()

    async def test_a_device_that_was_lost_comes_back_as_it_was(self, time: SimulatedTime) -> None:
        plant = stage(time)
        await plant.write(X, 4)
        plant.simulate_disconnect(X)
        with pytest.raises(ControlNotConnectedError, match=X):
            await plant.write(X, 5)
        plant.simulate_connect(X)
        assert await value(plant, X) == 4

    async def test_a_loss_during_a_move_is_told(self, time: SimulatedTime) -> None:
        plant = stage(time)
        moving = asyncio.ensure_future(plant.write(X, 10))
        await time.sleep(1)
        plant.simulate_disconnect(X)
        with pytest.raises(ControlNotConnectedError, match=X):
            await moving


WRITE_FOR_EVER = r"""
import asyncio, itertools, os, sys
from pathlib import Path
from baton.infrastructure.control.simulator import FileJournal
from baton.infrastructure.control.simulator import Simulator

async def main():
    plant = Simulator({"bl7:count": 0}, journal=FileJournal(Path(sys.argv[1])))
    for number in itertools.count(1):
        await plant.write("bl7:count", number)
        os.write(1, b"%d\n" % number)

for _ in range(2):
    if pid := os.fork():
        os.waitpid(pid, 0)
        os.write(1, b"killed\n")
    else:
        os.write(1, b"%d\n" % os.getpid())
        asyncio.run(main())
"""
"""Two processes write to one journal, one after the other; each says its pid first and is killed then.

A line is one system call, so that none is cut off by the kill, whatever the interpreter buffers.
"""


class TestJournal:
    async def test_a_plant_outlives_the_process_that_simulated_it(self, tmp_path: Path, time: SimulatedTime) -> None:
        path = tmp_path / "plant" / "journal"

        def plant() -> Simulator:
            motor = Motor(SimulatedMotor(address=X, velocity=2.0))
            return Simulator({"bl7:shutter": 0}, [motor], time=time, journal=FileJournal(path))

        before = plant()
        await before.write("bl7:shutter", 1)
        await before.write(X, 10, wait=False)
        before.simulate_fault(f"{X}.DMOV", SimulatedFault.BAD)
        await time.sleep(2)
        after = plant()
        assert await value(after, "bl7:shutter") == 1
        assert await value(after, f"{X}.RBV") == pytest.approx(4)
        assert (await after.read(f"{X}.DMOV")).quality is Quality.BAD
        assert dict(Simulator(journal=FileJournal(path)).writes) == {"bl7:shutter": 1, X: 1}

    async def test_processes_share_one_plant(self, tmp_path: Path) -> None:
        mine, theirs = (Simulator({"bl7:shutter": 0}, journal=FileJournal(tmp_path / "journal")) for _ in range(2))
        stream = mine.subscribe("bl7:shutter")
        await anext(stream)
        await theirs.write("bl7:shutter", 1)
        assert (await anext(stream)).value == 1
        theirs.set_reading("bl7:shutter", Reading(value=0.5, quality=Quality.BAD, quality_detail="torn"))
        reading = await anext(stream)
        assert (reading.value, reading.quality, reading.quality_detail) == (0.5, Quality.BAD, "torn")
        theirs.simulate_disconnect("bl7:shutter")
        with pytest.raises(ControlNotConnectedError):
            await anext(stream)
        assert mine.writes == theirs.writes

    @pytest.mark.server
    def test_what_a_killed_process_did_is_counted(self, tmp_path: Path) -> None:
        path = tmp_path / "journal"
        reported = 0
        command = [sys.executable, "-c", WRITE_FOR_EVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(2):
                pid = int(process.stdout.readline())
                for _ in range(20):
                    process.stdout.readline()
                os.kill(pid, signal.SIGKILL)
                reported += 20 + sum(1 for _ in iter(process.stdout.readline, "killed\n"))
        writes = Simulator(journal=FileJournal(path)).writes["bl7:count"]
        assert reported <= writes <= reported + 2, "each killed process may have written once more than it could report"
        assert all(json.loads(line)["kind"] == "write" for line in path.read_text().splitlines())


class TestConfiguredPlant:
    DEVICES = [
        {
            "kind": "motor",
            "address": X,
            "readback": "bl7:stage:x:rbv",
            "velocity": 5,
            "lower": -10,
            "upper": 10,
            "units": "mm",
        },
        {"kind": "detector", "address": "bl7:cam1", "readout": 0.01},
        {"kind": "signal", "address": "bl7:filter", "value": "Out", "labels": ["Out", "In"]},
        {"kind": "signal", "address": "ring:current", "value": 101.5, "noise": 0.1, "read_only": True, "units": "mA"},
        {"kind": "peak", "address": "bl7:sharpness", "centres": {"bl7:stage:x:rbv": 1.5}, "width": 0.5, "height": 10},
        {"kind": "plane", "address": "bl7:offset", "slopes": {"bl7:stage:x:rbv": 2.0}, "offset": -1.0},
    ]

    async def test_devices_are_as_the_settings_describe_them(self, time: SimulatedTime) -> None:
        plant = simulated_plant(Settings(simulated_devices=self.DEVICES, simulated_signals={"bl7:shutter": 0}), time)
        await plant.write(X, 1.5)
        assert [await value(plant, name) for name in ("bl7:stage:x:rbv", "bl7:sharpness", "bl7:offset")] == [1.5, 10, 2]
        await plant.write("bl7:filter", "In")
        assert (await plant.read("bl7:filter")).index == 1
        current = await plant.read("ring:current")
        assert (current.units, current.value != 101.5) == ("mA", True)
        with pytest.raises(ControlWriteRejectedError):
            await plant.write("ring:current", 0)
        assert await value(plant, "bl7:cam1:DetectorState_RBV") == "Idle"
        assert await value(plant, "bl7:shutter") == 0

    async def test_a_journal_makes_it_lasting(self, tmp_path: Path) -> None:
        settings = Settings(simulated_devices=self.DEVICES, simulation_journal=tmp_path / "journal")
        await simulated_plant(settings).write("bl7:filter", "In")
        again = simulated_plant(settings)
        assert again.writes["bl7:filter"] == 1
        assert await value(again, "bl7:filter") == "In"
