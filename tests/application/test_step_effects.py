"""What each kind of step does to the plant, before any row is written of it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from baton.application.conduct.heartbeat import Pulse
from baton.application.conduct.step_effects import DetailedFault, EffectResult, StepEffects
from baton.application.control import (
    ControlNotConnectedError,
    ControlTimeoutError,
    Quality,
    Reading,
    ReadingKind,
    SetpointOutOfLimitsError,
    always_open,
)
from baton.application.plant import SimulatedMotor, Substrate
from baton.domain.recipe.step_checks import ARMS
from baton.domain.recipe.steps import CaptureStep, CheckStep, SetpointStep
from baton.domain.shared.units import UnitPolicy
from baton.domain.step.results import Artifact
from baton.domain.step.step_values import Memory, StepFault
from baton.infrastructure.control.devices import Motor, PlainSignal
from baton.infrastructure.control.routes import RoutedControl
from baton.infrastructure.control.simulator import SimulatedFault, Simulator
from baton.infrastructure.plugins import ActionRegistry
from tests.support.application.memory_conduct import ROUTES
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import capture, captured_value, check, setpoint

B = "bl7:b"


@pytest.fixture
def plant(time: LoopTime) -> Simulator:
    shutter = PlainSignal("bl7:shutter", labels=("Closed", "Open"))
    return Simulator({B: 1.5, "sim:a": 0}, [Motor(SimulatedMotor(address="bl7:x", velocity=1.0)), shutter], time=time)


@pytest.fixture
def effects(plant: Simulator, time: LoopTime) -> StepEffects:
    return over(plant, time)


def over(plant: Simulator, time: LoopTime) -> StepEffects:
    return StepEffects(RoutedControl(ROUTES, {Substrate.IN_MEMORY: plant}), ActionRegistry({}), time, ROUTES, 3600.0)


async def run_check(
    effects: StepEffects, step: dict[str, Any], time: LoopTime | None = None, **captures: float
) -> EffectResult:
    """What a check finds; where a time is given, it waits as long as its step says."""
    model = CheckStep(**step)
    waits = model.timeout if time is not None else None
    deadline = None if time is None or waits is None else time.now() + timedelta(seconds=waits)
    return await effects.check(model, Memory(captures=captures), deadline).body()


def reading(value: Any, **more: Any) -> Reading:
    return Reading(value=value, **more)


class TestChecks:
    async def test_it_reads_first_and_follows_nothing_where_that_is_enough(
        self, effects: StepEffects, plant: Simulator, time: LoopTime
    ) -> None:
        done = await run_check(effects, check(B, 1.5, timeout=60.0), time)
        assert (done.says["reading"]["value"], done.says["waited"], time.elapsed_seconds) == (1.5, 0, 0)

    async def test_without_a_deadline_it_judges_what_it_read(self, effects: StepEffects, time: LoopTime) -> None:
        with pytest.raises(DetailedFault) as failed:
            await run_check(effects, check(B, 7))
        assert (failed.value.label, failed.value.says["reading"]["value"]) == ("CheckFailedError", 1.5)
        assert str(failed.value) == "bl7:b reads 1.5 with quality Good, which does not meet the criterion."
        assert time.elapsed_seconds == 0

    async def test_it_follows_the_signal_until_it_satisfies(
        self, effects: StepEffects, plant: Simulator, time: LoopTime
    ) -> None:
        checking = asyncio.create_task(run_check(effects, check(B, 7, timeout=60.0), time))
        for value in (2, 3, 7, 8):
            await time.sleep(5)
            if not checking.done():
                plant.set_reading(B, reading(value))
        done = await checking
        assert (done.says["reading"]["value"], done.says["waited"]) == (7, 15)
        assert plant.subscriptions(B) == 0

    async def test_an_axis_on_its_way_is_waited_for(self, effects: StepEffects, plant: Simulator, time: LoopTime) -> None:
        await plant.write("bl7:x", 10, wait=False)
        done = await run_check(effects, check("bl7:x.RBV", 10, 0.5, timeout=60.0), time)
        assert done.says["waited"] == pytest.approx(9.5, abs=0.1)
        assert done.says["reading"]["value"] == pytest.approx(9.5, abs=0.1)

    async def test_at_the_deadline_the_last_reading_is_judged(
        self, effects: StepEffects, plant: Simulator, time: LoopTime
    ) -> None:
        checking = asyncio.create_task(run_check(effects, check(B, 7, timeout=60.0), time))
        await time.sleep(50)
        plant.set_reading(B, reading(6.5))
        with pytest.raises(DetailedFault) as failed:
            await checking
        assert (time.elapsed_seconds, failed.value.says["waited"], failed.value.says["reading"]["value"]) == (60, 60, 6.5)
        assert plant.subscriptions(B) == 0

    async def test_a_deadline_that_has_passed_leaves_one_look(
        self, effects: StepEffects, plant: Simulator, time: LoopTime
    ) -> None:
        past = time.now() - timedelta(seconds=1)
        done = await effects.check(CheckStep(**check(B, 1.5, timeout=60.0)), Memory(), past).body()
        assert done.says["waited"] == 0
        with pytest.raises(DetailedFault):
            await effects.check(CheckStep(**check(B, 7, timeout=60.0)), Memory(), past).body()
        assert time.elapsed_seconds == 0

    @pytest.mark.parametrize("quality", [Quality.UNCERTAIN, Quality.BAD])
    async def test_only_a_good_value_satisfies(
        self, effects: StepEffects, plant: Simulator, time: LoopTime, quality: Quality
    ) -> None:
        plant.set_reading(B, reading(7, quality=quality, quality_detail="HIGH"))
        with pytest.raises(DetailedFault, match=f"with quality {quality.value}"):
            await run_check(effects, check(B, 7))
        checking = asyncio.create_task(run_check(effects, check(B, 7, timeout=60.0), time))
        await time.sleep(5)
        plant.set_reading(B, reading(7))
        assert (await checking).says["waited"] == 5

    async def test_a_signal_that_is_not_there_is_an_error_and_no_mismatch(
        self, effects: StepEffects, time: LoopTime
    ) -> None:
        with pytest.raises(ControlNotConnectedError):
            await run_check(effects, check("bl7:absent", 7, timeout=60.0), time)

    async def test_a_signal_that_does_not_answer_is_an_error_too(
        self, effects: StepEffects, plant: Simulator, time: LoopTime
    ) -> None:
        plant.simulate_fault(B, SimulatedFault.SILENT)
        with pytest.raises(ControlTimeoutError):
            await run_check(effects, check(B, 1.5, timeout=60.0), time)
        assert time.elapsed_seconds == 5

    async def test_a_signal_that_is_lost_while_it_is_followed_is_an_error(
        self, effects: StepEffects, plant: Simulator, time: LoopTime
    ) -> None:
        checking = asyncio.create_task(run_check(effects, check(B, 7, timeout=60.0), time))
        await time.sleep(5)
        plant.simulate_disconnect(B)
        with pytest.raises(ControlNotConnectedError):
            await checking
        assert time.elapsed_seconds == 5

    async def test_a_time_out_of_the_control_system_is_not_taken_for_the_deadline(
        self, plant: Simulator, time: LoopTime
    ) -> None:
        class ImpatientSimulator(Simulator):
            def subscribe(self, address: str) -> Any:
                return fail_at_once()

        async def fail_at_once() -> Any:
            raise TimeoutError("of the library's own")
            yield

        effects = over(ImpatientSimulator({B: 1.5}, time=time), time)
        with pytest.raises(TimeoutError):
            await run_check(effects, check(B, 7, timeout=60.0), time)

    @pytest.mark.parametrize(
        ("found", "expected", "tolerance", "meets"),
        [
            (25, 25.0, None, True),
            (25.0, 25, None, True),
            (1, True, None, False),
            (True, True, None, True),
            (True, 1, None, False),
            ("in", "in", None, True),
            ("in", "In", None, False),
            ("25", 25, None, False),
            ([1, 2], [1.0, 2.0], None, True),
            ([1, 2], [1, 2, 3], None, False),
            (float("nan"), 25, None, False),
            (24.5, 25, 0.5, True),
            (24.49, 25, 0.5, False),
            (25, 25, 0.0, True),
            ("25", 25, 0.5, False),
            (True, 1, 0.5, False),
            (None, 0, 0.5, False),
            (float("nan"), 25, 0.5, False),
            (float("inf"), 25, 0.5, False),
            ([25], 25, 0.5, False),
        ],
    )
    async def test_a_value_of_another_type_is_a_mismatch_and_no_error(
        self, effects: StepEffects, plant: Simulator, found: Any, expected: Any, tolerance: float | None, meets: bool
    ) -> None:
        plant.set_reading(B, reading(found))
        step = check(B, expected, tolerance)
        if meets:
            await run_check(effects, step)
        else:
            with pytest.raises(DetailedFault, match="does not meet"):
                await run_check(effects, step)

    @pytest.mark.parametrize(
        ("expected", "meets"), [("Open", True), (1, True), ("Closed", False), (0, False), (True, False)]
    )
    async def test_a_choice_is_its_label_or_its_index(
        self, effects: StepEffects, plant: Simulator, expected: Any, meets: bool
    ) -> None:
        await plant.write("bl7:shutter", "Open")
        assert (await plant.read("bl7:shutter")).kind is ReadingKind.CATEGORICAL
        step = check("bl7:shutter", expected)
        if meets:
            await run_check(effects, step)
        else:
            with pytest.raises(DetailedFault):
                await run_check(effects, step)

    async def test_a_choice_is_near_to_no_number(self, effects: StepEffects, plant: Simulator) -> None:
        await plant.write("bl7:shutter", "Open")
        with pytest.raises(DetailedFault):
            await run_check(effects, check("bl7:shutter", 1, 0.5))

    async def test_what_was_captured_may_be_expected(self, effects: StepEffects) -> None:
        await run_check(effects, check(B, captured_value("n")), n=1.5)
        with pytest.raises(StepFault, match="n"):
            await run_check(effects, check(B, captured_value("n")))


class TestSetpoints:
    async def test_reading_back_judges_nothing(self, effects: StepEffects, plant: Simulator) -> None:
        plant.simulate_fault(B, SimulatedFault.STUCK)
        effect = effects.setpoint(SetpointStep(**setpoint(B, 3, verify=True)), Memory(), always_open)
        done = await effect.body()
        assert (done.says["post_reading"]["value"], effect.marked, effect.repeatable) == (1.5, True, True)

    async def test_a_reading_of_bad_quality_is_evidence_too(self, effects: StepEffects, plant: Simulator) -> None:
        plant.simulate_fault(B, SimulatedFault.BAD)
        done = await effects.setpoint(SetpointStep(**setpoint(B, 3, verify=True)), Memory(), always_open).body()
        assert (done.says["post_reading"]["value"], done.says["post_reading"]["quality"]) == (3, "Bad")

    async def test_a_reading_that_fails_is_told_and_does_no_harm(self, time: LoopTime) -> None:
        class Blind(Simulator):
            async def read(self, address: str) -> Reading:
                raise ControlNotConnectedError(f"{address} is not connected.")

        effects = over(Blind({B: 1.5}, time=time), time)
        done = await effects.setpoint(SetpointStep(**setpoint(B, 3, verify=True)), Memory(), always_open).body()
        assert done.says == {"post_read_error": "ControlNotConnectedError: bl7:b is not connected."}

    @pytest.mark.parametrize("value", [3, 0.1, True, "Open", [1, 2.5]])
    async def test_what_reads_as_it_was_written_does_not_deviate(self, effects: StepEffects, value: Any) -> None:
        address = "bl7:shutter" if value == "Open" or value is True else B
        done = await effects.setpoint(SetpointStep(**setpoint(address, value, verify=True)), Memory(), always_open).body()
        assert "deviates" not in done.says, done.says

    async def test_a_reading_that_differs_marks_the_step(self, effects: StepEffects, plant: Simulator) -> None:
        plant.simulate_fault(B, SimulatedFault.STUCK)
        done = await effects.setpoint(SetpointStep(**setpoint(B, 3, verify=True)), Memory(), always_open).body()
        assert (done.says["deviates"], done.says["post_reading"]["value"]) == (True, 1.5)

    async def test_a_readback_is_waited_for(self, effects: StepEffects, plant: Simulator, time: LoopTime) -> None:
        verify = {"tolerance": 0.5, "address": "bl7:x.RBV", "timeout": 60}
        plant.add(PlainSignal("bl7:demand", reading(0)))
        await plant.write("bl7:x", 10, wait=False)
        step = SetpointStep(**setpoint("bl7:demand", 10, verify=verify))
        done = await effects.setpoint(step, Memory(), always_open).body()
        assert done.says["waited"] == pytest.approx(9.5, abs=0.1)
        assert done.says["post_reading"]["value"] == pytest.approx(9.5, abs=0.1)
        assert plant.subscriptions("bl7:x.RBV") == 0

    async def test_what_does_not_come_near_in_time_fails(
        self, effects: StepEffects, plant: Simulator, time: LoopTime
    ) -> None:
        plant.simulate_fault(B, SimulatedFault.STUCK)
        effect = effects.setpoint(
            SetpointStep(**setpoint(B, 3, verify={"tolerance": 0.5, "timeout": 20})), Memory(), always_open
        )
        with pytest.raises(DetailedFault) as failed:
            await effect.body()
        assert str(failed.value) == "bl7:b reads 1.5 with quality Good, which is not within 0.5 of 3."
        assert failed.value.label == "SetpointNotReachedError"
        assert failed.value.facts == {"address": B, "asked": 3, "read": 1.5, "tolerance": 0.5}
        assert (failed.value.says["post_reading"]["value"], failed.value.says["waited"]) == (1.5, 20)
        assert effect.remains() == {"confirmed": True}, "it was written all the same"

    async def test_without_a_timeout_it_is_read_once(self, effects: StepEffects, plant: Simulator, time: LoopTime) -> None:
        plant.simulate_fault(B, SimulatedFault.STUCK)
        step = SetpointStep(**setpoint(B, 3, verify={"tolerance": 1.4}))
        with pytest.raises(DetailedFault):
            await effects.setpoint(step, Memory(), always_open).body()
        near = SetpointStep(**setpoint(B, 3, verify={"tolerance": 1.5}))
        assert (await effects.setpoint(near, Memory(), always_open).body()).says["waited"] == 0
        assert time.elapsed_seconds == 0

    async def test_a_reading_of_bad_quality_confirms_nothing(self, effects: StepEffects, plant: Simulator) -> None:
        plant.simulate_fault(B, SimulatedFault.BAD)
        step = SetpointStep(**setpoint(B, 3, verify={"tolerance": 10}))
        with pytest.raises(DetailedFault, match="with quality Bad"):
            await effects.setpoint(step, Memory(), always_open).body()

    async def test_a_value_outside_its_limits_is_not_written(self, plant: Simulator, time: LoopTime) -> None:
        async def refuse(address: str, value: Any) -> None:
            raise SetpointOutOfLimitsError("too far", {"address": address, "value": value})

        effects = replace(over(plant, time), check_limits=refuse)
        effect = effects.setpoint(SetpointStep(**setpoint(B, 3)), Memory(), always_open)
        with pytest.raises(SetpointOutOfLimitsError):
            await effect.body()
        assert (plant.writes[B], dict(effect.remains())) == (0, {})

    async def test_without_being_asked_nothing_is_read(self, effects: StepEffects, plant: Simulator) -> None:
        done = await effects.setpoint(SetpointStep(**setpoint(B, 3)), Memory(), always_open).body()
        assert done == EffectResult()

    async def test_what_was_touched_shows_before_it_is_done(self, effects: StepEffects, plant: Simulator) -> None:
        effect = effects.setpoint(SetpointStep(**setpoint("sim:absent", 3)), Memory(), always_open)
        assert effect.kind() is None
        with pytest.raises(ControlNotConnectedError):
            await effect.body()
        assert effect.kind() == "Simulated", "what was tried counts"


class TestCaptures:
    @pytest.mark.parametrize("value", [0, -3, 2.5, 10**20, 1e308])
    async def test_a_finite_number_is_captured(self, effects: StepEffects, plant: Simulator, value: Any) -> None:
        plant.set_reading(B, reading(value))
        effect = effects.capture(CaptureStep(**capture(B, "n")), Memory())
        done = await effect.body()
        assert (done.says["captured_value"], done.slot, effect.marked) == (value, "n", False)

    @pytest.mark.parametrize(
        "value", [True, False, "2.5", None, [1.0], {"a": 1}, float("nan"), float("inf"), float("-inf"), 10**400]
    )
    async def test_nothing_else_is(self, effects: StepEffects, plant: Simulator, value: Any) -> None:
        plant.set_reading(B, reading(value))
        with pytest.raises(DetailedFault, match="no finite number") as failed:
            await effects.capture(CaptureStep(**capture(B, "n")), Memory()).body()
        assert failed.value.label == "ControlValueCoercionError"

    @pytest.mark.parametrize("quality", [Quality.UNCERTAIN, Quality.BAD])
    async def test_a_number_that_is_not_to_be_believed_is_not(
        self, effects: StepEffects, plant: Simulator, quality: Quality
    ) -> None:
        plant.set_reading(B, reading(2.5, quality=quality))
        with pytest.raises(DetailedFault, match=quality.value) as failed:
            await effects.capture(CaptureStep(**capture(B, "n")), Memory()).body()
        assert (failed.value.label, failed.value.says["reading"]["value"]) == ("CheckFailedError", 2.5)

    async def test_a_choice_is_no_number(self, effects: StepEffects, plant: Simulator) -> None:
        await plant.write("bl7:shutter", "Open")
        with pytest.raises(DetailedFault, match="no finite number"):
            await effects.capture(CaptureStep(**capture("bl7:shutter", "n")), Memory()).body()

    async def test_a_filled_slot_is_refused_before_anything_is_read(self, effects: StepEffects) -> None:
        effect = effects.capture(CaptureStep(**capture("bl7:absent", "n")), Memory(captures={"n": 1.0}))
        with pytest.raises(StepFault) as failed:
            await effect.body()
        assert (failed.value.label, effect.kind()) == ("DuplicateCapture", None)

    async def test_an_output_of_the_same_name_is_no_capture(self, effects: StepEffects) -> None:
        artifact = Artifact(uri="file:///a", checksum_algorithm="sha256", checksum_value="0", byte_size=1)
        effect = effects.capture(CaptureStep(**capture(B, "n")), Memory(outputs={"n": artifact}))
        assert (await effect.body()).slot == "n"


class TestStandstill:
    """Time that ran out while this process stood still says nothing of the control system."""

    class Late(RoutedControl):
        """A control whose next questions come too late, so many of them."""

        late = 0

        async def read(self, address: str) -> Reading:
            self._miss(ControlTimeoutError)
            return await super().read(address)

        async def write(self, address: str, value: Any, *rest: Any) -> None:
            self._miss(ControlNotConnectedError)
            await super().write(address, value, *rest)

        async def check_limits(self, address: str, value: Any) -> None:
            self._miss(ControlTimeoutError)

        def _miss(self, error: type[Exception]) -> None:
            if self.late:
                self.late -= 1
                raise error("too late")

    @pytest.fixture
    def late(self, plant: Simulator) -> "TestStandstill.Late":
        control = self.Late(ROUTES, {Substrate.IN_MEMORY: plant})
        control.late = 1
        return control

    @pytest.mark.parametrize("step", [check(B, 1.5), capture(B, "n"), setpoint("sim:a", 1)], ids=lambda step: step["kind"])
    async def test_what_was_asked_then_is_asked_again_and_the_row_says_so(
        self, late: Late, time: LoopTime, step: dict[str, Any]
    ) -> None:
        effects = StepEffects(late, ActionRegistry({}), time, ROUTES, 3600.0, late.check_limits, lambda: lambda: True)
        effect = effects.prepare(ARMS.validate_python(step), Memory(), always_open, None)
        assert isinstance(await effect.body(), EffectResult)
        assert effect.remains()["repeats"] == 1

    @pytest.mark.parametrize("step", [check(B, 1.5), capture(B, "n"), setpoint("sim:a", 1)], ids=lambda step: step["kind"])
    async def test_otherwise_it_is_a_failure_of_the_control_system(
        self, late: Late, time: LoopTime, step: dict[str, Any]
    ) -> None:
        effects = StepEffects(late, ActionRegistry({}), time, ROUTES, 3600.0, late.check_limits)
        effect = effects.prepare(ARMS.validate_python(step), Memory(), always_open, None)
        with pytest.raises((ControlTimeoutError, ControlNotConnectedError)):
            await effect.body()

    async def test_what_was_sent_is_not_sent_again(self, plant: Simulator, time: LoopTime) -> None:
        class Unconfirmed(RoutedControl):
            async def write(
                self, address: str, value: Any, wait: bool = True, timeout: float = 1, fence: Any = None
            ) -> None:
                fence()
                raise ControlTimeoutError("it was not confirmed")

        control = Unconfirmed(ROUTES, {Substrate.IN_MEMORY: plant})
        effects = StepEffects(control, ActionRegistry({}), time, ROUTES, 3600.0, stood_still=lambda: lambda: True)
        effect = effects.setpoint(SetpointStep(**setpoint("sim:a", 1)), Memory(), always_open)
        with pytest.raises(ControlTimeoutError):
            await effect.body()
        assert effect.remains() == {"sent": True}

    async def test_a_pulse_tells_a_gap_whether_it_was_noticed_before_or_is_noticed_now(self) -> None:
        now = 100.0
        pulse = Pulse(lambda: now)
        stood_still = pulse.begin()
        now += 0.9
        assert not stood_still()
        now += 1.0
        assert stood_still()
        assert stood_still(), "it did"
        assert not pulse.begin()(), "not since"


class TestUnits:
    """An axis that counts in micrometres, with a readback in millimetres, and steps that say what they count in."""

    @pytest.fixture
    def axis(self, plant: Simulator) -> Simulator:
        plant.add(PlainSignal("bl7:axis", Reading(value=0.0, units="um")))
        plant.add(PlainSignal("bl7:axis.RBV", Reading(value=1.5, units="mm")))
        plant.add(PlainSignal("bl7:turn", Reading(value=0.0, units="degree")))
        return plant

    async def do(self, effects: StepEffects, step: dict[str, Any], **captures: float) -> tuple[EffectResult, Any]:
        effect = effects.prepare(ARMS.validate_python(step), Memory(captures=captures), always_open, None)
        return await effect.body(), {**effect.says, **effect.remains()}

    async def test_what_is_written_is_carried_and_both_are_on_the_row(self, effects: StepEffects, axis: Simulator) -> None:
        _, says = await self.do(effects, setpoint("bl7:axis", 1.5, unit="mm", verify=True))
        assert (await axis.read("bl7:axis")).value == 1500.0
        assert (says["value"], says["unit"], says["converted"]) == (1.5, "mm", {"value": 1500.0, "unit": "um"})

    async def test_a_readback_is_compared_in_its_own_unit(self, effects: StepEffects, axis: Simulator) -> None:
        verify = {"tolerance": 0.01, "address": "bl7:axis.RBV"}
        done, _ = await self.do(effects, setpoint("bl7:axis", 1500, unit="um", verify=verify))
        assert done.says["post_reading"]["value"] == 1.5
        with pytest.raises(DetailedFault) as failed:
            await self.do(effects, setpoint("bl7:axis", 1600, unit="um", verify=verify))
        assert (failed.value.facts["asked"], failed.value.facts["unit"]) == (1.6, "mm")
        wide = {**verify, "tolerance": 150.0, "unit": "um"}
        await self.do(effects, setpoint("bl7:axis", 1600, unit="um", verify=wide))
        with pytest.raises(DetailedFault, match=r"not within 0\.15 of 1\.7"):
            await self.do(effects, setpoint("bl7:axis", 1700, unit="um", verify=wide))

    async def test_an_unlike_reading_deviates_and_a_like_one_does_not(self, effects: StepEffects, axis: Simulator) -> None:
        done, _ = await self.do(effects, setpoint("bl7:axis", 2.0, unit="mm", verify=True))
        assert "deviates" not in done.says
        axis.simulate_fault("bl7:axis", SimulatedFault.STUCK)
        done, _ = await self.do(effects, setpoint("bl7:axis", 2.5, unit="mm", verify=True))
        assert done.says["deviates"]

    async def test_readings_are_judged_and_captured_in_the_unit_of_the_step(
        self, effects: StepEffects, axis: Simulator
    ) -> None:
        done, _ = await self.do(effects, check("bl7:axis.RBV", 1500.4, 0.5, unit="um"))
        assert (done.says["reading"]["value"], done.says["converted"]) == (1.5, {"value": 1500.0, "unit": "um"})
        done, _ = await self.do(effects, {**capture("bl7:axis.RBV", "at"), "unit": "um"})
        assert (done.says["captured_value"], done.says["captured_unit"]) == (1500.0, "um")
        with pytest.raises(DetailedFault, match="does not meet the criterion"):
            await self.do(effects, check("bl7:axis.RBV", 1.5, 0.5, unit="um"))

    async def test_a_signal_that_states_no_unit_is_taken_as_it_is(self, effects: StepEffects, axis: Simulator) -> None:
        _, says = await self.do(effects, setpoint(B, 7.0, unit="mm"))
        assert ((await axis.read(B)).value, "converted" in says) == (7.0, False)
        done, _ = await self.do(effects, {**capture(B, "at"), "unit": "mm"})
        assert (done.says["captured_value"], done.says["captured_unit"]) == (7.0, "mm")

    @pytest.mark.parametrize(
        "step",
        [
            setpoint("bl7:turn", 1.0, unit="mm"),
            check("bl7:turn", 0.0, 0.5, unit="mm"),
            {**capture("bl7:turn", "at"), "unit": "mm"},
        ],
        ids=lambda step: step["kind"],
    )
    async def test_what_cannot_be_carried_fails_and_nothing_is_written(
        self, effects: StepEffects, axis: Simulator, step: dict[str, Any]
    ) -> None:
        with pytest.raises(StepFault) as failed:
            await self.do(effects, step)
        facts = {"reason": "unit_mismatch", "address": "bl7:turn", "unit": "mm", "control_unit": "degree"}
        assert (failed.value.label, failed.value.facts, axis.writes["bl7:turn"]) == ("UnitMismatchError", facts, 0)

    async def test_a_policy_refuses_any_difference_or_ignores_all(self, effects: StepEffects, axis: Simulator) -> None:
        strict, blind = (replace(effects, unit_policy=policy) for policy in (UnitPolicy.REFUSE, UnitPolicy.IGNORE))
        with pytest.raises(StepFault, match="UNIT_POLICY lets nothing be converted"):
            await self.do(strict, setpoint("bl7:axis", 1.5, unit="mm"))
        await self.do(strict, setpoint("bl7:axis", 3.0, unit="micron"))
        assert (await axis.read("bl7:axis")).value == 3.0
        await self.do(blind, setpoint("bl7:axis", 1.5, unit="mm"))
        assert (await axis.read("bl7:axis")).value == 1.5
        done, _ = await self.do(blind, {**capture("bl7:axis.RBV", "at"), "unit": "um"})
        assert (done.says["captured_value"], "captured_unit" in done.says) == (1.5, False)

    async def test_texts_and_choices_have_no_unit(self, effects: StepEffects, axis: Simulator) -> None:
        await self.do(effects, setpoint("bl7:shutter", "Open", unit="mm"))
        assert (await axis.read("bl7:shutter")).value == "Open"
