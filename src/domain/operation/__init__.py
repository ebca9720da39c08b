"""Procedures and how they are conducted: `procedure`, then `conduct`, `steering` and `schedule`."""
