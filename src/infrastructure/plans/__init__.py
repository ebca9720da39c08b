"""Adapters of the executors of Bluesky plans."""
