"""A record for the console's pages: very many runs that are over, one tree of assets, and a conduct of very many steps."""

import asyncio
import itertools
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

import psycopg

from baton.domain.data.dataset import PRODUCTS
from baton.domain.run.run import RunSummary
from baton.domain.shared.listing import Cursor, Order
from tests.bench.observations import batch
from tests.support.api.data_products import register_dataset
from tests.support.api.rest_beamline import Beamline, beamline, create_plan
from tests.support.service import Api
from tests.support.waiting import until

FAN = 10  # assets right below one asset
PLANS, SUBJECTS, CAMPAIGNS = 4, 20, 20
HELD_RUNS = 3
READINGS = 10  # batches of readings that the live run took
STEPS_OF_ONE_SIGNAL = 100
CHUNK = 5_000
STEP_SECONDS = 0.5  # between two steps of the conduct that moves

STREAMS = "event_id, stream_type, stream_id, version, event_type, schema_version, payload, principal_id, command_name"
COPY = f"""
INSERT INTO events ({STREAMS}, correlation_id, occurred_at)
SELECT gen_random_uuid(), stream_type, {{id}}, version, event_type, schema_version,
    CASE WHEN version = 1 THEN (payload::jsonb || jsonb_build_object({{fields}}))::json ELSE payload END,
    principal_id, command_name, gen_random_uuid(),
    now() - make_interval(mins => 5 * (%(count)s - number + 1)::int) + make_interval(secs => 60 * version)
FROM generate_series(%(first)s::int, %(last)s::int) AS number
JOIN events ON stream_type = %(type)s
    AND stream_id = (%(originals)s::uuid[])[1 + number %% cardinality(%(originals)s::uuid[])]
ORDER BY number, version"""
"""Each copy of a stream is like one of the originals but for its time and some fields of its first event."""
LEDGER = """
INSERT INTO entries_procedure_activities (event_id, procedure_id, logbook_id, actor_id, command_name, step_kind, payload,
    sampled_at, conduct_id, iteration_index, closing, step_index, mark, attempt, correlation_id, causation_id, occurred_at,
    recorded_at)
SELECT gen_random_uuid(), procedure_id, (
        SELECT (payload ->> 'logbook_id')::uuid FROM events WHERE stream_type = 'Procedure' AND stream_id = procedure_id
        AND event_type = 'ProcedureActivitiesLogbookOpened'
    ), principal_id, command_name, 'setpoint', jsonb_build_object(
        'address', address, 'value', step, 'verify', true, 'step_index', step, 'conduct_id', conduct_id, 'attempt', 1
    ) || CASE mark WHEN 'in_flight' THEN jsonb_build_object('result', mark, 'worker', 'bench') ELSE jsonb_build_object(
        'result', 'ok', 'target', address, 'seconds', 0.01, 'actuation_kind', 'Simulated', 'post_reading',
        jsonb_build_object('value', step, 'kind', 'scalar', 'quality', 'good', 'units', 'mm', 'sampled_at', time)
    ) END, time, conduct_id, 0, false, step, mark, 1, correlation_id, conduct_id, time, time
FROM conducts, generate_series(0, step_count - 1) AS step, unnest(ARRAY['in_flight', 'outcome']) AS mark,
    LATERAL (SELECT 'bl7:m' || step / %(of_one_signal)s AS address, clock_timestamp()
        - make_interval(secs => 0.02 * (step_count - step) - CASE mark WHEN 'outcome' THEN 0.01 ELSE 0 END) AS time) AS at
WHERE procedure_id = %(procedure)s AND NOT (step = step_count - 1 AND mark = 'outcome')
ORDER BY step, mark"""
"""What a conduct that is at its last step has written: a row before each step and one after it."""
MOVE = """UPDATE conduct_progress SET phase = 'Walking', step_index = %(step)s, heartbeat_at = clock_timestamp(),
    active_at = clock_timestamp() WHERE procedure_id = %(procedure)s"""

REACT = """UPDATE reactions SET (transaction_id, position) = (
    SELECT transaction_id::text::bigint, position FROM events
    ORDER BY events.transaction_id DESC, events.position DESC LIMIT 1
)"""
"""Have the agents, and those that are off, come as far as those of a service whose worker has run all the time."""


