"""Campaigns: runs that belong together."""
