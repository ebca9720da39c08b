"""The gate of a RunEngine: it asks Baton before every run begins, and waits at checkpoints while its run is Held.

    gate = BatonGate("https://baton.bl7", plan="Bluesky at BL7")
    RE.preprocessors.append(gate)

It is operations control, and no interlock.
"""

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, assert_never

from baton_bluesky.hold_watch import NOT_KNOWN_SECONDS, Hold, HoldWatch
from baton_bluesky.keys import run_id, timestamp_text
from baton_bluesky.preflight import (
    ASKED_SECONDS,
    Closed,
    Overridden,
    Passed,
    RunPreflight,
    RunQuestion,
    Unreachable,
    Verdict,
)
from baton_bluesky.service import BatonService
from baton_bluesky.touches import docstring_with
from baton_bluesky.translation import subject_name

if TYPE_CHECKING:
    from baton_bluesky.callback import BatonWitness

Messages = Generator[Any, Any, Any]
PlanFunction = TypeVar("PlanFunction", bound=Callable[..., Any])
OVERRIDE = "BATON_GATE_OVERRIDE"
ASK_AGAIN_SECONDS = 5.0
LOOK_SECONDS = 0.05  # Between two looks whether a hold is over.
PREFLIGHT_LOOK_SECONDS = 0.005  # Between two looks whether there is a verdict.
NOTE = "baton"
"""The key of a start document under which the gate says what it was told."""
NOTED = ("gates", "preflight_at", "holdable", "unreachable", "override_reason")


class BatonGateClosed(Exception):
    """Baton lets a run not begin; the sentences say why, and what to do."""

    def __init__(self, *sentences: str, reasons: tuple[str, ...] = ()) -> None:
        super().__init__(" ".join(sentences))
        self.sentences, self.reasons = sentences, reasons


class BatonGate:
    """A preprocessor of plans. `wait` waits while a gate is closed, `hold` says where a Held run waits: at the next
    checkpoint, or now by suspending it, and `on_unreachable` whether runs begin while nobody can be asked."""

    def __init__(
        self,
        address: str,
        plan: str | Mapping[str, str],
        *,
        token: str | None = None,
        subject_key: str = "sample",
        wait: bool = False,
        hold: Literal["checkpoint", "now"] = "checkpoint",
        on_unreachable: Literal["refuse", "allow"] = "refuse",
        tell: Callable[[str], None] | None = None,
    ) -> None:
        if hold not in ("checkpoint", "now") or on_unreachable not in ("refuse", "allow"):
            raise ValueError("hold is 'checkpoint' or 'now', and on_unreachable is 'refuse' or 'allow'.")
        self.preflight = RunPreflight(BatonService(address, token, ASKED_SECONDS), plan)
        self.subject_key, self.waits = subject_key, wait
        self.holds_now, self.allows_unasked = hold == "now", on_unreachable == "allow"
        self._tell = tell or print_sentence
        self.watch = HoldWatch(BatonService(address, token, NOT_KNOWN_SECONDS), self.tell)
        self._address = address

    @classmethod
    def beside(cls, witness: "BatonWitness", **options: Any) -> "BatonGate":
        """Return a gate that asks the service, and by the plan, of a witness."""
        told = {"token": witness.token, "subject_key": witness.subject_key, **options}
        return cls(witness.address, witness.plan, **told)

    def __repr__(self) -> str:
        return f"BatonGate({self._address!r})"

    def __call__(self, plan: Any) -> Messages:
        """Return a plan that asks before every run, and waits at checkpoints while one is Held."""
        return self._gated_messages(plan, {})

    def gated(self, plan: PlanFunction) -> PlanFunction:
        """Return a plan function whose plans are gated; its signature, annotations and docstring stay what they are."""
        signature = inspect.signature(plan)

        @functools.wraps(plan)
        def gated_plan(*args: Any, **kwargs: Any) -> Messages:
            arguments = dict(signature.bind(*args, **kwargs).arguments)
            return (yield from self._gated_messages(plan(*args, **kwargs), arguments))

        gated_plan.__doc__ = docstring_with(plan.__doc__, "gated")
        return gated_plan  # type: ignore[return-value]

    def tell(self, sentence: str) -> None:
        """Say something to the person at the RunEngine; what cannot be said is not worth a scan."""
        try:
            self._tell(sentence)
        except Exception:
            return

    def _gated_messages(self, plan: Any, arguments: Mapping[str, Any]) -> Messages:
        from bluesky import preprocessors

        mutate: Any = preprocessors.plan_mutator
        gated = GatedPlan(self, getattr(plan, "__name__", "plan"), arguments)
        try:
            return (yield from mutate(plan, gated.insert))
        finally:
            gated.close()


