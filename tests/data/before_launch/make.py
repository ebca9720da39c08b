"""Make a data directory with work under way in it, kill everything, and pack the directory beside this file.

It was run at commit 37b1ca0, which has queues and approvals but no launch; at the root of that checkout:

    PYTHONPATH=. .venv/bin/python <this file>
"""

import asyncio
import json
import lzma
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
import psycopg

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.registry import REGISTRY
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP, create_samples
from tests.support.service import Api
from tests.support.stack import Stack, eventually, is_alive
from tests.support.waiting import until
from tests.support.workflows.step_json import PROGRAMS, capture, check, setpoint

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from directory_packing import pack, settle_postgres, settle_temporal  # noqa: E402

OPERATIONS = json.loads(Path("tests", "data", "operations.json").read_text())
JOURNAL = "plant.jsonl"
"""What was done to the simulated plant, in the data directory itself."""
WHOLE = ("/reactions", "/affordances")
"""Lists that have no pages."""
NOT_KEPT = ("/events", "/waiting", "/catalogue-entries")
"""Lists of what is elsewhere, and of what this deployment does not have."""
OFTEN: dict[str, Any] = {"every": 10}
SELDOM: dict[str, Any] = {"every": 6 * 3600}
YEARLY: dict[str, Any] = {"cron": ["0 0 1 1 *"]}
"""Calendars. The engine counts every firing that an active schedule has missed, so it must be seldom:
this directory is opened years after it was made."""
ANGLES = [20.0 * number for number in range(1, 31)]
SLOW_TARGET = 25.0
"""A quick axis takes 0.4 s for one angle, the slow one 25 s for its only move."""
AXES = ("scan", "held", "darks", "tomo", "theta", "queue", "begun", "refused", "firing", "unopened", "asked", "approved")
PLANT: dict[str, Any] = {
    "SIMULATED_DEVICES": [
        *({"kind": "motor", "address": f"bl7:{name}", "velocity": 50.0} for name in AXES),
        {"kind": "motor", "address": "bl7:slow", "velocity": 1.0},
    ],
    "SIMULATED_SIGNALS": {"SR:CURRENT": 100.0, "bl7:door": 0, "bl7:lamp": 1},
    "COMPUTE_PROGRAMS": PROGRAMS,
}
BOSS = str(uuid4())
SETTINGS = {
    "APP_ENV": "test",
    "AUTHORIZATION_MODE": "policy",
    "BOOTSTRAP_PRINCIPAL_ID": BOSS,
    "PID_MINTER": "development",
    **{name: json.dumps(value) for name, value in PLANT.items()},
}
HELD_BACK, UNOPENED = "Held back", "Never opened"
"""What the names of procedures begin with that are not registered, and whose conduct is not opened."""
INTERFERENCE = f"""
CREATE FUNCTION interfere() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.event_type = 'ProposalOpened' THEN
        NEW.payload := jsonb_set(NEW.payload::jsonb, '{{expires_at}}', '"2120-01-01T00:00:00Z"')::json;
    ELSIF NEW.event_type = 'ProcedureRegistered' AND NEW.payload->>'name' LIKE '{HELD_BACK}%'
    OR NEW.event_type = 'ProcedureStarted' AND EXISTS (
        SELECT FROM events WHERE stream_id = NEW.stream_id AND version = 1 AND payload->>'name' LIKE '{UNOPENED}%'
    ) THEN RAISE disk_full;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER interference BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION interfere()
"""
"""Lets some work stop half-way, as by a full disk, until it is killed there; and lets proposals expire when nobody reads
this any more, which policies permit for a month only."""


def scan(axis: str, angles: list[float]) -> list[dict[str, Any]]:
    """Moves of one axis, one after the other."""
    return [setpoint(f"bl7:{axis}", angle) for angle in angles]


class Administrator(Api):
    """The administrator's client, which permits service accounts everything."""

    async def create(self, path: str, body: Any) -> str:
        id = await super().create(path, body)
        if body.get("kind") == "service_account":
            await permit(self, id, permitted_command_sets=["all"])
        return id


async def permit(boss: Api, principal_id: str, *commands: str, **more: Any) -> None:
    """Define a policy that permits somebody these commands."""
    place = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    grant = {"permitted_principal_ids": [principal_id], "permitted_commands": sorted(commands)}
    await boss.create("/policies", {"name": "Crew", **place, **grant, **more})


async def register(boss: Api, name: str, *commands: str, **more: Any) -> Api:
    """Register a person who holds these commands, and return their client."""
    id = await boss.create("/actors", {"name": name})
    await permit(boss, id, *commands, **more)
    return boss.acting_as(id)


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


