"""Who issues persistent identifiers: DataCite, a local minter for development, a package's, or nobody."""

import asyncio
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NoReturn
from urllib.parse import quote

import httpx

from baton.application.ports import Minter
from baton.application.settings import PidMinter, Settings
from baton.domain.shared.citation import WEB, Citation, MintedIdentifier, datacite_json
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.refusals import ExternalIdMintError, ExternalIdMintingNotConfiguredError
from baton.domain.shared.text import shorten
from baton.infrastructure.plugins import MINTERS
from baton.infrastructure.tls import trusted_certificates

DEADLINE = 15.0  # seconds for a whole answer: a registry that sends single bytes passes every other time limit
MAX_ANSWER_BYTES = 4 * 1024 * 1024
JSON_API = "application/vnd.api+json"
LATER = "nothing was recorded, repeat the request later"


class DataCiteMinter:
    """Mints over DataCite's REST API. The DOI follows from the suffix, so the next try finds one that was interrupted:
    DataCite then says that the DOI is taken, and it is ours if it leads to our own landing page."""

    schemes = frozenset({ExternalIdScheme.DOI})
    drafts = True

    def __init__(self, address: str, prefix: str, repository_id: str, password: str, *, deadline: float = DEADLINE) -> None:
        self._address = address
        self._prefix = prefix
        self._deadline = deadline
        self._account = (repository_id, password)

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        """Open the client when something is first minted: it reads all certificates."""
        accept = {"Accept": JSON_API}
        return httpx.AsyncClient(
            verify=trusted_certificates(), auth=self._account, headers=accept, timeout=self._deadline, follow_redirects=False
        )

    async def aclose(self) -> None:
        if "_http" in vars(self):
            await self._http.aclose()

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        if not metadata.landing_page.startswith(WEB):
            detail = "The identifier would lead nowhere, because no address of its page is known; set PUBLIC_BASE_URL."
            raise ExternalIdMintingNotConfiguredError(detail, reason="no_landing_page")
        doi = f"{self._prefix}/{suffix}"
        attributes = {**({"event": "publish"} if metadata.findable else {}), **datacite_json(metadata)}
        status, answer = await self._ask("POST", "/dois", {"doi": doi, **attributes})
        if status == 422 and "already been taken" in error_titles(answer):
            found = await self._record(doi)
            if found is None or found.get("url") != metadata.landing_page:
                detail = f"{doi} is registered for something else; give another suffix."
                raise ExternalIdMintError(detail, reason="taken", facts={"doi": doi})
            status, answer = await self._ask("PUT", path_of(doi), attributes)
        if status not in (200, 201):
            refuse(status, answer)
        issued = member(answer, "data", "id")
        if not isinstance(issued, str) or issued.lower() != doi.lower():
            unusable("it does not name the identifier that was asked for")
        return MintedIdentifier(scheme, issued)

    async def tombstone(self, scheme: ExternalIdScheme, value: str, reason: str) -> None:
        if (found := await self._record(value)) is None:
            detail = f"DataCite does not know {value}; check the identifier."
            raise ExternalIdMintError(detail, reason="unknown", facts={"doi": value})
        if found.get("state") != "findable":
            return
        descriptions = [{"description": reason, "descriptionType": "Other"}]
        status, answer = await self._ask("PUT", path_of(value), {"event": "hide", "descriptions": descriptions})
        if status != 200:
            refuse(status, answer)

    async def _record(self, doi: str) -> Mapping[str, Any] | None:
        status, answer = await self._ask("GET", path_of(doi))
        if status == 404:
            return None
        if status != 200:
            refuse(status, answer)
        attributes = member(answer, "data", "attributes")
        return attributes if isinstance(attributes, dict) else unusable("it has no attributes")

    async def _ask(
        self, method: str, path: str, attributes: Mapping[str, object] | None = None
    ) -> tuple[int, dict[str, Any]]:
        sent = None if attributes is None else json.dumps({"data": {"type": "dois", "attributes": attributes}})
        headers = {} if sent is None else {"Content-Type": JSON_API}
        body = bytearray()
        try:
            async with (
                asyncio.timeout(self._deadline),
                self._http.stream(method, f"{self._address}{path}", content=sent, headers=headers) as response,
            ):
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_ANSWER_BYTES:
                        unusable("it is too long")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            late = isinstance(error, TimeoutError | httpx.TimeoutException)
            why = f"gave no answer within {self._deadline:g} s" if late else f"cannot be reached ({type(error).__name__})"
            raise ExternalIdMintError(f"DataCite {why}; {LATER}.", reason="unreachable") from None
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            if response.is_success:
                unusable("it is no JSON object")
            answer = {}
        return response.status_code, answer


def path_of(doi: str) -> str:
    return f"/dois/{quote(doi, safe='/')}"


def member(answer: Mapping[str, object], *names: str) -> Any:
    """Return the value under these nested names of an answer, or None."""
    found: object = answer
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def error_titles(answer: Mapping[str, object]) -> str:
    errors = answer.get("errors")
    titles = [error.get("title") for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    return shorten("; ".join(title for title in titles if isinstance(title, str)))


def refuse(status: int, answer: Mapping[str, object]) -> NoReturn:
    match status:
        case 401 | 403:
            account = "DATACITE_REPOSITORY_ID, DATACITE_PASSWORD and that DATACITE_PREFIX is assigned to it"
            detail, reason = f"does not accept this service's account (status {status}); check {account}", "account_refused"
        case 429:
            detail, reason = f"has too much to do (status 429); {LATER}", "busy"
        case _ if status >= 500 or status < 400:
            detail, reason = f"failed (status {status}); {LATER}", "failed"
        case _:
            titles = error_titles(answer) or "it gives no reason"
            detail, reason = f"does not take the record (status {status}: {titles}); correct what it names", "rejected"
    raise ExternalIdMintError(f"DataCite {detail}.", reason=reason, facts={"status": status})


def unusable(why: str) -> NoReturn:
    raise ExternalIdMintError(f"DataCite's answer cannot be used, {why}; {LATER}.", reason="answer_unusable")


TEST_PREFIXES = {ExternalIdScheme.DOI: "10.5072", ExternalIdScheme.HANDLE: "20.500.12345"}  # they do not resolve


class DeterministicMinter:
    """Mints for development: the same identifier for the same suffix every time, and nothing leaves the process."""

    schemes = frozenset(TEST_PREFIXES)
    drafts = True

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        return MintedIdentifier(scheme, f"{TEST_PREFIXES[scheme]}/{suffix}")

    async def tombstone(self, scheme: ExternalIdScheme, value: str, reason: str) -> None:
        return

    async def aclose(self) -> None:
        return


def configured_minter(settings: Settings) -> Minter | None:
    match settings.pid_minter:
        case PidMinter.NONE:
            return None
        case PidMinter.DEVELOPMENT:
            return DeterministicMinter()
        case PidMinter.DATACITE:
            prefix, repository_id = settings.datacite_prefix, settings.datacite_repository_id
            password = settings.datacite_password
            if prefix is None or repository_id is None or password is None:
                raise ValueError("DATACITE_PREFIX, DATACITE_REPOSITORY_ID or DATACITE_PASSWORD is not set")
            return DataCiteMinter(settings.datacite_address, prefix, repository_id, password.get_secret_value())
        case str() as name:
            return MINTERS.make(name)