class GatedPlan:
    """One execution of a plan: the runs that are open in it, and what is inserted before its messages."""

    def __init__(self, gate: BatonGate, plan_name: str, arguments: Mapping[str, Any]) -> None:
        self.gate, self.plan_name, self.arguments = gate, plan_name, arguments
        self.engine = EngineProbe()
        self.runs: dict[Any, str] = {}
        """Ids of the open runs, by the keys that tell interleaved ones apart."""
        self._began: dict[str, float] = {}
        self._token: Any = None
        self._behind_checkpoint = self._suspended = False

    def insert(self, message: Any) -> tuple[Messages | None, Messages | None]:
        """Return what takes the place of a message, and what follows it."""
        match message.command:
            case "open_run" if not is_noted(message.kwargs):
                return self._begin(message), self._forget_start()
            case "close_run":
                self._end(message.run)
            case "checkpoint":
                self._behind_checkpoint = True
                if self.held():
                    return self._wait_before(message), None
            case "clear_checkpoint":
                if self._suspended:
                    return self._wait_before(message), None
                self._behind_checkpoint = False
        return None, None

    def held(self) -> list[Hold]:
        """Return the holds that are in force on open runs; an override lets everything pass."""
        if override_reason():
            return []
        return [hold for id in list(self.runs.values()) if (hold := self.gate.watch.hold_of(id)) is not None]

    def close(self) -> None:
        """Forget every run; the plan is over."""
        for key in list(self.runs):
            self._end(key)

    def _begin(self, message: Any) -> Messages:
        if not self.engine.met:
            yield new_message("install_suspender", self.engine)
            yield new_message("remove_suspender", self.engine)
        asking = Asking(self.gate, self._question(message))
        try:
            yield new_message("wait_for", [asking.find_verdict])
        finally:
            asking.abandoned = True
        note = self._note_of(asking)
        earlier = {**self.engine.metadata(), **message.kwargs}.get(NOTE)
        kept = {key: value for key, value in earlier.items() if key not in NOTED} if isinstance(earlier, dict) else {}
        self.engine.keep({NOTE: {**kept, **note}})
        self._token = yield new_message("subscribe", self._note_start, "start")
        self._behind_checkpoint = False
        uid = yield message._replace(kwargs={**message.kwargs, NOTE: {**kept, **note}})
        if (began := self._began.pop(str(uid), None)) is not None:
            self.runs[message.run] = id = run_id(uid, timestamp_text(began))
            if note["holdable"]:
                self.gate.watch.add(id, functools.partial(self._hear_of_hold, id))

    def _forget_start(self) -> Messages:
        yield new_message("unsubscribe", token=self._token)

    def _note_start(self, _: str, document: Mapping[str, Any]) -> None:
        self._began[document["uid"]] = document["time"]

    def _question(self, message: Any) -> RunQuestion:
        metadata = {**self.engine.metadata(), **message.kwargs}
        arguments = {name: named_plainly(value) for name, value in self.arguments.items()}
        given = metadata.get("plan_args")
        return RunQuestion(
            plan_name=str(metadata.get("plan_name") or self.plan_name),
            arguments={**(given if isinstance(given, dict) else {}), **arguments},
            subject=subject_name(metadata.get(self.gate.subject_key)),
        )

    def _note_of(self, asking: "Asking") -> dict[str, Any]:
        """Return what the start document says, or raise where the run may not begin."""
        if not asking.begun:  # Nothing carries the messages out, so nothing moves: somebody looks at what the plan would do.
            return {"holdable": False}
        match verdict := asking.verdict or Unreachable("The question whether the run may begin was given up."):
            case Passed():
                return {**verdict.note(), "holdable": verdict.tells_holds}
            case Overridden():
                self.gate.tell(f"Baton is not asked, because of {OVERRIDE}: {verdict.reason}")
                return {**verdict.note(), "holdable": False}
            case Closed():
                raise BatonGateClosed(*verdict.sentences, reasons=verdict.reasons)
            case Unreachable():
                if not self.gate.allows_unasked:
                    advice = f"Set {OVERRIDE} to a reason to measure all the same."
                    raise BatonGateClosed(verdict.sentence, advice, reasons=("unreachable",))
                self.gate.tell(f"{verdict.sentence} The run begins without being judged.")
                return {**verdict.note(), "holdable": True}
        assert_never(verdict)

    def _end(self, key: Any) -> None:
        if (id := self.runs.pop(key, None)) is not None:
            self.gate.watch.remove(id)

    def _wait_before(self, message: Any) -> Messages:
        for hold in self.held():
            self.gate.tell(f"The run is Held in Baton, and waits at this checkpoint until it is resumed: {hold.reason}")
        waiting = HoldWait(self)
        try:
            yield new_message("wait_for", [waiting.until_released])
        finally:
            waiting.abandoned = True
        return (yield message)

    def _hear_of_hold(self, id: str, hold: Hold) -> None:
        """Suspend the plan in the RunEngine's own thread, where that is asked for; called by the thread that asks."""
        if self.gate.holds_now and (loop := self.engine.loop()) is not None:
            loop.call_soon_threadsafe(self._suspend, id, hold)

    def _suspend(self, id: str, hold: Hold) -> None:
        """Suspend where that can be undone: without a checkpoint Bluesky aborts the scan."""
        if self._suspended or id not in self.runs.values() or not (self._behind_checkpoint and self.engine.can_suspend()):
            return
        self._suspended = True
        waiting = HoldWait(self, on_release=self._note_release)
        self.engine.suspend(waiting.until_released, f"The run is Held in Baton: {hold.reason}")

    def _note_release(self) -> None:
        self._suspended = False


