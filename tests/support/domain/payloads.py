"""What the payload of an event says of its own."""

import json
from typing import Any

from baton.domain.kernel import Event


def payload(event: Event) -> dict[str, Any]:
    """Return an event's payload without whose it is and when it happened, which every event says."""
    fields = json.loads(event.payload())
    return {key: value for key, value in fields.items() if key not in (event.aggregate.id_name, "occurred_at")}
