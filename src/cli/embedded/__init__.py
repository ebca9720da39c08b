"""PostgreSQL and Temporal as children of this process: started with it, stopped with it, never left behind."""

from cli.embedded.postgres import EmbeddedPostgres
from cli.embedded.process import StartError
from cli.embedded.temporal import EmbeddedTemporal

__all__ = ["EmbeddedPostgres", "EmbeddedTemporal", "StartError"]
