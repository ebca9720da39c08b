"""The doctor for the process that serves: every check under its own settings, as the console shows them."""

import asyncio
import time
from contextlib import aclosing

from baton.application.settings import Settings
from baton.console.health import HealthFinding

CHECK_SECONDS = 8.0  # how long one check may take; a server that hangs must not keep the others from being looked at
EXAMINATION_SECONDS = 20.0  # how long all of them may take before those that are left are not tried any more
UNANSWERED = f"Nothing was found out within {CHECK_SECONDS:.0f} s; a server that it asks may hang. Look again."


async def examine_process(settings: Settings) -> list[HealthFinding]:
    """Return what every check finds under these settings. Some block and load libraries, so a thread carries them out."""
    return await asyncio.to_thread(asyncio.run, carry_out_checks(settings))


async def carry_out_checks(settings: Settings) -> list[HealthFinding]:
    """Carry out every check in order, each within its time."""
    from baton.cli.doctor.examination import CHECKS, Doctor  # loads what only an examination needs

    found, ends_at = [], time.monotonic() + EXAMINATION_SECONDS
    async with aclosing(Doctor(None, settings)) as doctor:
        for name in CHECKS:
            try:
                async with asyncio.timeout(min(CHECK_SECONDS, ends_at - time.monotonic())):
                    result = await doctor.check(name)
            except TimeoutError:
                found.append(HealthFinding(name, "warning", UNANSWERED))
            else:
                found.append(HealthFinding(name, result.status.value, result.sentence))
    return found
