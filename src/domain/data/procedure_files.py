"""Files of procedures: those that actions recorded and programs wrote, told by the activity logbook, and what became of
each. Where the plan of a run says so they become datasets at the end of each phase; a person can ask for it as well."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit
from uuid import UUID

from baton.domain.conduct.messages import Mark
from baton.domain.data.dataset import PRODUCTS, Dataset, DatasetStatus
from baton.domain.data.distribution import AccessProtocol
from baton.domain.data.values import GivenChecksum, GivenEncoding, scheme_of
from baton.domain.kernel import Call, JudgedVerb, Outcome, Query
from baton.domain.procedure.activity_logbook import StepKind
from baton.domain.procedure.procedure import Procedure, ProcedureStatus, procedure
from baton.domain.recipe.plan import DataRegistration, Plan
from baton.domain.registry import OpenedWork
from baton.domain.run.run import Run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, ask, find, find_all, members_of, record_of
from baton.domain.shared.tasks import Task, TaskStatus, Wait, begin_or_join_task
from baton.domain.shared.text import FreeText, MayContainPersonalData

DATASET_REGISTRATION = "dataset-registration"  # The kind of task.
MAX_NAME = 200
MEDIA_TYPES = {
    **dict.fromkeys((".h5", ".hdf5", ".hdf", ".nxs", ".nx"), "application/x-hdf5"),
    **dict.fromkeys((".tif", ".tiff"), "image/tiff"),
    ".zarr": "application/x-zarr",
    ".json": "application/json",
    ".csv": "text/csv",
    ".txt": "text/plain",
}  # By the end of a file's name; whatever else there is counts as bytes.
PROTOCOLS = {
    "file": AccessProtocol.POSIX,
    "nfs": AccessProtocol.NFS,
    "s3": AccessProtocol.S3,
    "globus": AccessProtocol.GLOBUS,
    "http": AccessProtocol.HTTPS,
    "https": AccessProtocol.HTTPS,
}


class ProcedureFile(NamedTuple):
    """A file or directory that a step left. An action tells only its address; a program's output comes with a checksum."""

    uri: str
    step_index: int
    recorded: bool  # By an action, and not written by a program.
    written_at: datetime
    output_name: str | None = None
    checksum: GivenChecksum | None = None
    byte_size: int | None = None
    encoding: GivenEncoding | None = None
    input_uris: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    evidence: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """The last part of its address."""
        return PurePosixPath(unquote(urlsplit(self.uri).path)).name or self.uri

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES.get(PurePosixPath(self.name).suffix.lower(), "application/octet-stream")

    @property
    def protocol(self) -> AccessProtocol | None:
        """How it is reached; None where that does not follow from its address."""
        return PROTOCOLS.get(scheme_of(self.uri))


class FileRow(NamedTuple):
    """What the ledger says about a step that left files."""

    step_kind: str
    mark: str
    step_index: int
    sampled_at: datetime
    payload: Mapping[str, Any]


class FilePort(Protocol):
    """Reads which steps left files."""

    async def file_rows(self, procedure_id: UUID) -> Sequence[FileRow]:
        """Return what the ledger says about steps of a procedure that left files, in the order it was written."""


def files_of(procedure_id: UUID) -> Reads[tuple[ProcedureFile, ...]]:
    """Return the files of a procedure in the order of their last writing; one written several times is listed once."""
    return files_in((yield from ask(FilePort.file_rows, procedure_id)))


def files_in(rows: Iterable[FileRow]) -> tuple[ProcedureFile, ...]:
    """Return the files that these rows tell of."""
    found: dict[str, ProcedureFile] = {}
    for row in rows:
        if row.mark == Mark.DEPOSIT:
            if (file := found.get(row.payload["artifact"]["uri"])) is not None:
                found[file.uri] = file._replace(output_name=row.payload["output_ref_name"])
            continue
        for file in _recorded_files(row) if row.step_kind == StepKind.ACTION else _written_files(row):
            found.pop(file.uri, None)
            found[file.uri] = file
    return tuple(found.values())


