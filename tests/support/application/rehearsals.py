"""Steps rehearsed on a twin and conducted on the simulator, so that both can be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from baton.application.conduct.actions import touches
from baton.application.conduct.signal_limits import SetpointLimits, control_limits
from baton.application.control import Control, Fence, Reading, Timekeeper
from baton.application.plant import SimulatedMotor, Substrate
from baton.domain.conduct.estimates import walk_of
from baton.domain.conduct.messages import ConductOutcome, ConductStart, ConductVerdict, Finish, PassDecision
from baton.domain.conduct.rehearsal import RehearsalBasis, RehearsalPart, Rehearsed, rehearse
from baton.domain.conduct.twin import TwinSignal, TwinValue, ValueSource
from baton.domain.conduct.walk import Action, Walk
from baton.domain.equipment.values import SignalLimits
from baton.domain.procedure.procedure import ConductMode
from baton.domain.recipe.expansion import Expansion
from baton.domain.shared.action_signals import ActionForecast
from baton.infrastructure.control.devices import Motor
from baton.infrastructure.control.routes import RoutedControl
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.plugins import ActionRegistry
from tests.support.application.memory_conduct import ROUTES, MemoryConduct, OpenedConduct
from tests.support.domain.world import new_id
from tests.support.fast_clock import START, LoopTime

FIRST_VALUES: Mapping[str, Any] = {"bl7:a": 0, "bl7:b": 1.5, "bl7:c": 0, "bl7:shutter": 1}
MOTORS = {"bl7:x": SignalLimits(low=-5, high=5), "bl7:y": SignalLimits(high=2)}


@dataclass
class WriteList:
    """A control that remembers what was written through it, in its order."""

    control: Control
    writes: list[tuple[str, Any]] = field(default_factory=list)

    async def write(
        self, address: str, value: object, wait: bool = True, timeout: float = 30.0, fence: Fence | None = None
    ) -> None:
        self.writes.append((address, value))
        await self.control.write(address, value, wait, timeout, fence)

    async def read(self, address: str) -> Reading:
        return await self.control.read(address)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.control, name)


def sweep_forecast(params: Mapping[str, Any]) -> ActionForecast:
    """What the sweep would write."""
    return ActionForecast(2.0, moves=((params["axis"], params["start"]), (params["axis"], params["stop"])))


@touches(writes=("axis",), rehearse=sweep_forecast)
async def sweep(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Move an axis from start to stop."""
    await control.write(params["axis"], params["start"])
    await control.write(params["axis"], params["stop"])
    return {}


@dataclass
class ComparedConduct:
    """One conduct, and its rehearsal on a twin of the same plant."""

    memory: MemoryConduct
    written: WriteList

    @classmethod
    def at(cls, time: LoopTime, limits: Mapping[str, SignalLimits] = MOTORS) -> "ComparedConduct":
        """A plant of plain signals and motors with limits, which the worker asks for."""
        motors = [
            Motor(SimulatedMotor(address=at, velocity=1e6, lower=one.low, upper=one.high)) for at, one in limits.items()
        ]
        plant = Simulator(dict(FIRST_VALUES), motors, time=time)
        written = WriteList(RoutedControl(ROUTES, {Substrate.IN_MEMORY: plant}))
        memory = MemoryConduct(time, plant, written, ROUTES, {"sweep": sweep})
        checked = SetpointLimits(written, memory.commands, new_id)
        memory.steps = replace(memory.steps, effects=replace(memory.steps.effects, check_limits=checked.check))
        memory.take_the_stand()
        return cls(memory, written)

    async def twin_signals(self) -> list[TwinSignal]:
        """What the plant reads before the first step."""
        found = []
        for address in (*FIRST_VALUES, *MOTORS, *(f"{motor}.RBV" for motor in MOTORS)):
            reading = await self.written.read(address)
            limits = {"owners": None, "control_system": await control_limits(self.written, address)}
            found.append(
                TwinSignal(address, TwinValue(reading.value, ValueSource.READ, START), reading.units, limits=limits)
            )
        return found

    async def open(
        self, steps: Sequence[Any], closing_steps: Sequence[Any], how: type[Any], **conduct: Any
    ) -> OpenedConduct:
        return await self.memory.open_conduct(steps, closing_steps, how, conduct=conduct)

    async def rehearse(self, opened: OpenedConduct, mode: ConductMode = ConductMode.FLAT, **more: Any) -> Rehearsed:
        """Rehearse the very steps that were pinned."""
        steps = Expansion(steps=tuple(opened.plan.steps), closing_steps=tuple(opened.plan.closing_steps))
        walk = replace(walk_of(steps.steps, steps.closing_steps), mode=mode)
        part = RehearsalPart("compared", steps, walk, command_name=opened.plan.command_name, **more)
        actions = ActionRegistry({"sweep": sweep}).signals
        return rehearse(RehearsalBasis((part,), tuple(await self.twin_signals()), START, actions=actions))

    async def conduct(
        self, opened: OpenedConduct, mode: ConductMode = ConductMode.FLAT, point: Mapping[str, Any] | None = None
    ) -> ConductOutcome:
        """Conduct the steps to their end, loops for one pass, as the engine would have it done."""
        plan, done = opened.plan, PassDecision(verdict=ConductVerdict.DONE)
        counts = {"step_count": len(plan.steps), "closing_count": len(plan.closing_steps)}
        walk = Walk.begin(ConductStart(command_name=plan.command_name, mode=mode, **counts))
        while walk.action is not Action.NOTHING:
            match walk.action:
                case Action.DO_STEPS | Action.COLLECT:
                    place = {"iteration_index": walk.at.iteration_index, "closing": walk.at.closing, "point": point}
                    report = await self.memory.step(opened, walk.at.step_index, **place)  # type: ignore[arg-type]
                    walk = walk.after_step(report.model_copy(update={"job_id": None}))
                case Action.BEGIN_CLOSING:
                    walk = walk.after_closing_begun(ConductVerdict.DONE)
                case Action.END:
                    walk = walk.after_end(ConductVerdict.DONE)
                case Action.START_PASS | Action.TAKE_UP_SEARCH:
                    walk = walk.after_pass(done.model_copy(update={"iteration_index": 1}))
                case Action.JUDGE_PASS | Action.ASK_ADVICE:
                    walk = walk.after_pass(done.model_copy(update={"stop": True}))
                case _:
                    walk = walk.after_pass(done)
        return walk.outcome or ConductOutcome(finish=Finish.COMPLETED)