async def ask(api: Api, path: str, body: dict[str, Any]) -> Any:
    """Ask for something that may be still to come."""
    answer = await api.post(path, body)
    assert answer.status_code in (200, 202, 204), f"{path}: {answer.text}"
    return answer.json() if answer.content else None


async def shows(api: Api, path: str, **expected: Any) -> bool:
    """Whether something is shown with these values."""
    shown = await read(api, path)
    return all(shown[name] == value for name, value in expected.items())


async def has_begun_step(api: Api, procedure_id: str, step_index: int) -> bool:
    """Whether a conduct has come to a step; it must not have ended."""
    view = await read(api, f"/procedures/{procedure_id}/conduct")
    assert view["result"] is None, view
    return (view["step_index"] or 0) >= step_index


@dataclass
class Scene:
    """The stack's clients, and the ids of whatever the facts are about."""

    boss: Api
    author: Api  # of queue items and schedules; holds every command of this release by its name
    proposer: Api  # holds conducts with approval only
    approver: Api
    line: Beamline
    capability_id: str = ""
    procedures: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    schedules: dict[str, str] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    proposals: dict[str, str] = field(default_factory=dict)

    async def recipe(self, name: str, steps: list[dict[str, Any]], closing: list[dict[str, Any]] | None = None) -> str:
        """A recipe for procedures."""
        asked = {"name": name, "capability_id": self.capability_id, "steps": steps, "closing_steps": closing or []}
        return await self.boss.create("/recipes", asked)

    async def register(self, name: str, steps: list[dict[str, Any]], **more: Any) -> str:
        """A procedure from a recipe of its own."""
        recipe = await self.recipe(name, steps, more.pop("closing", None))
        asked = {"name": name, "kind": "older_data", **more}
        self.procedures[name] = await self.boss.create(f"/recipes/{recipe}/procedures", asked)
        return self.procedures[name]

    async def conduct(self, name: str, steps: list[dict[str, Any]], **more: Any) -> str:
        """A procedure whose conduct was asked for."""
        procedure = await self.register(name, steps, **more)
        await ask(self.boss, f"/procedures/{procedure}/conduct", {"wait": 0})
        return procedure

    async def schedule(self, name: str, target: dict[str, Any], calendar: dict[str, Any]) -> None:
        """A schedule by the author."""
        asked = {"name": name, "calendar": calendar, "catchup_window": 10, "target": target}
        self.schedules[name] = await self.author.create("/schedules", asked)

    async def has_fired(self, name: str, count: int) -> bool:
        """Whether a schedule has fired so often, and the last of it is done."""
        shown = await read(self.boss, f"/schedules/{self.schedules[name]}")
        return bool(shown["firing_count"] >= count and shown["last_firings"][0]["outcome"] == "Completed")

    async def open_queue(self, name: str, asset_id: str, *targets: dict[str, Any]) -> None:
        """Open a queue, and add items."""
        self.queues[name] = await self.author.create("/queues", {"name": name, "asset_id": asset_id})
        items = [{"title": f"Item {number}", "target": target} for number, target in enumerate(targets, start=1)]
        await ask(self.author, f"/queues/{self.queues[name]}/add-items", {"items": items})

    async def running_item(self, name: str) -> dict[str, Any] | None:
        (found, *_) = (await read(self.boss, f"/queues/{self.queues[name]}"))["items"] or [{"status": "none"}]
        return found if found["status"] == "Running" else None

    async def propose(self, name: str, axis: str) -> str:
        """Propose the conduct of a procedure."""
        self.procedures[name] = await self.register(name, scan(axis, ANGLES[:3]))
        body = {"wait": 0}
        proposed = await ask(self.proposer, f"/procedures/{self.procedures[name]}/conduct", body)
        self.proposals[name] = proposed["proposal_id"]
        return self.proposals[name]

    def plan_target(self, *phases: tuple[str, str]) -> dict[str, Any]:
        """A plan as queues take it, with phases by their names and recipes."""
        listed = [{"recipe_id": recipe, "name": name} for name, recipe in phases]
        return {"kind": "ConductPlan", "plan_id": self.line.plan_id, "name": "Queued run {count}", "phases": listed}


def recipe_target(recipe_id: str, name: str) -> dict[str, Any]:
    """A recipe as queues and schedules take it."""
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": name}


