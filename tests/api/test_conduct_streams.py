"""The stream of a conduct: every reader gets each frame once, however often it comes back."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Any
from uuid import UUID, uuid4

from baton.api.http import Request
from baton.api.streams import ConductStream, OpenStreams, StreamIntervals
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from tests.support.api.callers import open_service_callers
from tests.support.api.conduct_streams import ConductFrame, briefs, open_conduct_stream, read_conduct_stream
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, Issuer
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, check, criterion, setpoint, steered_value


async def read_frames(conduct_service: ConductService, procedure_id: UUID, conduct_id: UUID) -> list[ConductFrame]:
    """Return every frame of a conduct."""
    return await read_conduct_stream(conduct_service.operator, procedure_id, f"{conduct_id}:0")


async def test_a_reader_from_the_beginning_sees_it_whole(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
        first = await reader.next_frame()
        assert (first.event, first.id, first.data["conduct_id"]) == ("snapshot", None, None)
        steps = [setpoint("a", 3), check("a", 3), capture("b", "n")]
        conduct_id = await conduct_service.conduct(procedure_id, steps=steps)
        seen = await reader.rest()
    assert briefs(seen) == ["0 started", "0 ok", "1 ok", "2 ok", "ended"]
    assert all(one.id == f"{conduct_id}:{one.ordinal}" for one in seen)
    captured = next(one.data for one in seen if one.brief == "2 ok")
    assert (captured["kind"], captured["target"], captured["capture_name"], captured["captured_value"]) == (
        "capture",
        "b",
        "n",
        1.5,
    )
    assert seen[-1].data["result"] == await conduct_service.result(conduct_id)


async def test_a_reader_that_joins_gets_a_snapshot_and_goes_on_from_there(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 1), PAUSE, setpoint("a", 2))
    await conduct_service.pauses.wait_until_reached()
    async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
        snapshot, begun = await reader.next_frame(), await reader.next_frame()
        shown = (await conduct_service.operator.get(f"/procedures/{procedure_id}/conduct")).json()
        differing = {"silence", "heartbeat_at", "estimate"}
        assert {key: value for key, value in snapshot.data.items() if key not in differing} == {
            key: value for key, value in shown.items() if key not in differing
        }
        assert (snapshot.data["step_index"], begun.brief) == (1, "1 started")
        conduct_service.pauses.end()
        assert briefs(await reader.rest()) == ["1 ok", "2 started", "2 ok", "ended"]
    late = await read_conduct_stream(conduct_service.operator, procedure_id)
    assert [one.event for one in late] == ["snapshot", "ended"]
    assert late[0].data["result"] == late[1].data["result"] == await conduct_service.result(conduct_id)


async def test_a_reader_may_come_back_behind_every_frame_and_misses_and_hears_nothing_twice(
    conduct_service: ConductService,
) -> None:
    steps = [setpoint("a", 3), check("a", 4), setpoint("a", 5)]
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps)
    await conduct_service.result(conduct_id)
    whole = [one for one in await read_frames(conduct_service, procedure_id, conduct_id) if one.event != "snapshot"]
    assert briefs(whole) == ["0 started", "0 ok", "1 failed", "ended"]
    assert (whole[2].data["error_class"], whole[2].data["target"]) == ("CheckFailedError", "a")
    for index, last in enumerate(whole[:-1]):
        again = await read_conduct_stream(conduct_service.operator, procedure_id, last.id)
        assert [one for one in again if one.event != "snapshot"] == whole[index + 1 :]


async def test_readers_that_come_and_go_while_it_is_conducted_are_told_the_same(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_from_recipe(
        [setpoint("a", index) for index in range(25)], [setpoint("c", 0)]
    )

    async def read_in_visits(patience: int) -> list[ConductFrame]:
        seen: list[ConductFrame] = []
        last = None
        while not seen or seen[-1].event != "ended":
            async with open_conduct_stream(conduct_service.operator, procedure_id, last) as reader:
                for _ in range(patience):
                    one = await reader.next_frame()
                    last = one.id or last
                    if one.event != "snapshot":
                        seen.append(one)
                    if one.event == "ended":
                        break
        return seen

    reading = [asyncio.create_task(read_in_visits(patience)) for patience in (2, 3, 7)]
    conduct_id = await conduct_service.conduct(procedure_id)
    whole = [one for one in await read_frames(conduct_service, procedure_id, conduct_id) if one.event != "snapshot"]
    assert len(whole) == 2 * 26 + 1
    assert whole[-2].brief == "closing 0 ok"
    for seen in await asyncio.gather(*reading):
        assert seen == whole


async def test_a_loop_tells_its_passes_with_what_they_measured(conduct_service: ConductService) -> None:
    steps = [setpoint("c", 1), capture("b", "offset")]
    loop = {"convergence_capture_name": "offset", "criterion": criterion(9, 0.1)}
    fields = {"max_consecutive_unconverged_iterations": 2}
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps, how="converge", **loop, **fields)
    await conduct_service.result(conduct_id)
    whole = await read_frames(conduct_service, procedure_id, conduct_id)
    passes = [
        [f"pass {index} started", f"{index}.0 started", f"{index}.0 ok", f"{index}.1 ok", f"pass {index} ended"]
        for index in (1, 2)
    ]
    assert briefs(whole) == [*passes[0], *passes[1], "ended"]
    ends = [one.data for one in whole if one.event == "iteration" and one.data["state"] == "ended"]
    assert [(end["converged"], end["measurement"]) for end in ends] == [
        (False, {"name": "offset", "value": 1.5, "iteration_index": index}) for index in (1, 2)
    ]
    halfway = next(one for one in whole if one.brief == "pass 2 started")
    assert briefs(await read_conduct_stream(conduct_service.operator, procedure_id, halfway.id)) == [*passes[1][1:], "ended"]


SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": -2, "upper": 2}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "caller", "advice_timeout": 60},
}


async def test_a_search_that_waits_for_advice_says_so_at_once(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_from_recipe(
        [setpoint("a", steered_value("focus")), capture("b", "sharpness")]
    )
    async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
        conduct_id = await conduct_service.conduct(procedure_id, "steering/conduct", **SEARCH)
        while (snapshot := await reader.next_frame()).data.get("waiting_for") != "advice":
            pass
        assert (snapshot.event, snapshot.data["message"]) == (
            "snapshot",
            "iteration 1, waiting for advice, sharpness 1.5 in iteration 1",
        )
        advice = {"iteration_index": 1, "advice": {"verdict": "Stop", "rationale": "Sharp enough."}}
        assert (
            await conduct_service.operator.post(f"/procedures/{procedure_id}/steering/advise", advice)
        ).status_code == 204
        rest = await reader.rest()
    (end,) = [one.data for one in rest if one.brief == "pass 1 ended"]
    assert (end["advised_stop"], end["measurement"]["value"]) == (True, 1.5)
    begun = next(
        one.data for one in await read_frames(conduct_service, procedure_id, conduct_id) if one.brief == "pass 1 started"
    )
    assert begun["point"] == {"focus": -2}
    assert rest[-1].event == "ended"


async def test_a_hold_is_told_when_it_is_asked_for_and_when_it_is_there(conduct_service: ConductService) -> None:
    procedure_id, first = await conduct_service.start_conduct(PAUSE, setpoint("a", 1))
    await conduct_service.pauses.wait_until_reached()
    async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
        await reader.until("0 started")
        await conduct_service.operator.post(f"/procedures/{procedure_id}/hold", {"reason": "lunch"})
        asked = await reader.next_frame()
        assert (asked.event, asked.data["pending_request"]) == ("snapshot", "Hold")
        pending = asked.data["pending"]
        assert pending["step"] == {"step_index": 0, "closing": False, "kind": "action", "label": "do pause"}
        assert pending["since"] < pending["until"]
        conduct_service.pauses.end()
        rest = await reader.rest()
    assert briefs(rest) == ["0 ok", "held"]
    assert rest[-1].data["result"]["held"]

    gone = await conduct_service.operator.request(
        "GET", f"/procedures/{procedure_id}/conduct/stream", headers={"Last-Event-ID": rest[-1].id}
    )
    assert gone.status_code == 204, "there is nothing to come"
    second = await conduct_service.conduct(procedure_id, "reconduct", re_establishment_boundary=1)
    after = await read_conduct_stream(conduct_service.operator, procedure_id, rest[-1].id)
    assert briefs(after) == ["1 started", "1 ok", "ended"]
    assert {one.id.partition(":")[0] for one in after if one.id} == {str(second)}
    missed = await read_conduct_stream(conduct_service.operator, procedure_id, f"{first}:0")
    assert briefs(missed) == ["0 started", "0 ok", "held"]


async def test_an_acquisition_that_must_not_be_repeated_ends_in_a_halt(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(PAUSE, setpoint("nowhere", 1), how="conduct-or-hold")
    await conduct_service.pauses.wait_until_reached()
    conduct_service.pauses.end()
    assert (await conduct_service.result(conduct_id))["held"]
    again = await conduct_service.conduct(procedure_id, "reconduct", re_establishment_boundary=0)
    assert briefs(await read_frames(conduct_service, procedure_id, again)) == ["halted"]


async def test_a_worker_that_falls_silent_is_told_without_being_asked_for(conduct_service: ConductService) -> None:
    await conduct_service.stack.stop_worker()
    try:
        procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 1))
        async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
            assert (await reader.next_frame()).data["worker"] == "awaited"
            await conduct_service.mark_walking(procedure_id, conduct_id)
            assert (await reader.next_frame()).data["worker"] == "heard"
            await conduct_service.age_heartbeat(procedure_id, seconds=12)
            lost = (await reader.next_frame()).data
    finally:
        await conduct_service.stack.start_worker()
    assert (lost["worker"], 12 <= lost["silence"] < 30) == ("lost", True)
    assert lost["message"].endswith(f"worker lost {lost['silence']:.0f} s ago")


async def test_a_look_that_finds_nothing_new_is_one_question(conduct_service: ConductService) -> None:
    procedure_id, _ = await conduct_service.start_conduct(PAUSE)
    await conduct_service.pauses.wait_until_reached()
    async with Runtime(conduct_service.stack.runtime.settings) as beside:
        watch = await beside.conduct_feed.latest(procedure_id)
        assert watch is not None
        assert len(await beside.conduct_feed.poll(watch, conduct_service.stack.caller)) == 2
        asked = beside.pool.get_stats()["requests_num"]
        assert await beside.conduct_feed.poll(watch, conduct_service.stack.caller) == []
        assert beside.pool.get_stats()["requests_num"] - asked == 1
    conduct_service.pauses.end()


SHORT_INTERVALS = StreamIntervals(shortest=0.01, longest=0.01, unopened=0.01, comment=0.05, sight=0.02)


async def open_frames(
    stream: ConductStream, procedure_id: UUID, caller: Caller, stopping: asyncio.Event | None = None
) -> AsyncGenerator[bytes, None]:
    """Return what a stream sends to a reader that stays."""
    never = asyncio.Event()

    async def receive() -> Any:
        await never.wait()

    scope = {"headers": [], "query_string": b""}
    request = Request(scope, receive, {"procedure_id": str(procedure_id)}, 0, stopping or asyncio.Event())
    answer = await stream(request, caller)
    assert isinstance(answer.stream, AsyncGenerator)
    return answer.stream


async def test_a_silent_stream_says_that_it_is_still_there(conduct_service: ConductService) -> None:
    runtime = conduct_service.stack.runtime
    stream = ConductStream(runtime.conduct_feed, runtime.service, runtime.listener, OpenStreams(200, 8), SHORT_INTERVALS)
    async with aclosing(
        await open_frames(stream, await conduct_service.stack.register_procedure(), conduct_service.stack.caller)
    ) as frames:
        async with asyncio.timeout(60):
            parts = [await anext(frames) for _ in range(3)]
    assert parts[1:] == [b": still here\n\n"] * 2


async def test_a_stream_ends_at_once_when_the_server_stops(conduct_service: ConductService) -> None:
    runtime, stopping = conduct_service.stack.runtime, asyncio.Event()
    patient = StreamIntervals(shortest=600, longest=600, unopened=600)
    stream = ConductStream(runtime.conduct_feed, runtime.service, runtime.listener, OpenStreams(200, 8), patient)
    unopened = await conduct_service.stack.register_procedure()
    conducted, _ = await conduct_service.start_conduct(setpoint("a", 1), PAUSE)
    await conduct_service.pauses.wait_until_reached()
    for procedure_id in (unopened, conducted):
        frames = await open_frames(stream, procedure_id, conduct_service.stack.caller, stopping)
        assert await anext(frames)
        rest = asyncio.create_task(read_to_end(frames))
        stopping.set()
        async with asyncio.timeout(60):
            await rest
    conduct_service.pauses.end()


async def read_to_end(frames: AsyncGenerator[bytes, None]) -> None:
    async for _ in frames:
        continue


async def test_readers_that_stop_reading_hold_back_nobody(conduct_service: ConductService) -> None:
    """There are more of them than connections to the database, each stuck in the middle of the stream."""
    runtime = conduct_service.stack.runtime
    stream = ConductStream(runtime.conduct_feed, runtime.service, runtime.listener, OpenStreams(200, 8), SHORT_INTERVALS)
    procedure_id, conduct_id = await conduct_service.start_conduct(*[setpoint("a", index) for index in range(20)], PAUSE)
    await conduct_service.pauses.wait_until_reached()
    async with AsyncExitStack() as stuck:
        for _ in range(runtime.pool.max_size + 4):
            frames = await stuck.enter_async_context(
                aclosing(await open_frames(stream, procedure_id, conduct_service.stack.caller))
            )
            await anext(frames)
        conduct_service.pauses.end()
        assert len(briefs(await read_frames(conduct_service, procedure_id, conduct_id))) == 2 * 21 + 1


async def test_a_reader_that_leaves_leaves_nothing_behind(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
        await reader.next_frame()
        assert waiting_for_readers()
    await until(lambda: not waiting_for_readers())


def waiting_for_readers() -> list[str]:
    """The tasks of this process's service that watch whether a reader is still there."""
    return [task.get_name() for task in asyncio.all_tasks() if "Request.wait_for_disconnect" in repr(task.get_coro())]


