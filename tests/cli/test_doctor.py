"""`baton doctor` in bad states: each is recognised, named and shown with its remedy."""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import psycopg
import pytest
from temporalio import activity
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.worker import Worker

from baton.application.caller import Caller
from baton.application.long_work import reaction_names
from baton.application.settings import RecordedSettings, Settings, shown_settings
from baton.cli.composition.runtime import Runtime
from baton.cli.doctor.examination import CHECKS, examine
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.process import OwnedDirectory
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.stack_note import write_note
from baton.domain.enclosure.enclosure import NAMES, RegisterEnclosure, enclosure_key
from baton.domain.kernel import Command
from baton.domain.recipe.capability import CODE_PREFIX, DefineCapability
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.schedule.schedule import DefineSchedule
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.postgres.leadership import MONITOR_LOCK, PROJECTIONS_LOCK, REACTIONS_LOCK, SCHEDULES_LOCK
from baton.infrastructure.temporal.engine import TASK_QUEUE, worker_deployment
from baton.infrastructure.wall_clock import new_id
from baton.workflows.publications import MintSweepWorkflow
from tests.support.databases import with_database
from tests.support.domain.conducts import STEPS
from tests.support.infrastructure.temporal_namespaces import new_namespace
from tests.support.waiting import until

CLOSED_PORT = "127.0.0.1:1"
MINTS_NOTHING = "PID_MINTER=none: persistent identifiers are not minted, and requests for one are refused."


@dataclass
class DoctorReport:
    """What the doctor printed, and its exit code."""

    code: int
    lines: dict[str, tuple[str, str]]
    text: str


Doctor = Callable[..., DoctorReport]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """A function that runs the doctor under these settings and no others."""

    def ask(only: str | None = None, **settings: str) -> DoctorReport:
        for name in {name.upper() for name in Settings.model_fields}:
            monkeypatch.delenv(name, raising=False)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        code = examine(only, tmp_path)
        text = capsys.readouterr().out
        words = [line.split(None, 2) for line in text.splitlines() if not line.startswith(" ")]
        return DoctorReport(code, {name: (verdict, sentence) for verdict, name, sentence in words}, text)

    return ask


@pytest.fixture(scope="module")
def bare_temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedTemporal]:
    """A Temporal without search attributes and without workers."""
    with EmbeddedTemporal(tmp_path_factory.mktemp("temporal"), headless=True) as temporal:
        yield temporal


