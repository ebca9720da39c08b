"""The demonstration beamline: its physics, its server, its programs and its agent. The whole night is `make demo ONCE=1`."""
