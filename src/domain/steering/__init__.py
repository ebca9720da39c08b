"""Steered searches: their objective, space and budget, and what a decider is asked and advises."""
