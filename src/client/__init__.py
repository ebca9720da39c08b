"""The Python client of Baton: `from baton.client import Baton, AsyncBaton`."""

from baton.client.async_client import AsyncBaton
from baton.client.sync_client import Baton

__all__ = ["AsyncBaton", "Baton"]
