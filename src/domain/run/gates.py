"""The preconditions of runs and procedures, and the gates that a run passes when it starts and when it resumes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from baton.domain.enclosure.enclosure import (
    Contacts,
    Enclosures,
    enclosure_finding,
    enclosure_key,
    enclosures_with_contacts,
    permit_lifetime,
)
from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.asset_tree import AssetScope
from baton.domain.kernel import Call
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.practice import Practice
from baton.domain.safety.clearance import Clearance
from baton.domain.safety.coverage import (
    NeededClearance,
    clearance_finding,
    clearance_window,
    covering_clearances,
    find_needed_clearance,
)
from baton.domain.shared.deployment import Deployment, DeploymentPort
from baton.domain.shared.gates import Gate, GateFinding, GateWindow
from baton.domain.shared.reads import Reads, ask, require
from baton.domain.shared.refusals import Conflict
from baton.domain.supply.coverage import SupplyContacts, contacts_of, is_monitored, supplies_in_scope, supply_finding
from baton.domain.supply.supply import Supply


class RunRequiresActiveClearanceError(Conflict, context="run", passing=True):
    """No clearance covers the run by its subject, an asset in its scope or itself."""


class RunClearanceCoverageMismatchError(Conflict, context="run", passing=True):
    """Clearances cover the run, but none of them is in force."""


class RunRequiresAvailableSupplyError(Conflict, context="run", passing=True):
    """The method needs a kind of supply that nothing in scope provides."""


class RunSupplyCoverageMismatchError(Conflict, context="run", passing=True):
    """The method needs a kind of supply that is in scope but not available."""


class RunRequiresPermittedEnclosureError(Conflict, context="run", passing=True):
    """No enclosure that the run's assets stand in permits work."""


class RunEnclosureCoverageMismatchError(Conflict, context="run", passing=True):
    """Some enclosures that the run's assets stand in do not permit work."""


class RunPlanAssetDecommissionedError(Conflict, context="run", reason="asset_decommissioned"):
    """An asset of the run's plan is Decommissioned."""


def load_plan(plan_id: UUID) -> Reads[tuple[Plan, Method]]:
    """Return a plan and, by its practice, its method; refuse with 404 what is missing."""
    plan = yield from require(Plan, plan_id)
    practice = yield from require(Practice, plan.practice_id)
    return plan, (yield from require(Method, practice.method_id))


@dataclass(frozen=True)
class Preconditions:
    """The loaded facts that gates judge before a run or a procedure starts or resumes."""

    now: datetime
    deployment: Deployment
    scope: AssetScope
    asset_ids: frozenset[UUID]  # The judged assets: those of the plan, or of the procedure.
    needed_supplies: frozenset[str]
    supplies: tuple[Supply, ...]
    supply_contacts: SupplyContacts
    enclosures: Enclosures
    contacts: Contacts
    resuming: bool  # Whether the work is under way, and may go on with a Degraded supply.
    clearances: tuple[Clearance, ...] = ()
    needed_clearance: NeededClearance | None = None  # Where none of them is in force.
    run_id: UUID | None = None

    @property
    def assets(self) -> list[Asset]:
        """The judged assets by id."""
        return [self.scope.assets[id] for id in sorted(self.asset_ids)]

    @property
    def decommissioned_assets(self) -> list[Asset]:
        return [asset for asset in self.assets if asset.lifecycle is DECOMMISSIONED]

    @property
    def clearance(self) -> GateFinding | None:
        return clearance_finding(self.clearances, self.now, self.needed_clearance)

    @property
    def run_facts(self) -> dict[str, str]:
        """The id of a run that resumes, for refusals; a run that does not start has no id that anybody could use."""
        return {"run_id": str(self.run_id)} if self.resuming else {}

    @property
    def supply(self) -> GateFinding | None:
        observed = (self.supply_contacts, self.now, self.deployment)
        return supply_finding(self.needed_supplies, self.supplies, *observed, self.resuming)

    @property
    def fresh_until(self) -> datetime | None:
        """When the next observation becomes too old of those that count now; None where none does."""
        permits = (
            contact.contacted_at + permit_lifetime(self.enclosures[id], self.deployment)
            for id, contact in self.contacts.items()
            if id in self.enclosures
        )
        supplies = (
            self.supply_contacts[one.id].contacted_at + self.deployment.monitored_permit_ttl
            for one in self.supplies
            if one.id in self.supply_contacts and is_monitored(one, self.deployment)
        )
        return min((end for end in (*permits, *supplies) if end >= self.now), default=None)

    @property
    def monitored_enclosures(self) -> list[str]:
        """The names of the enclosures in scope that the deployment's own monitor watches."""
        watched = self.deployment.monitored_enclosures
        return [one.name for one in self.enclosures.values() if enclosure_key(one) in watched]

    @property
    def has_monitored_supply(self) -> bool:
        """Whether the deployment's own monitor watches a supply that the work draws on."""
        return any(is_monitored(one, self.deployment) for one in self.supplies)

    @property
    def enclosure(self) -> GateFinding | None:
        enclosure_ids = self.scope.enclosure_ids
        return enclosure_finding(enclosure_ids, self.enclosures, self.contacts, self.now, self.deployment)


