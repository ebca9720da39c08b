"""The Python client of Baton: `from baton.client import Baton, AsyncBaton`."""

from typing import TYPE_CHECKING

from baton.client import http_library  # noqa: F401  # before anything imports httpx
from baton.client.sync_client import Baton

if TYPE_CHECKING:
    from baton.client.async_client import AsyncBaton

__all__ = ["AsyncBaton", "Baton"]


def __getattr__(name: str) -> object:
    if name != "AsyncBaton":  # which is loaded where it is asked for, since it brings asyncio
        raise AttributeError(f"module {__name__} has no {name}")
    from baton.client.async_client import AsyncBaton

    return AsyncBaton
