"""The ids of the actors that every deployment has: the service's own agents and monitors, which act without tokens."""

from uuid import UUID

from baton.domain.agent.seeded_ids import SEEDED_IDS
from baton.domain.shared.canonical import derived_uuid7

MONITOR_NAMES = ("SupplyMonitor", "EnclosureMonitor")
MONITOR_EPOCH = 1_760_000_000_000
"""The millisecond time in the derived ids of the monitors' actors: any constant, kept for ever."""


def monitor_id(name: str) -> UUID:
    """The actor id of a seeded monitor, the same in every deployment."""
    return derived_uuid7(MONITOR_EPOCH, "monitor", name)


SEEDED_ACTOR_IDS = SEEDED_IDS | {monitor_id(name) for name in MONITOR_NAMES}
