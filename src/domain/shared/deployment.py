"""What decisions and answers may know of the deployment that they are made in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from baton.domain.shared.action_signals import ActionSignals
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.outages import PlannedOutage
from baton.domain.shared.units import UnitPolicy


class CatalogueName(StrEnum):
    SCICAT = "SciCat"
    TILED = "Tiled"


class DeclaredRoute(Protocol):
    """What a deployment declares of all addresses with one prefix; that they are simulated is never inferred."""

    @property
    def prefix(self) -> str: ...
    @property
    def substrate(self) -> str: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def read_only(self) -> bool: ...


@dataclass(frozen=True)
class Deployment:
    """The settings of this deployment that decisions and answers may know."""

    base_url: str
    landing_page_templates: Mapping[str, str]  # Where identifiers lead, by the kind of thing, with `{id}`.
    publisher: str
    minted_schemes: frozenset[ExternalIdScheme]
    drafts_minted: bool  # Whether identifiers can be reserved before they are public.
    self_facility_code: str
    enclosure_observation_ttl: timedelta  # How long an observation of a bridge outside counts.
    monitored_permit_ttl: timedelta  # How long one of the deployment's own monitor does.
    deciders: frozenset[str]
    compute_programs: frozenset[str]
    approved_models_only: bool
    action_timeout: float  # Seconds that an action may take at the most.
    compute_timeout: float  # Seconds that a program may take at the most.
    clearance_four_eyes: bool
    policies_enforced: bool
    action_signals: Mapping[str, ActionSignals]  # What each action declares to touch; one that is not here declares nothing.
    unowned_signals_allowed: bool  # Whether a conduct may write to signals that no asset owns.
    strict_limits: bool  # Whether every axis of a pattern needs limits.
    lapsed_calibrations_refused: bool  # Whether a run that pins a lapsed calibration revision may not start.
    monitored_enclosures: frozenset[str]  # The enclosures that the monitor watches, by the keys of their names.
    monitored_supplies: frozenset[str]  # The supplies that the monitor watches, by the keys of their addresses.
    seal_signatures_required: bool  # Whether a seal takes a pointer or a new online key only with its signature.
    catalogues: frozenset[CatalogueName]  # Those that datasets are entered into.
    peer_addresses: Mapping[str, str]  # Where published artifacts of peers are fetched from, by the codes of facilities.
    own_ids_at_peers: Mapping[str, UUID]  # The id that this facility has at each peer, by their codes.
    peer_accounts: Mapping[UUID, str]  # The accounts of peers here, and the codes of their facilities.
    unit_policy: UnitPolicy  # What becomes of a value whose declared unit is not that of its signal.
    planned_outages: tuple[PlannedOutage, ...]  # When supplies are announced to be gone.
    witnessed_runs_claim: bool  # Whether live runs elsewhere keep conducts from the assets of their devices.
    plan_executors: tuple[Any, ...]  # Those of Bluesky plans, as `DeclaredPlanExecutor` of the steps.
    control_routes: tuple[DeclaredRoute, ...]  # What serves each signal; where writes are disabled, all are read-only.


class DeploymentPort(Protocol):
    """Knows the settings of this deployment."""

    async def deployment(self) -> Deployment:
        """Return what may be known of this deployment."""
