"""Bluesky plans carried out by a blueapi service, over its REST API: each as a task that is made, kept in the ledger, and
then begun, because a task is begun once."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx

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
from baton.infrastructure.plans.offers import offered_plan, schema_of_blueapi

API = "/api/v1"
INTERRUPTED = "RunEngineInterrupted"  # the error of a task that was paused, stopped or aborted alike
ATTEMPTS, ATTEMPT_SECONDS = 6, 1.0  # how often a task is begun while there is no answer to that
Body = Mapping[str, Any] | None
Answer = tuple[int, Any]


class Blueapi:
    """One blueapi service, by its base address."""

    def __init__(self, address: str, *, token: str | None = None, session: str | None = None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._session = session or "baton"
        self._client = httpx.AsyncClient(
            base_url=address.rstrip("/") + API,
            timeout=REQUEST_SECONDS,
            follow_redirects=False,
            headers=headers,
            trust_env=False,
        )
        self._version: str | None = None

    async def catalogue(self) -> ExecutorCatalogue:
        _, environment = await self._ask("GET", "/environment")
        _, plans = await self._ask("GET", "/plans")
        _, devices = await self._ask("GET", "/devices")
        _, worker = await self._ask("GET", "/worker/state")
        _, active = await self._ask("GET", "/worker/task")
        served = plans.get("plans", ()) if isinstance(plans, Mapping) else ()
        listed = devices.get("devices", ()) if isinstance(devices, Mapping) else ()
        return ExecutorCatalogue(
            version=self._version,
            environment=_environment_id(environment),
            plans={
                str(one["name"]): offered_plan(_text(one.get("description")), schema_of_blueapi(one.get("schema")), one)
                for one in served
            },
            devices=tuple(sorted(str(one.get("name")) for one in listed)),
            activity=_activity(worker, active),
        )

    async def describe_devices(self) -> dict[str, tuple[str, ...]]:
        """Return the protocols of each device; blueapi does not say its class."""
        _, answer = await self._ask("GET", "/devices")
        listed = answer.get("devices", ()) if isinstance(answer, Mapping) else ()
        return {str(one["name"]): tuple(str(each["name"]) for each in one.get("protocols", ())) for one in listed}

    async def prepare(self, job: PlanJob) -> Token:
        _, environment = await self._ask("GET", "/environment")
        if (environment_id := _environment_id(environment)) is None:
            raise PlanExecutorUnavailableError("blueapi has no environment; see that it runs, and take this up again.")
        task = {"name": job.plan, "params": dict(job.params), "instrument_session": self._session}
        status, answer = await self._ask("POST", "/tasks", task)
        if status != 201 or not isinstance(answer, Mapping):
            raise PlanRejectedError(f"blueapi refuses the plan: {_fault(answer)}")
        return {"task_id": str(answer["task_id"]), "environment_id": environment_id}

    async def submit(self, job: PlanJob, fence: Fence = always_open) -> str:
        task_id = str(job.token["task_id"])
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(ATTEMPT_SECONDS)
            with suppress(PlanExecutorSilentError):
                status, answer = await self._ask("PUT", "/worker/task", {"task_id": task_id}, fence)
                if status == 200 or await self._was_begun(task_id):
                    return task_id
                if status == 409 or await self._is_occupied():
                    await self._withdraw(job, task_id)
                    raise PlanExecutorBusyError(f"blueapi is busy: {_fault(answer)}; wait, and take this up again.")
        with suppress(PlanExecutorSilentError):
            if await self._was_begun(task_id):
                return task_id
        raise self._unknown(job, "blueapi did not answer whether it began the task")

    async def _is_occupied(self) -> bool:
        """Return whether the worker is at something; an idle one may be about to begin what it was asked for."""
        _, worker = await self._ask("GET", "/worker/state")
        return str(worker) != "IDLE"

    async def _was_begun(self, task_id: str) -> bool:
        """Return whether a task was begun, running or ended."""
        status, task = await self._ask("GET", f"/tasks/{task_id}")
        return status == 200 and isinstance(task, Mapping) and not task.get("is_pending", True)

    async def _withdraw(self, job: PlanJob, task_id: str) -> None:
        """Delete a task that was not begun, so that no late request begins it; raise where it may have been."""
        with suppress(PlanExecutorSilentError):
            status, _ = await self._ask("DELETE", f"/tasks/{task_id}")
            if status in (200, 404):
                return
        raise self._unknown(job, "blueapi did not answer whether the task was withdrawn")

    def _unknown(self, job: PlanJob, why: str) -> PlanOutcomeUnknown:
        return PlanOutcomeUnknown(f"{why}; look there for the task.", {"key": str(job.key), **job.token})

    async def find(self, job: PlanJob) -> str | NotBegun | None:
        task_id = str(job.token["task_id"])
        _, environment = await self._ask("GET", "/environment")
        status, task = await self._ask("GET", f"/tasks/{task_id}")
        if _environment_id(environment) != job.token["environment_id"] or status != 200 or not isinstance(task, Mapping):
            return None
        return NotBegun(job.token) if task.get("is_pending", False) and not task.get("is_complete") else task_id

    async def state(self, job: PlanJob, job_id: str) -> PlanState:
        if job_id != job.token.get("task_id"):
            return PlanState(phase=PlanPhase.LOST)
        _, environment = await self._ask("GET", "/environment")
        status, task = await self._ask("GET", f"/tasks/{job_id}")
        now = _environment_id(environment)
        facts = {"environment_then": job.token.get("environment_id"), "environment_now": now}
        if status != 200 or not isinstance(task, Mapping) or now != job.token.get("environment_id"):
            return PlanState(phase=PlanPhase.LOST, facts=facts)
        if not task.get("is_complete"):
            pending = task.get("is_pending", False)
            return PlanState(phase=PlanPhase.PENDING if pending else PlanPhase.RUNNING, facts=facts)
        outcome = task.get("outcome") or {}
        if outcome.get("outcome") == "success":
            uids = _uids(outcome.get("result"))
            return PlanState(
                phase=PlanPhase.ENDED, end=PlanEnd.COMPLETED, result=outcome.get("result"), run_uids=uids, facts=facts
            )
        message = f"{outcome.get('type', 'Error')}: {outcome.get('message', '')}"
        if outcome.get("type") != INTERRUPTED:
            end = PlanEnd.FAILED if outcome else PlanEnd.UNKNOWN
            return PlanState(phase=PlanPhase.ENDED, end=end, message=message, facts=facts)
        _, worker = await self._ask("GET", "/worker/state")
        if worker == "PAUSED":
            return PlanState(phase=PlanPhase.PAUSED, message=message, facts={**facts, "worker_state": worker})
        if worker in ("RUNNING", "STOPPING", "ABORTING", "HALTING", "PAUSING"):
            return PlanState(phase=PlanPhase.RUNNING, message=message, facts={**facts, "worker_state": worker})
        return PlanState(phase=PlanPhase.ENDED, end=PlanEnd.INTERRUPTED, message=message, facts=facts)

    async def pause(self, job: PlanJob, job_id: str) -> bool:
        return await self._change_state(job_id, {"new_state": "PAUSED", "defer": True})

    async def resume(self, job: PlanJob, job_id: str) -> bool:
        return await self._change_state(job_id, {"new_state": "RUNNING"})

    async def stop(self, job: PlanJob, job_id: str) -> None:
        await self._change_state(job_id, {"new_state": "STOPPING"})

    async def abort(self, job: PlanJob, job_id: str, reason: str) -> None:
        await self._change_state(job_id, {"new_state": "ABORTING", "reason": reason[:200]})

    async def _change_state(self, job_id: str, change: Mapping[str, Any]) -> bool:
        """Ask for another state of the worker, where it is at this task; return whether the request was taken."""
        _, active = await self._ask("GET", "/worker/task")
        if not isinstance(active, Mapping) or active.get("task_id") != job_id:
            return False
        status, _ = await self._ask("PUT", "/worker/state", change)
        return status < 400

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, fence: Fence = always_open
    ) -> Answer:
        """Return status and content of one answer, which is as large as it may be and comes in time."""
        content = None if body is None else json.dumps(body).encode()
        headers = {} if content is None else {"Content-Type": "application/json"}
        request = self._client.build_request(method, path, content=content, headers=headers)
        received = bytearray()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                fence()
                response = await self._client.send(request, stream=True)
                try:
                    async for chunk in response.aiter_bytes():
                        received += chunk
                        if len(received) > MAX_ANSWER_BYTES:
                            raise PlanExecutorSilentError(
                                f"{method} {path} had an answer of more than {MAX_ANSWER_BYTES} bytes"
                            )
                finally:
                    await response.aclose()
            self._version = response.headers.get("x-api-version", self._version)
            answer = json.loads(received) if received else None
        except (TimeoutError, httpx.HTTPError, ValueError) as error:
            raise PlanExecutorSilentError(f"{method} {path} had no answer ({type(error).__name__})") from error
        if response.status_code >= 502 or response.is_redirect:
            raise PlanExecutorSilentError(f"{method} {path} was answered with {response.status_code}")
        if response.status_code in (401, 403):
            raise PlanExecutorUnavailableError(
                f"blueapi does not let the service in: {response.status_code}; check its token."
            )
        return response.status_code, answer


def _environment_id(environment: object) -> str | None:
    """Return the id of an environment that is ready."""
    if not isinstance(environment, Mapping) or not environment.get("initialized"):
        return None
    return str(environment.get("environment_id"))


def _activity(worker: object, active: object) -> str:
    """Return what a service says that its worker is doing; an idle one still names its last task."""
    task = active.get("task_id") if isinstance(active, Mapping) and worker != "IDLE" else None
    return f"worker {str(worker)[:50]}, task {task}" if task else f"worker {str(worker)[:50]}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _uids(result: object) -> tuple[str, ...]:
    """Return the uids of runs where that is what a plan answers."""
    listed = result if isinstance(result, list) else [result]
    return tuple(one for one in listed if isinstance(one, str) and len(one) == 36 and one.count("-") == 4)


def _fault(answer: object) -> str:
    """Return what an answer says is wrong, shortened."""
    detail = answer.get("detail") if isinstance(answer, Mapping) else answer
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
        place = ".".join(map(str, detail[0].get("loc", ())))
        return f"{place}: {detail[0].get('msg', '')}"[:300]
    return str(detail)[:300]
