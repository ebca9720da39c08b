"""Fetching from peers: each at its own configured address, with the token it gave us, and nowhere else."""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from typing import NoReturn
from uuid import UUID

import httpx

from baton.application.settings import FederationPeer
from baton.domain.federation.artifact_check import MAX_ARTIFACT_BYTES, signed_content
from baton.domain.federation.publication import bytes_hash
from baton.domain.federation.published_artifact import ARTIFACTS
from baton.domain.federation.received_artifact import ArtifactFetchError
from baton.infrastructure.tls import trusted_certificates

DEADLINE = 20.0  # seconds for a whole answer: a peer that sends single bytes passes every other time limit
LATER = "nothing was recorded, repeat the request later"


class HttpPeerClient:
    """Fetches over HTTP; redirects are not followed, since they would lead a token or a request elsewhere."""

    def __init__(self, peers: Mapping[str, FederationPeer], *, deadline: float = DEADLINE) -> None:
        self._peers = peers
        self._deadline = deadline

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        """Open the client when something is first fetched: it reads all certificates."""
        return httpx.AsyncClient(verify=trusted_certificates(), timeout=self._deadline, follow_redirects=False)

    async def aclose(self) -> None:
        if "_http" in vars(self):
            await self._http.aclose()

    async def fetch(self, facility_code: str, receipt_id: UUID, content_hash: str, uri: str | None = None) -> bytes:
        if (peer := self._peers.get(facility_code)) is None or peer.address is None:
            refuse("no_address", f"There is no address of {facility_code} to fetch from; add it to FEDERATION_PEERS.")
        if uri is not None and not uri.startswith(f"{peer.address}/"):
            refuse("other_address", "The artifact is said to be elsewhere than at its publisher; ask there where it is.")
        document = await self._download(peer, uri or f"{peer.address}{ARTIFACTS}/{receipt_id}")
        content = signed_content(document)
        if content is None or bytes_hash(content) != content_hash:
            refuse("hash_mismatch", "What the peer sent is not what was asked for; check the receipt and the hash with it.")
        return document

    async def _download(self, peer: FederationPeer, url: str) -> bytes:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if peer.token is not None:
            headers["Authorization"] = f"Bearer {peer.token.get_secret_value()}"
        body = bytearray()
        try:
            async with asyncio.timeout(self._deadline), self._http.stream("GET", url, headers=headers) as response:
                if response.status_code != 200:
                    refuse_status(response.status_code)
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > MAX_ARTIFACT_BYTES:
                        limit = f"{MAX_ARTIFACT_BYTES // 1024} KiB"
                        refuse("too_large", f"What the peer sends is larger than {limit}, which no artifact is; ask it why.")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            late = isinstance(error, TimeoutError | httpx.TimeoutException)
            why = f"gave no answer within {self._deadline:g} s" if late else f"cannot be reached ({type(error).__name__})"
            raise ArtifactFetchError(f"The peer {why}; {LATER}.", reason="unreachable") from None
        return bytes(body)


def refuse_status(status: int) -> NoReturn:
    """Refuse what came instead of an artifact."""
    match status:
        case 401 | 403:
            detail, reason = "does not let us read this; ask it for a token that may, for FEDERATION_PEERS", "access_refused"
        case 404:
            detail, reason = "has no artifact under this receipt; check the receipt with it", "not_found"
        case 409:
            detail, reason = "does not let this artifact go any more; ask it for a permit", "not_permitted"
        case _ if 300 <= status < 400:
            detail, reason = "sends us elsewhere, where we do not go; correct its address in FEDERATION_PEERS", "redirected"
        case _:
            detail, reason = f"failed; {LATER}", "failed"
    raise ArtifactFetchError(f"The peer {detail} (status {status}).", reason=reason, facts={"status": status})


def refuse(reason: str, detail: str) -> NoReturn:
    raise ArtifactFetchError(detail, reason=reason)
