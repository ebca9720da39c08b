"""Composition roots: what the processes of the service are made of, wired from settings."""
