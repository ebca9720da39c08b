"""Caution: what operators have learned about the quirks of assets and procedures, and what to do about them."""
