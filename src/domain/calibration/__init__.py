"""Calibration: measured constants of the instruments, revision by revision."""