@dataclass(frozen=True)
class Sizes:
    """How much there is on record, how many tabs are open, and how often each thing is measured."""

    runs: int = 100_000
    assets: int = 1_000
    steps: int = 10_000
    tabs: int = 50
    requests: int = 30
    probes: int = 20
    rounds: int = 3

    @classmethod
    def small(cls) -> Self:
        """Return sizes to try things with."""
        return cls(runs=2_000, assets=100, steps=500, requests=10, probes=5, rounds=1)

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Let every size be given, by its own name."""
        group = parser.add_argument_group("sizes of the part `console` (--quick: small ones)")
        for name, standard in vars(cls()).items():
            group.add_argument(f"--{name}", type=int, help=f"{standard:,} unless given")

    @classmethod
    def of(cls, arguments: Namespace) -> Self:
        """Return the sizes that were given, and the others as they are anyway."""
        standard = cls.small() if arguments.quick else cls()
        given = {name: getattr(arguments, name) for name in vars(standard)}
        return cls(**{**vars(standard), **{name: size for name, size in given.items() if size is not None}})


@dataclass(frozen=True)
class ConsoleRecord:
    """What the pages are about, by the ids that stand in their addresses."""

    url: str
    ids: Mapping[str, str]  # by the name that a path has for each
    sizes: Sizes
    held_run_id: str
    renamed_ids: Sequence[str]  # devices that nobody looks at closely

    def middle_cursor(self) -> str:
        """Return the cursor of the list of runs, newest first, that ends in its middle."""
        newest_first = f"SELECT created_at, run_id FROM {RunSummary.relation} ORDER BY created_at DESC, run_id DESC"
        with psycopg.connect(self.url) as connection:
            row = connection.execute(f"{newest_first} OFFSET %s LIMIT 1", (self.sizes.runs // 2,)).fetchone()
        assert row is not None
        return str(Cursor(order=Order.DESC, time=row[0], id=row[1]))

    @asynccontextmanager
    async def moving_conduct(self) -> AsyncIterator[None]:
        """Have the conduct walk its list over and over, as its progress says it, until the end of the block."""

        async def walk() -> None:
            async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
                for step in itertools.cycle(range(self.sizes.steps)):
                    await connection.execute(MOVE, {"step": step, "procedure": self.ids["procedure_id"]})
                    await asyncio.sleep(STEP_SECONDS)

        walking = asyncio.create_task(walk())
        try:
            yield
        finally:
            walking.cancel()
            await asyncio.gather(walking, return_exceptions=True)


async def stock_record(api: Api, sizes: Sizes) -> ConsoleRecord:
    """Make a beamline with all of this on it, over REST where it is little, and have the projector show it."""
    line = await beamline(api)
    asset_ids = await stock_assets(line, sizes.assets)
    plan_ids = [line.plan_id, *[(await create_plan(api, line.rotary_id)).plan_id for _ in range(PLANS - 1)]]
    subject_ids = [await api.create("/subjects", {"name": f"Alloy bar {number}"}) for number in range(SUBJECTS)]
    series = {"intent": "Series", "lead_actor_id": str(uuid4())}
    campaign_ids = [await api.create("/campaigns", {"name": f"Series {n}", **series}) for n in range(CAMPAIGNS)]
    about = {"subject_id": line.subject_id, "campaign_id": campaign_ids[0]}
    ended = {verb: await end_run(line, verb, **about) for verb in ("complete", "stop", "abort")}
    dataset_id = await register_dataset(api, producing_run_id=ended["complete"], subject_id=line.subject_id)
    held = [await line.start_run(name=f"Held {number}", **about) for number in range(HELD_RUNS)]
    for run_id in held:
        await api.execute(f"/runs/{run_id}/hold", {"reason": "The beam is away."})
    run_id = await line.start_run(name="Night scan", **about)
    for _ in range(READINGS):
        sent = await api.client.post(f"/runs/{run_id}/observations", content=batch(), headers=JSON)
        assert sent.status_code == 200, sent.text
    procedure = await open_conduct(line, run_id, sizes.steps)
    with psycopg.connect(api.database_url, autocommit=True) as connection:
        connection.execute(LEDGER, {"procedure": procedure["procedure_id"], "of_one_signal": STEPS_OF_ONE_SIGNAL})
        connection.execute(MOVE, {"procedure": procedure["procedure_id"], "step": sizes.steps - 1})
        referred = {"plans": plan_ids, "subjects": subject_ids, "campaigns": campaign_ids}
        originals = [ended["complete"]] * 17 + [ended["stop"]] * 2 + [ended["abort"]]
        copy_streams(connection, "Run", originals, sizes.runs, RUN_FIELDS, referred)
        datasets = max(1, sizes.runs // 10)
        copy_streams(connection, "Dataset", [dataset_id], datasets, DATASET_FIELDS, {"runs": sizes.runs})
        connection.execute(
            f"INSERT INTO lookups SELECT '{PRODUCTS}', payload ->> 'producing_run_id', stream_id FROM events "
            "WHERE event_type = 'DatasetRegistered' ON CONFLICT DO NOTHING"
        )
        connection.execute(REACT)
        await until(lambda: is_projected(connection), within=600, longest_pause=0.5)
        connection.execute("VACUUM ANALYZE")
    places = {"asset_id": line.unit_id, "enclosure_id": line.enclosure_id, "supply_id": line.supply_id}
    ids = {**places, **about, **procedure, "run_id": run_id, "plan_id": line.plan_id, "dataset_id": dataset_id}
    return ConsoleRecord(api.database_url, ids, sizes, held[0], asset_ids[1:])


JSON = {"Content-Type": "application/json"}


def copy_id(stream_type: str, number: str) -> str:
    """Return the expression of the id that the copy with a number has."""
    time, digest = f"lpad(to_hex(1760000000000 + {number}), 12, '0')", f"md5('{stream_type}' || {number})"
    return f"({time} || '7' || substr({digest}, 1, 3) || '8' || substr({digest}, 4, 15))::uuid"


def pick(name: str) -> str:
    """Return the expression that picks one of the ids under this name for each copy."""
    return f"(%({name})s::uuid[])[1 + (number / 7) %% cardinality(%({name})s::uuid[])]"


RUN_FIELDS = {
    "name": "'Scan ' || number",
    "plan_id": pick("plans"),
    "subject_id": pick("subjects"),
    "campaign_id": pick("campaigns"),
}
"""What tells one copy of a run from another; the campaigns do not list the copies."""
DATASET_FIELDS = {
    "name": "'scan_' || number || '.h5'",
    "producing_run_id": copy_id("Run", "(1 + (number * 10 - 1) %% %(runs)s::int)"),
}


def copy_streams(
    connection: psycopg.Connection[Any],
    stream_type: str,
    originals: Sequence[str],
    count: int,
    fields: Mapping[str, str],
    values: Mapping[str, Any],
) -> None:
    """Write so many copies of some streams, five minutes after one another; these fields of theirs are expressions."""
    own = ", ".join(f"'{name}', {expression}" for name, expression in fields.items())
    statement = COPY.format(id=copy_id(stream_type, "number"), fields=own)
    given = {**values, "type": stream_type, "originals": list(originals), "count": count}
    for first in range(1, count + 1, CHUNK):
        connection.execute(statement, {**given, "first": first, "last": min(first + CHUNK - 1, count)})


def is_projected(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the projector has passed everything there is."""
    place = "SELECT position FROM bookmarks WHERE follower = 'projections'"
    row = connection.execute(f"SELECT max(position) <= ({place}) FROM events").fetchone()
    return bool(row and row[0])


