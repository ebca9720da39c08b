"""Registration of what procedures and witnessed runs leave: each file becomes a dataset with its copy and, where it is raw,
its acquisition, as the plan of its run says. The commands are given as who ended the procedure, or asked for it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import system_batch
from baton.application.long_work import TaskWork
from baton.application.ports import ByteSource, EventRow
from baton.application.unit_of_work import load_row, load_state
from baton.domain.conduct.progress import OpenedConduct
from baton.domain.data import procedure_files as rules
from baton.domain.data import run_files as run_rules
from baton.domain.data.acquisition import Acquisition, RecordAcquisition
from baton.domain.data.dataset import Dataset, RegisterDataset
from baton.domain.data.distribution import Distribution, RegisterDistribution
from baton.domain.data.procedure_files import LeftFile, ProcedureFile, RegisterProcedureDatasets
from baton.domain.data.run_files import LeftRunFile, RegisteredRunFiles, RegisterRunFiles
from baton.domain.data.values import GivenChecksum, GivenEncoding
from baton.domain.kernel import Command, State
from baton.domain.procedure.procedure import Procedure, ProcedureAborted, ProcedureCompleted
from baton.domain.recipe.plan import DataRegistration
from baton.domain.run.run import Run
from baton.domain.shared.reads import find, require
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError, Unavailable
from baton.domain.shared.tasks import Task
from baton.domain.shared.writes import Put

LOOK_AGAIN = 2.0  # Seconds between two looks for files that are not there yet.


class FileContent(NamedTuple):
    """What is said of a file's bytes."""

    checksum: GivenChecksum
    byte_size: int
    encoding: GivenEncoding


class FileNotReadError(Exception):
    """A file cannot be read here; the message says why."""


class FileOrigin(NamedTuple):
    """The run and, where it is one of its phases, the procedure that left files, and when their ids begin."""

    run: Run
    procedure_id: UUID | None
    since: datetime

    def product_id(self, file: ProcedureFile, what: str) -> UUID:
        """Return the id that the dataset, the copy or the acquisition of a file gets, the same in every attempt."""
        return rules.product_id(self.procedure_id or self.run.id, self.since, file, what)


@dataclass
class FileRegistrations(TaskWork):
    """Long work: files become datasets. Their ids follow from what left them and their address, so that a repeated
    registration finds them."""

    byte_sources: ByteSource

    async def register(
        self, origin: FileOrigin, registration: DataRegistration, file: ProcedureFile, caller: Caller
    ) -> UUID:
        """Register a file, its copy and its acquisition, as far as they are not on record."""
        if file.protocol is None:
            raise FileNotReadError("Its address does not tell how it is reached; register it by hand.")
        run = origin.run
        dataset_id, copy_id, acquisition_id = (
            origin.product_id(file, what) for what in ("dataset", "distribution", "acquisition")
        )
        dataset = await self.commands.read(find(Dataset, dataset_id), caller)
        content = await self._read(file) if dataset is None else content_of(dataset)
        if dataset is None:
            others = await self.commands.read(rules.datasets_of_run(run.id), caller)
            command = RegisterDataset(
                name=rules.dataset_name(run, file),
                uri=file.uri,
                **content._asdict(),
                producing_run_id=run.id,
                producing_procedure_id=origin.procedure_id,
                subject_id=run.subject_id,
                derived_from=rules.parents_of(file, others),
                used_calibration_ids=run.pinned_calibration_ids,
                allow_duplicate=True,
            )
            await self._create(Dataset, dataset_id, command, caller)
        copy = RegisterDistribution(
            dataset_id=dataset_id,
            supply_id=registration.supply_id,
            uri=file.uri,
            **content._asdict(),
            access_protocol=file.protocol.value,
        )
        await self._create(Distribution, copy_id, copy, caller)
        is_raw = file.recorded or file.output_name in registration.raw_outputs
        if is_raw and registration.capturing_asset_id is not None:
            captured = RecordAcquisition(
                dataset_id=dataset_id,
                producing_asset_id=registration.capturing_asset_id,
                producing_run_id=run.id,
                captured_at=file.written_at,
                settings=dict(file.settings),
                evidence=dict(file.evidence),
            )
            await self._create(Acquisition, acquisition_id, captured, caller)
        return dataset_id

    async def _read(self, file: ProcedureFile) -> FileContent:
        """Return what is known of a file's bytes; those that no program described are read."""
        encoding = file.encoding or GivenEncoding(media_type=file.media_type)
        if file.checksum is not None and file.byte_size is not None:
            return FileContent(file.checksum, file.byte_size, encoding)
        reading = await self.byte_sources.read(file.uri)
        if reading.digest is None or reading.byte_size is None:
            raise FileNotReadError(reading.error_detail)
        return FileContent(GivenChecksum(algorithm="sha256", value=reading.digest), reading.byte_size, encoding)

    async def _create(self, state: type[State], id: UUID, command: Command, caller: Caller) -> None:
        """Record what is not recorded yet; a refusal counts only where no other attempt has recorded it meanwhile."""
        if await load_state(self.commands.store, state, id) is not None:
            return
        try:
            await self.commands.execute(command, caller, new_id=id)
        except Refusal:
            if await load_state(self.commands.store, state, id) is None:
                raise


