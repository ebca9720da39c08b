"""The gate of a RunEngine asks before every run, and holds a scan that is Held."""

import asyncio
import inspect
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton_bluesky.keys import run_id, timestamp_text
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api
from tests.support.waiting import until

pytestmark = pytest.mark.server
"""Bluesky is imported where it is used: it takes over a second."""


class Site:
    """A service with a beamline, and the account of a RunEngine there."""

    def __init__(self, api: Api, line: Beamline, account: str) -> None:
        self.api, self.line, self.account = api, line, account
        self.witness = api.acting_as(account)
        self.said: list[str] = []

    def gate(self, **options: Any) -> Any:
        from baton_bluesky.gate import BatonGate

        options = {"plan": self.line.plan_id, "tell": self.said.append, **options}
        return BatonGate(options.pop("address", self.api.base_url), **options)

    async def carry_out(self, plan: Any, gate: Any = None, **metadata: Any) -> Any:
        """Have a RunEngine carry out a plan in a thread, and return its documents; an exception passes."""
        from tests.support.witness.scans import make_engine

        engine, documents = make_engine()
        if gate is not None:
            engine.preprocessors.append(gate)
        await asyncio.to_thread(engine, plan, **metadata)
        return documents

    async def record(self, document: dict[str, Any]) -> str:
        """Record a run as its witness does."""
        began_at = datetime.fromtimestamp(document["time"], UTC).isoformat()
        said = {"document_uid": document["uid"], "plan_id": self.line.plan_id, "name": "steps", "began_at": began_at}
        answer = await self.witness.post("/runs/witness", {**said, "holdable": document["baton"]["holdable"]})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["run_id"])


@pytest.fixture(scope="module")
async def site(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Site]:
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            line = await beamline(api)
            account = await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"})
            os.environ["BATON_PRINCIPAL_ID"] = account
            yield Site(api, line, account)
            del os.environ["BATON_PRINCIPAL_ID"]


@pytest.fixture(autouse=True)
def nothing_said(site: Site) -> None:
    site.said.clear()


@contextmanager
def override(reason: str) -> Iterator[None]:
    os.environ["BATON_GATE_OVERRIDE"] = reason
    try:
        yield
    finally:
        del os.environ["BATON_GATE_OVERRIDE"]


def scan(num: int = 3, pause: float = 0.0, **metadata: Any) -> Any:
    from tests.support.witness.scans import Diode, steps

    return steps(Diode(), num, pause, **metadata)


async def items_named(api: Api, path: str, name: str) -> list[Any]:
    """Return what a list has of a name."""
    return list((await api.get(path, name=name)).json()["items"])


def starts(documents: Any) -> list[dict[str, Any]]:
    return [document for name, document in documents if name == "start"]


async def test_a_scan_that_passes_every_gate_begins_and_says_so(site: Site) -> None:
    documents = await site.carry_out(scan(), site.gate(), sample="Alloy bar 7")
    [start] = starts(documents)
    assert start["baton"]["holdable"] is True
    assert datetime.fromisoformat(start["baton"]["preflight_at"]).timestamp() == pytest.approx(start["time"], abs=60)
    assert {"enclosure_permitted", "subject_mounted", "parameters_valid"} <= set(start["baton"]["gates"])
    assert [name for name, _ in documents] == ["start", "descriptor", "event", "event", "event", "stop"]
    assert site.said == []


async def close_enclosure(site: Site) -> None:
    await site.line.observe("NotPermitted")


async def open_enclosure(site: Site) -> None:
    await site.line.observe("Permitted")


async def test_a_closed_gate_keeps_a_scan_from_beginning_and_leaves_no_document(site: Site) -> None:
    from baton_bluesky.gate import BatonGateClosed

    documents: list[Any] = []
    await close_enclosure(site)
    try:
        with pytest.raises(BatonGateClosed) as closed:
            documents = await site.carry_out(scan(), site.gate())
    finally:
        await open_enclosure(site)
    assert closed.value.reasons == ("no_enclosure_permitted",)
    assert "Imaging hutch" in str(closed.value)
    assert documents == []


