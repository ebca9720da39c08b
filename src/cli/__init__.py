"""The commands of `baton`. Every process that begins here has compiled modules: where Python neither finds nor writes them
beside the source, because the environment forbids it or the directory is read-only, they are kept in the user's cache."""

import os
import sys

_CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
if not os.path.exists(__spec__.cached or "") and os.path.isabs(_CACHE):
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = os.path.join(_CACHE, "baton", "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that this one starts keep theirs too
    sys.dont_write_bytecode = False
