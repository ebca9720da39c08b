"""Runs: executions of plans, with their preconditions, readings and notes, and how they end."""
