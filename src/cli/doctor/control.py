"""The check of devices that a RunEngine uses and that a route of this service can write to as well."""

from collections.abc import Iterable

from baton.application.plant import ControlRoute
from baton.application.settings import Settings
from baton.cli.doctor import CheckResult, ok, warning
from baton.domain.equipment.signals import SIGNALS
from baton.domain.run.witness import WITNESSED_ASSETS
from baton.infrastructure.postgres.pool import Connection

SHOWN = 5  # how many are named
WITNESSED = """SELECT DISTINCT owned.key FROM lookups AS used JOIN lookups AS owned
    ON owned.kind = %s AND owned.stream_id::text = used.key WHERE used.kind = %s ORDER BY owned.key"""


async def examine_control(connection: Connection, settings: Settings) -> CheckResult:
    """Check that no device of a live witnessed run, or of an executor of plans, is behind a route that can be written to."""
    routes = [route for route in settings.control_routes if settings.control_writes_enabled and not route.read_only]
    rows = await (await connection.execute(WITNESSED, (SIGNALS, WITNESSED_ASSETS))).fetchall()
    shared = [f"{identifier} (a live witnessed run)" for (identifier,) in rows if is_behind(identifier, routes)]
    for executor in settings.plan_executors:
        shared += [
            f"{address} ({device} of {executor.name})"
            for device, addresses in sorted(executor.device_addresses.items())
            for address in addresses
            if is_behind(address, routes)
        ]
    if not shared:
        return ok("No route that can be written to leads to a device of a live witnessed run or of an executor of plans.")
    listed = ", ".join(shared[:SHOWN]) + (f" and {len(shared) - SHOWN} more" if len(shared) > SHOWN else "")
    remedy = "make its route read_only, or see that only one of them writes at a time"
    return warning(f"A RunEngine and a route of this service can both write {listed}; {remedy}.")


def is_behind(identifier: str, routes: Iterable[ControlRoute]) -> bool:
    """Return whether a route serves an address, or what begins with it."""
    return any(identifier.startswith(route.prefix) or route.prefix.startswith(identifier) for route in routes)