async def furnish(boss: Api) -> Scene:
    """One of everything, a beamline, and a crew."""
    await permit(boss, BOSS, permitted_command_sets=["all"])
    stock = await create_samples(boss)
    await ask(boss, f"/queues/{stock['queue_id']}/retire", {"reason": "shutdown"})
    await ask(boss, f"/schedules/{stock['schedule_id']}/hold", {"reason": "shutdown"})
    line = await beamline(boss)
    author = await register(boss, "Night crew", *REGISTRY.command_names())
    ends = ("CompleteProcedure", "HoldProcedure", "AbortProcedure")
    outright = ("GetProposal", "GetWork", "ReadEventTexts", *ends)
    approver = await register(boss, "Approver", *outright, "ApproveProposal", "ConductProcedure")
    proposer = await register(boss, "Proposer", *outright)
    approval = {"principals": [approver.headers["X-Principal-Id"]], "expires_after": 31 * 86400}
    await permit(boss, proposer.headers["X-Principal-Id"], "ConductProcedure", approval=approval)
    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = {"code": "baton.capability.older_data", "name": "Older data", **shapes}
    return Scene(boss, author, proposer, approver, line, await boss.create("/capabilities", capability))


async def put_on_calendar(scene: Scene) -> None:
    """A schedule that fires seldom and was triggered, and one that fired often and is held."""
    recipe = await scene.recipe("Round", [capture("SR:CURRENT", "current")])
    for name, every in (("active schedule", SELDOM), ("held schedule", OFTEN)):
        await scene.schedule(name, recipe_target(recipe, "Round {count} of the " + name), every)
    for number in (1, 2):
        await scene.author.execute(f"/schedules/{scene.schedules['active schedule']}/trigger")
        await until(lambda: scene.has_fired("active schedule", number))  # noqa: B023


async def take_off_calendar(scene: Scene) -> None:
    """Hold what fires often, once its calendar has done so twice."""
    await until(lambda: scene.has_fired("held schedule", 2), 90)
    await scene.author.execute(f"/schedules/{scene.schedules['held schedule']}/hold", {"reason": "shutdown"})


async def finish_some(scene: Scene) -> None:
    """One conduct that succeeded, and one that failed."""
    good = await scene.conduct("finished", [capture("SR:CURRENT", "current"), check("SR:CURRENT", 100.0)])
    bad = await scene.conduct("failed", [setpoint("bl7:door", 1), check("bl7:door", 2)])
    await until(lambda: shows(scene.boss, f"/procedures/{good}", status="Completed"))
    await until(lambda: shows(scene.boss, f"/procedures/{bad}", status="Aborted"))


async def hold_one(scene: Scene) -> None:
    """A conduct that an operator has held in the middle."""
    held = await scene.conduct("held", scan("held", ANGLES[:10]))
    await until(lambda: has_begun_step(scene.boss, held, 3))
    await ask(scene.boss, f"/procedures/{held}/hold", {"reason": "looked at the sample"})
    await until(lambda: shows(scene.boss, f"/procedures/{held}", status="Held", live_conduct_id=None))


async def hold_run(scene: Scene) -> None:
    """A run conduct whose phase waits for the run to be resumed."""
    run = scene.runs["waiting run"] = await scene.line.start_run(name="Waits to be resumed")
    phase = await scene.register("waiting phase", scan("theta", ANGLES[:12]), parent_run_id=run)
    await ask(scene.boss, f"/runs/{run}/conduct", {"procedure_ids": [phase], "wait": 0})
    await until(lambda: has_begun_step(scene.boss, phase, 3))
    await ask(scene.boss, f"/runs/{run}/hold", {"reason": "sample slipped"})
    await until(lambda: shows(scene.boss, f"/procedures/{phase}/conduct", waiting_for="run"))


async def leave_half_begun(scene: Scene) -> str:
    """A proposal that was approved, a firing and two items of queues, none of which comes to its conduct; the recipe of the
    second item's last phase."""
    await scene.propose("asked", "asked")
    approved = await scene.propose(f"{UNOPENED}: approved", "approved")
    await ask(scene.approver, f"/proposals/{approved}/approve", {"wait": 0, "reason": "as discussed"})
    recipe = await scene.recipe("Firing without end", scan("unopened", ANGLES[:3]))
    await scene.schedule("unopened schedule", recipe_target(recipe, f"{UNOPENED}: firing"), YEARLY)
    await scene.author.execute(f"/schedules/{scene.schedules['unopened schedule']}/trigger")
    last_recipe = ""
    for name in ("begun", "refused"):
        first = await scene.recipe(f"{name} first", scan(name, ANGLES[:2]))
        last_recipe = await scene.recipe(f"{name} last", scan(name, ANGLES[2:4]))
        behind = await scene.recipe(f"{name} behind", scan(name, ANGLES[4:6]))
        root = await scene.boss.create("/assets", {"name": f"Beamline {name}", "tier": "Unit", "facility_code": "facility"})
        plan = scene.plan_target((f"First of {name}", first), (f"{HELD_BACK}: {name}", last_recipe))
        await scene.open_queue(name, root, plan, recipe_target(behind, f"Behind {name}"))
        await until(lambda: scene.running_item(name))  # noqa: B023
        for one in (f"First of {name}", f"{UNOPENED}: firing"):
            scene.procedures[one] = await until(lambda: registered_id(scene, one))  # noqa: B023
    assert await shows(scene.boss, f"/procedures/{scene.procedures[f'{UNOPENED}: approved']}", status="Defined")
    return last_recipe