async def test_a_mark_that_nobody_handed_out_is_malformed(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct()
    await conduct_service.result(conduct_id)
    path, other = f"/procedures/{procedure_id}/conduct/stream", uuid4()
    foreign = ["seven", "7", ":", "x:1", f"{other}", f"{other}:1"]
    for mark in (*foreign, f"{conduct_id}", f"{conduct_id}:", f"{conduct_id}:-1", f"{conduct_id}:4294967296"):
        refused = await conduct_service.operator.request("GET", path, headers={"Last-Event-ID": mark})
        assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["header", "Last-Event-ID"]), mark


async def test_there_is_no_stream_of_a_procedure_that_is_not_there(conduct_service: ConductService) -> None:
    missing = await conduct_service.operator.get(f"/procedures/{uuid4()}/conduct/stream")
    assert (missing.status_code, missing.json()["code"]) == (404, "ProcedureNotFoundError")


async def test_a_procedure_that_can_be_conducted_no_more_has_nothing_to_wait_for(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    for verb in ("start", "complete"):
        await conduct_service.operator.execute(f"/procedures/{procedure_id}/{verb}")
    (only,) = await read_conduct_stream(conduct_service.operator, procedure_id)
    assert (only.event, only.data["conduct_id"], only.data["status"]) == ("snapshot", None, "Completed")


async def test_the_stream_needs_a_permission_of_its_own_and_ends_when_that_is_withdrawn(database_url: str) -> None:
    admin_id, reader_id = uuid4(), uuid4()
    enforced: dict[str, Any] = {"authorization_mode": "policy", "bootstrap_principal_id": str(admin_id)}
    async with running_api(database_url, projecting=False, **enforced) as api:
        admin, person = api.acting_as(admin_id), api.acting_as(reader_id)
        await permit(admin, admin_id, "RegisterProcedure")
        procedure_id = await admin.create("/procedures", {"name": "Align", "kind": "alignment"})
        path = f"/procedures/{procedure_id}/conduct/stream"
        await permit(admin, reader_id, "GetProcedure", "GetProcedureConduct")
        assert (await person.get(path)).status_code == 403
        policy_id = await permit(admin, reader_id, "StreamProcedureConduct")
        async with Runtime(Settings(database_url=database_url, app_env="test", **enforced)) as runtime:
            stream = ConductStream(
                runtime.conduct_feed, runtime.service, runtime.listener, OpenStreams(200, 8), SHORT_INTERVALS
            )
            frames = await open_frames(stream, UUID(procedure_id), Caller(reader_id, UUID(SYSTEM_HTTP), uuid4()))
            assert b"event: snapshot" in await anext(frames)
            revoked = {"permitted_principal_id": str(reader_id), "reason": "over"}
            await admin.execute(f"/policies/{policy_id}/revoke-grant", revoked)
            async with asyncio.timeout(60):
                assert [part async for part in frames if not part.startswith(b":")] == []


async def permit(admin: Api, person: UUID, *commands: str) -> str:
    grant = {"name": "Grant", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    what = {"permitted_commands": list(commands), "permitted_principal_ids": [str(person)]}
    return await admin.create("/policies", {**grant, **what})


async def test_a_stream_ends_with_its_token(database_url: str, issuer: Issuer) -> None:
    async with open_service_callers(database_url, issuer) as callers:
        procedure_id = await callers.operator.create("/procedures", {"name": "Align", "kind": "alignment"})
        token = issuer.token("operator", audience=HTTP_AUDIENCE, exp=int(time.time()) + 5)
        brief = callers.api.with_token(token)
        async with open_conduct_stream(brief, UUID(procedure_id)) as reader:
            assert [one.event for one in await reader.rest()] == ["snapshot"]
