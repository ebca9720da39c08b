"""SciCat as a catalogue: each dataset under an identifier that follows from its id, by version 3 of SciCat's REST API."""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, NoReturn
from urllib.parse import quote, unquote, urlsplit
from uuid import UUID

import httpx

from baton.application.ports import CatalogueRefusedError, CatalogueUnavailableError
from baton.domain.data.catalogue import CataloguedDataset, origin_metadata
from baton.domain.data.dataset import DatasetStatus
from baton.domain.kernel import instant
from baton.domain.shared.deployment import CatalogueName
from baton.domain.shared.text import shorten
from baton.infrastructure.tls import trusted_certificates

DEADLINE = 15.0  # seconds for a whole answer
MAX_ANSWER_BYTES = 4 * 1024 * 1024
TAKEN = (409, 500)  # how SciCat answers a new dataset under an identifier that it has: the latter in its older versions
ONLY_AT_FIRST = ("pid", "type")  # what cannot be changed, and is not taken where something is
PROPOSAL = "proposal"  # the scheme of a run's outside reference that is SciCat's proposal


class SciCat:
    """Enters datasets in the name of the facility; no person is named as their owner or contact."""

    name = CatalogueName.SCICAT

    def __init__(
        self, address: str, token: str, owner_group: str, contact_email: str, pid_prefix: str, *, deadline: float = DEADLINE
    ) -> None:
        self._address = address
        self._token = token
        self._owner_group = owner_group
        self._contact_email = contact_email
        self._pid_prefix = pid_prefix
        self._deadline = deadline

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        """Open the client when something is first entered: it reads all certificates."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        return httpx.AsyncClient(
            verify=trusted_certificates(), headers=headers, timeout=self._deadline, follow_redirects=False
        )

    async def aclose(self) -> None:
        if "_http" in vars(self):
            await self._http.aclose()

    async def enter(self, shown: CataloguedDataset) -> bool:
        record = self._record(shown)
        path = f"/datasets/{quote(record['pid'], safe='')}"
        changes = {name: value for name, value in record.items() if name not in ONLY_AT_FIRST}
        if shown.dataset.status is DatasetStatus.DISCARDED:
            status, answer = await self._ask("PATCH", path, changes)
            if status == 404:
                return False
            refuse_failure(status, answer)
            return True
        status, answer = await self._ask("POST", "/datasets", record)
        if status in TAKEN:
            again, changed = await self._ask("PATCH", path, changes)
            status, answer = (again, changed) if again != 404 else (status, answer)
        refuse_failure(status, answer)
        await self._enter_files(f"{path}/origdatablocks", shown)
        return True

    async def _enter_files(self, path: str, shown: CataloguedDataset) -> None:
        """Enter the list of files, unless it is there."""
        status, answer = await self._ask("GET", path)
        refuse_failure(status, answer)
        block = file_block(shown)
        wanted = [file["path"] for file in block["dataFileList"]]
        blocks = [one for one in answer if isinstance(one, dict)] if isinstance(answer, list) else []
        if any(file_paths(one) == wanted for one in blocks):
            return
        refuse_failure(*await self._ask("POST", path, block))

    def _record(self, shown: CataloguedDataset) -> dict[str, Any]:
        """Return a dataset in SciCat's form, raw or derived."""
        dataset, run = shown.dataset, shown.run
        folder, _ = place_of(dataset.uri)
        record: dict[str, object] = {
            "pid": self._pid(dataset.id),
            "type": "derived" if dataset.derived_from else "raw",
            "owner": shown.publisher,
            "ownerGroup": self._owner_group,
            "contactEmail": self._contact_email,
            "creationTime": instant(shown.captured_at or dataset.created_at),
            "sourceFolder": folder,
            "datasetName": dataset.name,
            "isPublished": False,
            "validationStatus": dataset.intent.value,
            "keywords": [dataset.status.value, dataset.intent.value],
            "scientificMetadata": origin_metadata(shown),
        }
        if run is not None and PROPOSAL in run.external_refs:
            record["proposalId"] = run.external_refs[PROPOSAL]
        if dataset.derived_from:
            inputs = [self._pid(parent) for parent in sorted(dataset.derived_from)]
            return {**record, "investigator": shown.publisher, "inputDatasets": inputs, "usedSoftware": []}
        record |= {"principalInvestigator": shown.publisher, "creationLocation": f"/{shown.facility_code}"}
        record["dataFormat"] = dataset.encoding.media_type
        return record if dataset.subject_id is None else {**record, "sampleId": str(dataset.subject_id)}

    def _pid(self, dataset_id: UUID) -> str:
        return f"{self._pid_prefix}/{dataset_id}"

    async def _ask(self, method: str, path: str, content: Mapping[str, object] | None = None) -> tuple[int, Any]:
        body = bytearray()
        try:
            async with (
                asyncio.timeout(self._deadline),
                self._http.stream(method, f"{self._address}{path}", json=content) as response,
            ):
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_ANSWER_BYTES:
                        fail("answers at too great a length")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            late = isinstance(error, TimeoutError | httpx.TimeoutException)
            why = f"gave no answer within {self._deadline:g} s" if late else f"cannot be reached ({type(error).__name__})"
            raise CatalogueUnavailableError(f"SciCat {why}; it is asked again.", reason="unreachable") from None
        try:
            answer = json.loads(body) if body else None
        except (ValueError, RecursionError):
            if response.is_success:
                fail("gives an answer that is no JSON")
            answer = None
        return response.status_code, answer


