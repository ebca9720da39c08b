"""The seed of everything that tests leave to chance: another one in each run, or that of an earlier run."""

import os
import random

SEED = int(os.environ.get("SOAK_SEED", random.randrange(10**6)))
