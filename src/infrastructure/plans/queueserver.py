"""Bluesky plans carried out by a queueserver, over 0MQ with JSON: each by `queue_item_execute`, because an item of the queue
that fails or is aborted returns to its front and would run again."""

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import zmq
import zmq.asyncio

from baton.application.conduct.actions import NotBegun, Token
from baton.application.conduct.plan_executors import (
    MAX_ANSWER_BYTES,
    REQUEST_SECONDS,
    ExecutorCatalogue,
    PlanEnd,
    PlanExecutorBusyError,
    PlanExecutorSilentError,
    PlanExecutorUnavailableError,
    PlanJob,
    PlanOutcomeUnknown,
    PlanPhase,
    PlanRejectedError,
    PlanState,
)
from baton.application.control import Fence, always_open
from baton.infrastructure.plans.offers import offered_plan, schema_of_queueserver

USER = "Baton"
NOTE = "Baton carries out plans here, and holds this lock so that nobody else begins one; epoch "
LOOKS, LOOK_SECONDS = 6, 0.5  # how often, and at what interval, an item is looked for that is neither running nor ended
OPEN_LOOKS = 240  # how often an environment is looked for that is being opened
BUSY_WORDS = ("is busy", "is locked", "was locked", "not in the idle", "lock key")
CLOSED_WORDS = ("environment does not exist", "environment is not open", "run engine is not found")
ENDS = {
    "completed": PlanEnd.COMPLETED,
    "failed": PlanEnd.FAILED,
    "stopped": PlanEnd.STOPPED,
    "aborted": PlanEnd.ABORTED,
    "halted": PlanEnd.ABORTED,
}
PROTOCOLS = {"is_movable": "Movable", "is_readable": "Readable", "is_flyable": "Flyable"}  # in its lists of devices
Answer = dict[str, Any]