async def stock_assets(line: Beamline, count: int) -> list[str]:
    """Register so many assets below the root of a beamline, each of them above some others; the root stands first."""
    made = [line.unit_id]
    for number in range(1, count):
        parent = made[(number - 1) // FAN]
        tier = "Component" if number * FAN < count else "Device"
        identifiers = [{"kind": "EPICS_PV", "value": f"bl7:m{number}"}] if tier == "Device" else []
        body = {"name": f"Part {number}", "tier": tier, "parent_id": parent, "alternate_identifiers": identifiers}
        made.append(await line.api.create("/assets", body))
    return made


async def end_run(line: Beamline, verb: str, **fields: Any) -> str:
    """Return a run that was begun and ended in this way."""
    run_id = await line.start_run(name="Original", **fields)
    await line.api.execute(f"/runs/{run_id}/{verb}", {} if verb == "complete" else {"reason": "The sample drifted."})
    return run_id


async def open_conduct(line: Beamline, run_id: str, count: int) -> dict[str, str]:
    """Open the conduct of a procedure with so many steps as a phase of a run; there is no worker to walk them."""
    contract = {"name": "Alignment", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await line.api.create("/capabilities", {"code": f"baton.capability.bench_{uuid4().hex}", **contract})
    addresses = (f"bl7:m{number // STEPS_OF_ONE_SIGNAL}" for number in range(count))
    steps = [{"kind": "setpoint", "address": address, "value": n, "verify": True} for n, address in enumerate(addresses)]
    recipe = await line.api.create("/recipes", {"name": "Long alignment", "capability_id": capability, "steps": steps})
    task = {"name": "Align everything", "kind": "alignment", "parent_run_id": run_id, "target_asset_ids": [line.rotary_id]}
    procedure = await line.api.create(f"/recipes/{recipe}/procedures", task)
    opened = await line.api.post(f"/procedures/{procedure}/conduct", {"wait": 0})
    assert opened.status_code == 202, opened.text
    return {"procedure_id": procedure, "recipe_id": recipe, "capability_id": capability}
