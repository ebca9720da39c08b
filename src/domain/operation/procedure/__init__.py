"""A procedure; read `procedure`, then `registration`, `start`, `iterations`, `endings`, `preflight`."""
