"""A real Tango database on loopback, which PyTango has with it, and a device server that is registered there."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import tango

from tests.support.infrastructure.scripted_server import ScriptedServer
from tests.support.infrastructure.tango_server import DEVICE, free_port

START_SECONDS = 60


@contextmanager
def tango_database(directory: Path) -> Iterator[str]:
    """Run a database in a directory of its own, with one device, and yield its address."""
    port = free_port()
    options = ["--host", "127.0.0.1", "--port", str(port), "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tango.databaseds.database", *options],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        device = tango.DbDevInfo()
        device.name, device._class, device.server = DEVICE, "PlayedDevice", "played/test"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with suppress(tango.DevFailed):
                tango.Database("127.0.0.1", port).add_device(device)
                break
            assert process.poll() is None, "the database ended"
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@contextmanager
def registered_server(database: str) -> Iterator[ScriptedServer]:
    """Run the device server of that database."""
    with ScriptedServer("tango_server", {**os.environ, "TANGO_HOST": database}) as server:
        yield server