async def test_arguments_that_the_method_knows_are_judged(site: Site) -> None:
    from baton_bluesky.gate import BatonGateClosed

    with pytest.raises(BatonGateClosed) as closed:
        await site.carry_out(scan(plan_args={"exposure": -4, "detectors": ["<Diode>"]}), site.gate())
    assert len(closed.value.sentences) == 1
    assert "exposure" in str(closed.value)


async def test_a_subject_that_is_not_mounted_keeps_a_scan_from_beginning(site: Site) -> None:
    from baton_bluesky.gate import BatonGateClosed

    await site.api.create("/subjects", {"name": "Foil 9"})
    await until(lambda: items_named(site.api, "/subjects", "Foil 9"))
    with pytest.raises(BatonGateClosed) as closed:
        await site.carry_out(scan(), site.gate(), sample="Foil 9")
    assert closed.value.reasons == ("subject_not_mounted",)


async def test_a_gate_that_waits_begins_the_scan_when_it_opens(site: Site) -> None:
    await close_enclosure(site)
    carried_out = asyncio.create_task(site.carry_out(scan(), site.gate(wait=True)))
    await until(lambda: site.said, 30)
    await open_enclosure(site)
    assert len(starts(await carried_out)) == 1
    assert len(site.said) == 1, "the sentence is said once"


async def test_an_override_lets_everything_pass_and_its_reason_is_in_the_start_document(site: Site) -> None:
    await close_enclosure(site)
    try:
        with override("commissioning of the stage"):
            [start] = starts(await site.carry_out(scan(), site.gate()))
    finally:
        await open_enclosure(site)
    assert start["baton"] == {"gates": None, "override_reason": "commissioning of the stage", "holdable": False}


async def test_a_service_that_is_away_refuses_a_scan_unless_it_is_allowed(site: Site) -> None:
    from baton_bluesky.gate import BatonGateClosed

    away = "http://127.0.0.1:9"
    with pytest.raises(BatonGateClosed) as closed:
        await site.carry_out(scan(), site.gate(address=away))
    assert closed.value.reasons == ("unreachable",)
    [start] = starts(await site.carry_out(scan(), site.gate(address=away, on_unreachable="allow")))
    assert start["baton"]["gates"] is None


async def test_a_plan_of_the_service_that_is_not_there_is_named_in_the_refusal(site: Site) -> None:
    from baton_bluesky.gate import BatonGateClosed

    with pytest.raises(BatonGateClosed, match="Nobody's plan"):
        await site.carry_out(scan(), site.gate(plan="Nobody's plan"))


async def held_scan(site: Site, plan: Any, gate: Any) -> Any:
    """Hold a scan's run once it is on record, see that it waits, resume it, and return its documents."""
    from tests.support.witness.scans import make_engine

    engine, documents = make_engine()
    engine.preprocessors.append(gate)
    states: list[str] = []
    engine.state_hook = lambda new, old: states.append(str(new))
    done = threading.Event()

    def carry_out() -> None:
        try:
            engine(plan)
        finally:
            done.set()

    thread = threading.Thread(target=carry_out, daemon=True)
    thread.start()
    await until(lambda: starts(documents), 30)
    run_id = await site.record(starts(documents)[0])
    await site.api.execute(f"/runs/{run_id}/hold", {"reason": "the beam is weak"})
    await until(lambda: any("the beam is weak" in said for said in site.said) or "suspending" in states, 30)
    held_at = time.time()
    await until(lambda: time.time() - held_at > 0.5)
    assert not done.is_set()
    resumed_at = time.time()
    await site.api.execute(f"/runs/{run_id}/resume", {})
    await until(done.is_set, 60)
    times = [document["time"] for name, document in documents if name == "event"]
    assert not [at for at in times if held_at + 0.1 < at < resumed_at], "nothing is measured while the run is Held"
    return documents, states


async def test_a_held_scan_waits_at_its_next_checkpoint_and_ends_as_a_success(site: Site) -> None:
    documents, states = await held_scan(site, scan(60, 0.05), site.gate())
    stop = documents[-1][1]
    assert (stop["exit_status"], stop["num_events"]) == ("success", {"primary": 60})
    assert set(states) == {"running", "idle"}
    assert site.said[-1] == "The run continues."