def _recorded_files(row: FileRow) -> Iterable[ProcedureFile]:
    result = row.payload.get("result_data", {})
    given = [result.get("uri"), *(result["uris"] if isinstance(result.get("uris"), list) else ())]
    settings = {"action": row.payload["name"], **row.payload.get("params", {})}
    evidence = {name: value for name, value in result.items() if name not in ("uri", "uris")}
    for uri in given:
        if isinstance(uri, str) and ":" in uri:
            yield ProcedureFile(uri, row.step_index, True, row.sampled_at, settings=settings, evidence=evidence)


def _written_files(row: FileRow) -> Iterable[ProcedureFile]:
    for artifact in row.payload.get("artifacts", ()):
        file = ProcedureFile(artifact["uri"], row.step_index, False, row.sampled_at)
        media_type = artifact.get("media_type") or file.media_type
        profiles = frozenset([artifact["conforms_to"]] if artifact.get("conforms_to") else [])
        yield file._replace(
            checksum=GivenChecksum(algorithm=artifact["checksum_algorithm"], value=artifact["checksum_value"]),
            byte_size=artifact["byte_size"],
            encoding=GivenEncoding(media_type=media_type, conforms_to=profiles),
            input_uris=tuple(uri for uri in row.payload.get("input_uris", ()) if isinstance(uri, str)),
        )


def dataset_name(run: Run, file: ProcedureFile) -> str:
    """Return what the dataset of a file is called: the file, and the run."""
    return f"{file.name} of {run.name}"[:MAX_NAME].strip()


def parents_of(file: ProcedureFile, datasets: Iterable[Dataset]) -> frozenset[UUID]:
    """Return the datasets that a program read as its inputs, whole directories of them included."""
    inputs = [uri.rstrip("/") for uri in file.input_uris]
    kept = (dataset for dataset in datasets if dataset.status is DatasetStatus.REGISTERED and dataset.uri != file.uri)
    return frozenset(one.id for one in kept if any(one.uri == uri or one.uri.startswith(f"{uri}/") for uri in inputs))


def datasets_of_run(run_id: UUID) -> Reads[tuple[Dataset, ...]]:
    """Return what a run produced so far."""
    found = yield from find_all(Dataset, (yield from members_of(PRODUCTS, run_id)))
    return tuple(found.values())


def product_id(origin_id: UUID, since: datetime, file: ProcedureFile, what: str) -> UUID:
    """Return the id that the dataset, the copy or the acquisition of a file gets, the same in every attempt; it follows from
    what left the file."""
    return derived_uuid7(int(since.timestamp() * 1000), f"{what}:{origin_id}", file.uri)


def registration_id(procedure: Procedure) -> UUID:
    """Return the id of the work that registers the files of a procedure."""
    return derived_uuid7(int(procedure.registered_at.timestamp() * 1000), DATASET_REGISTRATION, str(procedure.id))


class ProcedureProducts(NamedTuple):
    """A procedure's run and what its plan says about files; each is None where there is none."""

    run: Run | None
    registration: DataRegistration | None


def products_of(procedure: Procedure) -> Reads[ProcedureProducts]:
    """Return the run of a procedure and what its plan says about files."""
    run = yield from find(Run, procedure.parent_run_id)
    plan = yield from find(Plan, None if run is None else run.plan_id)
    return ProcedureProducts(run, None if plan is None else plan.data_registration)


class LeftFile(AnswerForm):
    """A file that did not become a dataset, and why."""

    step_index: int
    code: str
    """The class name of the refusal."""
    detail: Annotated[str, MayContainPersonalData()]


class RegisteredProducts(AnswerForm):
    """What became of a procedure's files."""

    procedure_id: UUID
    dataset_ids: tuple[UUID, ...]
    left: tuple[LeftFile, ...]


class FileRegistrationFacts(NamedTuple):
    """What a request to register files is judged by: what the plan says, and the same work, if it was begun before."""

    products: ProcedureProducts
    earlier: Task | None


