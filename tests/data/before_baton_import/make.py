"""Make a data directory with work under way in it, and pack it beside this file.

It was run at commit eba2e79, before the service's packages moved below `baton`; at the root of that checkout:

    PYTHONPATH=. .venv/bin/python <this file>
"""

import asyncio
import json
import lzma
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psycopg

from tests.api.beamline import Beamline, beamline
from tests.api.stocking import stocked
from tests.e2e.stack import Stack
from tests.running import Api
from tests.waiting import until
from tests.workflows.steps import PROGRAMS, capture, check, setpoint, steered

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from directory_packing import pack, settle_postgres, settle_temporal  # noqa: E402

OPERATIONS = json.loads(Path("tests", "data", "operations.json").read_text())
JOURNAL = "plant.jsonl"
"""What was done to the simulated plant, in the data directory itself."""
WHOLE = ("/reactions", "/affordances")
"""Lists that have no pages."""
OFTEN, SELDOM = 10, 6 * 3600
"""Seconds between two firings. The engine counts every firing that an active schedule has missed, so it must be seldom:
this directory is opened years after it was made."""
ANGLES = [20.0 * number for number in range(1, 23)]
QUICK, SLOW = 50.0, 1.0
"""Velocities: a quick axis takes 0.4 s for one angle, the slow one 25 s for its only move."""
SLOW_TARGET = 25.0
AXES = ("scan", "held", "darks", "tomo", "theta", "focus")
PLANT: dict[str, Any] = {
    "SIMULATED_DEVICES": [
        *({"kind": "motor", "address": f"bl7:{name}", "velocity": QUICK} for name in AXES),
        {"kind": "motor", "address": "bl7:slow", "velocity": SLOW},
        {"kind": "peak", "address": "bl7:sharpness", "centres": {"bl7:focus.RBV": 1.2}, "width": 1.5, "height": 100},
    ],
    "SIMULATED_SIGNALS": {"SR:CURRENT": 100.0, "bl7:door": 0, "bl7:lamp": 1},
    "COMPUTE_PROGRAMS": PROGRAMS,
}
SETTINGS = {"PID_MINTER": "development", **{name: json.dumps(value) for name, value in PLANT.items()}}
SEARCH: dict[str, Any] = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": -5, "upper": 5}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "caller", "advice_timeout": 120},
}
DARK = [setpoint("bl7:lamp", 0)]


def scan(axis: str, angles: list[float]) -> list[dict[str, Any]]:
    """Moves of one axis, one after the other."""
    return [setpoint(f"bl7:{axis}", angle) for angle in angles]


async def read(api: Api, path: str, **parameters: Any) -> Any:
    """What a question that must succeed is answered."""
    answer = await api.get(path, **parameters)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer.json()


async def rows(api: Api, path: str, **parameters: Any) -> list[dict[str, Any]]:
    """Every row of a list."""
    found: list[dict[str, Any]] = []
    paging: dict[str, Any] = {} if path in WHOLE else {"limit": 100}
    while True:
        page = await read(api, path, **parameters, **paging)
        found += page["items"]
        if page.get("next_cursor") is None:
            return found
        paging["cursor"] = page["next_cursor"]


async def ask(api: Api, path: str, body: dict[str, Any]) -> None:
    """Ask for something that may be still to come."""
    answer = await api.post(path, body)
    assert answer.status_code in (200, 202, 204), f"{path}: {answer.text}"


async def stands(api: Api, path: str, **expected: Any) -> bool:
    """Whether something is shown with these values."""
    shown = await read(api, path)
    return all(shown[name] == value for name, value in expected.items())


async def gone_on(api: Api, procedure_id: str, step_index: int) -> bool:
    """Whether a conduct has come to a step; it must not have ended."""
    view = await read(api, f"/procedures/{procedure_id}/conduct")
    assert view["result"] is None, view
    return (view["step_index"] or 0) >= step_index


class Scene:
    """The stack's client, and the ids of whatever the facts are about."""

    def __init__(self, api: Api, ids: dict[str, str]) -> None:
        self.api = api
        self.ids = ids

    async def written(self, name: str, steps: list[dict[str, Any]], closing: list[dict[str, Any]] | None = None) -> str:
        """A recipe for procedures."""
        if "capability" not in self.ids:
            shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
            capability = {"code": "baton.capability.older_data", "name": "Older data", **shapes}
            self.ids["capability"] = await self.api.create("/capabilities", capability)
        asked = {"name": name, "capability_id": self.ids["capability"], "steps": steps, "closing_steps": closing or []}
        return await self.api.create("/recipes", asked)

    async def registered(self, name: str, steps: list[dict[str, Any]], **more: Any) -> str:
        """A procedure from a recipe of its own."""
        recipe = await self.written(name, steps, more.pop("closing", None))
        asked = {"name": name, "kind": "older_data", **more}
        self.ids[name] = await self.api.create(f"/recipes/{recipe}/procedures", asked)
        return self.ids[name]

    async def conducted(self, name: str, steps: list[dict[str, Any]], verb: str = "conduct", **more: Any) -> str:
        """A procedure whose conduct was asked for."""
        asked = more.pop("asked", {})
        procedure = await self.registered(name, steps, **more)
        await ask(self.api, f"/procedures/{procedure}/{verb}", {"wait": 0, **asked})
        return procedure


