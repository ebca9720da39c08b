"""How long a beamline file takes: applied to an empty record, and again when nothing is to be done.

python -m tests.bench.beamline_files [--devices 5000]
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from baton.beamline.yaml_text import yaml_text
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.infrastructure.postgres.migrate import migrate
from tests.bench.__main__ import REPOSITORY, Bench

DEVICES_OF_ONE_STAND = 50


def beamline_text(devices: int) -> str:
    """Return a file with this many devices on stands of one beamline, each with a family, identifiers and limits."""
    stands = [
        {
            "name": f"stand {stand}",
            "tier": "Component",
            "children": [
                {
                    "name": f"motor {number}",
                    "families": ["Motor"],
                    "identifiers": [{"kind": "EPICS_PV", "value": f"bl7:m{number}"}],
                    "signal_limits": {f"bl7:m{number}": {"low": -10, "high": 10}},
                }
                for number in range(stand * DEVICES_OF_ONE_STAND, min(devices, (stand + 1) * DEVICES_OF_ONE_STAND))
            ],
        }
        for stand in range(-(-devices // DEVICES_OF_ONE_STAND))
    ]
    family = {"name": "Motor", "affordances": ["Translatable", "Homeable", "Limitable"]}
    return yaml_text({"families": [family], "assets": [{"name": "beamline", "children": stands}]}, {"assets", "children"})


def measure(devices: int) -> None:
    """Print how long applying takes, the first time and the second."""
    with tempfile.TemporaryDirectory() as directory, EmbeddedPostgres(Path(directory) / "postgres") as server:
        migrate(server.url)
        bench = Bench(server.url, 1, quick=True)
        file = Path(directory) / "beamline.yaml"
        file.write_text(beamline_text(devices))
        with bench.running_server("baton.cli", "api") as port, bench.running_process("projector"):
            for title in ("applied", "again, nothing to do"):
                begun = time.perf_counter()
                command = [sys.executable, "-m", "baton.cli", "apply", "-f", str(file), "--url", f"http://127.0.0.1:{port}"]
                done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
                said = done.stdout.splitlines()[-1]
                print(f"{devices} devices, {title}: {time.perf_counter() - begun:.1f} s ({said})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=5000)
    measure(parser.parse_args().devices)
