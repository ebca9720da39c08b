"""Executors of Bluesky plans."""
