"""Steered conducts: read `steering.py`, then `steered_conduct`."""