class EngineProbe:
    """Meets the RunEngine that carries a plan out, as a suspender that is installed and removed at once would."""

    def __init__(self) -> None:
        self._engine: Any = None

    @property
    def met(self) -> bool:
        return self._engine is not None

    def install(self, engine: Any, **_: Any) -> None:
        """Take note of the RunEngine."""
        self._engine = engine

    def remove(self) -> None:
        """Nothing was installed."""

    def metadata(self) -> dict[str, Any]:
        """Return the metadata that the next run gets from the RunEngine, and from who called it."""
        return {**(getattr(self._engine, "md", None) or {}), **(getattr(self._engine, "_metadata_per_call", None) or {})}

    def keep(self, notes: Mapping[str, Any]) -> None:
        """Replace what the caller of the RunEngine gave under the same keys, which would stand before those of a run."""
        per_call = getattr(self._engine, "_metadata_per_call", None)
        if isinstance(per_call, dict):
            per_call.update({key: note for key, note in notes.items() if key in per_call})

    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Return the event loop of the RunEngine."""
        return getattr(self._engine, "loop", None)

    def can_suspend(self) -> bool:
        """Return whether the RunEngine runs, and has a checkpoint to return to."""
        return bool(self._engine.resumable) and str(self._engine.state) == "running"

    def suspend(self, released: Callable[[], Any], justification: str) -> None:
        """Suspend the plan until a coroutine has ended."""
        self._engine.request_suspend(released, justification=justification)


class Asking:
    """The question before one run, and its verdict once there is one."""

    def __init__(self, gate: BatonGate, question: RunQuestion) -> None:
        self._gate, self._question = gate, question
        self.verdict: Verdict | None = None
        self.begun = self.abandoned = False
        self._told = False

    async def find_verdict(self) -> None:
        """Ask, away from the event loop; where the gate waits, ask again until it opens. May be repeated."""
        self.begun = True
        while self.verdict is None and not self.abandoned:
            verdict = await self._ask()
            if self._gate.waits and isinstance(verdict, Closed | Unreachable) and not self._lets_pass(verdict):
                self._tell_once(verdict)
                await self._sleep(ASK_AGAIN_SECONDS)
            else:
                self.verdict = verdict

    async def _ask(self) -> Verdict:
        if reason := override_reason():
            return Overridden(reason)
        verdict = await in_thread(functools.partial(self._gate.preflight.ask, self._question), ASKED_SECONDS)
        return verdict or Unreachable(f"Baton gave no verdict within {ASKED_SECONDS:g} s.")

    def _lets_pass(self, verdict: Closed | Unreachable) -> bool:
        return isinstance(verdict, Unreachable) and self._gate.allows_unasked

    def _tell_once(self, verdict: Closed | Unreachable) -> None:
        sentences = verdict.sentences if isinstance(verdict, Closed) else (verdict.sentence,)
        if not self._told:
            self._gate.tell(" ".join((*sentences, "The run waits until Baton lets it begin.")))
        self._told = True

    async def _sleep(self, seconds: float) -> None:
        """Sleep, unless the question is abandoned or overridden."""
        for _ in range(int(seconds / LOOK_SECONDS)):
            if self.abandoned or override_reason():
                return
            await asyncio.sleep(LOOK_SECONDS)


class HoldWait:
    """A wait for the end of every hold on a plan's runs; it may be waited for several times."""

    def __init__(self, plan: GatedPlan, on_release: Callable[[], None] = lambda: None) -> None:
        self._plan, self._on_release = plan, on_release
        self.abandoned = False

    async def until_released(self) -> None:
        """Return once no open run is Held."""
        waited = False
        while not self.abandoned and self._plan.held():
            waited = True
            await asyncio.sleep(LOOK_SECONDS)
        self._on_release()
        if waited and not self.abandoned:
            self._plan.gate.tell("The run continues.")


