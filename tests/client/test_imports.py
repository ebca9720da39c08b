"""What the client and the daily commands load: the index of operations, and nothing of the service."""

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "pydantic_core", "baton.domain", "baton.application", "rich", "openpyxl", "jsonschema", "structlog")
COMMAND = "sys.argv = {argv!r}; import contextlib, baton.cli.main as cli\nwith contextlib.suppress(SystemExit): cli.main()"
LOADS = {
    "the client": "import baton.client",
    "the client with its index": "import baton.client.index as index; index.OPERATIONS['start_run']",
    "the client with an answer": "from baton.client.answers import read_value; read_value('BeamlineNow', {})",
    "baton where": COMMAND.format(argv=["baton", "where", "start_run"]),
    "baton status": COMMAND.format(argv=["baton", "status", "--url", "no address"]),
}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_nothing_heavy_is_loaded(load: str) -> None:
    code = f"import sys; {load}\nprint(*[one for one in {HEAVY!r} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_the_asynchronous_client_is_loaded_where_it_is_asked_for() -> None:
    code = (
        "import sys, baton.client; print('asyncio' in sys.modules); baton.client.AsyncBaton; print('asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_httpx_is_whole_but_for_its_command_line() -> None:
    code = "import baton.client, httpx, sys; print(httpx.Client.__name__, 'httpx._main' in sys.modules); import httpx._main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Client", "False"]
