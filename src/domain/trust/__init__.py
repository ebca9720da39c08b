"""Trust: which principal may call what, over which path and surface, and the sessions people work in."""
