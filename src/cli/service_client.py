"""The running service, as the commands beside it reach it over REST, and what they say when they cannot."""

from pathlib import Path
from typing import NoReturn

import httpx

from baton.cli.stack_address import noted_place
from baton.cli.startup_errors import refuse

USUAL = "http://127.0.0.1:8000"


def service_url(url: str | None, data_dir: Path) -> str:
    """The service that is meant: the named one, that of the data directory, or the one at the usual address."""
    return url or noted_place(data_dir, "url") or USUAL


def client_of(url: str, token: str | None, timeout: httpx.Timeout) -> httpx.Client:
    """A client of the service at this address."""
    try:
        return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=timeout)
    except httpx.InvalidURL:
        refuse_url(url)


def refuse_unanswered(url: str, error: httpx.TransportError) -> NoReturn:
    """End the command, because nobody answers there."""
    if isinstance(error, httpx.UnsupportedProtocol):
        refuse_url(url)
    refuse(f"No service answers at {url} ({error}); start it with `baton up`, or name its address with --url.")


def refuse_unauthenticated(detail: object) -> NoReturn:
    """End the command, because the service does not know who asks."""
    refuse(f"The service wants to know who asks: {detail} Put a bearer token into BATON_TOKEN.")


def refuse_url(url: str) -> NoReturn:
    refuse(f"{url} is no URL; give one like {USUAL}.")