class Queueserver:
    """One RE manager, by the address of its control socket."""

    def __init__(
        self,
        address: str,
        *,
        public_key: str | None = None,
        user_group: str = "primary",
        exclusive: bool = False,
        opens: bool = False,
    ) -> None:
        self._address = address
        self._public_key = public_key
        self._user_group = user_group
        self._exclusive = exclusive
        self._opens = opens
        self._context = zmq.asyncio.Context()

    async def catalogue(self) -> ExecutorCatalogue:
        status = await self._ask("status")
        group = {"user_group": self._user_group}
        plans = (await self._ask("plans_allowed", group)).get("plans_allowed") or {}
        devices = (await self._ask("devices_allowed", group)).get("devices_allowed") or {}
        open_here = status.get("worker_environment_exists")
        return ExecutorCatalogue(
            version=str(status.get("msg", ""))[:100] or None,
            environment=str(status.get("worker_environment_state", "open")) if open_here else None,
            plans={str(name): offered_plan(_text(one), schema_of_queueserver(one), one) for name, one in plans.items()},
            devices=tuple(sorted(map(str, devices))),
            activity=_activity(status),
        )

    async def describe_devices(self) -> dict[str, tuple[str, ...]]:
        """Return the protocols of each device, and behind them its class."""
        listed = (await self._ask("devices_allowed", {"user_group": self._user_group})).get("devices_allowed") or {}
        return {
            str(name): (*(word for key, word in PROTOCOLS.items() if one.get(key)), str(one.get("classname") or "Device"))
            for name, one in listed.items()
        }

    async def prepare(self, job: PlanJob) -> Token:
        if not (await self._ask("status")).get("worker_environment_exists"):
            await self._open_environment()
        return {"epoch": await self._own_lock()} if self._exclusive else {}

    async def _open_environment(self) -> None:
        """Open the environment where the settings say so; raise where it stays closed."""
        if not self._opens:
            raise PlanExecutorUnavailableError("The queueserver has no environment open; open it, and take this up again.")
        await self._ask("environment_open", await self._lock_key())
        for _ in range(OPEN_LOOKS):
            if _is_ready(await self._ask("status")):
                return
            await asyncio.sleep(LOOK_SECONDS)
        detail = "The queueserver was told to open its environment and did not; look there, and take this up again."
        raise PlanExecutorUnavailableError(detail)

    async def submit(self, job: PlanJob, fence: Fence = always_open) -> str:
        item = {"item_type": "plan", "name": job.plan, "kwargs": dict(job.params), "meta": {"baton": {"key": str(job.key)}}}
        request = {"item": item, "user": USER, "user_group": self._user_group, **_key(job.token)}
        try:
            answer = await self._ask("queue_item_execute", request, fence)
        except PlanExecutorSilentError as silent:
            return await self._after_silence(job, silent)
        if answer.get("success"):
            return str(answer["item"]["item_uid"])
        message = str(answer.get("msg", ""))[:500]
        if "timeout" in message.lower():
            return await self._after_silence(job, PlanExecutorSilentError(message))
        if any(word in message.lower() for word in BUSY_WORDS):
            raise PlanExecutorBusyError(f"The queueserver is busy: {message}")
        if any(word in message.lower() for word in CLOSED_WORDS):
            raise PlanExecutorUnavailableError(f"The queueserver has no environment open: {message}")
        raise PlanRejectedError(f"The queueserver refuses the plan: {message}")

    async def _after_silence(self, job: PlanJob, silent: Exception) -> str:
        """Return the item of a submission without an answer; raise where none was begun, or nobody can tell."""
        with suppress(PlanExecutorSilentError):
            match await self.find(job):
                case NotBegun():
                    raise PlanExecutorUnavailableError(f"The queueserver did not take the plan: {silent}")
                case str(item_uid):
                    return item_uid
        facts = {"key": str(job.key), "address": self._address}
        detail = "The queueserver did not answer whether it took the plan; look there for an item with this key."
        raise PlanOutcomeUnknown(detail, facts)

    async def find(self, job: PlanJob) -> str | NotBegun | None:
        if (found := await self._find(job)) is not None or not self._exclusive:
            return found
        epoch = await self._next_epoch(int(str(job.token.get("epoch", 0))))
        found = await self._find(job)  # what came before the lock changed is seen now, and what comes later is refused
        return found if found is not None else NotBegun({**job.token, "epoch": epoch})

    async def _find(self, job: PlanJob) -> str | None:
        for look in range(LOOKS):
            if look:
                await asyncio.sleep(LOOK_SECONDS)
            if _is_of(running := (await self._ask("queue_get")).get("running_item") or {}, job):
                return str(running["item_uid"])
            ended = (one for one in reversed((await self._ask("history_get")).get("items") or []) if _is_of(one, job))
            if (item := next(ended, None)) is not None:
                return str(item["item_uid"])
            if (await self._ask("status")).get("manager_state") == "idle" and look:
                return None
        return None

    async def state(self, job: PlanJob, job_id: str) -> PlanState:
        for look in range(LOOKS):
            if look:
                await asyncio.sleep(LOOK_SECONDS)
            status = await self._ask("status")
            if status.get("running_item_uid") == job_id:
                paused = status.get("manager_state") == "paused" and status.get("re_state") == "paused"
                return PlanState(phase=PlanPhase.PAUSED if paused else PlanPhase.RUNNING, facts=_facts(status))
            history = (await self._ask("history_get")).get("items") or []
            item = next((one for one in reversed(history) if one.get("item_uid") == job_id and _is_of(one, job)), None)
            if item is not None:
                return _end_state(item)
            if status.get("manager_state") in ("starting_queue", "executing_queue") and not status.get("running_item_uid"):
                return PlanState(phase=PlanPhase.RUNNING, facts=_facts(status))
        return PlanState(phase=PlanPhase.LOST, facts=_facts(status))

    async def pause(self, job: PlanJob, job_id: str) -> bool:
        return bool((await self._ask("re_pause", {"option": "deferred", **await self._lock_key()})).get("success"))

    async def resume(self, job: PlanJob, job_id: str) -> bool:
        return await self._is_ours(job_id) and bool((await self._ask("re_resume", await self._lock_key())).get("success"))

    async def stop(self, job: PlanJob, job_id: str) -> None:
        await self._end(job_id, "re_stop")

    async def abort(self, job: PlanJob, job_id: str, reason: str) -> None:
        await self._end(job_id, "re_abort")

    async def _end(self, job_id: str, method: str) -> None:
        """Pause the plan at once where it is not paused, and end it where it is."""
        status = await self._ask("status")
        if status.get("running_item_uid") != job_id:
            return
        if status.get("manager_state") == "paused":
            await self._ask(method, await self._lock_key())
        elif status.get("re_state") in ("running", "paused"):
            await self._ask("re_pause", {"option": "immediate", **await self._lock_key()})

    async def _is_ours(self, job_id: str) -> bool:
        return bool((await self._ask("status")).get("running_item_uid") == job_id)

    async def close(self) -> None:
        self._context.destroy(linger=0)

    async def _own_lock(self) -> int:
        """Return the epoch of the lock that the service holds, which it takes where nobody has it."""
        if (epoch := await self._held_epoch()) is not None:
            return epoch
        return await self._lock(time.time_ns())

    async def _held_epoch(self) -> int | None:
        """Return the epoch of the service's own lock; None where there is no lock. Raise where somebody else has it."""
        info = (await self._ask("lock_info")).get("lock_info") or {}
        if not (info.get("environment") or info.get("queue")):
            return None
        note = str(info.get("note") or "")
        if info.get("user") != USER or not note.startswith(NOTE):
            detail = f"{str(info.get('user'))[:100]} has locked the queueserver; have it unlocked, and take this up again."
            raise PlanExecutorBusyError(detail)
        return int(note.removeprefix(NOTE))

    async def _lock(self, epoch: int) -> int:
        wanted = {"lock_key": f"baton-{epoch}", "user": USER, "note": f"{NOTE}{epoch}", "environment": True, "queue": True}
        if not (answer := await self._ask("lock", wanted)).get("success"):
            raise PlanExecutorBusyError(f"The queueserver was not locked: {str(answer.get('msg', ''))[:300]}")
        return epoch

    async def _next_epoch(self, epoch: int) -> int:
        """Change the lock, so that a request of an earlier epoch is refused whenever it arrives."""
        held = await self._held_epoch()
        if held is not None and held > epoch:
            return held
        if held is not None:
            await self._ask("unlock", {"lock_key": f"baton-{held}"})
        return await self._lock(max(time.time_ns(), epoch + 1))

    async def _lock_key(self) -> dict[str, str]:
        """Return the key that requests need while the service holds the lock."""
        if not self._exclusive:
            return {}
        epoch = await self._held_epoch()
        return {} if epoch is None else {"lock_key": f"baton-{epoch}"}

    async def _ask(self, method: str, params: Mapping[str, Any] | None = None, fence: Fence = always_open) -> Answer:
        """Return the answer to one request, on a socket of its own, so that no late message follows it."""
        socket = self._context.socket(zmq.REQ)
        try:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.MAXMSGSIZE, MAX_ANSWER_BYTES)
            if self._public_key is not None:
                socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
                socket.curve_serverkey = self._public_key.encode()
            socket.connect(self._address)
            async with asyncio.timeout(REQUEST_SECONDS):
                message = json.dumps({"method": method, "params": dict(params or {})}).encode()
                fence()
                await socket.send(message)
                answer = json.loads(await socket.recv())
        except (TimeoutError, zmq.ZMQError, ValueError) as error:
            detail = f"{method} had no answer within {REQUEST_SECONDS:g} s"
            raise PlanExecutorSilentError(f"{detail} ({type(error).__name__})") from error
        finally:
            socket.close(linger=0)
        if not isinstance(answer, dict):
            raise PlanExecutorSilentError(f"{method} had an answer that is no object")
        return answer


