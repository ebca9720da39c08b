"""Procedures and how they are conducted."""
