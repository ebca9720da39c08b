"""Baton: operations control for experiment facilities."""

__version__ = "0.2.0"

if __name__ != "baton":
    raise ImportError(f"This package is imported as `baton`, not as `{__name__}`: two copies would not know of each other.")
