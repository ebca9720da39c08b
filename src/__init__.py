"""Baton: operations control for experiment facilities."""
