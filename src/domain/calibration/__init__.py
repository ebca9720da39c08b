"""Calibration: measured constants of the instruments, revision by revision, and what rests on them."""
