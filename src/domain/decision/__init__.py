"""Consequential choices of people and agents, and the calls of models behind them."""