async def in_thread(work: Callable[[], Verdict], seconds: float) -> Verdict | None:
    """Return what a function finds in a thread of its own, or None where it takes too long; the thread delays no exit."""
    found: list[Verdict] = []
    thread = threading.Thread(target=lambda: found.append(work()), name="baton-preflight", daemon=True)
    thread.start()
    looks = int(seconds / PREFLIGHT_LOOK_SECONDS)
    for _ in range(looks):
        if found or not thread.is_alive():
            break
        await asyncio.sleep(PREFLIGHT_LOOK_SECONDS)
    return found[0] if found else None


def new_message(command: str, *args: Any, **kwargs: Any) -> Any:
    """Return a message to the RunEngine that is about no device."""
    from bluesky import utils

    message: Any = utils.Msg
    return message(command, None, *args, **kwargs)


def named_plainly(value: Any) -> Any:
    """Return an argument of a plan with devices as their names."""
    if isinstance(value, list | tuple):
        return [named_plainly(one) for one in value]
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and not isinstance(value, str) else value


def override_reason() -> str | None:
    """Return why a person lets everything pass, if somebody does."""
    return os.environ.get(OVERRIDE, "").strip()[:500] or None


def is_noted(metadata: Mapping[str, Any]) -> bool:
    """Return whether another gate has asked for this run."""
    note = metadata.get(NOTE)
    return isinstance(note, dict) and "holdable" in note


def print_sentence(sentence: str) -> None:
    """Print a sentence where the RunEngine prints its own."""
    print(f"Baton: {sentence}", flush=True)
