"""What conducts leave becomes datasets at the end of each phase, where the plan says so; and a person can have it done."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import JsonValue

from baton.application.caller import Caller
from baton.application.conduct.actions import ActionBody, UnknownActionError, touches
from baton.application.control import Control, Timekeeper
from baton.application.dataset_registrations import DatasetRegistrations
from baton.application.reactions import Dispatcher
from baton.application.unit_of_work import load_events, require_state
from baton.cli.composition.runtime import Runtime
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.data.acquisition import ACQUISITIONS, Acquisition
from baton.domain.data.dataset import Dataset
from baton.domain.data.distribution import COPIES, Distribution
from baton.domain.data.procedure_files import (
    GetProcedureFiles,
    ProcedureFilesView,
    RegisterProcedureDatasets,
    registration_id,
)
from baton.domain.data.run_files import RegisterRunFiles, RunFilesRegistered
from baton.domain.procedure.procedure import Procedure
from baton.domain.recipe.plan import DataRegistration, Plan
from baton.domain.recipe.plan_data import SetPlanDataRegistration
from baton.domain.run.witnessing import WitnessRunChange
from baton.domain.shared.reads import members_of
from baton.domain.shared.refusals import ConcurrencyError
from baton.domain.shared.tasks import Task, TaskStatus
from baton.domain.start.run_witness import WitnessRun
from baton.infrastructure.compute.local_process import LocalProcesses
from tests.support.domain.lifecycle_table import command
from tests.support.domain.world import expect_refusal
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.run_cases import PLANT, RunStack, StartedRun, build_run_stack
from tests.support.workflows.step_json import compute

SHELL = "/bin/sh"
COPY = """
for uri in $(echo "$CONDUCT_INPUT_URIS" | tr -d '[]",'); do cat "${uri#file://}"; done > "${CONDUCT_OUTPUT_URI#file://}"
"""
RAW = b"frames " * 1000


class Camera:
    """An action that records into a file, or says that it has."""

    def body_of(self, name: str) -> ActionBody:
        if name != "record":
            raise UnknownActionError(name)
        return record


@touches()
async def record(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    path = Path(params["path"])
    if params.get("exists", True):
        await asyncio.to_thread(path.write_bytes, RAW)
    return {"uri": params.get("uri", path.as_uri()), "events": 10}


def record_step(path: Path, **more: Any) -> dict[str, Any]:
    return {"kind": "action", "name": "record", "params": {"path": str(path), **more}}


async def load(stack: ConductStack, state: type[Any], id: UUID) -> Any:
    return await require_state(stack.runtime.store, state, id)


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def data(data_root: Path) -> Path:
    """A directory of the test's own, below the root that files are read from."""
    (directory := data_root / str(uuid4())).mkdir()
    return directory


def registration_dispatcher(runtime: Runtime) -> Dispatcher:
    """A dispatcher that starts registrations and nothing else: agents would still be at work when the test is over."""
    return replace(runtime.dispatcher(), subscribers=[runtime.works.of(DatasetRegistrations)])


@pytest.fixture(scope="module")
async def stack(
    database: str, temporal: EmbeddedTemporal, tmp_path_factory: pytest.TempPathFactory, data_root: Path
) -> AsyncIterator[ConductStack]:
    programs = LocalProcesses(tmp_path_factory.mktemp("jobs"), programs=[SHELL])
    own = {"compute": programs, "actions": Camera(), "compute_programs": [SHELL], "data_roots": [data_root]}
    async with open_conduct_stack(database, temporal.address, **own, **PLANT) as stack:
        following = asyncio.create_task(registration_dispatcher(stack.runtime).run())
        yield stack
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


@pytest.fixture(scope="module")
async def registering_line(stack: ConductStack) -> tuple[RunStack, DataRegistration]:
    """A plan whose camera may capture, and where its files are."""
    line = await build_run_stack(stack)
    (camera,) = (await load(stack, Plan, line.plan_id)).asset_ids

    async def create(verb: str, **fields: Any) -> UUID:
        body = (await stack.do(command(verb, fields))).body or {}
        return UUID(next(str(value) for key, value in body.items() if key.endswith("_id")))

    family = await create("define_family", name="Camera", affordances=["Imageable", "Capturing"])
    await stack.do(command("add_asset_family", {"family_id": family}), camera)
    disk = await create("register_supply", kind="Storage", name="Disk", facility_code="facility")
    return line, DataRegistration(supply_id=disk, capturing_asset_id=camera)


@pytest.fixture
async def line(registering_line: tuple[RunStack, DataRegistration]) -> RunStack:
    """A plan that says where its files are."""
    line, registration = registering_line
    await line.stack.do(SetPlanDataRegistration(data_registration=registration), line.plan_id)
    return line


async def files_of(stack: ConductStack, procedure_id: UUID) -> ProcedureFilesView:
    view: ProcedureFilesView = await stack.ask(GetProcedureFiles(), procedure_id)
    return view


