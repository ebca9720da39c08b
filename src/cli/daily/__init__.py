"""Daily work at the command line: the overview, starting and steering work, calling any operation, signing in."""
