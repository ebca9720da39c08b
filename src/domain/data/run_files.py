"""Files of a run that happens elsewhere: its witness names them once they are closed, and the worker makes datasets of them,
with their copies and acquisitions, as the plan of the run says."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.data.procedure_files import ProcedureFile
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.signals import owners_of
from baton.domain.kernel import Call, Event, JudgedVerb, Outcome, Value
from baton.domain.recipe.plan import DataRegistration, Plan
from baton.domain.registry import OpenedWork
from baton.domain.run.run import ENDINGS, Run, run
from baton.domain.run.witnessing import address_of
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.canonical import content_hash, derived_uuid7
from baton.domain.shared.reads import Reads, find, latest_events, record_of
from baton.domain.shared.tasks import Task, Wait, begin_or_join_task
from baton.domain.shared.text import FreeText, MayContainPersonalData, TextsMayContainPersonalData

RUN_FILE_REGISTRATION = "run-file-registration"  # The kind of task.
MAX_FILES = 500


class RunFile(Value):
    """A file that a run elsewhere left, as its documents tell of it."""

    uri: Annotated[str, Field(min_length=1, max_length=2048)]
    mimetype: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """The media type that the documents give; null where the file's name tells it."""
    source: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """The address of the device that wrote it, whose owner captured it."""
    settings: Annotated[dict[str, JsonValue], TextsMayContainPersonalData()] = {}
    """The configuration of the device."""
    evidence: Annotated[dict[str, JsonValue], TextsMayContainPersonalData()] = {}
    """What the documents tell of its content: frames announced and found, the path inside the file."""

    @property
    def address(self) -> str:
        """Its address without credentials, query and fragment."""
        parts = urlsplit(self.uri)
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=host, query="", fragment="").geturl() if parts.scheme else self.uri


class LeftRunFile(AnswerForm):
    """A file that did not become a dataset, and why."""

    uri: FreeText
    code: str
    """The class name of the refusal."""
    detail: Annotated[str, MayContainPersonalData()]


class RegisteredRunFiles(AnswerForm):
    """What became of the files of a run."""

    run_id: UUID
    dataset_ids: tuple[UUID, ...]
    left: tuple[LeftRunFile, ...]


class RunFilesAccepted(AnswerForm):
    """The files are being registered; the work is found under its id."""

    run_id: UUID
    work_id: UUID


class RunFilesRegistered(Event, of=run, inert=True):
    """The files that a witnessed run left became datasets, but for those that were left as they are."""

    work_id: UUID
    dataset_ids: tuple[UUID, ...]
    left: tuple[LeftRunFile, ...]


class RunFileFacts(NamedTuple):
    """What a request to register files is judged by: what the plan says, and the same work, if it was begun before."""

    registration: DataRegistration | None
    earlier: Task | None


@run.command(
    post="/{run_id}/register-files",
    allowed=tuple(ENDINGS.values()),
    status=200,
    work=OpenedWork(RUN_FILE_REGISTRATION),
    returns=RegisteredRunFiles,
    accepted=RunFilesAccepted,
)
class RegisterRunFiles(JudgedVerb[Run, RunFileFacts]):
    """Register the files that a witnessed run left as datasets, as its plan says; those registered stay as they are."""

    files: Annotated[tuple[RunFile, ...], Field(min_length=1, max_length=MAX_FILES)]
    """The files to register."""
    patience_seconds: Annotated[int, Field(ge=0, le=600)] = 600
    """Seconds to wait for files that are not there yet."""
    wait: Wait = 30

    def gather(self, run: Run, call: Call) -> Reads[RunFileFacts]:
        earlier = yield from record_of(Task, work_id=self.work_id(run))
        return RunFileFacts((yield from registration_of(run)), earlier)

    def decide(self, run: Run, call: Call, facts: RunFileFacts) -> Outcome:
        if run.witness is None:
            detail = "The run is one of the service's own, whose files register_procedure_datasets registers."
            raise self.cannot("not_witnessed", detail)
        if facts.registration is None:
            detail = "The plan of the run does not say how files are registered; set_plan_data_registration says it."
            raise self.cannot("no_registration", detail)
        request = self.model_dump(mode="json", include={"files", "patience_seconds"})
        return begin_or_join_task(RUN_FILE_REGISTRATION, self.work_id(run), request, {"run_id": run.id}, facts.earlier, call)

    def work_id(self, run: Run) -> UUID:
        """Return the id of the work, the same for the same files."""
        files = content_hash([file.model_dump(mode="json") for file in self.files])
        return derived_uuid7(int(run.created_at.timestamp() * 1000), f"{RUN_FILE_REGISTRATION}:{run.id}", files)


@run.internal_command(command_name="RegisterRunFiles", attempts=3)
class RecordRunFiles(JudgedVerb[Run, Sequence[RunFilesRegistered]]):
    """Record what became of the files of a witnessed run; what is on record already is left as it is."""

    work_id: UUID
    dataset_ids: tuple[UUID, ...]
    left: tuple[LeftRunFile, ...]

    def gather(self, run: Run, call: Call) -> Reads[Sequence[RunFilesRegistered]]:
        return (yield from latest_events(run.id, RunFilesRegistered, count=1))

    def decide(self, run: Run, call: Call, facts: Sequence[RunFilesRegistered]) -> Outcome:
        registered = RunFilesRegistered(**dict(self))
        return [] if registered in facts else [registered]


def registration_of(run: Run) -> Reads[DataRegistration | None]:
    """Return what the plan of a run says about files."""
    plan = yield from find(Plan, run.plan_id)
    return None if plan is None else plan.data_registration


def capturing_asset_id(file: RunFile, registration: DataRegistration) -> Reads[UUID | None]:
    """Return the asset that captured a file: the owner of its device's address, else the one that the plan names."""
    address = None if file.source is None else address_of(file.source)
    owners: tuple[Asset, ...] = () if address is None else (yield from owners_of([address]))[address]
    return owners[0].id if owners else registration.capturing_asset_id


def as_procedure_file(file: RunFile, run: Run) -> ProcedureFile:
    """Return a file in the form of those that procedures leave."""
    known: dict[str, Any] = {"settings": file.settings, "evidence": {**file.evidence, "source": file.source}}
    return ProcedureFile(file.address, 0, True, run.updated_at, **known)
