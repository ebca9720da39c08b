"""The monitors, as the doctor looks at them: whether somebody observes what is configured."""

from baton.application.settings import Settings
from baton.cli.doctor.findings import Finding, ok, wrong
from baton.cli.doctor.processes import how_to_lead
from baton.domain.enclosure.enclosure import NAMES, RegisterEnclosure, name_key
from baton.infrastructure.postgres.leadership import MONITOR_LOCK, is_led
from baton.infrastructure.postgres.pool import Connection


async def examine_monitors(connection: Connection, settings: Settings) -> Finding:
    """Whether somebody observes what is configured, and when each enclosure was last heard of."""
    enclosures, supplies = settings.monitored_enclosures, settings.monitored_supplies
    if not enclosures and not supplies:
        return ok("No enclosure and no supply is configured to be monitored.")
    what = f"{len(enclosures)} enclosures and {len(supplies)} supplies"
    if not await is_led(connection, MONITOR_LOCK):
        return wrong(f"Nobody monitors the {what} that are configured; {await how_to_lead(connection, 'monitoring')}.")
    ages = await _contact_ages(connection, settings)
    told = ", ".join(f"{name} {'never' if age is None else f'{age:.0f} s ago'}" for name, age in ages.items())
    limit = settings.enclosure_observation_ttl_seconds
    if any(age is None or age > limit for age in ages.values()):
        return wrong(
            f"{what} are monitored, but not every permit was observed within {limit} s (last: {told}); see that the "
            "control system serves their signals, and read the worker's log."
        )
    return ok(f"{what} are monitored" + (f" (permits last observed: {told})." if told else "."))


async def _contact_ages(connection: Connection, settings: Settings) -> dict[str, float | None]:
    """The seconds since each configured enclosure was last observed."""
    keys = {
        name_key(RegisterEnclosure(name=name, facility_code=settings.self_facility_code)): name
        for name in settings.monitored_enclosures
    }
    found = await connection.execute(
        "SELECT key, extract(epoch FROM clock_timestamp() - contacted_at)::float FROM claims "
        "LEFT JOIN enclosure_contact ON enclosure_id = holder_id WHERE kind = %s AND key = ANY(%s)",
        (NAMES, list(keys)),
    )
    return dict.fromkeys(keys.values()) | {keys[key]: age for key, age in await found.fetchall()}