@pytest.fixture
def projection_leader(database_url: str) -> Iterator[None]:
    """A connection that holds the lock of the projector and does nothing."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (PROJECTIONS_LOCK,))
        yield


async def seed_log(database_url: str) -> None:
    """Put the seeds into the log."""
    async with Runtime(Settings(database_url=database_url)) as runtime:
        await runtime.plant_seeds()


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement)


def test_without_servers_every_check_says_what_it_lacks(doctor: Doctor, tmp_path: Path) -> None:
    report = doctor()
    assert report.code == 1
    assert list(report.lines) == list(CHECKS)
    assert report.lines["settings"][0] == "ok"
    none = f"is not set and no stack runs on {tmp_path}; set it, or start one with `baton up`."
    assert report.lines["database"] == ("wrong", f"DATABASE_URL {none}")
    assert report.lines["temporal"] == ("wrong", f"TEMPORAL_ADDRESS {none}")
    assert report.lines["minter"] == ("ok", MINTS_NOTHING)
    assert report.lines["actuation"] == ("ok", "Actuation is inert: no route can be written to, so nothing is moved.")
    for dependent in set(CHECKS) - {"settings", "database", "temporal", "minter", "actuation", "policies", "plugins"}:
        verdict, sentence = report.lines[dependent]
        assert (verdict, sentence.startswith("Not looked at, because ")) == ("warning", True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"PID_MINTER": "development"}, "PID_MINTER=development: identifiers are made up under prefixes for testing."),
        (
            {"PID_MINTER": "datacite", "DATACITE_PREFIX": "10.70000", "DATACITE_PASSWORD": "hush"},
            "PID_MINTER=datacite: DOIs are registered under 10.70000 at https://api.datacite.org.",
        ),
    ],
)
def test_the_minter_is_named(doctor: Doctor, settings: dict[str, str], words: str) -> None:
    assert doctor("minter", **settings).lines["minter"] == ("ok", words)


def test_misspelt_settings_and_directories_that_are_not_there_are_named(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONTROL_ROUTE", "DATABSE_URL", "UNRELATED_NAME"):
        monkeypatch.setenv(name, "x")
    missing = {"TILED_DIRECTORY": str(tmp_path / "tiled"), "DATA_ROOTS": f'["{tmp_path}", "{tmp_path / "data"}"]'}
    verdict, sentence = doctor("settings", **missing).lines["settings"]
    assert verdict == "warning"
    assert "CONTROL_ROUTE is no setting, and nobody reads it; did you mean CONTROL_ROUTES?" in sentence
    assert "DATABSE_URL is no setting, and nobody reads it; did you mean DATABASE_URL?" in sentence
    for setting, directory in (("TILED_DIRECTORY", "tiled"), ("DATA_ROOTS", "data")):
        assert f"{setting} names {tmp_path / directory}, which is no directory on this machine" in sentence
    assert sentence.count(" names ") == 2
    assert "UNRELATED_NAME" not in sentence


def test_servers_that_do_not_answer_are_wrong(doctor: Doctor) -> None:
    report = doctor(DATABASE_URL=f"postgresql://baton:hush@{CLOSED_PORT}/baton", TEMPORAL_ADDRESS=CLOSED_PORT)
    assert report.code == 1
    assert report.lines["database"][0] == "wrong"
    assert report.lines["database"][1].endswith("Start it, or correct DATABASE_URL.")
    mend = "start it, or correct TEMPORAL_ADDRESS."
    assert report.lines["temporal"] == ("wrong", f"Temporal does not answer at {CLOSED_PORT}; {mend}")
    assert "hush" not in report.text


def test_settings_are_shown_without_their_secrets_and_objections_with_their_remedy(doctor: Doctor) -> None:
    providers = (
        '[{"issuer": "https://id.example.org", "introspection_url": "https://id.example.org/introspect", '
        '"introspection_client_id": "baton", "introspection_client_secret": "hush", "audiences": {}}]'
    )
    report = doctor("settings", IDENTITY_PROVIDERS=providers, SELF_FACILITY_CODE="north-ring")
    assert (report.code, list(report.lines)) == (1, ["settings"])
    assert "has no audiences, so all its tokens would be refused; give one" in report.lines["settings"][1]
    assert "SELF_FACILITY_CODE north-ring" in report.text
    assert "DATABASE_URL unset" in report.text
    assert "hush" not in report.text


def test_settings_that_cannot_be_read_do_not_keep_it_from_looking_at_the_rest(doctor: Doctor, database_url: str) -> None:
    report = doctor(IDENTITY_PROVIDERS="{garbage", DATABASE_URL=database_url)
    assert report.lines["settings"] == ("wrong", "IDENTITY_PROVIDERS is no valid JSON; correct it or unset it.")
    assert report.lines["migrations"][0] == "ok"


def test_a_server_that_may_forget_is_warned_of(doctor: Doctor, database_url: str) -> None:
    report = doctor("database", DATABASE_URL=database_url)
    assert (report.code, report.lines["database"][0]) == (0, "warning")
    assert "a power cut loses acknowledged commands; set both to on." in report.lines["database"][1]


def test_a_database_that_was_never_migrated_lacks_its_migrations(doctor: Doctor, postgres: EmbeddedPostgres) -> None:
    name = f"bare_{uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        report = doctor(DATABASE_URL=with_database(postgres.url, name))
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    verdict, sentence = report.lines["migrations"]
    assert (verdict, sentence.startswith("Migrations 0001")) == ("wrong", True)
    assert report.lines["projections"] == ("warning", "Not looked at, because migrations are missing; mend that first.")


def test_projections_declared_otherwise_and_later_databases_are_told_apart(doctor: Doctor, database_url: str) -> None:
    execute(database_url, "UPDATE projections SET definition = 'another' WHERE relation = 'proj_equipment_role_summary'")
    otherwise = doctor("migrations", DATABASE_URL=database_url).lines["migrations"]
    assert otherwise[1].startswith("Projections are declared otherwise than by this build; start any process")
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")
    later = doctor("migrations", DATABASE_URL=database_url).lines["migrations"]
    assert later[1].startswith("The database was migrated to 9999 by a later Baton")
    assert {otherwise[0], later[0]} == {"wrong"}


@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("GRANT UPDATE ON events TO baton_runtime", "run REVOKE UPDATE ON events FROM baton_runtime."),
        ("REVOKE INSERT ON events FROM baton_runtime", "run GRANT INSERT ON events TO baton_runtime."),
    ],
)
def test_rights_that_break_the_log_or_the_service_are_wrong(
    doctor: Doctor, database_url: str, statement: str, remedy: str
) -> None:
    assert doctor("rights", DATABASE_URL=database_url).code == 0
    execute(database_url, statement)
    report = doctor("rights", DATABASE_URL=database_url)
    assert (report.code, report.lines["rights"][0]) == (1, "wrong")
    assert report.lines["rights"][1].endswith(remedy)


def test_projections_that_nobody_keeps_are_wrong(doctor: Doctor, database_url: str) -> None:
    report = doctor("projections", DATABASE_URL=database_url)
    assert (report.code, report.lines["projections"][0]) == (1, "wrong")
    assert report.lines["projections"][1].startswith("Nobody keeps the projections (0 events behind")


@pytest.mark.usefixtures("projection_leader")
def test_a_projection_that_is_not_built_is_named_with_the_command_that_builds_it(doctor: Doctor, database_url: str) -> None:
    execute(database_url, "UPDATE projections SET built_at = NULL WHERE relation = 'proj_equipment_role_summary'")
    report = doctor("projections", DATABASE_URL=database_url)
    assert report.code == 1
    assert "`baton projections rebuild proj_equipment_role_summary`" in report.lines["projections"][1]


@pytest.mark.usefixtures("projection_leader")
@pytest.mark.parametrize(("age", "verdict", "code"), [(10, "warning", 0), (100, "wrong", 1)])
async def test_projections_that_fall_behind_tell_how_far(
    doctor: Doctor, database_url: str, age: int, verdict: str, code: int
) -> None:
    await seed_log(database_url)
    execute(database_url, f"UPDATE events SET recorded_at = clock_timestamp() - interval '{age} seconds'")
    report = await asyncio.to_thread(doctor, "projections", DATABASE_URL=database_url)
    assert (report.code, report.lines["projections"][0]) == (code, verdict)
    assert f"events behind by {age}." in report.lines["projections"][1]


@pytest.mark.usefixtures("projection_leader")
async def test_an_open_transaction_that_holds_the_projections_back_is_named(doctor: Doctor, database_url: str) -> None:
    await seed_log(database_url)
    execute(database_url, "UPDATE events SET recorded_at = clock_timestamp() - interval '100 seconds'")
    with psycopg.connect(database_url) as forgotten:
        forgotten.execute("SELECT pg_current_xact_id(), pg_sleep(2.1)")
        report = await asyncio.to_thread(doctor, "projections", DATABASE_URL=database_url)
        assert f"end it with SELECT pg_terminate_backend({forgotten.info.backend_pid})" in report.lines["projections"][1]


def test_a_temporal_that_nobody_prepared_lacks_attributes_and_workers(
    doctor: Doctor, bare_temporal: EmbeddedTemporal
) -> None:
    report = doctor(TEMPORAL_ADDRESS=bare_temporal.address)
    assert report.lines["temporal"][0] == report.lines["namespace"][0] == "ok"
    verdict, sentence = report.lines["attributes"]
    assert verdict == "warning", "work is done without them too"
    assert "`temporal operator search-attribute create --namespace default --name BatonFacility --type Keyword" in sentence
    assert report.lines["workers"] == (
        "wrong",
        "No worker asks for work on the task queue baton; start `baton worker`, or `baton up`.",
    )


async def test_a_deployment_that_is_given_no_workflows_is_wrong(doctor: Doctor, bare_temporal: EmbeddedTemporal) -> None:
    @activity.defn
    async def nothing() -> None: ...

    client = await new_namespace(bare_temporal.address)
    names = {"WORKER_DEPLOYMENT_NAME": "beamline-7", "WORKER_BUILD_ID": "2.4.0"}
    place = {"TEMPORAL_ADDRESS": bare_temporal.address, "TEMPORAL_NAMESPACE": client.namespace, **names}
    settings = Settings(worker_deployment_name="beamline-7", worker_build_id="2.4.0")

    async def worker_line() -> tuple[str, str]:
        return (await asyncio.to_thread(doctor, "workers", **place)).lines["workers"]

    async with Worker(client, task_queue=TASK_QUEUE, activities=[nothing]):

        async def is_unknown() -> bool:
            return (await worker_line())[1].startswith("No worker of the deployment beamline-7 has asked for work;")

        await until(is_unknown, within=60)
    async with Worker(client, task_queue=TASK_QUEUE, activities=[nothing], deployment_config=worker_deployment(settings)):

        async def is_idle() -> bool:
            verdict, sentence = await worker_line()
            return verdict == "wrong" and "has no current build, so nobody is given new workflows;" in sentence

        async def is_in_use() -> bool:
            return (await worker_line())[0] == "ok"

        await until(is_idle, within=60)
        await client.workflow_service.set_worker_deployment_current_version(
            SetWorkerDeploymentCurrentVersionRequest(
                namespace=client.namespace, deployment_name="beamline-7", build_id="2.4.0", identity="test"
            )
        )
        await until(is_in_use, within=60)


def test_a_namespace_that_is_not_there_is_wrong(doctor: Doctor, bare_temporal: EmbeddedTemporal) -> None:
    report = doctor("namespace", TEMPORAL_ADDRESS=bare_temporal.address, TEMPORAL_NAMESPACE="elsewhere")
    assert (report.code, report.lines["namespace"][0]) == (1, "wrong")
    assert "`temporal operator namespace create --namespace elsewhere`" in report.lines["namespace"][1]


def unfinished_sweep(database_url: str) -> str:
    """Insert a running sweep, and return its id."""
    sweep_id = str(uuid4())
    execute(
        database_url,
        f"INSERT INTO equipment_mint_sweep VALUES ('{sweep_id}', '{uuid4()}', '{uuid4()}', '{uuid4()}', 'DOI', NULL, 100, "
        "'Running', 0, '[]', '[]', '[]', clock_timestamp(), NULL)",
    )
    return sweep_id


def test_a_sweep_that_no_workflow_carries_is_wrong(
    doctor: Doctor, database_url: str, bare_temporal: EmbeddedTemporal
) -> None:
    places = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": bare_temporal.address}
    assert doctor("sweeps", **places).lines["sweeps"] == ("ok", "No mint sweep is unfinished.")
    sweep_id = unfinished_sweep(database_url)
    report = doctor("sweeps", **places)
    assert (report.code, report.lines["sweeps"][0]) == (1, "wrong")
    assert f"No workflow carries the unfinished mint sweeps {sweep_id}" in report.lines["sweeps"][1]


async def test_a_sweep_that_does_not_get_on_is_wrong_and_tells_why(
    doctor: Doctor, database_url: str, bare_temporal: EmbeddedTemporal
) -> None:
    @activity.defn(name="mint_sweep_candidates")
    async def fail(sweep_id: str) -> list[str]:
        raise RuntimeError("the registry is on strike")

    sweep_id = unfinished_sweep(database_url)
    client = await Client.connect(bare_temporal.address)
    async with Worker(client, task_queue="elsewhere", workflows=[MintSweepWorkflow], activities=[fail]):
        await client.start_workflow(MintSweepWorkflow.run, sweep_id, id=f"mint-sweep:{sweep_id}", task_queue="elsewhere")
        places = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": bare_temporal.address}

        async def wrong_sentence() -> str | None:
            verdict, sentence = (await asyncio.to_thread(doctor, "sweeps", **places)).lines["sweeps"]
            return sentence if verdict == "wrong" else None

        sentence = await until(wrong_sentence, 60)
    assert re.search(rf"{sweep_id} \(mint_sweep_candidates, attempt \d+: the registry is on strike\)", str(sentence))


def unfinished_publication(database_url: str, status: str) -> str:
    receipt_id = str(uuid4())
    execute(
        database_url,
        "INSERT INTO calibration_publication (receipt_id, calibration_id, revision_id, peer_facility_id, permit_id, "
        f"principal_id, surface_id, correlation_id, status, accepted_at) VALUES ('{receipt_id}', "
        f"{', '.join(repr(str(uuid4())) for _ in range(7))}, '{status}', clock_timestamp())",
    )
    return receipt_id


@pytest.mark.parametrize("status", ["Running", "Sending"])
def test_a_publication_that_no_workflow_carries_is_wrong(
    doctor: Doctor, database_url: str, bare_temporal: EmbeddedTemporal, status: str
) -> None:
    places = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": bare_temporal.address}
    unfinished_publication(database_url, "Published")
    assert doctor("publications", **places).lines["publications"] == ("ok", "No publication is unfinished.")
    receipt_id = unfinished_publication(database_url, status)
    report = doctor("publications", **places)
    assert (report.code, report.lines["publications"]) == (
        1,
        (
            "wrong",
            f"No workflow carries the unfinished publications {receipt_id}; a running worker starts them within seconds, so "
            "see that one runs.",
        ),
    )


class TestConducts:
    def insert_conduct(
        self, database_url: str, phase: str, age: float, silence: float | None = None, of: str = "procedure"
    ) -> str:
        """Insert a conduct of this age and silence in seconds, and return its name."""
        id, conduct_id = uuid4(), uuid4()
        heard = "NULL" if silence is None else f"clock_timestamp() - interval '{silence} seconds'"
        opened = f"clock_timestamp() - interval '{age} seconds'"
        phase, stalled = ("Walking", "clock_timestamp()") if phase == "Stalled" else (phase, "NULL")
        rows = {
            "procedure": "conduct_progress (procedure_id, conduct_id, phase, started_at, heartbeat_at, stalled_at, "
            "command_name, active_at) "
            f"VALUES ('{id}', '{conduct_id}', '{phase}', {opened}, {heard}, {stalled}, 'ConductProcedure', {opened})",
            "run": "run_conduct_progress (run_id, conduct_id, phase, started_at, heartbeat_at, stalled_at) "
            f"VALUES ('{id}', '{conduct_id}', '{phase}', {opened}, {heard}, {stalled})",
        }
        execute(database_url, f"INSERT INTO {rows[of]}")
        return f"{of} {id}"

    def report_line(self, doctor: Doctor, database_url: str, address: str = CLOSED_PORT) -> tuple[str, str]:
        return doctor("conducts", DATABASE_URL=database_url, TEMPORAL_ADDRESS=address).lines["conducts"]

    def test_those_that_are_heard_of_are_well(self, doctor: Doctor, database_url: str) -> None:
        assert self.report_line(doctor, database_url) == ("ok", "No conduct is live, and none was lost.")
        self.insert_conduct(database_url, "Ended", 9000, 8000)
        self.insert_conduct(database_url, "Opened", 2)
        self.insert_conduct(database_url, "Walking", 9000, 3, of="run")
        self.insert_conduct(database_url, "Waiting", 9000, 50)
        assert self.report_line(doctor, database_url) == ("ok", "3 live, each heard of.")

    @pytest.mark.parametrize("of", ["procedure", "run"])
    def test_one_that_nobody_took_up_is_wrong(self, doctor: Doctor, database_url: str, of: str) -> None:
        conduct = self.insert_conduct(database_url, "Opened", 40, of=of)
        assert self.report_line(doctor, database_url) == (
            "wrong",
            f"No worker has taken up the conduct of {conduct} (opened 40 s ago); see that one runs, because after "
            "CONDUCT_RESTART_LIMIT_SECONDS it is given up.",
        )

    @pytest.mark.parametrize(("phase", "of"), [("Walking", "procedure"), ("Closing", "procedure"), ("Waiting", "run")])
    def test_one_that_fell_silent_is_wrong(self, doctor: Doctor, database_url: str, phase: str, of: str) -> None:
        conduct = self.insert_conduct(database_url, phase, 300, 75, of=of)
        assert self.report_line(doctor, database_url) == (
            "wrong",
            f"Nothing is heard of the conduct of {conduct} (silent for 75 s); see that a worker and Temporal run and it "
            "continues, or end it with truncate_procedure or abort_run.",
        )

    def test_the_engine_tells_why_where_it_answers(
        self, doctor: Doctor, database_url: str, bare_temporal: EmbeddedTemporal
    ) -> None:
        silent, stalled = (
            self.insert_conduct(database_url, "Walking", 300, 75),
            self.insert_conduct(database_url, "Stalled", 300, 3),
        )
        verdict, sentence = self.report_line(doctor, database_url, bare_temporal.address)
        assert verdict == "wrong"
        assert f"{silent} (silent for 75 s, no workflow is open)" in sentence
        assert f"The conduct of {stalled} (no workflow is open) fails to go on again and again;" in sentence

    def test_of_many_a_few_are_named(self, doctor: Doctor, database_url: str) -> None:
        conducts = [self.insert_conduct(database_url, "Opened", 100 - number) for number in range(7)]
        _, sentence = self.report_line(doctor, database_url)
        assert [conduct in sentence for conduct in conducts] == [True] * 5 + [False] * 2
        assert " and 2 more;" in sentence


class TestSchedules:
    @pytest.fixture
    def schedule_leader(self, database_url: str) -> Iterator[None]:
        """A connection that holds the lock of the calendars and does nothing."""
        with psycopg.connect(database_url) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (SCHEDULES_LOCK,))
            yield

    def define_schedule(self, database_url: str, address: str) -> str:
        """Define a schedule that the engine knows, and return its id."""

        async def define() -> str:
            async with Runtime(Settings(database_url=database_url, temporal_address=address)) as runtime:
                return await create_dark_schedule(runtime)

        return asyncio.run(define())

    def change_in_engine(self, address: str, id: str, verb: str) -> None:
        """Pause or delete a schedule in the engine."""

        async def change() -> None:
            client = await Client.connect(address)
            await getattr(client.get_schedule_handle(f"schedule:{id}"), verb)()

        asyncio.run(change())

    def report_line(self, doctor: Doctor, database_url: str, temporal: EmbeddedTemporal, **settings: str) -> tuple[str, str]:
        servers = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": temporal.address}
        agents = {"CLEARANCE_EXPIRER_ENABLED": "false"}
        return doctor("schedules", **{**servers, **agents, **settings}).lines["schedules"]

    def test_none_is_well(self, doctor: Doctor, database_url: str, temporal: EmbeddedTemporal) -> None:
        assert self.report_line(doctor, database_url, temporal) == ("ok", "No schedule is defined, and no agent has turns.")

    def test_turns_of_agents_that_nobody_keeps_are_wrong(
        self, doctor: Doctor, database_url: str, temporal: EmbeddedTemporal
    ) -> None:
        verdict, sentence = self.report_line(doctor, database_url, temporal, CLEARANCE_EXPIRER_ENABLED="true")
        # Whether the calendars are there too depends on who used this engine before.
        message, _, _ = sentence.partition("; start ")
        assert (verdict, message.split(" (")[0]) == ("wrong", "Nobody keeps the engine's calendars of 1 agent")

    @pytest.mark.usefixtures("schedule_leader")
    def test_turns_that_the_engine_lacks_or_somebody_paused_are_warned_of(
        self, doctor: Doctor, database_url: str, bare_temporal: EmbeddedTemporal
    ) -> None:
        on = {"CLEARANCE_EXPIRER_ENABLED": "true"}
        lacking = self.report_line(doctor, database_url, bare_temporal, **on)
        assert (lacking[0], "clearance-expirer (missing)" in lacking[1]) == ("warning", True)

        async def reconcile_turns(verb: str | None = None) -> None:
            settings = Settings(database_url=database_url, temporal_address=bare_temporal.address)
            async with Runtime(settings) as runtime:
                await runtime.agent_schedules.reconcile()
            if verb is not None:
                client = await Client.connect(bare_temporal.address)
                await getattr(client.get_schedule_handle("clearance-expirer"), verb)()

        asyncio.run(reconcile_turns())
        as_recorded = "1 agent, the engine's calendar of each as recorded."
        assert self.report_line(doctor, database_url, bare_temporal, **on) == ("ok", as_recorded)
        asyncio.run(reconcile_turns("pause"))
        paused = self.report_line(doctor, database_url, bare_temporal, **on)
        resume = "`temporal schedule toggle --unpause --schedule-id clearance-expirer`"
        message = f"Somebody paused the turns of clearance-expirer in the engine; let them go on with {resume}."
        assert paused == ("warning", message)
        asyncio.run(reconcile_turns("delete"))

    def test_those_that_nobody_keeps_are_wrong(self, doctor: Doctor, database_url: str, temporal: EmbeddedTemporal) -> None:
        id = self.define_schedule(database_url, temporal.address)
        advice = "start `baton worker`, or `baton up`."
        kept = f"Nobody keeps the engine's calendars of 1 schedule; {advice}"
        assert self.report_line(doctor, database_url, temporal) == ("wrong", kept)
        self.change_in_engine(temporal.address, id, "delete")
        message = f"Nobody keeps the engine's calendars of 1 schedule (not as recorded: {id} (missing)); {advice}"
        assert self.report_line(doctor, database_url, temporal) == ("wrong", message)

    @pytest.mark.usefixtures("schedule_leader")
    def test_one_that_differs_is_warned_of(self, doctor: Doctor, database_url: str, temporal: EmbeddedTemporal) -> None:
        id = self.define_schedule(database_url, temporal.address)
        as_recorded = ("ok", "1 schedule, the engine's calendar of each as recorded.")
        assert self.report_line(doctor, database_url, temporal) == as_recorded
        for verb, what in (("pause", "paused"), ("delete", "missing")):
            self.change_in_engine(temporal.address, id, verb)
            verdict, sentence = self.report_line(doctor, database_url, temporal)
            assert (verdict, f"differ from the record: {id} ({what});" in sentence) == ("warning", True)

    @pytest.mark.usefixtures("schedule_leader")
    def test_one_without_the_attributes_that_the_server_lacks_is_well(
        self, doctor: Doctor, database_url: str, bare_temporal: EmbeddedTemporal
    ) -> None:
        self.define_schedule(database_url, bare_temporal.address)
        verdict, sentence = self.report_line(doctor, database_url, bare_temporal)
        assert (verdict, sentence) == ("ok", "1 schedule, the engine's calendar of each as recorded.")


async def create_dark_schedule(runtime: Runtime) -> str:
    """Define a schedule that does not fire during the test, and return its id."""
    caller = Caller(new_id(), SYSTEM_HTTP, new_id())

    async def create(command: Command) -> str:
        body = (await runtime.commands.execute(command, caller)).body or {}
        return str(next(iter(body.values())))

    shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability = await create(DefineCapability(code=f"{CODE_PREFIX}{new_id()}", name="Darks", **shapes))
    recipe = await create(DefineRecipe(name="darks", capability_id=capability, steps=STEPS))
    target = {"kind": "ConductRecipe", "recipe_id": recipe, "name": "Darks"}
    id = await create(DefineSchedule(name="Darks", calendar={"cron": ["0 3 1 1 *"]}, target=target))
    await runtime.schedule_reconciler.reconcile_changed()
    return id


class TestMonitors:
    PERMITS = '{"Hutch B": "PSS:B", "Hutch C": "PSS:C"}'

    @pytest.fixture
    def monitor_leader(self, database_url: str) -> Iterator[None]:
        """A connection that holds the lock of the monitors and observes nothing."""
        with psycopg.connect(database_url) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (MONITOR_LOCK,))
            yield

    def record_observation(self, database_url: str, name: str, age: float) -> None:
        """Insert an enclosure whose permit was observed so many seconds ago."""
        key = enclosure_key(RegisterEnclosure(name=name, facility_code="facility"))
        with psycopg.connect(database_url) as connection:
            id = uuid4()
            connection.execute("INSERT INTO claims VALUES (%s, %s, %s)", (NAMES, key, id))
            contact = "INSERT INTO enclosure_contact VALUES (%s, clock_timestamp() - make_interval(secs => %s))"
            connection.execute(contact, (id, age))

    def test_nothing_configured_is_well(self, doctor: Doctor, database_url: str) -> None:
        report = doctor("monitors", DATABASE_URL=database_url)
        assert report.lines["monitors"] == ("ok", "No enclosure and no supply is configured to be monitored.")

    def test_configured_without_anybody_who_observes_is_wrong(self, doctor: Doctor, database_url: str) -> None:
        report = doctor("monitors", DATABASE_URL=database_url, MONITORED_ENCLOSURES=self.PERMITS)
        assert (report.code, report.lines["monitors"]) == (
            1,
            (
                "wrong",
                "Nobody monitors the 2 enclosures and 0 supplies that are configured; start `baton worker`, or `baton up`.",
            ),
        )

    @pytest.mark.usefixtures("monitor_leader")
    def test_ages_are_told_and_old_ones_are_wrong(self, doctor: Doctor, database_url: str) -> None:
        self.record_observation(database_url, "Hutch B", 4)
        settings = {"DATABASE_URL": database_url, "MONITORED_ENCLOSURES": self.PERMITS}
        settings["MONITORED_PERMIT_TTL_SECONDS"] = "900"
        verdict, sentence = doctor("monitors", **settings).lines["monitors"]
        last = re.search(r"\(last: Hutch B (\d+) s ago, Hutch C never\)", sentence)
        assert (verdict, last is not None and int(last[1]) >= 4) == ("wrong", True), sentence
        self.record_observation(database_url, "Hutch C", 90)
        verdict, sentence = doctor("monitors", **settings).lines["monitors"]
        observed = r"permits last observed: Hutch B (\d+) s ago, Hutch C (\d+) s ago"
        ages = re.fullmatch(rf"2 enclosures and 0 supplies are monitored \({observed}\)\.", sentence)
        assert (verdict, ages is not None and (int(ages[1]) >= 4, int(ages[2]) >= 90)) == ("ok", (True, True)), sentence
        short = doctor("monitors", **{**settings, "MONITORED_PERMIT_TTL_SECONDS": "60"}).lines["monitors"]
        assert (short[0], "not every permit was observed within 60 s" in short[1]) == ("wrong", True)


class TestReactions:
    @pytest.fixture
    def reaction_leader(self, database_url: str) -> Iterator[None]:
        """A connection that holds the lock of the subscribers."""
        with psycopg.connect(database_url) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (REACTIONS_LOCK,))
            yield

    def add_subscriber(self, database_url: str, name: str, *, enabled: bool = True, failures: int = 0) -> None:
        """Insert the row of a subscriber."""
        error = "EngineUnavailableError: it does not answer." if failures else None
        with psycopg.connect(database_url) as connection:
            row = "INSERT INTO reactions VALUES (%s, %s, 0, 0, NULL, %s, NULL, %s)"
            connection.execute(row, (name, enabled, failures, error))

    async def test_every_subscriber_of_this_build_is_looked_at(self, database_url: str) -> None:
        async with Runtime(Settings(database_url=database_url)) as runtime:
            assert [work.reaction for work in runtime.works.reacting] == reaction_names()

    def test_where_nobody_subscribed_all_is_well(self, doctor: Doctor, database_url: str) -> None:
        assert doctor("reactions", DATABASE_URL=database_url).lines["reactions"][0] == "ok"

    def test_without_anybody_who_leads_it_is_wrong(self, doctor: Doctor, database_url: str) -> None:
        self.add_subscriber(database_url, "run_debriefer")
        verdict, sentence = doctor("reactions", DATABASE_URL=database_url).lines["reactions"]
        assert (verdict, sentence.split(",")[0]) == ("wrong", "Nobody reacts to what happens")

    @pytest.mark.usefixtures("reaction_leader")
    def test_who_stumbles_is_named_with_what_it_stumbles_over(self, doctor: Doctor, database_url: str) -> None:
        self.add_subscriber(database_url, "run_debriefer")
        self.add_subscriber(database_url, "caution_promoter", enabled=False)
        well = doctor("reactions", DATABASE_URL=database_url).lines["reactions"]
        assert well == ("ok", "2 subscribers follow the log; switched off: caution_promoter.")
        self.add_subscriber(database_url, "of_an_older_build", failures=7)
        assert doctor("reactions", DATABASE_URL=database_url).lines["reactions"] == well
        self.add_subscriber(database_url, "caution_drafter", failures=3)
        verdict, sentence = doctor("reactions", DATABASE_URL=database_url).lines["reactions"]
        assert verdict == "wrong"
        assert "caution_drafter (3 times: EngineUnavailableError: it does not answer)" in sentence


class TestSignals:
    def test_addresses_that_two_assets_claim_are_told(self, doctor: Doctor, database_url: str) -> None:
        assert doctor("signals", DATABASE_URL=database_url).lines["signals"][0] == "ok"
        with psycopg.connect(database_url) as connection:
            for address in ("bl7:rot", "bl7:rot", "bl7:x"):
                connection.execute("INSERT INTO lookups VALUES ('epics-pv', %s, gen_random_uuid())", (address,))
        verdict, sentence = doctor("signals", DATABASE_URL=database_url).lines["signals"]
        assert (verdict, "claim bl7:rot, so" in sentence) == ("warning", True)


class TestCatalogues:
    SETTINGS: ClassVar = {"TILED_DIRECTORY": "/srv/tiled", "DATA_ROOTS": '["/data"]'}

    def add_entry(self, database_url: str, status: str, error: str | None) -> None:
        with psycopg.connect(database_url) as connection:
            row = "INSERT INTO catalogue_entries VALUES (%s, %s, 'Tiled', %s, now(), 1, 1, NULL, %s)"
            connection.execute(row, (uuid4(), uuid4(), status, error))

    def test_without_a_catalogue_there_is_nothing_to_look_at(self, doctor: Doctor, database_url: str) -> None:
        found = doctor("catalogues", DATABASE_URL=database_url).lines["catalogues"]
        assert found == ("ok", "No catalogue is configured, so datasets are entered into none.")

    def test_what_is_refused_and_what_waits_is_counted(self, doctor: Doctor, database_url: str) -> None:
        def verdict() -> tuple[str, str]:
            return doctor("catalogues", DATABASE_URL=database_url, **self.SETTINGS).lines["catalogues"]

        self.add_entry(database_url, "Entered", None)
        self.add_entry(database_url, "Pending", None)
        assert verdict() == ("ok", "Catalogues refused no dataset, 1 entries wait for a catalogue.")
        self.add_entry(database_url, "Refused", "SciCat does not take mira's dataset.")
        kind, sentence = verdict()
        assert (kind, sentence.split(";")[0]) == ("warning", "Catalogues refused 1 datasets, 1 entries wait for a catalogue")
        assert "mira" not in sentence
        self.add_entry(database_url, "Pending", "SciCat cannot be reached (ConnectError); it is asked again.")
        assert verdict() == (
            "warning",
            "2 entries wait for a catalogue that does not take them now: "
            "SciCat cannot be reached (ConnectError); it is asked again.",
        )


def test_a_check_that_does_not_exist_is_refused(doctor: Doctor) -> None:
    with pytest.raises(SystemExit) as refused:
        doctor("humours")
    assert refused.value.code == 2


def test_a_running_stack_is_looked_at_under_its_own_settings_and_a_shell_that_differs_is_told(
    doctor: Doctor, tmp_path: Path, database_url: str
) -> None:
    providers = '[{"issuer": "https://id.example.org", "jwks_url": "https://id.example.org/keys", "audiences": {}}]'
    stack = Settings(self_facility_code="north-ring", openai_api_key="hush", monitored_enclosures={"Hutch B": "PSS:B"})
    owned = OwnedDirectory(tmp_path, "Baton")
    owned.acquire(())
    try:
        write_note(tmp_path, settings=shown_settings(stack), database_url=database_url)
        assert "hush" not in (tmp_path / "stack.json").read_text()
        report = doctor("settings")
        assert report.lines["settings"][0] == "ok"
        assert "SELF_FACILITY_CODE north-ring" in report.text
        verdict, sentence = doctor("monitors").lines["monitors"]
        assert (verdict, sentence.startswith("Nobody monitors the 1 enclosures")) == ("wrong", True)
        outside = "postgresql://nobody@127.0.0.1:1/nothing"
        report = doctor("settings", SELF_FACILITY_CODE="south", DATABASE_URL=outside, IDENTITY_PROVIDERS=providers)
        verdict, sentence = report.lines["settings"]
        assert verdict == "warning"
        assert sentence.startswith(
            "This shell sets DATABASE_URL, IDENTITY_PROVIDERS, SELF_FACILITY_CODE otherwise than the "
        )
        assert doctor("database", DATABASE_URL=outside).lines["database"][0] != "wrong"
    finally:
        owned.release()
    assert doctor("settings").text.count("SELF_FACILITY_CODE facility") == 1


def test_shown_settings_can_be_read_back_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELF_FACILITY_CODE", "elsewhere")
    monkeypatch.setenv("MONITORED_ENCLOSURES", '{"Hutch A": "PSS:A"}')
    stack = Settings(
        self_facility_code="north-ring", monitored_enclosures={"Hutch B": "PSS:B"}, database_url="postgresql://a:b@c/d"
    )
    recorded = RecordedSettings.of(shown_settings(stack))
    assert recorded.self_facility_code == "north-ring"
    assert shown_settings(recorded) == shown_settings(stack)


def test_a_login_that_can_rewrite_the_log_is_warned_of_and_that_of_the_service_is_not(
    doctor: Doctor, postgres: EmbeddedPostgres, database_url: str
) -> None:
    verdict, sentence = doctor("rights", DATABASE_URL=database_url).lines["rights"]
    assert verdict == "warning"
    assert sentence.endswith("log in as baton_runtime, and give the owner's login to the projector as DATABASE_OWNER_URL.")
    service = with_database(postgres.runtime_url, database_url.partition("?")[0].rpartition("/")[2])
    assert doctor("rights", DATABASE_URL=service).lines["rights"][0] == "ok"