async def finish_some(scene: Scene) -> None:
    """One conduct that succeeded, and one that failed."""
    good = await scene.conducted("finished", [capture("SR:CURRENT", "current"), check("SR:CURRENT", 100.0)])
    bad = await scene.conducted("failed", [setpoint("bl7:door", 1), check("bl7:door", 2)])
    await until(lambda: stands(scene.api, f"/procedures/{good}", status="Completed"))
    await until(lambda: stands(scene.api, f"/procedures/{bad}", status="Aborted"))


async def hold_one(scene: Scene) -> None:
    """A conduct that an operator has held in the middle."""
    held = await scene.conducted("held", scan("held", ANGLES[:10]))
    await until(lambda: gone_on(scene.api, held, 3))
    await ask(scene.api, f"/procedures/{held}/hold", {"reason": "looked at the sample"})
    await until(lambda: stands(scene.api, f"/procedures/{held}", status="Held", live_conduct_id=None))


async def hold_run(scene: Scene, line: Beamline) -> None:
    """A run conduct whose phase waits for the run to be resumed."""
    run = scene.ids["waiting run"] = await line.started(name="Waits to be resumed")
    phase = await scene.registered("waiting phase", scan("theta", ANGLES[:12]), parent_run_id=run)
    await ask(scene.api, f"/runs/{run}/conduct", {"procedure_ids": [phase], "wait": 0})
    await until(lambda: gone_on(scene.api, phase, 3))
    await ask(scene.api, f"/runs/{run}/hold", {"reason": "sample slipped"})
    await until(lambda: stands(scene.api, f"/procedures/{phase}/conduct", waiting_for="run"))


async def ask_for_advice(scene: Scene) -> None:
    """A search that has measured two points and waits to be told of a third."""
    steps = [setpoint("bl7:focus", steered("focus")), capture("bl7:sharpness", "sharpness")]
    search = await scene.conducted("search", steps, "steering/conduct", asked=SEARCH)

    async def asked() -> Any:
        question = await read(scene.api, f"/procedures/{search}/steering")
        return question if question["waiting"] else None

    first = await until(asked)
    advice = {"verdict": "Measure", "next_point": {"focus": 2.0}}
    told = {"iteration_index": first["iteration_index"], "advice": advice}
    await scene.api.done(f"/procedures/{search}/steering/advise", told)

    async def asked_again() -> bool:
        question = await asked()
        return bool(question and question["iteration_index"] > first["iteration_index"])

    await until(asked_again)


async def put_on_calendar(scene: Scene) -> None:
    """A schedule that fires seldom and was triggered, and one that fired often and is held."""
    recipe = await scene.written("Round", [capture("SR:CURRENT", "current")])
    for name, every in (("active schedule", SELDOM), ("held schedule", OFTEN)):
        target = {"kind": "ConductRecipe", "recipe_id": recipe, "name": "Round {count} of the " + name}
        asked = {"name": name, "calendar": {"every": every}, "catchup_window": 10, "target": target}
        scene.ids[name] = await scene.api.create("/schedules", asked)
    for number in (1, 2):
        await scene.api.done(f"/schedules/{scene.ids['active schedule']}/trigger")
        await until(lambda: fired(scene, "active schedule", number))  # noqa: B023


async def fired(scene: Scene, name: str, number: int) -> bool:
    """Whether a schedule has fired so often, and the last of it is done."""
    shown = await read(scene.api, f"/schedules/{scene.ids[name]}")
    return bool(shown["firing_count"] >= number and shown["last_firings"][0]["outcome"] == "Completed")


async def take_off_calendar(scene: Scene) -> None:
    """Hold what fires often, once its calendar has done so twice."""
    await until(lambda: fired(scene, "held schedule", 2), 3 * OFTEN)
    await scene.api.done(f"/schedules/{scene.ids['held schedule']}/hold", {"reason": "shutdown"})


