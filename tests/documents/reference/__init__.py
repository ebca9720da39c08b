"""The reference in `docs/reference`, written from the registry and from the tables of lives: `make reference`.

What is allowed from which state, where it leads and what it records is not in the declarations alone. The tables that
every verb is tested by know it, so the pages are made here, where both can be seen.
"""
