"""Writes documents from its input, a JSON line each, into a Tiled server; run by the environment that has TiledWriter."""

import json
import sys

from bluesky_tiled_plugins import TiledWriter
from tiled.client import from_uri

if __name__ == "__main__":
    write = TiledWriter(from_uri(sys.argv[1], api_key="secret"))
    for line in sys.stdin:
        write(*json.loads(line))
