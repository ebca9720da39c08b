"""What a run stands on, and the gates that ask about it when it starts and again when it goes on.

A gate is a rule over facts that were loaded before: it refuses or it does not.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from baton.domain.enclosure.permission import Contacts, Enclosures, enclosure_finding, enclosures_with_contacts
from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.scope import AssetScope
from baton.domain.kernel import Call
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.practice import Practice
from baton.domain.safety.clearance import Clearance
from baton.domain.safety.coverage import clearance_finding, covering
from baton.domain.shared.gates import Finding
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, required
from baton.domain.shared.refusals import Conflict
from baton.domain.supply.coverage import supplies_in_scope, supply_finding
from baton.domain.supply.supply import Supply


class RunRequiresActiveClearanceError(Conflict, context="run"):
    """No clearance covers the run by its subject, an asset in its scope or itself."""


class RunClearanceCoverageMismatchError(Conflict, context="run"):
    """Clearances cover the run, but none of them is in force."""


class RunRequiresAvailableSupplyError(Conflict, context="run"):
    """The method needs a kind of supply that nothing in scope provides."""


class RunSupplyCoverageMismatchError(Conflict, context="run"):
    """The method needs a kind of supply that is in scope but not available."""


class RunRequiresPermittedEnclosureError(Conflict, context="run"):
    """No enclosure that the run's assets stand in permits work."""


class RunEnclosureCoverageMismatchError(Conflict, context="run"):
    """Some enclosures that the run's assets stand in do not permit work."""


class RunPlanAssetDecommissionedError(Conflict, context="run"):
    """An asset of the run's plan is Decommissioned."""


@dataclass(frozen=True)
class Execution:
    """A plan and the method it carries out."""

    plan: Plan
    method: Method


def execution_of(plan_id: UUID) -> Reads[Execution]:
    """A plan and, by its practice, its method; what is missing is 404."""
    plan = yield from required(Plan, plan_id)
    practice = yield from required(Practice, plan.practice_id)
    method = yield from required(Method, practice.method_id)
    return Execution(plan, method)


@dataclass(frozen=True)
class Footing:
    """What a run stands on: the assets in its scope, and the clearances, supplies and enclosures that bear on them."""

    run_id: UUID
    now: datetime
    needed_supplies: frozenset[str]
    scope: AssetScope
    clearances: tuple[Clearance, ...]
    supplies: tuple[Supply, ...]
    enclosures: Enclosures
    contacts: Contacts
    fresh_within: timedelta
    """How old an observation of an enclosure may be."""
    monitored: frozenset[str]
    """The enclosures that a monitor watches, by the keys of their names."""
    resuming: bool
    """Whether the run is under way, and may go on with a Degraded supply."""

    @property
    def plan_assets(self) -> tuple[Asset, ...]:
        """The assets of the plan itself, by id."""
        return tuple(self.scope.assets[id] for id in sorted(self.scope.bound_ids))

    @property
    def run(self) -> dict[str, str]:
        """What a refusal names the run by; one that does not start has no name that anybody could use."""
        return {"run_id": str(self.run_id)} if self.resuming else {}

    @property
    def clearance(self) -> Finding | None:
        return clearance_finding(self.clearances, self.now)

    @property
    def supply(self) -> Finding | None:
        return supply_finding(self.needed_supplies, self.supplies, self.resuming)

    @property
    def enclosure(self) -> Finding | None:
        return enclosure_finding(
            self.scope.enclosure_ids, self.enclosures, self.contacts, self.now, self.fresh_within, self.monitored
        )


def footing_of(
    run_id: UUID, subject_id: UUID | None, method: Method, scope: AssetScope, call: Call, *, resuming: bool = False
) -> Reads[Footing]:
    """Load what a run stands on; verdicts rest on folded streams, never on a projection."""
    deployment = yield from ask(Ports.deployment)
    clearances = yield from covering(run_id, subject_id, scope.assets.keys(), call.now)
    supplies = yield from supplies_in_scope(method.needed_supplies, scope, deployment.self_facility_code)
    enclosures, contacts = yield from enclosures_with_contacts(scope.enclosure_ids)
    return Footing(
        run_id=run_id,
        now=call.now,
        needed_supplies=method.needed_supplies,
        scope=scope,
        clearances=clearances,
        supplies=supplies,
        enclosures=enclosures,
        contacts=contacts,
        fresh_within=deployment.enclosure_observation_ttl,
        monitored=deployment.monitored_enclosures,
        resuming=resuming,
    )


def clearance_present(footing: Footing) -> None:
    """Some clearance covers the run, whatever its status."""
    if (finding := footing.clearance) is not None and finding.total:
        raise finding.refusal(RunRequiresActiveClearanceError, RunClearanceCoverageMismatchError, **footing.run)


def clearance_active(footing: Footing) -> None:
    """One of the clearances that cover the run is in force."""
    if (finding := footing.clearance) is not None:
        raise finding.refusal(RunClearanceCoverageMismatchError, RunClearanceCoverageMismatchError, **footing.run)


def supply_present(footing: Footing) -> None:
    """Every kind of supply the method needs is in scope; each kind is judged to its end before the next."""
    if (finding := footing.supply) is not None and finding.total:
        raise finding.refusal(RunRequiresAvailableSupplyError, RunSupplyCoverageMismatchError, **footing.run)


def supply_available(footing: Footing) -> None:
    """Of every kind of supply the method needs, one is available."""
    if (finding := footing.supply) is not None:
        raise finding.refusal(RunSupplyCoverageMismatchError, RunSupplyCoverageMismatchError, **footing.run)


def enclosure_permitted(footing: Footing) -> None:
    """Every enclosure that assets in scope stand in permits work, by a recent observation."""
    if (finding := footing.enclosure) is not None:
        raise finding.refusal(RunRequiresPermittedEnclosureError, RunEnclosureCoverageMismatchError, **footing.run)


def assets_in_service(footing: Footing) -> None:
    """No asset of the plan is Decommissioned; what condition it is in does not matter."""
    if gone := [asset for asset in footing.plan_assets if asset.lifecycle is DECOMMISSIONED]:
        raise RunPlanAssetDecommissionedError(
            f"{', '.join(asset.name for asset in gone)} of the plan is Decommissioned; plan with other assets.",
            reason="asset_decommissioned",
            facts={"asset_ids": [str(asset.id) for asset in gone]},
        )


RESUMING = (clearance_present, clearance_active, assets_in_service, supply_present, supply_available, enclosure_permitted)
"""What a held run must pass again, in order."""
FOOTING_REFUSALS = (
    RunRequiresActiveClearanceError,
    RunClearanceCoverageMismatchError,
    RunRequiresAvailableSupplyError,
    RunSupplyCoverageMismatchError,
    RunRequiresPermittedEnclosureError,
    RunEnclosureCoverageMismatchError,
    RunPlanAssetDecommissionedError,
)
