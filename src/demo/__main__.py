"""`python -m baton.demo`: the whole demonstration; it stays up until Ctrl-C, or with --once ends with an exit code."""

import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from baton.cli.embedded.process import StartError
from baton.cli.messages import refuse
from baton.demo.beamline_processes import BeamlineProcesses
from baton.demo.bluesky_stage import TITLE, witness_scan
from baton.demo.narration import Narrator
from baton.demo.night import STAGES, Night

Once = Annotated[bool, typer.Option(help="End when the story does, with exit code 0 if every stage did what it should.")]
DataDir = Annotated[Path, typer.Option(help="Where everything is kept; emptied first.")]


def main(once: Once = False, data_dir: DataDir = Path(".baton-demo")) -> None:
    """Run a night at a simulated tomography beamline through REST and MCP, before your eyes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup one is
            signal.signal(number, signal.default_int_handler)
    processes, narrator = BeamlineProcesses(data_dir), Narrator()
    succeeded = False
    with suppress(KeyboardInterrupt):
        try:
            narrator.say("A beamline behind EPICS, PostgreSQL, Temporal and Baton are coming up ...")
            processes.start()
            narrator.say(f"Watch it: {processes.url}/console (sign in at {processes.provider.host} as Mira Okafor)")
            succeeded = run_night(Night(processes, narrator))
            if not once:
                narrator.say("Everything stays up until Ctrl-C.")
                signal.pause()
        except StartError as error:
            refuse(str(error))
        finally:
            processes.stop()
    raise SystemExit(0 if succeeded else 1)


def run_night(night: Night) -> bool:
    stages = night.narrator.run_stages([*STAGES, (TITLE, witness_scan)], night)
    night.narrator.print_summary(stages)
    for line in night.processes.links:
        night.say(line)
    succeeded = all(stage.succeeded for stage in stages)
    if succeeded:
        night.say(f"  As {night.scientist.name}: {night.processes.example_command(night.scientist.token)}")
    return succeeded


if __name__ == "__main__":
    typer.run(main)
