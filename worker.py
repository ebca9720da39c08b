"""The worker process: `baton worker`, for service managers that want a file."""

from cli.worker import main

if __name__ == "__main__":
    main()
