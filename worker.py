"""The worker process: runs the workflows and their activities on Temporal until it is told to stop."""

from cli.worker import main

if __name__ == "__main__":
    main()
