"""Baton: operations control for experiment facilities."""

__version__ = "0.1.0"
