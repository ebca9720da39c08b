"""Where the service is and how patient a connection to it is; the same for both kinds of client."""

import os
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any

import httpx

from baton.client.refusals import InvalidAddressError
from baton.client.requests import HttpResponse

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT = httpx.Timeout(10, read=330)  # long work is waited for, up to five minutes
STREAM_TIMEOUT = httpx.Timeout(10, read=40)  # a stream without even a comment for so long counts as dead


def connection_options(url: str, token: str | None) -> dict[str, Any]:
    """Return what a connection to the service is opened with; the token is that of `BATON_TOKEN` where none is given, and
    none where an empty one is."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL("")
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidAddressError(f"{url} is no URL; give one like {DEFAULT_URL}.")
    token = os.environ.get("BATON_TOKEN") if token is None else token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # Reading all certificates takes longer than most requests, so an address without TLS trusts none.
    trusted = True if address.scheme == "https" else SSLContext(PROTOCOL_TLS_CLIENT)
    return {"base_url": url, "headers": headers, "timeout": TIMEOUT, "verify": trusted}


def response_of(answer: httpx.Response, content: bytes) -> HttpResponse:
    """Return a response as exchanges read it."""
    return HttpResponse(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, content)


def loss_of(error: Exception) -> str:
    """Return why a request was not answered."""
    return str(error) or type(error).__name__
