"""`python -m baton.cli`: the same as `baton`."""

from baton.cli.main import main

main()