class RegistrationAccepted(AnswerForm):
    """The files are being registered; the work is found under its id."""

    procedure_id: UUID
    work_id: UUID


@procedure.command(
    post="/{procedure_id}/register-datasets",
    allowed=[ProcedureStatus.COMPLETED, ProcedureStatus.ABORTED, ProcedureStatus.TRUNCATED],
    status=200,
    work=OpenedWork(DATASET_REGISTRATION),
    returns=RegisteredProducts,
    accepted=RegistrationAccepted,
)
class RegisterProcedureDatasets(JudgedVerb[Procedure, FileRegistrationFacts]):
    """Register the files of an ended phase as datasets, as its plan says; those that are registered stay as they are."""

    wait: Wait = 30

    def gather(self, procedure: Procedure, call: Call) -> Reads[FileRegistrationFacts]:
        earlier = yield from record_of(Task, work_id=registration_id(procedure))
        return FileRegistrationFacts((yield from products_of(procedure)), earlier)

    def decide(self, procedure: Procedure, call: Call, facts: FileRegistrationFacts) -> Outcome:
        self.require_registration(facts.products)
        return begin_registration(procedure, facts.earlier, call)

    @classmethod
    def require_registration(cls, products: ProcedureProducts) -> tuple[Run, DataRegistration]:
        """Return the run and what its plan says, or refuse a procedure whose files nobody said how to register."""
        if products.run is None or products.registration is None:
            detail = "The procedure is no phase of a run whose plan registers files; set_plan_data_registration says how."
            raise cls.cannot("no_registration", detail)
        return products.run, products.registration


def begin_registration(procedure: Procedure, earlier: Task | None, call: Call) -> Outcome:
    """Return what begins the work that registers the files of a procedure, or joins it where it is under way."""
    ids = {"procedure_id": procedure.id}
    return begin_or_join_task(DATASET_REGISTRATION, registration_id(procedure), {}, ids, earlier, call)


class FileView(AnswerForm):
    """A file of a procedure; `dataset_id` is null while it is not registered."""

    uri: FreeText
    name: FreeText
    step_index: int
    written_at: datetime
    """When the file was written."""
    output_name: str | None
    """The name of the program's output."""
    dataset_id: UUID | None


class ProcedureFilesView(AnswerForm):
    """The files of a procedure, and how far their registration is; `status` is null where none was begun."""

    files: tuple[FileView, ...]
    """The files that the steps left."""
    work_id: UUID | None
    status: TaskStatus | None
    refusal: Annotated[str | None, MayContainPersonalData()] = None  # Why none was registered, where that was refused.
    """Why the files could not be registered."""
    left: tuple[LeftFile, ...] = ()


@procedure.query(get="/{procedure_id}/files", returns=ProcedureFilesView)
class GetProcedureFiles(Query[ProcedureFilesView]):
    """The files that the steps of a procedure left, as its logbook tells, and the datasets that they became."""

    def answer(self, procedure: Procedure, call: Call) -> Reads[ProcedureFilesView]:
        files = yield from files_of(procedure.id)
        ids = {file.uri: product_id(procedure.id, procedure.registered_at, file, "dataset") for file in files}
        known = yield from find_all(Dataset, ids.values())
        task = yield from record_of(Task, work_id=registration_id(procedure))
        left = () if task is None or task.answer is None else task.answer["left"]
        return ProcedureFilesView(
            files=tuple(
                FileView(
                    uri=file.uri,
                    name=file.name,
                    step_index=file.step_index,
                    written_at=file.written_at,
                    output_name=file.output_name,
                    dataset_id=ids[file.uri] if ids[file.uri] in known else None,
                )
                for file in files
            ),
            work_id=None if task is None else task.work_id,
            status=None if task is None else task.status,
            refusal=None if task is None or task.refusal is None else task.refusal["detail"],
            left=tuple(LeftFile.model_validate(one) for one in left),
        )
