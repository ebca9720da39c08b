"""A plant that outlives the workers under test."""

from collections.abc import Iterator

import pytest

from tests.support.infrastructure.epics_servers import EpicsServer, channel_access_server, free_ports


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[EpicsServer]:
    """A Channel Access server in a process of its own; the workers that a test starts reach it, and nothing else."""
    port, repeater = free_ports(2)
    monkeypatch.setenv("EPICS_CA_ADDR_LIST", f"127.0.0.1:{port}")
    monkeypatch.setenv("EPICS_CA_AUTO_ADDR_LIST", "NO")
    monkeypatch.setenv("EPICS_CA_REPEATER_PORT", str(repeater))
    with channel_access_server(port) as server:
        yield server
