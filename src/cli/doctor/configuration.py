"""What the settings alone decide, as the doctor tells it: who issues identifiers, and what writes can reach."""

from baton.application.settings import PidMinter, Settings
from baton.cli.doctor.findings import Finding, ok
from baton.domain.operation.conduct.actuation import Actuation, actuation_of

MINTERS = {
    PidMinter.NONE: "PID_MINTER=none: persistent identifiers are not minted, and requests for one are refused.",
    PidMinter.DEVELOPMENT: "PID_MINTER=development: identifiers are made up under prefixes for testing.",
}
REACHES = {
    Actuation.INERT: "no route can be written to, so nothing is moved",
    Actuation.SIMULATED: "every route that can be written to is declared simulated",
    Actuation.REACHABLE: "a route to real equipment can be written to; whether it answers is not asked here",
}


def examine_minter(settings: Settings) -> Finding:
    """Who issues persistent identifiers."""
    if settings.pid_minter is PidMinter.DATACITE:
        return ok(
            f"PID_MINTER=datacite: DOIs are registered under {settings.datacite_prefix} at {settings.datacite_address}."
        )
    return ok(MINTERS[settings.pid_minter])


def examine_actuation(settings: Settings) -> Finding:
    """What writes can reach."""
    actuation = actuation_of(settings.control_routes, settings.control_writes_enabled)
    return ok(f"Actuation is {actuation.value}: {REACHES[actuation]}.")
