"""Scan files: read by a process of its own, since what is in them may be hostile or broken."""