def load_preconditions(
    call: Call, scope: AssetScope, asset_ids: frozenset[UUID], needed_supplies: frozenset[str], *, resuming: bool
) -> Reads[Preconditions]:
    """Load the facts that gates judge, from folded streams and never from a projection."""
    deployment = yield from ask(DeploymentPort.deployment)
    supplies = yield from supplies_in_scope(needed_supplies, scope, deployment.self_facility_code)
    observed = yield from contacts_of(supplies)
    enclosures, contacts = yield from enclosures_with_contacts(scope.enclosure_ids)
    found = (supplies, observed, enclosures, contacts)
    return Preconditions(call.now, deployment, scope, asset_ids, needed_supplies, *found, resuming)


def run_preconditions(
    call: Call, run_id: UUID, subject_id: UUID | None, method: Method, scope: AssetScope, *, resuming: bool
) -> Reads[Preconditions]:
    """Load the facts that the gates of a run judge, its clearances included."""
    facts = yield from load_preconditions(call, scope, scope.bound_ids, method.needed_supplies, resuming=resuming)
    return (yield from with_clearances(facts, run_id, subject_id))


def with_clearances(facts: Preconditions, run_id: UUID, subject_id: UUID | None) -> Reads[Preconditions]:
    """Return facts with the clearances that cover a run and, where none is in force, the one that it needs."""
    clearances = yield from covering_clearances(run_id, subject_id, facts.scope.assets.keys(), facts.now)
    code, assets = facts.deployment.self_facility_code, facts.scope.bound_ids
    needed = yield from find_needed_clearance(clearances, subject_id, assets, code, facts.now)
    return replace(facts, clearances=clearances, needed_clearance=needed, run_id=run_id)


def clearance_present(facts: Preconditions) -> None:
    """Some clearance covers the run, whatever its status."""
    if (finding := facts.clearance) is not None and finding.total:
        raise finding.refusal(RunRequiresActiveClearanceError, RunClearanceCoverageMismatchError, **facts.run_facts)


def clearance_active(facts: Preconditions) -> None:
    """One of the clearances that cover the run is in force."""
    if (finding := facts.clearance) is not None:
        raise finding.refusal(RunClearanceCoverageMismatchError, RunClearanceCoverageMismatchError, **facts.run_facts)


def supply_present(facts: Preconditions) -> None:
    """Every kind of supply the method needs is in scope; each kind is judged to its end before the next."""
    if (finding := facts.supply) is not None and finding.total:
        raise finding.refusal(RunRequiresAvailableSupplyError, RunSupplyCoverageMismatchError, **facts.run_facts)


def supply_available(facts: Preconditions) -> None:
    """Of every kind of supply the method needs, one is available."""
    if (finding := facts.supply) is not None:
        raise finding.refusal(RunSupplyCoverageMismatchError, RunSupplyCoverageMismatchError, **facts.run_facts)


def enclosure_permitted(facts: Preconditions) -> None:
    """Every enclosure that assets in scope stand in permits work, by a recent observation."""
    if (finding := facts.enclosure) is not None:
        raise finding.refusal(RunRequiresPermittedEnclosureError, RunEnclosureCoverageMismatchError, **facts.run_facts)


def assets_in_service(facts: Preconditions) -> None:
    """No asset of the plan is Decommissioned; its condition does not matter."""
    if gone := facts.decommissioned_assets:
        detail = f"{', '.join(asset.name for asset in gone)} of the plan is Decommissioned; plan with other assets."
        raise RunPlanAssetDecommissionedError(detail, facts={"asset_ids": [str(asset.id) for asset in gone]})


def supply_ids(facts: Preconditions) -> Iterable[UUID]:
    return (supply.id for supply in facts.supplies)


def clearance_ids(facts: Preconditions) -> Iterable[UUID]:
    return (clearance.id for clearance in facts.clearances)


def clearance_times(facts: Preconditions) -> GateWindow:
    return clearance_window(facts.clearances, facts.now)


CLEARANCE_GATES = tuple(Gate(rule, clearance_ids, clearance_times) for rule in (clearance_present, clearance_active))
SUPPLY_GATES = (Gate(supply_present, supply_ids), Gate(supply_available, supply_ids))
ENCLOSURE_GATE = Gate(enclosure_permitted, lambda facts: facts.scope.enclosure_ids)
ASSET_GATE = Gate(assets_in_service, lambda facts: facts.asset_ids)
RESUME_GATES = (*CLEARANCE_GATES, ASSET_GATE, *SUPPLY_GATES, ENCLOSURE_GATE)  # Those that a held run passes again, in order.
