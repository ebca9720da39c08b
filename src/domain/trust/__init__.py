"""Trust: which principal may call what, over which path and surface, what waits for approval, and whose accounts and groups
grow by that."""
