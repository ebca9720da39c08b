"""Commands of `baton` as processes that start at once: each is forked from one server that has loaded every command."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory

COMMANDS = ("api_server", "doctor.examination", "projector", "up", "worker", "daily.device_login")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([*(f"baton.cli.{module}" for module in COMMANDS), "baton.client", "pytest", __name__])


@contextmanager
def forked_command(
    arguments: tuple[str, ...], environment: Mapping[str, str], stdout: Path, stderr: Path
) -> Iterator[ForkServerProcess]:
    """A running `baton` with these arguments, which writes to these files and is killed at the end of the block."""
    process = FORKS.Process(target=execute, args=(arguments, dict(environment), Path.cwd(), stdout, stderr), daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def run_command(
    arguments: tuple[str, ...], environment: Mapping[str, str], seconds: float
) -> "subprocess.CompletedProcess[str]":
    """Run `baton` with these arguments to its end, and return what it printed."""
    with TemporaryDirectory() as directory:
        stdout, stderr = Path(directory, "stdout"), Path(directory, "stderr")
        with forked_command(arguments, environment, stdout, stderr) as process:
            process.join(seconds)
            code = process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(arguments, seconds, stdout.read_text(), stderr.read_text())
        return subprocess.CompletedProcess(arguments, code, stdout.read_text(), stderr.read_text())


def execute(arguments: tuple[str, ...], environment: dict[str, str], directory: Path, stdout: Path, stderr: Path) -> None:
    """Run the command line in a process that was just forked, as a shell would have started it."""
    from baton.cli.main import main

    for path, descriptor in ((stdout, 1), (stderr, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv[:] = ["baton", *arguments]
    sys.stdout, sys.stderr = (open(descriptor, "w", closefd=False) for descriptor in (1, 2))  # noqa: SIM115
    main()
