"""The API as a process of its own: how it ends."""

import subprocess
import sys

import httpx

from tests.e2e.stack import clean_environment


def test_an_api_that_is_told_to_stop_ends_its_streams_in_order(database_url: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cli", "api", "--port=0"],
        env=clean_environment(DATABASE_URL=database_url),
        stdout=subprocess.PIPE,
        text=True,
    ) as api:
        assert api.stdout is not None
        url = api.stdout.readline().removeprefix("serving on ").strip()
        with httpx.stream("GET", f"{url}/events/stream", timeout=30) as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": stream of committed events"
            api.terminate()
            list(lines)  # one that is cut off instead raises
        api.wait(30)
