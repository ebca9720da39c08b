"""Baton beside Bluesky: a witness that records what a RunEngine does.

Importing the package loads the standard library only, and no network.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from baton_bluesky.version import __version__

if TYPE_CHECKING:
    from baton_bluesky.callback import BatonWitness, WitnessStanding
    from baton_bluesky.gate import BatonGate, BatonGateClosed
    from baton_bluesky.reduction import DEFAULT_KEYS
    from baton_bluesky.touches import baton_touches

HOMES = {
    "BatonGate": "baton_bluesky.gate",
    "BatonGateClosed": "baton_bluesky.gate",
    "baton_touches": "baton_bluesky.touches",
    "BatonWitness": "baton_bluesky.callback",
    "WitnessStanding": "baton_bluesky.callback",
    "DEFAULT_KEYS": "baton_bluesky.reduction",
}
"""Where each name of the package is defined; it is loaded when it is first used."""

__all__ = ["DEFAULT_KEYS", "BatonGate", "BatonGateClosed", "BatonWitness", "WitnessStanding", "__version__", "baton_touches"]


def __getattr__(name: str) -> Any:
    """Load a name of the package from where it is defined."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
