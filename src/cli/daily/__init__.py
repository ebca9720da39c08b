"""Daily work at the command line: what goes on, starting and steering work, calling any operation, signing in."""
