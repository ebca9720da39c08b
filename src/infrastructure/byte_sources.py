"""Where the bytes of copies are read: files under the data roots, and the allowed hosts of HTTP in ranges. A reading never
fails: bytes that cannot be read are an answer, with a sentence that says why and names no address."""

import asyncio
import errno
import hashlib
import os
import re
from collections.abc import AsyncIterator, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Event

import httpx

from baton.domain.data.attestation import NO_VERIFIER, VERIFIERS, ByteReading
from baton.domain.data.values import scheme_of
from baton.infrastructure.data_files import DataFiles, FileUnreachableError
from baton.infrastructure.tls import trusted_certificates

BLOCK = 1024 * 1024  # bytes that are held in memory of one reading
AT_ONCE = 8  # readings at a time; others wait their turn, which does not count against their budget
MAX_REDIRECTS = 5
SILENCE_SECONDS = 15.0  # after which a server counts as gone
DECIMAL = re.compile(r"[0-9]{1,18}")


class BytesUnreachableError(Exception):
    """Bytes cannot be read; the message says why."""


class ByteSources:
    """Reads the bytes under `file:`, `http:` and `https:`, each reading within a budget of seconds."""

    def __init__(self, files: DataFiles, allowed_hosts: Collection[str], budget_seconds: float) -> None:
        self._files = files
        self._allowed_hosts = frozenset(host.lower() for host in allowed_hosts)
        self._budget = budget_seconds
        self._turns = asyncio.Semaphore(AT_ONCE)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """Threads of their own: a file system that hangs holds up other files, and nothing else of the process."""
        return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="byte-source")

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        """A client that sends nothing of ours: no proxy, no password, no cookie."""
        return httpx.AsyncClient(
            verify=trusted_certificates(),
            trust_env=False,
            follow_redirects=False,
            timeout=SILENCE_SECONDS,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={"Accept": "*/*", "Accept-Encoding": "identity"},
        )

    async def aclose(self) -> None:
        if "_http" in vars(self):
            await self._http.aclose()
        if "_threads" in vars(self):
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(self, uri: str) -> ByteReading:
        scheme = scheme_of(uri)
        if (verifier_kind := VERIFIERS.get(scheme)) is None:
            return ByteReading(verifier_kind=NO_VERIFIER, error_detail=f"Nothing here reads {scheme}: addresses.")
        digest, size, detail = None, None, None
        try:
            async with self._turns, asyncio.timeout(self._budget):
                digest, size = await (self._file_digest(uri) if scheme == "file" else self._http_digest(uri))
        except TimeoutError:
            detail = f"Reading it took longer than {self._budget:g} s; see VERIFIER_BUDGET_SECONDS."
        except (FileUnreachableError, BytesUnreachableError) as error:
            detail = str(error)
        except httpx.TimeoutException:
            detail = f"The server was silent for {SILENCE_SECONDS:g} s."
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            detail = f"The server cannot be reached, or broke off ({type(error).__name__})."
        return ByteReading(verifier_kind=verifier_kind, digest=digest, byte_size=size, error_detail=detail)

    async def _file_digest(self, uri: str) -> tuple[str, int]:
        stopping = Event()
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, file_digest, self._files, uri, stopping)
        finally:
            stopping.set()

    async def _http_digest(self, uri: str) -> tuple[str, int]:
        async with self._respond("HEAD", uri) as head:
            await head.aread()  # Nothing; else its connection would be closed.
            if head.status_code != 200:
                raise BytesUnreachableError(f"The server answers HEAD with status {head.status_code}.")
            refuse_encoded(head)
            length, entity = content_length(head), head.headers.get("ETag")
        found = hashlib.sha256()
        for start in range(0, length, BLOCK):
            block = await self._range(uri, start, min(start + BLOCK, length) - 1, length, entity)
            await asyncio.get_running_loop().run_in_executor(self._threads, found.update, block)
        return found.hexdigest(), length

    async def _range(self, uri: str, first: int, last: int, length: int, entity: str | None) -> bytes:
        """Return the bytes of one range, or refuse an answer that is not exactly that."""
        async with self._respond("GET", uri, Range=f"bytes={first}-{last}") as response:
            if response.status_code != 206:
                status = response.status_code
                raise BytesUnreachableError(f"The server answers a range of bytes with status {status} instead of 206.")
            refuse_encoded(response)
            if response.headers.get("ETag") != entity:
                raise BytesUnreachableError("The bytes changed while they were read; check them again.")
            if response.headers.get("Content-Range") != f"bytes {first}-{last}/{length}":
                raise BytesUnreachableError("The server answers another range of bytes than it was asked for.")
            block, size = bytearray(), last - first + 1
            async for part in response.aiter_raw():
                block += part
                if len(block) > size:
                    break
        if len(block) != size:
            raise BytesUnreachableError("The server answers more or fewer bytes than the range has.")
        return bytes(block)

    @asynccontextmanager
    async def _respond(self, method: str, uri: str, **headers: str) -> AsyncIterator[httpx.Response]:
        """The answer to a request, behind the redirects that lead to allowed hosts."""
        url = self._check_address(httpx.URL(uri))
        for _ in range(MAX_REDIRECTS + 1):
            async with self._http.stream(method, url, headers=headers) as response:
                if not response.has_redirect_location:
                    yield response
                    return
                url = self._check_address(url.join(response.headers["Location"]))
        raise BytesUnreachableError(f"The server redirects more than {MAX_REDIRECTS} times.")

    def _check_address(self, url: httpx.URL) -> httpx.URL:
        """Return an address that may be asked, or refuse it."""
        if url.scheme not in ("http", "https") or not url.host:
            raise BytesUnreachableError("The address, or a redirect from it, is none of http: or https:.")
        if url.userinfo:
            raise BytesUnreachableError("The address carries a name or password; none are sent from here, leave them out.")
        host = f"[{url.host}]" if ":" in url.host else url.raw_host.decode("ascii").lower()
        port = url.port or (443 if url.scheme == "https" else 80)
        if not self._allowed_hosts & {host, f"{host}:{port}"}:
            raise BytesUnreachableError("The host, or one that it redirects to, is not listed in VERIFIER_ALLOWED_HOSTS.")
        return url


def file_digest(files: DataFiles, uri: str, stopping: Event) -> tuple[str, int]:
    """Return digest and size of a file, read block by block; one that is changed meanwhile has none."""
    found = hashlib.sha256()
    descriptor = files.open(uri)
    try:
        before = os.fstat(descriptor)
        while (block := os.read(descriptor, BLOCK)) and not stopping.is_set():
            found.update(block)
        after = os.fstat(descriptor)
    except OSError as error:
        raise BytesUnreachableError(f"Reading it failed ({errno.errorcode.get(error.errno or 0, 'unknown')}).") from error
    finally:
        os.close(descriptor)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise BytesUnreachableError("The file changed while it was read; check it again.")
    return found.hexdigest(), after.st_size


def content_length(head: httpx.Response) -> int:
    """Return the length that a server declares."""
    declared = head.headers.get("Content-Length", "")
    if DECIMAL.fullmatch(declared) is None:
        raise BytesUnreachableError("The server does not say how many bytes there are.")
    return int(declared)


def refuse_encoded(response: httpx.Response) -> None:
    """Refuse bytes that were compressed on the way: they are others than those that are asked for."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise BytesUnreachableError("The server compresses the bytes although it was asked not to.")
