"""Reactions to the log, as the doctor looks at them: whether somebody leads them, and who stumbles over what."""

from baton.cli.doctor.findings import Finding, ok, wrong
from baton.cli.doctor.processes import how_to_lead
from baton.cli.processes import one_line
from baton.infrastructure.agents import SUBSCRIBERS
from baton.infrastructure.postgres.leadership import REACTIONS_LOCK, is_led
from baton.infrastructure.postgres.pool import Connection

FOLLOWING = """
SELECT subscriber_name, enabled, consecutive_failures, last_error_message FROM reactions
WHERE subscriber_name = ANY(%s) ORDER BY subscriber_name
"""


async def examine_reactions(connection: Connection) -> Finding:
    """Whether every subscriber goes on through the log."""
    rows = await (await connection.execute(FOLLOWING, (list(SUBSCRIBERS),))).fetchall()
    if not rows:
        return ok("Nobody has subscribed to the log yet; the first start of the API sees to that.")
    if not await is_led(connection, REACTIONS_LOCK):
        remedy = await how_to_lead(connection, "reactions")
        return wrong(f"Nobody reacts to what happens, so agents and triggers wait; {remedy}.")
    if stuck := [
        f"{name} ({failures} times: {one_line(said)})" for name, enabled, failures, said in rows if failures and enabled
    ]:
        return wrong(
            f"Not going on: {', '.join(stuck)}. Mend what it says; an event that cannot be got past is dismissed with "
            "dismiss_event_in_reaction."
        )
    off = [name for name, enabled, _, _ in rows if not enabled]
    return ok(f"{len(rows)} subscribers follow the log" + (f"; switched off: {', '.join(off)}." if off else "."))
