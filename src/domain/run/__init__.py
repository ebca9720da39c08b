"""Runs: executions of plans, from the gates at their start to the notes written after their end."""
