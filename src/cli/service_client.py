"""The running service as other commands reach it over REST, and what they print when they cannot."""

from pathlib import Path
from typing import Any, NoReturn

import httpx

from baton.cli.startup import refuse, stack_address

DEFAULT_URL = "http://127.0.0.1:8000"


def service_url(url: str | None, data_dir: Path) -> str:
    """Return the named URL, that of the stack on the data directory, or the default one."""
    return url or stack_address(data_dir, "url") or DEFAULT_URL


def open_client(url: str, token: str | None, timeout: httpx.Timeout) -> httpx.Client:
    """Return a client of the service at this URL, or exit where it is no URL."""
    try:
        return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=timeout)
    except httpx.InvalidURL:
        refuse_url(url)


def error_members(answer: httpx.Response) -> dict[str, Any]:
    """Return the members of an error body, with at least a `detail`."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    return {"detail": answer.reason_phrase, **(body if isinstance(body, dict) else {})}


def refuse_unanswered(url: str, error: httpx.TransportError) -> NoReturn:
    """Exit because nothing answers at this URL."""
    if isinstance(error, httpx.UnsupportedProtocol):
        refuse_url(url)
    refuse(f"No service answers at {url} ({error}); start it with `baton up`, or name its address with --url.")


def refuse_unauthorized(status: int, detail: object, action: str) -> None:
    """Exit where the status says that the caller is unknown, or may not do this."""
    if status == 401:
        refuse(f"The service wants to know who asks: {detail} Put a bearer token into BATON_TOKEN.")
    if status == 403:
        refuse(f"This principal may not {action}: {detail} Use the token of one who may.")


def refuse_url(url: str) -> NoReturn:
    refuse(f"{url} is no URL; give one like {DEFAULT_URL}.")