async def registered_id(scene: Scene, name: str) -> str | None:
    """The id of the procedure with this name, as soon as it is listed."""
    found = await rows(scene.boss, "/procedures", name=name)
    return found[0]["procedure_id"] if found else None


async def line_up(scene: Scene) -> None:
    """A queue whose second item is on, before a plan and a recipe."""
    scans = (ANGLES[:2], ANGLES, [8.0], [5.0], [6.0, 7.0])
    recipes = [await scene.recipe(f"Queued {number}", scan("queue", angles)) for number, angles in enumerate(scans)]
    first, second, last = (recipe_target(recipe, "Queued {count}") for recipe in recipes[:3])
    plan = scene.plan_target(*((f"Queued phase {number}", recipe) for number, recipe in enumerate(recipes[3:])))
    await scene.open_queue("tonight", scene.line.unit_id, first, second, plan, last)


async def second_item_id(scene: Scene) -> str | None:
    """The procedure of the queue's second item, as soon as that is on."""
    item = await scene.running_item("tonight")
    return item["procedure_id"] if item is not None and item["number"] == 2 else None


async def set_going(scene: Scene) -> None:
    """A queue, a firing, a scan, a slow move and a run of two phases, all under way."""
    boss, line = scene.boss, scene.line
    run = scene.runs["run"] = await line.start_run(name="Goes on", subject_id=line.subject_id)
    first = await scene.register("first phase", scan("darks", ANGLES[:2]), parent_run_id=run)
    second = await scene.register("second phase", scan("tomo", ANGLES), parent_run_id=run)
    await scene.register("scan", scan("scan", ANGLES), closing=[setpoint("bl7:lamp", 0)])
    await scene.register("slow move", [setpoint("bl7:slow", SLOW_TARGET), check("bl7:slow.RBV", SLOW_TARGET)])
    await line_up(scene)
    recipe = await scene.recipe("Firing under way", scan("firing", ANGLES))
    await scene.schedule("firing schedule", recipe_target(recipe, "Firing {count}"), YEARLY)
    await scene.author.execute(f"/schedules/{scene.schedules['firing schedule']}/trigger")
    await ask(boss, f"/runs/{run}/conduct", {"procedure_ids": [first, second], "wait": 0})
    for name in ("scan", "slow move"):
        await ask(boss, f"/procedures/{scene.procedures[name]}/conduct", {"wait": 0})
    scene.procedures["queued"] = await until(lambda: second_item_id(scene))
    scene.procedures["firing"] = await until(lambda: registered_id(scene, "Firing 1"))
    for name, index in (("scan", 5), ("second phase", 2), ("queued", 2), ("firing", 2)):
        await until(lambda: has_begun_step(boss, scene.procedures[name], index))  # noqa: B023


async def facts_of(scene: Scene) -> dict[str, Any]:
    """How everything stands."""
    api = scene.boss
    procedures = {}
    for name, id in scene.procedures.items():
        procedures[name] = {"id": id}
        if (await read(api, f"/procedures/{id}"))["status"] != "Defined":
            view = await read(api, f"/procedures/{id}/conduct")
            shown = ("status", "conduct_id", "step_index", "step_count", "waiting_for")
            procedures[name] |= {key: view[key] for key in shown}
    runs = {name: {"id": id, "status": (await read(api, f"/runs/{id}"))["status"]} for name, id in scene.runs.items()}
    schedules, queues, proposals = {}, {}, {}
    for name, id in scene.schedules.items():
        shown_schedule = await read(api, f"/schedules/{id}")
        schedules[name] = {"id": id, **{key: shown_schedule[key] for key in ("status", "firing_count")}}
    for name, id in scene.queues.items():
        kept = ("item_id", "title", "status", "attempt", "run_id", "procedure_id")
        items = [{key: item[key] for key in kept} for item in await rows(api, f"/queues/{id}/items")]
        queues[name] = {"id": id, "status": (await read(api, f"/queues/{id}"))["status"], "items": items}
    for name, id in scene.proposals.items():
        shown_proposal = await read(scene.approver, f"/proposals/{id}")
        proposals[name] = {"id": id, **{key: shown_proposal[key] for key in ("status", "approved_by")}}
    return {"runs": runs, "schedules": schedules, "procedures": procedures, "queues": queues, "proposals": proposals}


