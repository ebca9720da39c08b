"""The MCP process: serves one agent over standard input and output."""

import uvloop

from baton.api.mcp import serve_stdio
from baton.application.settings import Settings
from baton.cli.composition.runtime import BootRefused, Runtime
from baton.cli.startup import refuse, start_garbage_collection
from baton.infrastructure.temporal.sdk_logging import configure_sdk_logging


def run_mcp(settings: Settings) -> None:
    """Answer frames until the client closes the streams."""
    configure_sdk_logging()
    start_garbage_collection()
    try:
        uvloop.run(_serve(settings))
    except BootRefused as refusal:
        refuse(*refusal.sentences)


async def _serve(settings: Settings) -> None:
    async with Runtime(settings) as runtime:
        await runtime.plant_seeds()
        await serve_stdio(settings, runtime.service)
