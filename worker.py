"""The worker process: `baton worker`, for service managers that want a file."""

from baton.cli.processes import run_worker

if __name__ == "__main__":
    run_worker()