async def test_a_scan_that_is_held_now_is_suspended_behind_a_checkpoint(site: Site) -> None:
    documents, states = await held_scan(site, scan(4, 1.0), site.gate(hold="now"))
    stop = documents[-1][1]
    assert stop["exit_status"] == "success"
    assert "suspending" in states


async def test_a_scan_that_is_aborted_while_it_is_held_ends_at_once(site: Site) -> None:
    from bluesky.utils import RunEngineInterrupted

    from tests.support.witness.scans import make_engine

    engine, documents = make_engine()
    engine.preprocessors.append(site.gate())
    carried_out = asyncio.create_task(asyncio.to_thread(engine, scan(500, 0.02)))
    await until(lambda: starts(documents), 30)
    run_id = await site.record(starts(documents)[0])
    await site.api.execute(f"/runs/{run_id}/hold", {"reason": "look at the sample"})
    await until(lambda: site.said, 30)
    await asyncio.to_thread(engine.abort, "enough")
    with pytest.raises(RunEngineInterrupted):
        await carried_out
    assert documents[-1][1]["exit_status"] == "abort"


async def test_each_of_several_runs_in_a_plan_is_asked_for_and_held_by_itself(site: Site) -> None:
    from bluesky import plan_stubs

    async def carry_out_both() -> Any:
        return await site.carry_out(two_runs(), site.gate())

    def two_runs() -> Any:
        from bluesky.preprocessors import set_run_key_wrapper

        for key in ("outer", "inner"):
            yield from set_run_key_wrapper(plan_stubs.open_run({"plan_name": key}), key)
        yield from plan_stubs.checkpoint()
        for key in ("inner", "outer"):
            yield from set_run_key_wrapper(plan_stubs.close_run(), key)

    both = starts(await carry_out_both())
    assert [start["plan_name"] for start in both] == ["outer", "inner"]
    assert all(start["baton"]["holdable"] for start in both)
    assert site.said == []


async def test_what_the_caller_of_a_run_engine_noted_stands_beside_what_the_gate_notes(site: Site) -> None:
    [start] = starts(await site.carry_out(scan(), site.gate(), baton={"key": "conduct 7"}))
    assert (start["baton"]["key"], start["baton"]["holdable"]) == ("conduct 7", True)


async def test_a_gated_plan_asks_once_also_behind_a_preprocessor(site: Site) -> None:
    gate = site.gate()

    @gate.gated
    def wide(exposure: float) -> Any:
        """Scan widely.

        Twice as wide as a scan.
        """
        return (yield from scan())

    assert wide.__doc__ == "Scan widely.\nBaton: gated\n\nTwice as wide as a scan."
    assert wide.__annotations__ == {"exposure": float, "return": Any}
    assert inspect.isgeneratorfunction(wide)
    [start] = starts(await site.carry_out(wide(0.2), gate))
    assert "parameters_valid" in start["baton"]["gates"]
    from baton_bluesky.gate import BatonGateClosed

    with pytest.raises(BatonGateClosed, match="exposure"):
        await site.carry_out(wide(-1))


async def test_a_plan_that_nobody_carries_out_is_looked_at_without_asking(site: Site) -> None:
    gate = site.gate(address="http://127.0.0.1:9")
    commands = [message.command for message in gate(scan())]
    assert commands.index("wait_for") < commands.index("open_run")
    assert commands[-1] == "close_run"


async def test_a_run_that_the_account_may_not_ask_for_is_not_holdable(site: Site) -> None:
    from baton_bluesky.preflight import Passed, RunPreflight, RunQuestion
    from baton_bluesky.service import BatonService, HttpAnswer

    class BlindService(BatonService):
        """A service that lets the account ask for no run."""

        def get(self, path: str, **parameters: str) -> HttpAnswer:
            return HttpAnswer(403, {}) if path.startswith("/runs/") else super().get(path, **parameters)

    question = RunQuestion("steps", {}, None)
    preflight = RunPreflight(BlindService(site.api.base_url), site.line.plan_id)
    verdict = await asyncio.to_thread(preflight.ask, question)
    assert isinstance(verdict, Passed)
    assert not verdict.tells_holds