@dataclass
class DatasetRegistrations(FileRegistrations):
    """The files of a procedure become datasets when it ends, or when somebody asks for it."""

    workflow = rules.DATASET_REGISTRATION
    reaction = "dataset_registration"
    wakes_on = (ProcedureCompleted, ProcedureAborted)
    command = RegisterProcedureDatasets
    readable_with = "GetProcedureFiles"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        caller, procedure_id = self.caller_of(task), UUID(task.ids["procedure_id"])
        procedure = await self.commands.read(require(Procedure, procedure_id), caller)
        products = await self.commands.read(rules.products_of(procedure), caller)
        run, registration = RegisterProcedureDatasets.require_registration(products)
        files = await self.commands.read(rules.files_of(procedure_id), caller)
        origin = FileOrigin(run, procedure.id, procedure.registered_at)
        registered: list[UUID] = []
        left: list[LeftFile] = []
        for place, file in enumerate(files):
            await self.note(task.work_id, done=place, total=len(files))
            try:
                registered.append(await self.register(origin, registration, file, caller))
            except (Unavailable, ConcurrencyError, UnauthorizedError):
                raise
            except FileNotReadError as unread:
                left.append(LeftFile(step_index=file.step_index, code="FileUnreachable", detail=str(unread)))
            except Refusal as refusal:
                left.append(LeftFile(step_index=file.step_index, code=refusal.code, detail=refusal.detail))
        answer = rules.RegisteredProducts(procedure_id=procedure_id, dataset_ids=tuple(registered), left=tuple(left))
        return answer.model_dump(mode="json")

    async def concerned_ids(self, event: EventRow) -> Sequence[UUID]:
        """Begin the registration of what an ended phase left, where its plan says how, and return its id."""
        caller = caller_of(event)
        procedure = await self.commands.read(require(Procedure, event.stream_id), caller)
        if (await self.commands.read(rules.products_of(procedure), caller)).registration is None:
            return ()
        if not await self.commands.read(rules.files_of(procedure.id), caller):
            return ()
        conduct = await load_row(self.commands.store, OpenedConduct, conduct_id=procedure.last_conduct_id)
        if conduct is not None and conduct.principal_id == caller.principal_id:
            caller = replace(caller, proven_group_ids=frozenset(conduct.proven_group_ids))
        await self.begin(procedure, caller)
        return (rules.registration_id(procedure),)

    async def begin(self, procedure: Procedure, caller: Caller) -> None:
        """Begin the work for a procedure that ended, unless it was begun before."""
        if await self._find(rules.registration_id(procedure)) is None:
            call = caller.call(self.commands.clock(), self.commands.new_id())
            rows = [write for write in rules.begin_registration(procedure, None, call) if isinstance(write, Put)]
            async with self.commands.store.session() as session:
                clock, new_id, work = self.commands.clock, self.commands.new_id, caller.correlation_id
                await session.append(system_batch(self.command_name, clock, new_id, *rows, work=work))


@dataclass
class RunFileRegistrations(FileRegistrations):
    """The files of a witnessed run become datasets; those not there yet are waited for, since writers close late."""

    workflow = run_rules.RUN_FILE_REGISTRATION
    command = RegisterRunFiles
    readable_with = "GetRun"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        caller, run_id = self.caller_of(task), UUID(task.ids["run_id"])
        run = await self.commands.read(require(Run, run_id), caller)
        registration = await self.commands.read(run_rules.registration_of(run), caller)
        if registration is None:
            raise RegisterRunFiles.cannot(
                "no_registration", "The plan of the run does not say any more how files are registered."
            )
        asked = RegisterRunFiles.model_validate({**task.request, "wait": 0})
        origin = FileOrigin(run, None, run.created_at)
        until = task.created_at + timedelta(seconds=asked.patience_seconds)
        waiting, registered, left = list(asked.files), [], {}
        while waiting:
            await self.note(task.work_id, done=len(asked.files) - len(waiting), total=len(asked.files))
            unread = []
            for file in waiting:
                capturing = await self.commands.read(run_rules.capturing_asset_id(file, registration), caller)
                by = registration.model_copy(update={"capturing_asset_id": capturing})
                try:
                    registered.append(await self.register(origin, by, run_rules.as_procedure_file(file, run), caller))
                except (Unavailable, ConcurrencyError, UnauthorizedError):
                    raise
                except FileNotReadError as reason:
                    unread.append(file)
                    left[file.uri] = LeftRunFile(uri=file.address, code="FileUnreachable", detail=str(reason))
                except Refusal as refusal:
                    left[file.uri] = LeftRunFile(uri=file.address, code=refusal.code, detail=refusal.detail)
                else:
                    left.pop(file.uri, None)
            waiting = unread if self.commands.clock() < until else []
            if waiting:
                await asyncio.sleep(LOOK_AGAIN)
        answer = RegisteredRunFiles(run_id=run_id, dataset_ids=tuple(dict.fromkeys(registered)), left=tuple(left.values()))
        told = run_rules.RecordRunFiles(work_id=task.work_id, dataset_ids=answer.dataset_ids, left=answer.left)
        await self.commands.execute(told, caller, target_id=run_id)
        return answer.model_dump(mode="json")


def content_of(dataset: Dataset) -> FileContent:
    """Return what a dataset says of its bytes."""
    checksum = GivenChecksum(algorithm=dataset.checksum.algorithm.value, value=dataset.checksum.value)
    return FileContent(checksum, dataset.byte_size, GivenEncoding(**dict(dataset.encoding)))


def caller_of(event: EventRow) -> Caller:
    """Return who caused an event, as whom what follows from it is done."""
    surface_id = event.surface_id or UUID(int=0)
    return Caller(event.principal_id, surface_id, event.correlation_id, causation_id=event.event_id)
