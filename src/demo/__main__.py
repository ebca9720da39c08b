"""`python -m baton.demo`: the whole night; stays up afterwards until Ctrl-C, or with --once ends with an exit code."""

import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import httpx
import typer

from baton.cli.embedded.process import StartError
from baton.cli.startup_errors import refuse
from baton.demo.beamline_processes import Hall
from baton.demo.narration import Teller
from baton.demo.night import STAGES, Night

Once = Annotated[bool, typer.Option(help="End when the story does, with exit code 0 if every stage did what it should.")]
DataDir = Annotated[Path, typer.Option(help="Where everything is kept; emptied first.")]


def main(once: Once = False, data_dir: DataDir = Path(".baton-demo")) -> None:
    """A night at a simulated tomography beamline, worked through REST and MCP before your eyes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup one is
            signal.signal(number, signal.default_int_handler)
    hall, teller = Hall(data_dir), Teller()
    succeeded = False
    with suppress(KeyboardInterrupt):
        try:
            teller.say("A beamline behind EPICS, PostgreSQL, Temporal and Baton are coming up ...")
            hall.open()
            with httpx.Client(base_url=hall.url, timeout=30) as client:
                succeeded = told(Night(hall, client, teller))
            if not once:
                teller.say("Everything stays up until Ctrl-C.")
                signal.pause()
        except StartError as error:
            refuse(str(error))
        finally:
            hall.close()
    raise SystemExit(0 if succeeded else 1)


def told(night: Night) -> bool:
    """Tell the night, and where to look at what is left of it; answers whether every stage did what it should."""
    stages = night.teller.tell(STAGES, night)
    night.teller.sum_up(stages)
    for line in night.hall.links:
        night.say(line)
    succeeded = all(stage.succeeded for stage in stages)
    if succeeded:
        night.say(f"  As {night.scientist.name}: {night.hall.trying(night.scientist.token)}")
    return succeeded


if __name__ == "__main__":
    typer.run(main)