def file_block(shown: CataloguedDataset) -> dict[str, Any]:
    """Return the list of a dataset's files; a directory is listed as one."""
    dataset = shown.dataset
    _, name = place_of(dataset.uri)
    written: datetime = shown.captured_at or dataset.created_at
    file = {"path": name, "size": dataset.byte_size, "time": instant(written), "chk": dataset.checksum.value}
    return {"size": dataset.byte_size, "chkAlg": dataset.checksum.algorithm.value, "dataFileList": [file]}


def file_paths(block: Mapping[str, object]) -> list[Any]:
    """Return the paths in a list of files as SciCat has it."""
    files = block.get("dataFileList")
    return [file.get("path") for file in files if isinstance(file, dict)] if isinstance(files, list) else []


def place_of(uri: str) -> tuple[str, str]:
    """Return the folder and the name under a URI; a file's folder is its path, any other keeps the scheme."""
    parts = urlsplit(uri)
    path = PurePosixPath(unquote(parts.path) if parts.scheme == "file" else parts.path)
    folder = str(path.parent) if parts.scheme == "file" else f"{parts.scheme}://{parts.netloc}{path.parent}"
    return folder, path.name or uri


def refuse_failure(status: int, answer: object) -> None:
    """Raise for an answer that is no success: the fault of the dataset, of the account, or of SciCat."""
    match status:
        case _ if 200 <= status < 300:
            return
        case 401:
            detail = "SciCat does not accept the token of this service; renew SCICAT_TOKEN."
            raise CatalogueUnavailableError(detail, reason="account_refused")
        case 408 | 429:
            raise CatalogueUnavailableError(
                f"SciCat has too much to do (status {status}); it is asked again.", reason="busy"
            )
        case _ if status >= 500 or status < 400:
            fail(f"failed (status {status})")
        case _:
            said = messages_in(answer) or "it gives no reason"
            remedy = "correct what it names, then retry the entry"
            raise CatalogueRefusedError(f"SciCat does not take the dataset (status {status}: {said}); {remedy}.")


def fail(what: str) -> NoReturn:
    raise CatalogueUnavailableError(f"SciCat {what}; it is asked again.", reason="failed")


def messages_in(answer: object) -> str:
    """Return what SciCat says about a failure, in one line."""
    said = answer.get("message") if isinstance(answer, dict) else None
    lines = said if isinstance(said, list) else [said]
    return shorten("; ".join(line for line in lines if isinstance(line, str)), 400)
