"""The worker process: `baton worker`, for service managers that want a file."""

from baton.cli.main import worker

if __name__ == "__main__":
    worker()
