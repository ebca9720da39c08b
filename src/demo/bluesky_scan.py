"""A scan by a RunEngine, as a beamline has it: a program of its own, in which one line is new. Bluesky and the package
`baton_bluesky` are optional; nothing of the demonstration imports them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

NEEDED = {
    "bluesky": "bluesky",
    "ophyd_async": "ophyd-async",
    "baton_bluesky": "baton-bluesky",
}  # what each module comes with
POINTS = 6
BEGINNING = '''"""Turn the sample in steps, and take a frame at each."""

import sys
from pathlib import Path

from bluesky import RunEngine
from bluesky.plans import scan
from ophyd_async.core import StaticPathProvider, UUIDFilenameProvider, init_devices
from ophyd_async.sim import PatternGenerator, SimBlobDetector, SimMotor

RE = RunEngine()
with init_devices():
    pattern, frames = PatternGenerator(), StaticPathProvider(UUIDFilenameProvider(), Path(sys.argv[1]))
    turntable, camera = SimMotor(), SimBlobDetector(frames, pattern)
'''
ENDING = """RE(scan([camera], turntable, 0, {last}, {points}, md={{"sample": "{sample}"}}))
"""
WITNESS = 'from baton_bluesky import BatonWitness; RE.subscribe(BatonWitness("{url}", plan="{plan}", simulated=True))'
GATE = 'from baton_bluesky import BatonGate; RE.preprocessors.append(BatonGate("{url}", plan="{plan}"))'


def missing_packages() -> list[str]:
    """Return the packages that the scan needs and that are not installed here."""
    return [package for module, package in NEEDED.items() if find_spec(module) is None]


def program_text(sample: str, *lines: str) -> str:
    """Return the program of the scan, with these lines between what it sets up and what it does."""
    ending = ENDING.format(points=POINTS, last=POINTS - 1, sample=sample)
    return BEGINNING + "".join(f"{line}\n" for line in lines) + ending


class BlueskyScan:
    """A scan with one line of Baton in it, in a process of its own that works in a directory."""

    def __init__(self, directory: Path, frames: Path, url: str, token: str) -> None:
        self._directory, self._frames = directory, frames
        self._url, self._token = url, token
        directory.mkdir(parents=True, exist_ok=True)

    def start(self, line: str, plan: str, sample: str) -> "subprocess.Popen[str]":
        """Write the program with this line in it, and start it."""
        program = self._directory / "scan.py"
        program.write_text(program_text(sample, line.format(url=self._url, plan=plan)))
        environment = {**os.environ, "BATON_TOKEN": self._token, "XDG_STATE_HOME": str(self._directory)}
        pipe = subprocess.PIPE
        arguments = [sys.executable, str(program), str(self._frames)]
        return subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=pipe, text=True)
