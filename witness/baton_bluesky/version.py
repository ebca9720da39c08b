"""The version, which is that of the repository."""

__version__ = "0.2.0"
