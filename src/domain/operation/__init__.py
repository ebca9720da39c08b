"""Procedures and how they are conducted: `procedure`, then `conduct`, `steering`, `launch`, `schedule` and `queue`."""