async def registered_files(stack: ConductStack, procedure_id: UUID) -> ProcedureFilesView:
    """The files of a phase, once their registration has ended."""

    async def ended_view() -> ProcedureFilesView | None:
        view = await files_of(stack, procedure_id)
        return view if view.status in (TaskStatus.DONE, TaskStatus.REFUSED) else None

    view: ProcedureFilesView = await until(ended_view)
    return view


async def conduct_scan(run: StartedRun, data: Path) -> tuple[UUID, UUID]:
    """Record a scan in one phase and work on it in another."""
    taken = await run.recipe_phase([record_step(data / "raw.h5")], name="Projections")
    step = compute(
        *(SHELL, "-c", COPY),
        input_uris=[(data / "raw.h5").as_uri()],
        output_uri=(data / "slice.h5").as_uri(),
        output_ref_name="slice",
    )
    worked = await run.recipe_phase([step], name="Reconstruct")
    await run.conduct(taken, worked)
    return taken, worked


async def begin_registration(line: RunStack, data: Path) -> tuple[DatasetRegistrations, Task, UUID]:
    """The registration of a phase with three files, begun and carried out by nobody yet."""
    stack = line.stack
    registration = (await load(stack, Plan, line.plan_id)).data_registration
    await stack.do(SetPlanDataRegistration(data_registration=None), line.plan_id)
    run = await line.start()
    taken = await run.recipe_phase([record_step(data / f"{number}.h5") for number in range(3)])
    await run.conduct(taken)
    await stack.do(SetPlanDataRegistration(data_registration=registration), line.plan_id)
    work = stack.runtime.works.of(DatasetRegistrations)
    procedure = await load(stack, Procedure, taken)
    await work.begin(procedure, stack.caller)
    return work, await work.load(registration_id(procedure)), taken


async def count_events(stack: ConductStack) -> int:
    """The events of datasets, copies and acquisitions."""
    counting = "SELECT count(*) FROM events WHERE stream_type IN ('Dataset', 'Distribution', 'Acquisition')"
    async with stack.runtime.pool.connection() as connection:
        row = await (await connection.execute(counting)).fetchone()
    return int(row[0]) if row else 0


async def members(stack: ConductStack, kind: str, key: object) -> tuple[UUID, ...]:
    return await stack.runtime.commands.read(members_of(kind, key), stack.caller)


async def test_the_files_of_each_phase_become_datasets_with_their_origin(line: RunStack, data: Path) -> None:
    stack = line.stack
    run = await line.start()
    taken, worked = await conduct_scan(run, data)
    (raw_file,) = (await registered_files(stack, taken)).files
    (slice_file,) = (await registered_files(stack, worked)).files
    assert (raw_file.name, slice_file.name, slice_file.output_name) == ("raw.h5", "slice.h5", "slice")
    assert raw_file.dataset_id is not None
    assert slice_file.dataset_id is not None
    raw, cut = [await load(stack, Dataset, id) for id in (raw_file.dataset_id, slice_file.dataset_id)]
    assert (raw.checksum.value, raw.byte_size) == (hashlib.sha256(RAW).hexdigest(), len(RAW))
    assert raw.encoding.media_type == "application/x-hdf5"
    assert [(one.producing_run_id, one.producing_procedure_id) for one in (raw, cut)] == [
        (run.run_id, taken),
        (run.run_id, worked),
    ]
    assert (raw.derived_from, cut.derived_from) == (frozenset(), {raw.id})
    assert cut.checksum == raw.checksum
    registration = (await load(stack, Plan, line.plan_id)).data_registration
    for one in (raw, cut):
        (copy_id,) = await members(stack, COPIES, one.id)
        copy = await load(stack, Distribution, copy_id)
        assert (copy.uri, copy.supply_id, copy.access_protocol.value) == (one.uri, registration.supply_id, "POSIX")
    (acquisition_id,) = await members(stack, ACQUISITIONS, raw.id)
    acquisition = await load(stack, Acquisition, acquisition_id)
    assert (acquisition.producing_asset_id, acquisition.evidence) == (registration.capturing_asset_id, {"events": 10})
    assert acquisition.settings["action"] == "record"
    assert await members(stack, ACQUISITIONS, cut.id) == ()


async def test_a_repeated_request_registers_nothing_twice(line: RunStack, data: Path) -> None:
    stack = line.stack
    taken, worked = await conduct_scan(await line.start(), data)
    before = [await registered_files(stack, id) for id in (taken, worked)]
    events = await count_events(stack)
    again = await stack.do(RegisterProcedureDatasets(), taken)
    assert again.body == {"procedure_id": str(taken), "dataset_ids": [str(before[0].files[0].dataset_id)], "left": []}
    assert await count_events(stack) == events
    assert [(await files_of(stack, id)).files for id in (taken, worked)] == [view.files for view in before]


