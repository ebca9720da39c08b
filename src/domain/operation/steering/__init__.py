"""Steered conducts: read `steering.py`, then `decider_choice`, `steered_conduct`, `grid_walk`."""
