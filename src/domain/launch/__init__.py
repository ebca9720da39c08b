"""Launches: the ids of what one request begins."""
