"""How processes of the service end."""

import signal
import subprocess
import sys

DEAF = """
import asyncio
from baton.cli import processes

processes.LONGEST_STOP = 1

async def deaf():
    processes.when_told(lambda: None)
    print("here", flush=True)
    await asyncio.sleep(3600)

asyncio.run(deaf())
"""


def test_a_process_that_cannot_stop_ends_all_the_same() -> None:
    with subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.terminate()
        assert process.wait(30) == -signal.SIGALRM
