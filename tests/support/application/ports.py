"""Ports of decisions that answer what a test says, and no more."""

from types import SimpleNamespace
from typing import Any

from baton.domain.ports import PORT_OF


def ports_of(other: Any = None, /, **methods: Any) -> Any:
    """Ports that have these methods, and those of others made here; whichever port is asked, all of them are there."""
    known = {} if other is None else vars(other.deployment)
    return SimpleNamespace(**dict.fromkeys(PORT_OF.values(), SimpleNamespace(**{**known, **methods})))
