"""Importers: each reads what a site has written down already and writes a beamline file for review."""