class Line:
    """A line to the service that can be cut, whatever is under way."""

    def __init__(self, port: int) -> None:
        self.port, self.is_cut = port, False
        self._writers: set[asyncio.StreamWriter] = set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bring a connection to the service, unless the line is cut."""
        if self.is_cut:
            writer.close()
            return
        back, forth = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers |= {writer, forth}
        await asyncio.gather(self._copy(reader, forth), self._copy(back, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except OSError:
            return
        finally:
            writer.close()

    def cut(self) -> None:
        """Cut it, and every connection over it."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@asynccontextmanager
async def line_to(site: Site) -> AsyncIterator[tuple[Line, str]]:
    """A line to the service, and the address at its other end."""
    line = Line(int(site.api.base_url.rpartition(":")[2]))
    async with await asyncio.start_server(line.connect, "127.0.0.1", 0) as server:
        yield line, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        line.cut()


async def test_a_service_that_goes_away_stops_no_scan_and_is_asked_again_when_it_is_back(site: Site) -> None:
    from baton_bluesky.gate import BatonGateClosed
    from tests.support.witness.scans import make_engine

    async with line_to(site) as (line, address):
        engine, documents = make_engine()
        gate = site.gate(address=address)
        engine.preprocessors.append(gate)
        carried_out = asyncio.create_task(asyncio.to_thread(engine, scan(50, 0.1)))
        await until(lambda: starts(documents), 30)
        line.cut()
        await until(lambda: site.said, 30)
        assert "does not say whether" in site.said[0]
        await carried_out
        assert documents[-1][1]["exit_status"] == "success"
        assert len(documents) == 53
        with pytest.raises(BatonGateClosed):
            await site.carry_out(scan(), gate)
        line.is_cut = False
        assert len(starts(await site.carry_out(scan(), gate))) == 1


async def test_a_hold_stays_in_force_when_the_service_goes_away_until_it_says_otherwise(site: Site) -> None:
    from tests.support.witness.scans import make_engine

    async with line_to(site) as (line, address):
        engine, documents = make_engine()
        engine.preprocessors.append(site.gate(address=address))
        carried_out = asyncio.create_task(asyncio.to_thread(engine, scan(20, 0.1)))
        await until(lambda: starts(documents), 30)
        run_id = await site.record(starts(documents)[0])
        await site.api.execute(f"/runs/{run_id}/hold", {"reason": "the sample moved"})
        await until(lambda: any("the sample moved" in said for said in site.said), 30)
        line.cut()
        await until(lambda: any("does not say whether" in said for said in site.said), 30)
        assert not carried_out.done(), "nothing resumes by itself"
        await site.api.execute(f"/runs/{run_id}/resume", {})
        line.is_cut = False
        await carried_out
        assert documents[-1][1]["exit_status"] == "success"


async def test_a_gated_scan_that_is_witnessed_is_on_record_as_holdable_and_past_its_gates(
    site: Site, tmp_path: Path
) -> None:
    from baton_bluesky import BatonGate, BatonWitness
    from tests.support.witness.scans import make_engine

    witness = BatonWitness(site.api.base_url, site.line.plan_id, journal=tmp_path)
    gate = BatonGate.beside(witness, tell=site.said.append)

    async def carry_out() -> dict[str, Any]:
        """Carry a scan out and return its run, once it is over."""
        engine, documents = make_engine()
        engine.subscribe(witness)
        engine.preprocessors.append(gate)
        await asyncio.to_thread(engine, scan())

        async def over() -> Any:
            id = run_id(starts(documents)[0]["uid"], timestamp_text(starts(documents)[0]["time"]))
            view = (await site.api.get(f"/runs/{id}")).json()
            return view if view.get("status") == "Completed" else None

        return dict(await until(over, 60))

    assert (await carry_out())["witness"]["holdable"] is True
    with override("commissioning of the stage"):
        run = await carry_out()
    assert run["witness"]["holdable"] is False
    [began] = (await site.api.get(f"/runs/{run['run_id']}/history", limit=1)).json()["items"]
    assert began["payload"]["override_reason"] == "commissioning of the stage"
    waiting = (await site.api.get("/waiting", kind="witnessed_past_gate")).json()["items"]
    assert "commissioning of the stage" in next(item["why"] for item in waiting if item["id"] == run["run_id"])
