"""The processes of the deployment, as they say themselves: which run, and which of their tasks do not."""

from baton.cli.doctor.findings import START_WORKER, Finding, ok, warning, wrong
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.postgres.process_reports import TaskTrouble, running_processes

START_PROJECTOR = "start `baton projector`, or `baton up`"


async def examine_processes(connection: Connection) -> Finding:
    """Whether every task of every process goes on, and every log line is written."""
    processes = await running_processes(connection)
    if not processes:
        return warning("No process has reported lately, so none runs on this database; start them, or `baton up`.")
    names = ", ".join(process.name for process in processes)
    troubles = [(process.name, trouble) for process in processes for trouble in process.troubles]
    if troubles:
        told = "; ".join(f"{_described(trouble)} in {name}" for name, trouble in troubles)
        finding = warning if all(trouble.running for _, trouble in troubles) else wrong
        return finding(f"Of the tasks of {names}: {told}. Read the log of that process for `task_ended`.")
    if dropped := [f"{process.name} ({process.dropped_lines})" for process in processes if process.dropped_lines]:
        return warning(
            f"Log lines could not be written by {', '.join(dropped)}; see that the disk has room and that somebody reads "
            "their standard error."
        )
    return ok(f"{names}; every task goes on.")


async def how_to_lead(connection: Connection, task: str, kind: str = "worker") -> str:
    """What has to be done where nobody leads a task: start a process of this kind, or see what is wrong with those there."""
    processes = [process for process in await running_processes(connection) if process.kind == kind]
    if not processes:
        return START_WORKER if kind == "worker" else START_PROJECTOR
    names = ", ".join(process.name for process in processes)
    told = [_described(trouble) for process in processes for trouble in process.troubles if trouble.task == task]
    because = f" ({told[0]})" if told else ""
    return f"{names} runs and does not lead{because}, so look again in a moment, then read its log and start it again"


def _described(trouble: TaskTrouble) -> str:
    return (
        f"{trouble.task} {'was' if trouble.running else 'waits to be'} started again, {trouble.restarts} times by now "
        f"(last: {trouble.because})"
    )
