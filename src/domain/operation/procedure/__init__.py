"""A procedure; read `procedure`, then `registration`, `gates`, `start`, `iterations`, `endings`, `preflight`."""