async def lists_of(api: Api) -> dict[str, list[dict[str, Any]]]:
    """Every row of every list that needs no id."""
    listing = (one for one in OPERATIONS if one["name"].startswith("list_") and "{" not in one["path"])
    lists = {one["path"]: await rows(api, one["path"]) for one in listing if one["path"] not in NOT_KEPT}
    for path, found in lists.items():
        assert len({next(iter(row.values())) for row in found}) == len(found), f"{path} has a row twice"
    return {path: found for path, found in lists.items() if found}


async def fill(stack: Stack, database_url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Put everything on record and set it going; the facts and the lists as they are then."""
    url, headers = stack.address("url"), {"X-Principal-Id": BOSS}
    async with httpx.AsyncClient(base_url=url, timeout=30, verify=False) as client:
        boss = Administrator(client, url, database_url, headers)
        worker = stack.piece("worker")
        worker.suspend()  # reactions stay where they are while one of them is looked for
        try:
            scene = await furnish(boss)
        finally:
            worker.resume()
        await put_on_calendar(scene)
        await finish_some(scene)
        await hold_one(scene)
        await hold_run(scene)
        await take_off_calendar(scene)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(INTERFERENCE)
        recipe_to_deprecate = await leave_half_begun(scene)
        lists = await lists_of(boss)
        events = await rows(boss, "/events")
        await set_going(scene)
        facts = await facts_of(scene)
        worker.suspend()
        await ask(boss, f"/recipes/{recipe_to_deprecate}/deprecate", {})
        await until(lambda: shows_deprecated(boss))
        lists["/recipes"] = await rows(boss, "/recipes")
    people = {name: getattr(scene, name).headers["X-Principal-Id"] for name in ("boss", "author", "proposer", "approver")}
    line = scene.line
    facts["hutch"] = {"enclosure_id": line.enclosure_id, "monitor_id": line.monitor.headers["X-Principal-Id"]}
    facts["people"] = people
    facts["events"] = dict(Counter(one["event_type"] for one in events))
    facts["lists"] = {path: len(found) for path, found in lists.items()}
    return facts, lists


async def shows_deprecated(api: Api) -> bool:
    """Whether the list of recipes has one that is deprecated."""
    return any(row["status"] == "Deprecated" for row in await rows(api, "/recipes"))


def kill_everything(stack: Stack) -> None:
    """Kill every process at once, the one first that would start others again."""
    children = stack.children()
    stack.process.send_signal(signal.SIGSTOP)
    for child in children:
        child.kill()
    stack.process.kill()
    stack.process.wait()
    eventually(lambda: not any(map(is_alive, children)), what="everything is killed")


def end_interference(directory: Path) -> None:
    """Let PostgreSQL recover, take out what interfered, and kill it behind a checkpoint: it recovers once more when the
    directory is opened, from the newest file of its log."""
    postgres = EmbeddedPostgres(directory).start()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TRIGGER interference ON events")
        connection.execute("DROP FUNCTION interfere")
        connection.execute("VACUUM FULL")
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
    process = int((directory / "data" / "postmaster.pid").read_text().split()[0])
    subprocess.run(["kill", "-9", str(process)], check=True)
    postgres.stop()


def make(directory: Path) -> None:
    """Fill a data directory, kill what runs on it, and pack it."""
    stack = Stack(directory, {**SETTINGS, "SIMULATION_JOURNAL": str(directory / JOURNAL)})
    try:
        stack.wait_until_ready()
        database_url = (
            f"postgresql://baton:{(directory / 'postgres' / 'password').read_text()}@/baton?host={directory}/postgres/data"
        )
        facts, lists = asyncio.run(fill(stack, database_url))
        kill_everything(stack)
    finally:
        stack.remove()
    end_interference(directory / "postgres")
    settle_temporal(directory / "temporal" / "temporal.db")
    settle_postgres(directory / "postgres" / "data", "in production")
    pack(directory, HERE / "directory.tar.xz")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    about = {"commit": commit.strip(), "settings": SETTINGS, "journal": JOURNAL, "killed": True}
    (HERE / "facts.json").write_text(json.dumps({**about, **facts}, indent=1) + "\n")
    (HERE / "lists.json.xz").write_bytes(lzma.compress(json.dumps(lists).encode(), preset=9))


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        make(Path(scratch, "data"))