async def set_going(scene: Scene, line: Beamline) -> None:
    """A scan, a slow move and a run of two phases, all under way."""
    run = scene.ids["run"] = await line.started(name="Goes on", subject_id=line.subject_id)
    first = await scene.registered("first phase", scan("darks", ANGLES[:2]), parent_run_id=run)
    second = await scene.registered("second phase", scan("tomo", ANGLES[:16]), parent_run_id=run)
    await scene.registered("scan", scan("scan", ANGLES), closing=DARK)
    await scene.registered("slow move", [setpoint("bl7:slow", SLOW_TARGET), check("bl7:slow.RBV", SLOW_TARGET)])
    await ask(scene.api, f"/runs/{run}/conduct", {"procedure_ids": [first, second], "wait": 0})
    for name in ("scan", "slow move"):
        await ask(scene.api, f"/procedures/{scene.ids[name]}/conduct", {"wait": 0})
    await until(lambda: gone_on(scene.api, scene.ids["scan"], 8))
    await until(lambda: gone_on(scene.api, second, 2))


async def facts_of(scene: Scene) -> dict[str, Any]:
    """How everything stands."""
    api = scene.api
    procedures, runs, schedules = {}, {}, {}
    for name, id in scene.ids.items():
        if name in ("run", "waiting run"):
            runs[name] = {"id": id, "status": (await read(api, f"/runs/{id}"))["status"]}
        elif name.endswith("schedule"):
            shown = await read(api, f"/schedules/{id}")
            schedules[name] = {"id": id, **{key: shown[key] for key in ("status", "firing_count")}}
        elif name != "capability":
            view = await read(api, f"/procedures/{id}/conduct")
            shown = ("status", "conduct_id", "step_index", "step_count", "waiting_for")
            done = await rows(api, f"/procedures/{id}/activities")
            told = Counter(row["payload"]["result"] for row in done)
            procedures[name] = {"id": id, **{key: view[key] for key in shown}, "activities": dict(told)}
    return {"runs": runs, "schedules": schedules, "procedures": procedures}


async def lists_of(api: Api) -> dict[str, list[dict[str, Any]]]:
    """Every row of every list that needs no id."""
    listing = (one for one in OPERATIONS if one["name"].startswith("list_") and "{" not in one["path"])
    lists = {one["path"]: await rows(api, one["path"]) for one in listing if one["path"] != "/events"}
    for path, found in lists.items():
        assert len({next(iter(row.values())) for row in found}) == len(found) > 0, f"{path} is empty or has a row twice"
    return lists


async def fill(stack: Stack) -> tuple[dict[str, Any], dict[str, Any]]:
    """Put everything on record and set it going; the facts and the lists as they are then."""
    url = stack.place("url")
    async with httpx.AsyncClient(base_url=url, timeout=30, verify=False) as client:
        api = Api(client, url, "", {})
        worker = stack.piece("worker")
        worker.suspend()  # reactions stay where they are while one of them is dismissed
        try:
            stock = await stocked(api)
        finally:
            worker.resume()
        scene = Scene(api, {})
        line = await beamline(api)
        await put_on_calendar(scene)
        await finish_some(scene)
        await hold_one(scene)
        await hold_run(scene, line)
        await ask_for_advice(scene)
        await take_off_calendar(scene)
        await set_going(scene, line)
        facts = await facts_of(scene)
        lists = await lists_of(api)
        events = await rows(api, "/events")
    hutch = {"enclosure_id": line.enclosure_id, "monitor_id": line.monitor.headers["X-Principal-Id"]}
    facts |= {"stock": stock, "hutch": hutch}
    facts["events"] = dict(Counter(one["event_type"] for one in events))
    facts["lists"] = {path: len(found) for path, found in lists.items()}
    return facts, lists


def begin_fresh_log(postgres: Path) -> None:
    """Go on in a new file of PostgreSQL's write-ahead log, which is then the only one that is needed."""
    password = (postgres / "password").read_text()
    with psycopg.connect(host=str(postgres / "data"), dbname="baton", user="baton", password=password) as connection:
        connection.execute("SELECT pg_switch_wal()")


def make(directory: Path) -> None:
    """Fill a data directory, stop what runs on it, and pack it."""
    stack = Stack(directory, {**SETTINGS, "SIMULATION_JOURNAL": str(directory / JOURNAL)})
    try:
        facts, lists = asyncio.run(fill(stack.ready()))
        begin_fresh_log(directory / "postgres")
        assert stack.end() == []
    finally:
        stack.remove()
    settle_temporal(directory / "temporal" / "temporal.db")
    settle_postgres(directory / "postgres" / "data", "shut down")
    pack(directory, HERE / "directory.tar.xz")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    about = {"commit": commit.strip(), "settings": SETTINGS, "journal": JOURNAL, "search": SEARCH}
    (HERE / "facts.json").write_text(json.dumps({**about, **facts}, indent=1) + "\n")
    (HERE / "lists.json.xz").write_bytes(lzma.compress(json.dumps(lists).encode(), preset=9))


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        make(Path(scratch, "data"))
