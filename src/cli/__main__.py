"""`python -m cli`: the same as `baton`."""

from cli.main import main

main()