def _is_ready(status: Answer) -> bool:
    """Return whether there is an environment that takes a plan."""
    return bool(status.get("worker_environment_exists") and status.get("manager_state") == "idle")


def _key(token: Token) -> dict[str, str]:
    return {"lock_key": f"baton-{token['epoch']}"} if "epoch" in token else {}


def _is_of(item: Mapping[str, Any], job: PlanJob) -> bool:
    """Return whether an item was submitted under the key of a job."""
    meta = item.get("meta")
    own = meta.get("baton") if isinstance(meta, Mapping) else None
    return isinstance(own, Mapping) and own.get("key") == str(job.key)


def _text(plan: Mapping[str, Any]) -> str | None:
    text = plan.get("description")
    return text if isinstance(text, str) else None


def _activity(status: Mapping[str, Any]) -> str:
    """Return what a manager says that it is doing."""
    item = status.get("running_item_uid")
    what = f"manager {status.get('manager_state')}, RunEngine {status.get('re_state')}"
    return f"{what}, item {item}" if item else what


def _facts(status: Mapping[str, Any]) -> dict[str, Any]:
    named = ("manager_state", "re_state", "running_item_uid", "worker_environment_exists")
    return {name: status.get(name) for name in named}


def _end_state(item: Mapping[str, Any]) -> PlanState:
    result = item.get("result") or {}
    uids = tuple(str(uid) for uid in result.get("run_uids") or ())
    end = ENDS.get(str(result.get("exit_status")), PlanEnd.UNKNOWN)
    message = str(result.get("msg") or "")
    return PlanState(
        phase=PlanPhase.ENDED, end=end, message=message, run_uids=uids, facts={"item_uid": item.get("item_uid")}
    )
