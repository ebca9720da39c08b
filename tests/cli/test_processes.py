"""How processes of the service end, and which version they are."""

import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import baton
from baton.cli.main import app

pytestmark = pytest.mark.server
UNSTOPPABLE = """
import asyncio
from baton.cli import startup

startup.STOP_SECONDS = 1

async def wait():
    startup.stop_on_signals(lambda: None)
    print("here", flush=True)
    await asyncio.sleep(3600)

asyncio.run(wait())
"""


def test_a_process_that_cannot_stop_ends_all_the_same() -> None:
    with subprocess.Popen([sys.executable, "-c", UNSTOPPABLE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.terminate()
        assert process.wait(30) == -signal.SIGALRM


def test_the_command_prints_its_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"{baton.__version__}\n"
