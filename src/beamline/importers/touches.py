"""The file that PLAN_EXECUTORS names as `touches`: addresses of devices, and which of these Bluesky plans write and read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlanDraft:
    """Which parameters of a Bluesky plan hold devices that it writes, and that it reads; a guess."""

    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


def touches_text(devices: Mapping[str, Sequence[str]], plans: Mapping[str, PlanDraft] | None = None) -> str:
    """Return the file, in an order that follows from its content."""
    content = {
        "plans": {
            name: {"writes": list(one.writes), "reads": list(one.reads)} for name, one in sorted((plans or {}).items())
        },
        "devices": {name: list(addresses) for name, addresses in sorted(devices.items())},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
