"""Reads one run from a Tiled server as Bluesky's users do, and prints what is there: `tiled_reader.py ADDRESS UID`."""

# mypy: ignore-errors
# It is checked by running it: it runs where Tiled's client is installed, which this environment is not.

import json
import sys

from tiled.client import from_uri

address, uid = sys.argv[1:]
run = from_uri(address)[uid]
streams = {}
for name in ("streams",) if "streams" in run else (None,):
    for key, stream in (run if name is None else run[name]).items():
        if key.startswith("frames"):
            frames = stream.base["frames"].read()
            streams[key] = {"shape": list(frames.shape), "last": int(frames.max()), "dtype": str(frames.dtype)}
        else:
            table = stream.base["internal"].read()
            streams[key] = {column: [value.item() for value in table[column].to_numpy()] for column in table.columns}
specs = [spec.name for spec in run.specs]
print(json.dumps({"specs": specs, "start": run.metadata["start"], "stop": run.metadata["stop"], "streams": streams}))