async def test_a_file_that_cannot_be_read_is_left_with_its_reason(line: RunStack, data: Path, tmp_path: Path) -> None:
    stack = line.stack
    run = await line.start()
    elsewhere = tmp_path / "elsewhere.h5"
    steps = [record_step(elsewhere), record_step(data / "lost.h5", exists=False), record_step(data / "here.h5")]
    steps.append(record_step(data / "bucket.h5", uri="s3://raw/scan.h5"))
    taken = await run.recipe_phase(steps)
    await run.conduct(taken)
    view = await registered_files(stack, taken)
    assert [file.dataset_id is None for file in view.files] == [True, True, False, True]
    assert [(one.step_index, one.code) for one in view.left] == [(index, "FileUnreachable") for index in (0, 1, 3)]
    assert "DATA_ROOTS" in view.left[0].detail
    assert "no such file" in view.left[1].detail
    assert "Nothing here reads s3:" in view.left[2].detail
    (data / "lost.h5").write_bytes(RAW)
    again = await stack.do(RegisterProcedureDatasets(), taken)
    assert [one["step_index"] for one in (again.body or {})["left"]] == [0, 3]


async def test_attempts_at_the_same_time_leave_no_file_and_register_none_twice(line: RunStack, data: Path) -> None:
    stack = line.stack
    work, task, taken = await begin_registration(line, data)
    before = await count_events(stack)
    answers = await asyncio.gather(*(work.carry_out(task) for _ in range(6)), return_exceptions=True)
    told = [one for one in answers if not isinstance(one, ConcurrencyError)]  # which has the task begun anew
    ids = [str(file.dataset_id) for file in (await files_of(stack, taken)).files]
    assert told == [{"procedure_id": str(taken), "dataset_ids": ids, "left": []}] * len(told)
    assert told
    assert await count_events(stack) == before + 3 * len(ids)


async def test_a_request_joins_the_registration_that_is_under_way(line: RunStack, data: Path) -> None:
    runtime = line.stack.runtime
    work, task, taken = await begin_registration(line, data)
    other = Caller(uuid4(), line.stack.caller.surface_id, uuid4())
    joined = await runtime.commands.execute(RegisterProcedureDatasets(), other, target_id=taken)
    assert joined.body == {"procedure_id": str(taken), "work_id": str(task.work_id)}
    assert await work.load(task.work_id) == task, "it goes on as the one who began it"


async def test_a_plan_that_says_nothing_leaves_files_as_they_are(line: RunStack, data: Path) -> None:
    stack = line.stack
    await stack.do(SetPlanDataRegistration(data_registration=None), line.plan_id)
    taken, _ = await conduct_scan(await line.start(), data)
    view = await files_of(stack, taken)
    assert [(file.name, file.dataset_id) for file in view.files] == [("raw.h5", None)]
    assert (view.status, view.work_id) == (None, None)
    with expect_refusal("ProcedureCannotRegisterDatasetsError", "no_registration"):
        await stack.do(RegisterProcedureDatasets(), taken)


async def test_the_files_of_a_run_elsewhere_become_datasets_and_those_left_are_on_record(line: RunStack, data: Path) -> None:
    stack = line.stack
    made = await stack.do(command("register_actor", {"name": "Bluesky at BL7", "kind": "service_account"}))
    account_id = UUID((made.body or {})["actor_id"])
    witness = Caller(account_id, stack.caller.surface_id, uuid4())
    at = datetime.now(UTC)
    begun = {"document_uid": str(uuid4()), "plan_id": line.plan_id, "name": "count 7", "began_at": at}
    execute = stack.runtime.service.execute
    answer = (await execute(WitnessRun.model_validate(begun), witness)).body or {}
    run_id = UUID(answer["run_id"])
    ended = {"change": "ended", "at": at, "end": {"exit_status": "success"}}
    await execute(WitnessRunChange.model_validate(ended), witness, target_id=run_id)
    (data / "frames.h5").write_bytes(RAW)
    files = [{"uri": (data / name).as_uri(), "evidence": {"frames": 3}} for name in ("frames.h5", "lost.h5")]
    asked = RegisterRunFiles.model_validate({"files": files, "patience_seconds": 0})
    told = [(await execute(asked, witness, target_id=run_id)).body for _ in range(2)]
    assert told[0] == told[1], "what is registered stays as it is"
    (dataset_id,) = (told[0] or {})["dataset_ids"]
    assert (await load(stack, Dataset, UUID(dataset_id))).producing_run_id == run_id
    (registered,) = await load_events(stack.runtime.store, run_id, RunFilesRegistered)
    assert [str(id) for id in registered.dataset_ids] == [dataset_id]
    (left,) = registered.left
    assert (left.uri, left.code) == ((data / "lost.h5").as_uri(), "FileUnreachable")
