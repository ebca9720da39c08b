"""The types of every operation and of every kind of thing; written by `python -m tests.documents.client_stub`."""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, overload
from uuid import UUID

from pydantic import BaseModel
from rich.console import Console

from baton.client.spreadsheets import Table
from baton.client.watching import AsyncConductWatch, AsyncRunWatch, ConductWatch, RunWatch
from baton.domain.access.actor import ActorKind, ActorProfileView, ActorRow, ActorStatus
from baton.domain.access.edge_queries import AccessView
from baton.domain.access.group import GroupClaim, GroupStatus
from baton.domain.access.references import Reference
from baton.domain.agent.agent import AgentStatus, Budget
from baton.domain.agent.debrief import RegeneratedDebrief, RegenerationAccepted
from baton.domain.agent.language_model import (
    Archivability,
    AtRiskResults,
    DataTier,
    LanguageModelStatus,
    ModelRef,
    Pricing,
    ServingRoute,
)
from baton.domain.agent.reactions import Reactions
from baton.domain.calibration.at_risk_results import CalibrationAtRiskResult
from baton.domain.calibration.calibration import AppendedRevision, CalibrationStatus, GivenSource, Revision, SourceKind
from baton.domain.calibration.publication import PublicationAccepted, PublishedRevision
from baton.domain.calibration.quantities import CalibrationQuantity
from baton.domain.campaign.campaign import CampaignIntent, CampaignStatus, ListedCampaignStatus
from baton.domain.caution.caution import (
    CautionCategory,
    CautionRetireReason,
    CautionSeverity,
    CautionStatus,
    CautionTarget,
    CautionTargetKind,
    ListedStatus,
    NewCaution,
)
from baton.domain.data.acquisition import AcquisitionStatus
from baton.domain.data.attestation import (
    AttestationAccepted,
    AttestationCreated,
    AttestationEvidence,
    AttestationKind,
    AttestationOutcome,
    AttestationStatus,
    AttestationSweep,
    AttestationSweepAccepted,
)
from baton.domain.data.catalogue import CatalogueEntryStatus, CatalogueName, CataloguePass, CataloguePassAccepted
from baton.domain.data.dataset import DatasetIntent, DatasetStatus
from baton.domain.data.distribution import AccessProtocol, DistributionStatus
from baton.domain.data.edition import EditionStatus, EditionWorkAccepted, PublishedEdition
from baton.domain.data.manifest import EditionKind
from baton.domain.data.procedure_files import ProcedureFilesView, RegisteredProducts, RegistrationAccepted
from baton.domain.data.provenance import DatasetProvenance, ProvenanceDirection
from baton.domain.data.scan import ScanIngestAccepted, ScanIngested
from baton.domain.data.values import Checksum, Encoding, GivenChecksum, GivenEncoding
from baton.domain.decision.decision import ConfidenceBand, ConfidenceSource, DecisionRating, OverrideKind, Rating, Span
from baton.domain.enclosure.enclosure import EnclosureLifecycle, EnclosurePermitStatus
from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.assembly import AssemblyStatus, RequiredSlot, RequiredSubAssembly, RequiredWire
from baton.domain.equipment.asset import AssetCondition, AssetLifecycle, AssetTier
from baton.domain.equipment.asset_external_id import MintSweepAccepted, MintSweepView
from baton.domain.equipment.asset_reading import AssetContents
from baton.domain.equipment.asset_tree import AssetTree, TreeDirection
from baton.domain.equipment.asset_views import AssetIntegrationView
from baton.domain.equipment.family import AffordanceRow, FamilyStatus
from baton.domain.equipment.fixture import SlotBinding
from baton.domain.equipment.frame import FrameStatus, Placement, Supersession, Survey
from baton.domain.equipment.model import Manufacturer, ModelStatus
from baton.domain.equipment.mount import MountStatus
from baton.domain.equipment.partition import Affine, Aggregation, CompositePartition, LookupTable, SolverReference
from baton.domain.equipment.pidinst import PidinstRecord
from baton.domain.equipment.values import (
    AlternateIdentifier,
    AlternateIdentifierKind,
    AssignedExternalId,
    Drawing,
    ExternalIdScheme,
    Owner,
    Port,
    PortDirection,
    SignalLimits,
)
from baton.domain.federation.artifact_check import CheckReason, ReceivedArtifactStatus, Stage, StageVerdict
from baton.domain.federation.credential import CredentialPurpose, CredentialStatus
from baton.domain.federation.facility import FacilityIdentifier, FacilityKind, FacilityStatus, RegisteredFacility
from baton.domain.federation.permit import AbiTier, InboundTerms, OutboundTerms, PermitDirection, PermitStatus
from baton.domain.federation.published_artifact import PublishedArtifact
from baton.domain.federation.received_artifact import Adoption, ReceivedRevision, ReceptionAccepted, ReceptionResult
from baton.domain.federation.seal import SealKeyChange, SealSignature, SealStatus, SignedSealPointer
from baton.domain.kernel import Document
from baton.domain.operation.conduct.conduct import ConductAccepted
from baton.domain.operation.conduct.control_signals import ResolvedSignals, SignalReadings
from baton.domain.operation.conduct.options import ConductOptions, OnUnknownOutcome, WatchedGate
from baton.domain.operation.conduct.results import (
    ActuationKind,
    ConductResult,
    Deviation,
    Failure,
    PlacedStep,
    ResolvedStep,
    RunConductResult,
    StepVerdict,
)
from baton.domain.operation.conduct.step_list import ProcedureSteps
from baton.domain.operation.conduct.touched import TouchedSignals
from baton.domain.operation.conduct.views import ConductView
from baton.domain.operation.conduct.work_items import WorkView
from baton.domain.operation.launch.targets import ConductPlan, ConductRecipe
from baton.domain.operation.procedure.activity_logbook import ActivityReport, StepKind
from baton.domain.operation.procedure.endings import RequestAccepted
from baton.domain.operation.procedure.iterations import Iterations
from baton.domain.operation.procedure.preflight import ProcedurePreflight
from baton.domain.operation.procedure.procedure import ConductMode, HoldCause, PendingRequest, ProcedureStatus
from baton.domain.operation.queue.forecast import ItemForecast
from baton.domain.operation.queue.items import ConductQueuedPlan, ConductQueuedRecipe, QueueItemStatus
from baton.domain.operation.queue.queue import NewQueueItem, OnFailure, QueueItemsAddedAnswer, QueueStatus
from baton.domain.operation.queue.views import QueueItemView
from baton.domain.operation.schedule.calendar import CronCalendar, EveryCalendar
from baton.domain.operation.schedule.schedule import Overlap, ScheduleStatus
from baton.domain.operation.schedule.views import FiringView, ScheduleItem
from baton.domain.operation.steering.steered_conduct import AdviceAccepted, AdviceFollowed, SteeringView
from baton.domain.operation.steering.steering import (
    BotorchDecide,
    CallerDecide,
    GridWalkDecide,
    InMemoryDecide,
    LlmDecide,
    PluginDecide,
    SobolDecide,
    StagedDecide,
    SteeringAdvice,
    SteeringBudget,
    SteeringObjective,
    SteeringSpace,
)
from baton.domain.recipe.capability import ExecutorShape
from baton.domain.recipe.lifecycle import TemplateStatus
from baton.domain.recipe.method import RoleRequirement
from baton.domain.recipe.plan import DataRegistration, RoleBinding, Wire
from baton.domain.recipe.plan_inspection import PlanBinding
from baton.domain.recipe.recipe import RecipeVersion
from baton.domain.recipe.steps import (
    PlainEqualsCriterion,
    PlainToleranceCriterion,
    RecipeActionStep,
    RecipeCaptureStep,
    RecipeCheckStep,
    RecipeComputeStep,
    RecipeSetpointStep,
)
from baton.domain.registry import Operation
from baton.domain.run.beamline_now import BeamlineNow
from baton.domain.run.conduct import Phase, RunConductAccepted, RunConductView
from baton.domain.run.hold_everything import HeldEverything
from baton.domain.run.logbooks import Channel, NarrativeEntry, RunLogbookEntryKind, Sample, SamplingProcedure
from baton.domain.run.run import RunStatus
from baton.domain.run.run_views import RunPhaseView
from baton.domain.run.start import Preflight, RunStartedAnswer
from baton.domain.run.waiting import WaitingItem, WaitingKind
from baton.domain.safety.clearance import AmendedClearance, ClearanceStatus
from baton.domain.safety.clearance_template import ClearanceTemplateStatus
from baton.domain.safety.clearance_views import BoundRecords
from baton.domain.safety.hazards import (
    ExternalBinding,
    HazardDeclaration,
    RecordBinding,
    ReviewDecision,
    ReviewStep,
    RiskBand,
)
from baton.domain.shared.dry_run import DryRun
from baton.domain.shared.event_view import EventView
from baton.domain.shared.listing import Order, Page
from baton.domain.shared.logbooks import Appended, LogbookKind
from baton.domain.shared.monitoring import MonitorRef, TriggerSource
from baton.domain.subject.subject import SubjectStatus
from baton.domain.supply.supply import SupplyStatus
from baton.domain.trust.authorization import PermissionsView, PolicyEvaluation
from baton.domain.trust.conduit import AccessDecision, VerdictItem
from baton.domain.trust.policy import Approval
from baton.domain.trust.proposal import ProposalAccepted, ProposalOutcome, ProposalStatus, ProposalView
from baton.domain.trust.surface import SurfaceControlView, SurfaceKind
from baton.domain.trust.visit import Presence, PresenceMode, VisitStatus, VisitType

NameOrId: TypeAlias = UUID | str
AbiTierName: TypeAlias = AbiTier | Literal["Testing", "Stable", "Obsolete", "Removed"]
AccessDecisionName: TypeAlias = AccessDecision | Literal["Allow", "Deny"]
AccessProtocolName: TypeAlias = AccessProtocol | Literal["HTTPS", "Globus", "S3", "POSIX", "NFS", "OAI_PMH"]
ActorKindName: TypeAlias = ActorKind | Literal["human", "agent", "service_account"]
ActorStatusName: TypeAlias = ActorStatus | Literal["active", "deactivated"]
AffordanceName: TypeAlias = (
    Affordance
    | Literal[
        "Rotatable",
        "Translatable",
        "Homeable",
        "Limitable",
        "Capturable",
        "Posable",
        "Indexable",
        "Following",
        "Leading",
        "Imageable",
        "Binnable",
        "Capturing",
        "Triggerable",
        "Gateable",
        "Synchronizable",
        "Marking",
        "Pulsing",
        "Streamable",
        "Bufferable",
        "Compressible",
        "Recording",
        "Coolable",
        "PIDControllable",
        "Settable",
        "Shutterable",
        "Attenuable",
        "Bendable",
        "Identifiable",
        "Reportable",
        "Consumable",
    ]
)
AgentStatusName: TypeAlias = AgentStatus | Literal["Defined", "Versioned", "Suspended", "Deprecated"]
AlternateIdentifierKindName: TypeAlias = (
    AlternateIdentifierKind | Literal["EPICS_PV", "SerialNumber", "InventoryNumber", "Other"]
)
ArchivabilityName: TypeAlias = Archivability | Literal["Pinned", "Alias"]
AssemblyStatusName: TypeAlias = AssemblyStatus | Literal["Defined", "Versioned", "Deprecated"]
AssetConditionName: TypeAlias = AssetCondition | Literal["Nominal", "Degraded", "Faulted"]
AssetLifecycleName: TypeAlias = AssetLifecycle | Literal["Commissioned", "Active", "Maintenance", "Decommissioned"]
AssetTierName: TypeAlias = AssetTier | Literal["Unit", "Component", "Device"]
AttestationKindName: TypeAlias = AttestationKind | Literal["ChecksumVerified"]
AttestationOutcomeName: TypeAlias = AttestationOutcome | Literal["Match", "Mismatch", "Unreachable"]
CalibrationQuantityName: TypeAlias = (
    CalibrationQuantity
    | Literal[
        "rotation_center",
        "detector_pixel_size",
        "magnification",
        "effective_thickness",
        "energy_position_curve",
        "index_position_table",
        "blade_throw_scale",
        "motor_sensitivity",
        "beam_profile",
        "encoder_offset",
    ]
)
CalibrationStatusName: TypeAlias = CalibrationStatus | Literal["Provisional", "Verified"]
CampaignIntentName: TypeAlias = CampaignIntent | Literal["Series", "Sweep", "Coordination", "Block"]
CatalogueEntryStatusName: TypeAlias = CatalogueEntryStatus | Literal["Pending", "Entered", "Refused"]
CatalogueNameName: TypeAlias = CatalogueName | Literal["SciCat", "Tiled"]
CautionCategoryName: TypeAlias = (
    CautionCategory | Literal["Wear", "Calibration", "Wiring", "OperationalWindow", "InterlockQuirk", "ProcedureGotcha"]
)
CautionRetireReasonName: TypeAlias = CautionRetireReason | Literal["Resolved", "NoLongerApplies", "WrongTarget"]
CautionSeverityName: TypeAlias = CautionSeverity | Literal["Notice", "Caution", "Warning"]
CautionTargetKindName: TypeAlias = CautionTargetKind | Literal["Asset", "Procedure", "Recipe", "Plan"]
ClearanceStatusName: TypeAlias = (
    ClearanceStatus
    | Literal["Defined", "Submitted", "UnderReview", "Approved", "Active", "Expired", "Rejected", "Superseded"]
)
ClearanceTemplateStatusName: TypeAlias = ClearanceTemplateStatus | Literal["Draft", "Active", "Deprecated", "Withdrawn"]
ConfidenceBandName: TypeAlias = ConfidenceBand | Literal["Low", "Medium", "High", "Certain"]
ConfidenceSourceName: TypeAlias = ConfidenceSource | Literal["self_reported", "logprob", "ensemble", "human"]
CredentialPurposeName: TypeAlias = (
    CredentialPurpose
    | Literal["Signing", "Verification", "Authentication", "Encryption", "SealOnlineSigning", "SealOfflineRoot"]
)
CredentialStatusName: TypeAlias = CredentialStatus | Literal["Active", "Rotating", "Revoked"]
DataTierName: TypeAlias = DataTier | Literal["Open", "Internal", "Sensitive"]
DatasetIntentName: TypeAlias = DatasetIntent | Literal["Trial", "Production", "Retracted"]
DatasetStatusName: TypeAlias = DatasetStatus | Literal["Registered", "Discarded"]
DecisionRatingName: TypeAlias = DecisionRating | Literal["useful", "misleading", "ignored"]
DistributionStatusName: TypeAlias = DistributionStatus | Literal["Registered", "Verified", "Stale", "Discarded"]
EditionKindName: TypeAlias = EditionKind | Literal["ROCrate", "DataCite", "Croissant", "OAIS_AIP", "OAIS_DIP", "NeXus"]
EditionStatusName: TypeAlias = EditionStatus | Literal["Registered", "Sealed", "Published", "Withdrawn"]
EnclosureLifecycleName: TypeAlias = EnclosureLifecycle | Literal["Active", "Decommissioned"]
EnclosurePermitStatusName: TypeAlias = EnclosurePermitStatus | Literal["Permitted", "NotPermitted", "Unknown"]
ExecutorShapeName: TypeAlias = ExecutorShape | Literal["METHOD", "PROCEDURE"]
ExternalIdSchemeName: TypeAlias = ExternalIdScheme | Literal["DOI", "Handle"]
FacilityKindName: TypeAlias = FacilityKind | Literal["Site", "Area"]
FacilityStatusName: TypeAlias = FacilityStatus | Literal["Active", "Decommissioned"]
FamilyStatusName: TypeAlias = FamilyStatus | Literal["Defined", "Versioned", "Deprecated"]
FrameStatusName: TypeAlias = FrameStatus | Literal["Active", "Decommissioned"]
GroupStatusName: TypeAlias = GroupStatus | Literal["Active", "Retired"]
LanguageModelStatusName: TypeAlias = (
    LanguageModelStatus | Literal["Defined", "Approved", "RetirementAnnounced", "Retired", "Deprecated"]
)
ListedCampaignStatusName: TypeAlias = (
    ListedCampaignStatus | Literal["Planned", "Active", "Held", "Closed", "Abandoned", "all"]
)
ListedStatusName: TypeAlias = ListedStatus | Literal["Active", "Superseded", "Retired", "all"]
ModelStatusName: TypeAlias = ModelStatus | Literal["Defined", "Versioned", "Deprecated"]
MountStatusName: TypeAlias = MountStatus | Literal["Active", "Decommissioned"]
OnFailureName: TypeAlias = OnFailure | Literal["hold", "continue"]
OnUnknownOutcomeName: TypeAlias = OnUnknownOutcome | Literal["abort", "hold"]
OrderName: TypeAlias = Order | Literal["asc", "desc"]
OverlapName: TypeAlias = Overlap | Literal["Skip", "BufferOne", "AllowAll"]
OverrideKindName: TypeAlias = OverrideKind | Literal["correction", "exception", "appeal", "supersession", "invalidation"]
PermitDirectionName: TypeAlias = PermitDirection | Literal["Outbound", "Inbound"]
PermitStatusName: TypeAlias = PermitStatus | Literal["Defined", "Active", "Suspended", "Revoked"]
PortDirectionName: TypeAlias = PortDirection | Literal["Input", "Output"]
PresenceModeName: TypeAlias = PresenceMode | Literal["physical", "remote"]
ProcedureStatusName: TypeAlias = ProcedureStatus | Literal["Defined", "Running", "Held", "Completed", "Aborted", "Truncated"]
ProposalStatusName: TypeAlias = ProposalStatus | Literal["Open", "CarriedOut", "Refused", "Rejected", "Withdrawn", "Expired"]
ProvenanceDirectionName: TypeAlias = ProvenanceDirection | Literal["ancestors", "descendants", "both"]
QueueItemStatusName: TypeAlias = (
    QueueItemStatus | Literal["Waiting", "Blocked", "Running", "Completed", "Failed", "Refused", "Removed"]
)
QueueStatusName: TypeAlias = QueueStatus | Literal["Active", "Held", "Retired"]
ReceivedArtifactStatusName: TypeAlias = ReceivedArtifactStatus | Literal["Verified", "Rejected", "Unverifiable"]
ReviewDecisionName: TypeAlias = ReviewDecision | Literal["Approved", "Rejected", "RequestedChanges"]
RiskBandName: TypeAlias = RiskBand | Literal["Green", "Yellow", "Red"]
RunLogbookEntryKindName: TypeAlias = RunLogbookEntryKind | Literal["Note", "Debrief"]
RunStatusName: TypeAlias = RunStatus | Literal["Running", "Held", "Completed", "Stopped", "Aborted", "Truncated"]
SamplingProcedureName: TypeAlias = SamplingProcedure | Literal["baseline", "monitor"]
ScheduleStatusName: TypeAlias = ScheduleStatus | Literal["Active", "Held", "Retired"]
SealStatusName: TypeAlias = SealStatus | Literal["Live", "Republishing"]
ServingRouteName: TypeAlias = ServingRoute | Literal["Direct", "Gateway", "InHouse"]
SourceKindName: TypeAlias = SourceKind | Literal["Measured", "Computed", "Asserted"]
StepKindName: TypeAlias = StepKind | Literal["setpoint", "action", "check", "capture", "compute"]
StepVerdictName: TypeAlias = StepVerdict | Literal["done", "not_done"]
SubjectStatusName: TypeAlias = (
    SubjectStatus | Literal["Received", "Mounted", "Measured", "Removed", "Returned", "Stored", "Discarded"]
)
SupplyStatusName: TypeAlias = (
    SupplyStatus | Literal["Unknown", "Available", "Degraded", "Unavailable", "Recovering", "Decommissioned"]
)
SurfaceKindName: TypeAlias = SurfaceKind | Literal["HTTP", "MCP_STDIO", "MCP_STREAMABLE_HTTP"]
TemplateStatusName: TypeAlias = TemplateStatus | Literal["Defined", "Versioned", "Deprecated"]
TreeDirectionName: TypeAlias = TreeDirection | Literal["descendants", "ancestors"]
VisitStatusName: TypeAlias = (
    VisitStatus | Literal["Planned", "Arrived", "InProgress", "OnHold", "Completed", "Cancelled", "Aborted", "Voided"]
)
VisitTypeName: TypeAlias = VisitType | Literal["user", "commissioning", "maintenance", "calibration", "staff"]
WaitingKindName: TypeAlias = (
    WaitingKind
    | Literal[
        "held_run",
        "held_procedure",
        "unknown_outcome",
        "supply_recovering",
        "clearance_in_review",
        "caution_proposal",
        "refused_firing",
        "proposal",
    ]
)
WatchedGateName: TypeAlias = WatchedGate | Literal["enclosure", "supply"]

STREAMS: tuple[str, ...]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

def verb(method: Callable[Concatenate[Any, Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return an operation as a verb of the thing that it is about."""

def maker(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return an operation that is about no thing yet as a verb of a collection."""

def listing(method: Callable[Concatenate[Any, P], Any], kind: type[T]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    """Return a list as things, page after page."""

def async_listing(
    method: Callable[Concatenate[Any, P], Any], kind: type[T]
) -> Callable[Concatenate[Any, P], AsyncIterator[T]]:
    """Return a list as things, page after page, for asynchronous programs."""

class Thing:
    """One thing, named by its name or id; `row` is what a list or the call that made it said of it."""

    reference: NameOrId
    row: Any
    @property
    def id(self) -> UUID: ...
    def history(self) -> Iterator[EventView]:
        """Yield every event of the thing, oldest first."""
    def __getattr__(self, name: str) -> Any: ...

class AsyncThing:
    """One thing, named by its name or id; `row` is what a list or the call that made it said of it."""

    reference: NameOrId
    row: Any
    @property
    def id(self) -> Any: ...
    def history(self) -> AsyncIterator[EventView]:
        """Yield every event of the thing, oldest first."""
    def __getattr__(self, name: str) -> Any: ...

class ActorHistory(BaseModel):
    actor_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ActorCreated(BaseModel):
    actor_id: UUID

class ActorView(BaseModel):
    id: UUID
    kind: ActorKind
    active: bool
    name: str
    actor_id: UUID
    created_at: datetime

class PastActorView(BaseModel):
    id: UUID
    kind: ActorKind
    active: bool
    actor_id: UUID
    created_at: datetime

class GroupHistory(BaseModel):
    group_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class GroupCreated(BaseModel):
    group_id: UUID

class GroupView(BaseModel):
    id: UUID
    name: str
    claim: GroupClaim | None
    member_ids: frozenset[UUID]
    status: GroupStatus
    group_id: UUID
    created_at: datetime

class GroupItem(BaseModel):
    group_id: UUID
    name: str
    status: GroupStatus
    created_at: datetime

class ZoneHistory(BaseModel):
    zone_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ZoneCreated(BaseModel):
    zone_id: UUID

class ZoneView(BaseModel):
    id: UUID
    name: str
    zone_id: UUID
    created_at: datetime

class ZoneItem(BaseModel):
    zone_id: UUID
    name: str
    created_at: datetime

class ConduitHistory(BaseModel):
    conduit_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ConduitCreated(BaseModel):
    conduit_id: UUID

class ConduitView(BaseModel):
    id: UUID
    name: str
    source_zone_id: UUID
    target_zone_id: UUID
    verdict_logbook_id: UUID | None
    conduit_id: UUID
    created_at: datetime

class ConduitItem(BaseModel):
    conduit_id: UUID
    name: str
    source_zone_id: UUID
    target_zone_id: UUID
    created_at: datetime

class SurfaceHistory(BaseModel):
    surface_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class SurfaceCreated(BaseModel):
    surface_id: UUID

class SurfaceView(BaseModel):
    id: UUID
    name: str
    kind: SurfaceKind
    surface_id: UUID
    created_at: datetime

class SurfaceItem(BaseModel):
    surface_id: UUID
    name: str
    kind: SurfaceKind
    created_at: datetime

class PolicyHistory(BaseModel):
    policy_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class PolicyCreated(BaseModel):
    policy_id: UUID

class PolicyView(BaseModel):
    id: UUID
    name: str
    conduit_id: UUID
    surface_id: UUID
    permitted_principal_ids: frozenset[UUID]
    permitted_group_ids: frozenset[UUID]
    permitted_commands: frozenset[str]
    permitted_command_sets: frozenset[str]
    approval: Approval | None
    policy_id: UUID
    created_at: datetime

class PolicyItem(BaseModel):
    policy_id: UUID
    name: str
    conduit_id: UUID
    surface_id: UUID
    created_at: datetime

class ProposalHistory(BaseModel):
    proposal_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ProposalItem(BaseModel):
    proposal_id: UUID
    command_name: str
    target_id: UUID | None
    proposed_by: UUID
    status: ProposalStatus
    approved_by: UUID | None
    expires_at: datetime
    closed_at: datetime | None
    created_at: datetime

class VisitHistory(BaseModel):
    visit_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class VisitCreated(BaseModel):
    visit_id: UUID

class VisitView(BaseModel):
    id: UUID
    created_at: datetime
    policy_id: UUID
    surface_id: UUID
    type: VisitType
    planned_start_at: datetime
    planned_end_at: datetime
    parent_id: UUID | None
    external_refs: dict[str, str]
    status: VisitStatus
    last_status_reason: str | None
    presence_entries: tuple[Presence, ...]
    arrived_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    visit_id: UUID

class VisitItem(BaseModel):
    visit_id: UUID
    policy_id: UUID
    surface_id: UUID
    type: VisitType
    status: VisitStatus
    planned_start_at: datetime
    planned_end_at: datetime
    parent_id: UUID | None
    external_refs: dict[str, str]
    created_at: datetime
    arrived_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    last_status_reason: str | None

class AssetHistory(BaseModel):
    asset_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class AssetView(BaseModel):
    id: UUID
    created_at: datetime
    name: str
    tier: AssetTier
    parent_id: UUID | None
    facility_code: str | None
    lifecycle: AssetLifecycle
    condition: AssetCondition
    family_ids: frozenset[UUID]
    settings: Mapping[str, Any]
    schema_revisions: Mapping[UUID, int]
    alternate_identifiers: tuple[AlternateIdentifier, ...]
    signal_limits: Mapping[str, SignalLimits]
    located_in_enclosure_id: UUID | None
    ports: tuple[Port, ...]
    owners: tuple[Owner, ...]
    model_id: UUID | None
    controller_id: UUID | None
    drawing: Drawing | None
    fixture_id: UUID | None
    external_id: str | None
    external_id_scheme: ExternalIdScheme | None
    partition_rule: Affine | Aggregation | LookupTable | CompositePartition | SolverReference | None
    commissioned_at: datetime
    decommissioned_at: datetime | None
    asset_id: UUID

class AssetCreated(BaseModel):
    asset_id: UUID

class AssetItem(BaseModel):
    asset_id: UUID
    name: str
    tier: AssetTier
    lifecycle: AssetLifecycle
    condition: AssetCondition
    parent_id: UUID | None
    facility_code: str | None
    model_id: UUID | None
    fixture_id: UUID | None
    located_in_enclosure_id: UUID | None
    external_id: str | None
    created_at: datetime

class FamilyHistory(BaseModel):
    family_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class FamilyCreated(BaseModel):
    family_id: UUID

class FamilyView(BaseModel):
    id: UUID
    created_at: datetime
    name: str
    affordances: frozenset[Affordance]
    settings_schema: dict[str, Any] | None
    status: FamilyStatus
    version_tag: str | None
    settings_schema_revision: int
    presented_role_ids: frozenset[UUID]
    versioned_at: datetime | None
    deprecated_at: datetime | None
    family_id: UUID

class FamilyItem(BaseModel):
    family_id: UUID
    name: str
    status: FamilyStatus
    version_tag: str | None
    affordances: frozenset[Affordance]
    presented_role_ids: frozenset[UUID]
    settings_schema_present: bool
    created_at: datetime

class RoleHistory(BaseModel):
    role_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class RoleCreated(BaseModel):
    role_id: UUID

class RoleView(BaseModel):
    id: UUID
    created_at: datetime
    name: str
    description: str
    required_affordances: frozenset[Affordance]
    optional_affordances: frozenset[Affordance]
    produces: frozenset[str]
    consumes: frozenset[str]
    role_id: UUID

class RoleItem(BaseModel):
    role_id: UUID
    name: str
    description: str
    required_affordances: frozenset[Affordance]
    optional_affordances: frozenset[Affordance]
    produces: frozenset[str]
    consumes: frozenset[str]
    created_at: datetime

class ModelHistory(BaseModel):
    model_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ModelCreated(BaseModel):
    model_id: UUID

class ModelView(BaseModel):
    id: UUID
    created_at: datetime
    name: str
    manufacturer: Manufacturer
    part_number: str
    declared_family_ids: frozenset[UUID]
    version_tag: str | None
    status: ModelStatus
    model_id: UUID

class ModelItem(BaseModel):
    model_id: UUID
    name: str
    manufacturer: Manufacturer
    part_number: str
    declared_family_ids: frozenset[UUID]
    status: ModelStatus
    version_tag: str | None
    created_at: datetime

class FrameHistory(BaseModel):
    frame_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class FrameCreated(BaseModel):
    frame_id: UUID

class FrameView(BaseModel):
    id: UUID
    created_at: datetime
    name: str
    parent_id: UUID | None
    placement: Placement | None
    supersedes: Supersession | None
    survey: Survey | None
    status: FrameStatus
    frame_id: UUID

class FrameItem(BaseModel):
    frame_id: UUID
    name: str
    parent_id: UUID | None
    placement: Placement | None
    status: FrameStatus
    created_at: datetime

class MountHistory(BaseModel):
    mount_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class MountCreated(BaseModel):
    mount_id: UUID

class MountView(BaseModel):
    id: UUID
    created_at: datetime
    slot_code: str
    parent_id: UUID | None
    placement: Placement
    drawing: Drawing | None
    survey: Survey | None
    installed_asset_id: UUID | None
    status: MountStatus
    mount_id: UUID

class MountItem(BaseModel):
    mount_id: UUID
    slot_code: str
    parent_id: UUID | None
    placement: Placement
    drawing: Drawing | None
    installed_asset_id: UUID | None
    status: MountStatus
    created_at: datetime

class AssemblyHistory(BaseModel):
    assembly_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class AssemblyCreated(BaseModel):
    assembly_id: UUID

class AssemblyView(BaseModel):
    id: UUID
    created_at: datetime
    name: str
    presented_role_ids: frozenset[UUID]
    required_slots: tuple[RequiredSlot, ...]
    required_wires: tuple[RequiredWire, ...]
    required_sub_assemblies: tuple[RequiredSubAssembly, ...]
    parameter_overrides_schema: dict[str, Any] | None
    drawing: Drawing | None
    version_tag: str | None
    content_hash: str
    status: AssemblyStatus
    assembly_id: UUID

class AssemblyItem(BaseModel):
    assembly_id: UUID
    name: str
    status: AssemblyStatus
    version_tag: str | None
    content_hash: str
    presented_role_ids: frozenset[UUID]
    created_at: datetime

class FixtureHistory(BaseModel):
    fixture_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class FixtureCreated(BaseModel):
    fixture_id: UUID

class FixtureView(BaseModel):
    id: UUID
    assembly_id: UUID
    assembly_content_hash: str
    surface_id: UUID
    slot_asset_bindings: tuple[SlotBinding, ...]
    parameter_overrides: dict[str, Any]
    external_id: str | None
    external_id_scheme: ExternalIdScheme | None
    registered_at: datetime
    fixture_id: UUID
    created_at: datetime

class FixtureItem(BaseModel):
    fixture_id: UUID
    assembly_id: UUID
    assembly_content_hash: str
    surface_id: UUID
    binding_count: int
    override_count: int
    created_at: datetime

class SupplyHistory(BaseModel):
    supply_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class SupplyCreated(BaseModel):
    supply_id: UUID

class SupplyView(BaseModel):
    id: UUID
    kind: str
    name: str
    facility_code: str
    containing_asset_id: UUID | None
    status: SupplyStatus
    monitored: bool
    last_contact_at: datetime | None
    supply_id: UUID
    created_at: datetime

class PastSupplyView(BaseModel):
    id: UUID
    kind: str
    name: str
    facility_code: str
    containing_asset_id: UUID | None
    status: SupplyStatus
    supply_id: UUID
    created_at: datetime

class SupplyItem(BaseModel):
    supply_id: UUID
    kind: str
    name: str
    facility_code: str
    containing_asset_id: UUID | None
    status: SupplyStatus
    registered_at: datetime
    last_status_changed_at: datetime | None
    last_status_reason: str | None
    last_trigger: TriggerSource | None

class EnclosureHistory(BaseModel):
    enclosure_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class EnclosureCreated(BaseModel):
    enclosure_id: UUID

class EnclosureView(BaseModel):
    id: UUID
    name: str
    facility_code: str
    permit_status: EnclosurePermitStatus
    lifecycle: EnclosureLifecycle
    registered_at: datetime
    registered_by: UUID
    decommissioned_at: datetime | None
    decommissioned_by: UUID | None
    observation_age: float | None
    monitored: bool
    last_contact_at: datetime | None
    enclosure_id: UUID
    created_at: datetime

class PastEnclosureView(BaseModel):
    id: UUID
    name: str
    facility_code: str
    permit_status: EnclosurePermitStatus
    lifecycle: EnclosureLifecycle
    registered_at: datetime
    registered_by: UUID
    decommissioned_at: datetime | None
    decommissioned_by: UUID | None
    enclosure_id: UUID
    created_at: datetime

class EnclosureItem(BaseModel):
    enclosure_id: UUID
    name: str
    facility_code: str
    lifecycle: EnclosureLifecycle
    permit_status: EnclosurePermitStatus
    registered_at: datetime
    registered_by: UUID
    last_permit_status_changed_at: datetime | None
    last_permit_status_reason: str | None
    last_trigger: TriggerSource | None
    last_source_kind: str | None
    last_source_id: str | None
    last_source_observed_at: datetime | None
    decommissioned_at: datetime | None
    decommissioned_by: UUID | None
    last_contact_at: datetime | None

class ClearanceHistory(BaseModel):
    clearance_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ClearanceCreated(BaseModel):
    clearance_id: UUID

class ClearanceView(BaseModel):
    id: UUID
    template_id: UUID
    facility_code: str
    title: str
    bindings: frozenset[RecordBinding | ExternalBinding]
    declarations: frozenset[HazardDeclaration]
    risk_band: RiskBand | None
    review_steps: tuple[ReviewStep, ...]
    status: ClearanceStatus
    external_id: str | None
    external_id_scheme: str | None
    parent_id: UUID | None
    valid_from: datetime | None
    valid_until: datetime | None
    barred_reviewer_ids: frozenset[UUID]
    clearance_id: UUID
    created_at: datetime

class ClearanceItem(BaseModel):
    clearance_id: UUID
    template_id: UUID
    template_code: str
    facility_code: str
    title: str
    external_id: str | None
    external_id_scheme: str | None
    status: ClearanceStatus
    risk_band: RiskBand | None
    bindings: BoundRecords
    parent_id: UUID | None
    registered_at: datetime
    last_status_changed_at: datetime | None
    last_status_reason: str | None
    last_reviewed_by: UUID | None
    valid_from: datetime | None
    valid_until: datetime | None

class ClearanceTemplateHistory(BaseModel):
    template_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ClearanceTemplateCreated(BaseModel):
    template_id: UUID

class ClearanceTemplateView(BaseModel):
    id: UUID
    facility_code: str
    code: str
    title: str
    version: int
    supersedes_template_id: UUID | None
    external_ref: str | None
    status: ClearanceTemplateStatus
    defined_at: datetime
    defined_by: UUID
    template_id: UUID
    created_at: datetime

class ClearanceTemplateItem(BaseModel):
    template_id: UUID
    code: str
    title: str
    facility_code: str
    version: int
    status: ClearanceTemplateStatus
    defined_at: datetime

class CautionHistory(BaseModel):
    caution_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class CautionView(BaseModel):
    id: UUID
    target: CautionTarget
    category: CautionCategory
    severity: CautionSeverity
    text: str
    workaround: str
    tags: frozenset[str]
    authored_by: UUID
    expires_at: datetime | None
    propagate_to_children: bool
    status: CautionStatus
    parent_id: UUID | None
    superseded_by_caution_id: UUID | None
    retired_reason: CautionRetireReason | None
    registered_at: datetime
    last_status_changed_at: datetime | None
    caution_id: UUID
    created_at: datetime

class CautionItem(BaseModel):
    caution_id: UUID
    target: CautionTarget
    category: CautionCategory
    severity: CautionSeverity
    text: str
    workaround: str
    authored_by: UUID
    tags: frozenset[str]
    expires_at: datetime | None
    propagate_to_children: bool
    status: CautionStatus
    parent_id: UUID | None
    superseded_by_caution_id: UUID | None
    retired_reason: CautionRetireReason | None
    registered_at: datetime
    last_status_changed_at: datetime | None

class SubjectHistory(BaseModel):
    subject_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class SubjectCreated(BaseModel):
    subject_id: UUID

class SubjectView(BaseModel):
    id: UUID
    name: str
    status: SubjectStatus
    mounted_on_asset_id: UUID | None
    external_id: str | None
    external_id_scheme: str | None
    subject_id: UUID
    created_at: datetime

class SubjectItem(BaseModel):
    subject_id: UUID
    name: str
    status: SubjectStatus
    mounted_on_asset_id: UUID | None
    external_id: str | None
    external_id_scheme: str | None
    created_at: datetime

class CapabilityHistory(BaseModel):
    capability_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class CapabilityCreated(BaseModel):
    capability_id: UUID

class CapabilityView(BaseModel):
    id: UUID
    created_at: datetime
    status: TemplateStatus
    version_tag: str | None
    versioned_at: datetime | None
    deprecated_at: datetime | None
    code: str
    name: str
    description: str | None
    required_affordances: frozenset[Affordance]
    executor_shapes: frozenset[ExecutorShape]
    parameters_schema: dict[str, Any] | None
    replaced_by_capability_id: UUID | None
    capability_id: UUID

class CapabilityItem(BaseModel):
    capability_id: UUID
    code: str
    name: str
    status: TemplateStatus
    version_tag: str | None
    description: str | None
    required_affordances: frozenset[Affordance]
    executor_shapes: frozenset[ExecutorShape]
    parameters_schema_present: bool
    replaced_by_capability_id: UUID | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None

class MethodHistory(BaseModel):
    method_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class MethodCreated(BaseModel):
    method_id: UUID

class MethodView(BaseModel):
    id: UUID
    created_at: datetime
    status: TemplateStatus
    version_tag: str | None
    versioned_at: datetime | None
    deprecated_at: datetime | None
    name: str
    capability_id: UUID
    needed_family_ids: frozenset[UUID]
    needed_supplies: frozenset[str]
    parameters_schema: dict[str, Any] | None
    parameters_schema_revision: int
    required_roles: tuple[RoleRequirement, ...]
    method_id: UUID

class MethodItem(BaseModel):
    method_id: UUID
    name: str
    capability_id: UUID
    status: TemplateStatus
    version_tag: str | None
    parameters_schema_present: bool
    required_roles: tuple[RoleRequirement, ...]
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None

class PracticeHistory(BaseModel):
    practice_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class PracticeCreated(BaseModel):
    practice_id: UUID

class PracticeView(BaseModel):
    id: UUID
    created_at: datetime
    status: TemplateStatus
    version_tag: str | None
    versioned_at: datetime | None
    deprecated_at: datetime | None
    name: str
    method_id: UUID
    site_id: UUID | None
    family_ids: frozenset[UUID]
    practice_id: UUID

class PracticeItem(BaseModel):
    practice_id: UUID
    name: str
    method_id: UUID
    site_id: UUID | None
    family_ids: frozenset[UUID]
    status: TemplateStatus
    version_tag: str | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None

class PlanHistory(BaseModel):
    plan_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class PlanCreated(BaseModel):
    plan_id: UUID

class PlanView(BaseModel):
    id: UUID
    created_at: datetime
    status: TemplateStatus
    version_tag: str | None
    versioned_at: datetime | None
    deprecated_at: datetime | None
    name: str
    practice_id: UUID
    method_id: UUID
    asset_ids: frozenset[UUID]
    window_starts_at: datetime | None
    window_ends_at: datetime | None
    default_parameters: Mapping[str, Any]
    parameters_schema_revision: int | None
    wires: tuple[Wire, ...]
    role_bindings: tuple[RoleBinding, ...]
    data_registration: DataRegistration | None
    plan_id: UUID

class PlanItem(BaseModel):
    plan_id: UUID
    name: str
    practice_id: UUID
    method_id: UUID
    status: TemplateStatus
    version_tag: str | None
    window_starts_at: datetime | None
    window_ends_at: datetime | None
    default_parameters_present: bool
    role_bindings: tuple[RoleBinding, ...]
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None

class RecipeHistory(BaseModel):
    recipe_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class RecipeCreated(BaseModel):
    recipe_id: UUID

class RecipeView(BaseModel):
    id: UUID
    name: str
    capability_id: UUID
    status: TemplateStatus
    version_tag: str | None
    steps: tuple[RecipeSetpointStep | RecipeActionStep | RecipeCheckStep | RecipeCaptureStep | RecipeComputeStep, ...]
    closing_steps: tuple[
        RecipeSetpointStep | RecipeActionStep | RecipeCheckStep | RecipeCaptureStep | RecipeComputeStep, ...
    ]
    replaced_by_recipe_id: UUID | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None
    watch: frozenset[WatchedGate] | None
    on_unknown_outcome: OnUnknownOutcome | None
    recipe_id: UUID

class RecipeItem(BaseModel):
    recipe_id: UUID
    name: str
    capability_id: UUID
    status: TemplateStatus
    version_tag: str | None
    step_count: int
    closing_step_count: int
    replaced_by_recipe_id: UUID | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None

class RunHistory(BaseModel):
    run_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class RunItem(BaseModel):
    run_id: UUID
    name: str
    plan_id: UUID
    subject_id: UUID | None
    raid: str | None
    status: RunStatus
    campaign_id: UUID | None
    pinned_calibration_ids: frozenset[UUID]
    override_parameters_present: bool
    adjustment_count: int
    last_adjusted_by: UUID | None
    created_at: datetime
    running_since: datetime
    updated_at: datetime

class RunView(BaseModel):
    held_at: datetime | None
    held_by: UUID | None
    held_by_name: str | None
    resumed_at: datetime | None
    resumed_by: UUID | None
    resumed_by_name: str | None
    ended_at: datetime | None
    ended_by: UUID | None
    ended_by_name: str | None
    started_at: datetime
    started_by: UUID
    started_by_name: str | None
    phases: tuple[RunPhaseView, ...] | None
    id: UUID
    created_at: datetime
    name: str
    plan_id: UUID
    subject_id: UUID | None
    raid: str | None
    status: RunStatus
    override_parameters: dict[str, Any]
    effective_parameters: dict[str, Any]
    pinned_calibration_ids: frozenset[UUID]
    external_refs: dict[str, str]
    trigger_source: str | None
    campaign_id: UUID | None
    adjustment_count: int
    last_adjusted_at: datetime | None
    last_adjusted_by: UUID | None
    observation_logbook_id: UUID | None
    narrative_logbook_id: UUID | None
    live_conduct_id: UUID | None
    actuation_kind: ActuationKind | None
    run_id: UUID

class Observation(BaseModel):
    event_id: UUID
    logbook_id: UUID
    actor_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime | None
    run_id: UUID
    channel_name: str
    value: float
    units: str | None
    sampling_procedure: str
    simulated: bool
    sampled_at: datetime

class RunLogbookEntry(BaseModel):
    event_id: UUID
    logbook_id: UUID
    actor_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime | None
    run_id: UUID
    entry_kind: RunLogbookEntryKind
    text: str
    decision_id: UUID | None

class ProcedureHistory(BaseModel):
    procedure_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ProcedureItem(BaseModel):
    procedure_id: UUID
    name: str
    kind: str
    target_asset_ids: frozenset[UUID]
    parent_run_id: UUID | None
    recipe_id: UUID | None
    status: ProcedureStatus
    activity_logbook_id: UUID | None
    registered_at: datetime
    last_status_changed_at: datetime
    last_status_reason: str | None
    hold_cause: HoldCause | None
    interrupted_at: datetime | None
    iteration_count: int

class ProcedureView(BaseModel):
    held_at: datetime | None
    held_by: UUID | None
    held_by_name: str | None
    resumed_at: datetime | None
    resumed_by: UUID | None
    resumed_by_name: str | None
    ended_at: datetime | None
    ended_by: UUID | None
    ended_by_name: str | None
    registered_at: datetime
    registered_by: UUID
    registered_by_name: str | None
    started_at: datetime | None
    started_by: UUID | None
    started_by_name: str | None
    parent_run: Reference | None
    recipe: Reference | None
    id: UUID
    name: str
    kind: str
    target_asset_ids: frozenset[UUID]
    status: ProcedureStatus
    parent_run_id: UUID | None
    capability_id: UUID | None
    recipe_id: UUID | None
    max_consecutive_unconverged_iterations: int | None
    watch: frozenset[WatchedGate] | None
    on_unknown_outcome: OnUnknownOutcome | None
    iteration_count: int
    current_iteration_index: int | None
    consecutive_unconverged_iterations: int
    activity_logbook_id: UUID | None
    conduct_mode: ConductMode | None
    judged_asset_ids: frozenset[UUID]
    touched: TouchedSignals | None
    options: ConductOptions | None
    live_conduct_id: UUID | None
    last_conduct_id: UUID | None
    pending_request: PendingRequest | None
    hold_lapsed: bool
    hold_cause: HoldCause | None
    actuation_kind: ActuationKind | None
    skipped_count: int
    unknown_step: PlacedStep | None
    resolved_steps: tuple[ResolvedStep, ...]
    skipped_waits: tuple[PlacedStep, ...]
    failure: Failure | None
    closing_failures: tuple[Failure, ...]
    deviations: tuple[Deviation, ...]
    last_status_changed_at: datetime
    last_status_reason: str | None
    interrupted_at: datetime | None
    procedure_id: UUID
    created_at: datetime

class ProcedureCreated(BaseModel):
    procedure_id: UUID

class Activity(BaseModel):
    event_id: UUID
    logbook_id: UUID
    actor_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime | None
    procedure_id: UUID
    step_kind: str
    payload: dict[str, Any]
    sampled_at: datetime
    conduct_id: UUID | None

class ScheduleHistory(BaseModel):
    schedule_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ScheduleCreated(BaseModel):
    schedule_id: UUID

class ScheduleView(BaseModel):
    id: UUID
    name: str
    calendar: CronCalendar | EveryCalendar
    time_zone: str
    overlap: Overlap
    catchup_window: int
    jitter: int
    target: ConductRecipe | ConductPlan
    run_as: UUID
    surface_id: UUID
    conduit_id: UUID
    status: ScheduleStatus
    last_status_reason: str | None
    firing_count: int
    next_firings: tuple[datetime, ...]
    last_firings: tuple[FiringView, ...]
    missed_count: int | None
    skipped_count: int | None
    schedule_id: UUID
    created_at: datetime

class QueueHistory(BaseModel):
    queue_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class QueueCreated(BaseModel):
    queue_id: UUID

class QueueView(BaseModel):
    id: UUID
    name: str
    asset_id: UUID
    on_failure: OnFailure
    status: QueueStatus
    last_status_reason: str | None
    item_count: int
    items: tuple[QueueItemView, ...]
    last_items: tuple[QueueItemView, ...]
    forecast: tuple[ItemForecast, ...]
    queue_id: UUID
    created_at: datetime

class QueueOverviewItem(BaseModel):
    queue_id: UUID
    name: str
    asset_id: UUID
    status: QueueStatus
    on_failure: OnFailure
    waiting_count: int
    blocked: bool
    running_item_id: UUID | None
    created_at: datetime

class CampaignHistory(BaseModel):
    campaign_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class CampaignCreated(BaseModel):
    campaign_id: UUID

class CampaignView(BaseModel):
    id: UUID
    name: str
    intent: CampaignIntent
    lead_actor_id: UUID
    subject_id: UUID | None
    description: str | None
    tags: frozenset[str]
    external_refs: dict[str, str]
    external_id: str | None
    external_id_scheme: str | None
    run_ids: frozenset[UUID]
    status: CampaignStatus
    last_status_reason: str | None
    campaign_id: UUID
    created_at: datetime

class CampaignItem(BaseModel):
    campaign_id: UUID
    name: str
    intent: CampaignIntent
    status: CampaignStatus
    lead_actor_id: UUID
    subject_id: UUID | None
    description: str | None
    tags: frozenset[str]
    external_id: str | None
    external_id_scheme: str | None
    run_count: int
    registered_at: datetime
    started_at: datetime | None
    last_status_changed_at: datetime
    last_status_reason: str | None
    updated_at: datetime

class CalibrationHistory(BaseModel):
    calibration_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class CalibrationCreated(BaseModel):
    calibration_id: UUID

class CalibrationView(BaseModel):
    id: UUID
    target_id: UUID
    quantity: CalibrationQuantity
    operating_point: dict[str, Any]
    description: str | None
    revisions: tuple[Revision, ...]
    defined_at: datetime
    defined_by: UUID
    last_revised_at: datetime | None
    calibration_id: UUID
    created_at: datetime

class CalibrationItem(BaseModel):
    calibration_id: UUID
    target_id: UUID
    quantity: CalibrationQuantity
    operating_point: dict[str, Any]
    description: str | None
    defined_at: datetime
    defined_by: UUID
    last_revised_at: datetime | None
    revision_count: int
    latest_revision_id: UUID | None
    latest_revision_status: CalibrationStatus | None
    latest_revision_source_kind: SourceKind | None
    latest_revision_content_hash: str | None

class DatasetHistory(BaseModel):
    dataset_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class DatasetCreated(BaseModel):
    dataset_id: UUID

class DatasetView(BaseModel):
    id: UUID
    name: str
    uri: str
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    producing_run_id: UUID | None
    producing_procedure_id: UUID | None
    producing_run_end_state: RunStatus | None
    producing_actuation_kind: ActuationKind | None
    subject_id: UUID | None
    derived_from: frozenset[UUID]
    used_calibration_ids: frozenset[UUID]
    status: DatasetStatus
    intent: DatasetIntent
    external_id: str | None
    external_id_scheme: str | None
    dataset_id: UUID
    created_at: datetime

class DatasetItem(BaseModel):
    dataset_id: UUID
    name: str
    uri: str
    checksum: Checksum
    producing_run_id: UUID | None
    producing_procedure_id: UUID | None
    subject_id: UUID | None
    status: DatasetStatus
    intent: DatasetIntent
    used_calibration_ids: frozenset[UUID]
    created_at: datetime

class DistributionHistory(BaseModel):
    distribution_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class DistributionCreated(BaseModel):
    distribution_id: UUID

class DistributionView(BaseModel):
    id: UUID
    dataset_id: UUID
    supply_id: UUID
    uri: str
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    access_protocol: AccessProtocol
    status: DistributionStatus
    registered_at: datetime
    registered_by: UUID
    verified_at: datetime | None
    verified_by: UUID | None
    marked_stale_at: datetime | None
    marked_stale_by: UUID | None
    stale_reason: str | None
    discarded_at: datetime | None
    discarded_by: UUID | None
    discard_reason: str | None
    distribution_id: UUID
    created_at: datetime

class DistributionItem(BaseModel):
    distribution_id: UUID
    dataset_id: UUID
    supply_id: UUID
    uri: str
    checksum: Checksum
    byte_size: int
    encoding: Encoding
    access_protocol: AccessProtocol
    status: DistributionStatus
    registered_at: datetime
    registered_by: UUID
    verified_at: datetime | None
    marked_stale_at: datetime | None
    discarded_at: datetime | None
    discard_reason: str | None

class AcquisitionHistory(BaseModel):
    acquisition_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class AcquisitionCreated(BaseModel):
    acquisition_id: UUID

class AcquisitionView(BaseModel):
    id: UUID
    dataset_id: UUID
    producing_asset_id: UUID
    producing_run_id: UUID | None
    captured_at: datetime
    settings: dict[str, Any]
    evidence: dict[str, Any]
    recorded_at: datetime
    recorded_by: UUID
    status: AcquisitionStatus
    acquisition_id: UUID
    created_at: datetime

class AcquisitionItem(BaseModel):
    acquisition_id: UUID
    dataset_id: UUID
    producing_asset_id: UUID
    producing_run_id: UUID | None
    captured_at: datetime
    settings: dict[str, Any]
    evidence: dict[str, Any]
    recorded_at: datetime
    recorded_by: UUID
    status: AcquisitionStatus

class AttestationHistory(BaseModel):
    attestation_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class AttestationView(BaseModel):
    id: UUID
    dataset_id: UUID
    distribution_id: UUID
    kind: AttestationKind
    outcome: AttestationOutcome
    evidence: AttestationEvidence
    attested_at: datetime
    attested_by: UUID
    status: AttestationStatus
    attestation_id: UUID
    created_at: datetime

class AttestationItem(BaseModel):
    attestation_id: UUID
    dataset_id: UUID
    distribution_id: UUID
    kind: AttestationKind
    outcome: AttestationOutcome
    evidence: AttestationEvidence
    attested_at: datetime
    attested_by: UUID

class EditionHistory(BaseModel):
    edition_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class EditionCreated(BaseModel):
    edition_id: UUID

class EditionView(BaseModel):
    id: UUID
    kind: EditionKind
    title: str
    dataset_ids: frozenset[UUID]
    creator_ids: tuple[UUID, ...]
    publisher_facility_code: str | None
    publication_year: int | None
    license: str | None
    content_hash: str | None
    published_content_hash: str | None
    external_id: str | None
    external_id_scheme: str | None
    status: EditionStatus
    registered_at: datetime
    registered_by: UUID
    sealed_at: datetime | None
    sealed_by: UUID | None
    published_at: datetime | None
    published_by: UUID | None
    withdrawn_at: datetime | None
    withdrawn_by: UUID | None
    withdrawal_reason: str | None
    edition_id: UUID
    created_at: datetime

class EditionItem(BaseModel):
    edition_id: UUID
    kind: EditionKind
    title: str
    dataset_ids: frozenset[UUID]
    creator_ids: tuple[UUID, ...]
    license: str | None
    publication_year: int | None
    publisher_facility_code: str | None
    content_hash: str | None
    published_content_hash: str | None
    external_id: str | None
    external_id_scheme: str | None
    status: EditionStatus
    registered_at: datetime
    registered_by: UUID
    sealed_at: datetime | None
    sealed_by: UUID | None
    published_at: datetime | None
    published_by: UUID | None
    withdrawn_at: datetime | None
    withdrawn_by: UUID | None
    withdrawal_reason: str | None

class CatalogueEntryItem(BaseModel):
    entry_id: UUID
    dataset_id: UUID
    catalogue: CatalogueName
    status: CatalogueEntryStatus
    attempts: int
    entered_at: datetime | None
    last_error: str | None
    created_at: datetime

class DecisionHistory(BaseModel):
    decision_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class DecisionCreated(BaseModel):
    decision_id: UUID

class DecisionView(BaseModel):
    id: UUID
    decided_by: UUID
    decided_at: datetime
    context: str
    choice: str
    parent_id: UUID | None
    override_kind: OverrideKind | None
    rule: str | None
    reasoning: str | None
    confidence: float | None
    confidence_source: ConfidenceSource | None
    confidence_band: ConfidenceBand | None
    alternatives: tuple[str, ...]
    inputs: dict[str, Any] | None
    reasoning_signature: str | None
    logbooks: Mapping[LogbookKind, UUID]
    ratings: Mapping[UUID, Rating]
    decision_id: UUID
    created_at: datetime

class DecisionItem(BaseModel):
    decision_id: UUID
    decided_by: UUID
    context: str
    choice: str
    rule: str | None
    parent_id: UUID | None
    confidence: float | None
    confidence_band: ConfidenceBand | None
    created_at: datetime

class Inference(BaseModel):
    event_id: UUID
    logbook_id: UUID
    actor_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime | None
    decision_id: UUID
    operation_name: str
    provider_name: str
    request_model: str
    duration: float | None
    response_id: str | None
    response_model: str | None
    output_type: str | None
    finish_reasons: tuple[str, ...]
    request_temperature: float | None
    request_top_p: float | None
    request_max_tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    agent_id: str | None
    agent_name: str | None
    agent_description: str | None
    conversation_id: str | None
    tool_name: str | None
    tool_call_id: str | None
    tool_type: str | None
    messages: dict[str, Any] | None

class AgentHistory(BaseModel):
    agent_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class AgentCreated(BaseModel):
    agent_id: UUID

class AgentView(BaseModel):
    cost_in_month: float | None
    tokens_on_day: int | None
    id: UUID
    created_at: datetime
    kind: str
    name: str
    version: str
    model_ref: ModelRef
    description: str | None
    canonical_uri: str | None
    prompt_template_id: UUID | None
    capabilities: frozenset[str]
    tools: frozenset[str]
    budget: Budget | None
    status: AgentStatus
    suspension_reason: str | None
    suspended_at: datetime | None
    suspended_by: UUID | None
    resumed_at: datetime | None
    resumed_by: UUID | None
    deprecation_reason: str | None
    defined_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None
    agent_id: UUID

class AgentItem(BaseModel):
    agent_id: UUID
    kind: str
    name: str
    version: str
    status: AgentStatus
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None

class LanguageModelHistory(BaseModel):
    language_model_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class LanguageModelCreated(BaseModel):
    language_model_id: UUID

class LanguageModelView(BaseModel):
    id: UUID
    name: str
    model_ref: ModelRef
    served_via: ServingRoute
    endpoint_note: str | None
    pricing: Pricing
    data_tier: DataTier
    archivability: Archivability
    status: LanguageModelStatus
    retirement_effective_at: datetime | None
    end_reason: str | None
    language_model_id: UUID
    created_at: datetime

class LanguageModelItem(BaseModel):
    language_model_id: UUID
    name: str
    provider: str
    model: str
    served_via: ServingRoute
    data_tier: DataTier
    archivability: Archivability
    status: LanguageModelStatus
    created_at: datetime

class FacilityHistory(BaseModel):
    facility_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class FacilityView(BaseModel):
    id: UUID
    code: str
    display_name: str
    kind: FacilityKind
    parent_id: UUID | None
    trust_anchor_credential_ids: frozenset[UUID]
    alternate_identifiers: tuple[FacilityIdentifier, ...]
    status: FacilityStatus
    registered_at: datetime
    registered_by: UUID
    decommissioned_at: datetime | None
    decommissioned_by: UUID | None
    facility_id: UUID
    created_at: datetime

class FacilityItem(BaseModel):
    facility_id: UUID
    code: str
    display_name: str
    kind: FacilityKind
    parent_id: UUID | None
    status: FacilityStatus
    registered_at: datetime
    decommissioned_at: datetime | None

class CredentialHistory(BaseModel):
    credential_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class CredentialCreated(BaseModel):
    credential_id: UUID

class CredentialView(BaseModel):
    id: UUID
    facility_id: UUID
    audience: str
    purpose: CredentialPurpose
    secret_ref: str
    public_material_ref: str | None
    expires_at: datetime | None
    rotation_pending_secret_ref: str | None
    rotation_pending_public_material_ref: str | None
    status: CredentialStatus
    registered_at: datetime
    registered_by: UUID
    rotation_started_at: datetime | None
    revoked_at: datetime | None
    credential_id: UUID
    created_at: datetime

class CredentialItem(BaseModel):
    credential_id: UUID
    facility_id: UUID
    audience: str
    purpose: CredentialPurpose
    expires_at: datetime | None
    status: CredentialStatus
    registered_at: datetime
    rotation_started_at: datetime | None
    revoked_at: datetime | None

class PermitHistory(BaseModel):
    permit_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class PermitCreated(BaseModel):
    permit_id: UUID

class PermitView(BaseModel):
    id: UUID
    peer_facility_id: UUID
    audience: str
    purpose: str
    direction: PermitDirection
    allowed_credential_ids: frozenset[UUID]
    allowed_payload_types: frozenset[str]
    allowed_artifact_kinds: frozenset[str]
    abi_tier_floor: AbiTier
    expires_at: datetime
    terms: OutboundTerms | InboundTerms
    status: PermitStatus
    defined_at: datetime
    defined_by: UUID
    activated_at: datetime | None
    suspended_at: datetime | None
    resumed_at: datetime | None
    revoked_at: datetime | None
    permit_id: UUID
    created_at: datetime

class PermitItem(BaseModel):
    permit_id: UUID
    peer_facility_id: UUID
    audience: str
    purpose: str
    direction: PermitDirection
    allowed_credential_ids: frozenset[UUID]
    allowed_payload_types: frozenset[str]
    allowed_artifact_kinds: frozenset[str]
    abi_tier_floor: AbiTier
    expires_at: datetime
    terms_kind: PermitDirection
    status: PermitStatus
    defined_at: datetime
    defined_by: UUID
    activated_at: datetime | None
    suspended_at: datetime | None
    resumed_at: datetime | None
    revoked_at: datetime | None

class ReceivedArtifactHistory(BaseModel):
    received_artifact_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class ReceivedArtifactView(BaseModel):
    id: UUID
    source_facility_id: UUID
    receipt_id: UUID
    content_hash: str
    permit_id: UUID
    work_id: UUID
    status: ReceivedArtifactStatus
    stage: Stage | None
    reason: CheckReason | None
    stages: tuple[StageVerdict, ...]
    credential_id: UUID | None
    revision: ReceivedRevision | None
    adoptions: tuple[Adoption, ...]
    received_at: datetime
    received_by: UUID
    checked_at: datetime
    checked_by: UUID
    received_artifact_id: UUID
    created_at: datetime

class ReceivedArtifactItem(BaseModel):
    received_artifact_id: UUID
    source_facility_id: UUID
    receipt_id: UUID
    content_hash: str
    permit_id: UUID
    status: ReceivedArtifactStatus
    stage: Stage | None
    reason: CheckReason | None
    credential_id: UUID | None
    received_at: datetime
    received_by: UUID
    checked_at: datetime
    checked_by: UUID

class SealHistory(BaseModel):
    facility_id: UUID
    items: tuple[EventView, ...]
    next_cursor: str | None

class SealCreated(BaseModel):
    facility_id: UUID

class SealView(BaseModel):
    facility_id: UUID
    online_credential_id: UUID
    offline_credential_id: UUID
    current_head_hash: str | None
    current_sequence_number: int
    status: SealStatus
    initialized_at: datetime
    initialized_by: UUID
    last_signed_at: datetime | None
    last_signed_by: UUID | None
    signed: bool
    kid: str | None
    signature: SealSignature | None
    key_change: SealKeyChange | None
    signed_by_offline_root: bool | None
    offline_signature: SealSignature | None
    created_at: datetime

class SealItem(BaseModel):
    facility_id: UUID
    online_credential_id: UUID
    offline_credential_id: UUID
    current_head_hash: str | None
    current_sequence_number: int
    status: SealStatus
    initialized_at: datetime
    initialized_by: UUID
    last_signed_at: datetime | None
    last_signed_by: UUID | None
    signed: bool
    kid: str | None

class Operations:
    """The operations of the service as methods: what stands in the path comes first, fields follow by name."""

    acquisitions: AcquisitionCollection
    actors: ActorCollection
    agents: AgentCollection
    assemblies: AssemblyCollection
    assets: AssetCollection
    attestations: AttestationCollection
    calibrations: CalibrationCollection
    campaigns: CampaignCollection
    capabilities: CapabilityCollection
    cautions: CautionCollection
    clearances: ClearanceCollection
    clearance_templates: ClearanceTemplateCollection
    conduits: ConduitCollection
    credentials: CredentialCollection
    datasets: DatasetCollection
    decisions: DecisionCollection
    distributions: DistributionCollection
    editions: EditionCollection
    enclosures: EnclosureCollection
    facilities: FacilityCollection
    families: FamilyCollection
    fixtures: FixtureCollection
    frames: FrameCollection
    groups: GroupCollection
    language_models: LanguageModelCollection
    methods: MethodCollection
    models: ModelCollection
    mounts: MountCollection
    permits: PermitCollection
    plans: PlanCollection
    policies: PolicyCollection
    practices: PracticeCollection
    procedures: ProcedureCollection
    proposals: ProposalCollection
    queues: QueueCollection
    received_artifacts: ReceivedArtifactCollection
    recipes: RecipeCollection
    roles: RoleCollection
    runs: RunCollection
    schedules: ScheduleCollection
    seals: SealCollection
    subjects: SubjectCollection
    supplies: SupplyCollection
    surfaces: SurfaceCollection
    visits: VisitCollection
    zones: ZoneCollection
    def call_method(self, operation: Operation, *places: Any, **fields: Any) -> Any: ...
    def get_actor_history(
        self, actor_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ActorHistory:
        """Every event of one actor, oldest first."""
    @overload
    def register_actor(
        self,
        *,
        name: str,
        email: str | None = ...,
        phone: str | None = ...,
        affiliation: str | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        kind: ActorKindName = ...,
        idempotency_key: str | None = ...,
    ) -> ActorCreated:
        """Make a person or a machine account known to the service."""
    @overload
    def register_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deactivate_actor(self, actor_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Refuse everything this actor asks for from now on; its past stays."""
    @overload
    def deactivate_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def reactivate_actor(self, actor_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let a deactivated actor call again; it adds no grant."""
    @overload
    def reactivate_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_actor_profile(
        self,
        actor_id: NameOrId,
        *,
        name: str = ...,
        email: str | None = ...,
        phone: str | None = ...,
        affiliation: str | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Change name or contact fields: a key left out stays, null clears."""
    @overload
    def update_actor_profile(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def forget_actor(self, actor_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Erase everything personal about this actor: profile, token bindings, proposals. References to its id stay
        valid."""
    @overload
    def forget_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_actor(
        self,
        actor_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ActorView | PastActorView:
        """One actor, folded from its stream, with the name its profile has now."""
    def get_actor_profile(self, actor_id: NameOrId) -> ActorProfileView:
        """The personal data kept about an actor; a forgotten profile shows as deleted."""
    def list_actors(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ActorStatusName | None = ...,
        kind: Sequence[ActorKindName] = ...,
        actor_id: Sequence[NameOrId] = ...,
    ) -> Page[ActorRow]:
        """Actors in order of registration, with the names their profiles have now; to look for a name takes
        `GetActor`."""
    @overload
    def bind_actor_subject(
        self, actor_id: NameOrId, *, issuer: str, subject: str, idempotency_key: str | None = ...
    ) -> None:
        """Let tokens of this issuer and subject act as this actor, who may do no more than the caller."""
    @overload
    def bind_actor_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def unbind_actor_subject(
        self, actor_id: NameOrId, *, issuer: str, subject: str, idempotency_key: str | None = ...
    ) -> None:
        """Stop tokens of this issuer and subject from acting as this actor."""
    @overload
    def unbind_actor_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_group_history(
        self, group_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> GroupHistory:
        """Every event of one group, oldest first."""
    @overload
    def define_group(
        self, *, name: str, claim: GroupClaim | Mapping[str, Any] | None = ..., idempotency_key: str | None = ...
    ) -> GroupCreated:
        """Define a group that policies can permit; with a claim, everybody whose token has it is a member for that
        call."""
    @overload
    def define_group(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def rename_group(self, group_id: NameOrId, *, name: str, idempotency_key: str | None = ...) -> None:
        """Give the group another name; who belongs to it stays."""
    @overload
    def rename_group(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def retire_group(self, group_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Close the group: what policies permit it, they permit nobody through it any more."""
    @overload
    def retire_group(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_group(
        self,
        group_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> GroupView:
        """One group, folded from its stream."""
    def list_groups(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: GroupStatusName | None = ...,
    ) -> Page[GroupItem]:
        """Groups in order of definition."""
    @overload
    def add_group_member(self, group_id: NameOrId, *, actor_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """List an actor as a member, from its next call on; one that is listed already stays so."""
    @overload
    def add_group_member(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_group_member(self, group_id: NameOrId, *, actor_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Take an actor off the list of members, from its next call on; a claim in its token still makes it one."""
    @overload
    def remove_group_member(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_zone_history(
        self, zone_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ZoneHistory:
        """Every event of one zone, oldest first."""
    @overload
    def define_zone(self, *, name: str, idempotency_key: str | None = ...) -> ZoneCreated:
        """Define a trust zone."""
    @overload
    def define_zone(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_zone(
        self,
        zone_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ZoneView:
        """One zone, folded from its stream."""
    def list_zones(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
    ) -> Page[ZoneItem]:
        """Zones in order of definition."""
    def get_conduit_history(
        self, conduit_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ConduitHistory:
        """Every event of one conduit, oldest first."""
    @overload
    def define_conduit(
        self, *, name: str, source_zone_id: NameOrId, target_zone_id: NameOrId, idempotency_key: str | None = ...
    ) -> ConduitCreated:
        """Define a governed path between two zones and open its verdict logbook."""
    @overload
    def define_conduit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_conduit(
        self,
        conduit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ConduitView:
        """One conduit, folded from its stream."""
    def list_conduits(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        source_zone_id: NameOrId | None = ...,
        target_zone_id: NameOrId | None = ...,
    ) -> Page[ConduitItem]:
        """Conduits in order of definition."""
    def list_conduit_verdicts(
        self,
        conduit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        actor_id: NameOrId | None = ...,
        command_name: str | None = ...,
        decision: AccessDecisionName | None = ...,
    ) -> Page[VerdictItem]:
        """Why calls over this conduit were allowed or denied, oldest first."""
    def get_surface_history(
        self, surface_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SurfaceHistory:
        """Every event of one surface, oldest first."""
    @overload
    def define_surface(self, *, name: str, kind: SurfaceKindName, idempotency_key: str | None = ...) -> SurfaceCreated:
        """Define an arrival point, for instance one endstation's console."""
    @overload
    def define_surface(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_surface(
        self,
        surface_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SurfaceView:
        """One surface, folded from its stream."""
    def list_surfaces(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        kind: SurfaceKindName | None = ...,
    ) -> Page[SurfaceItem]:
        """Surfaces in order of definition."""
    def get_surface_control(self, surface_id: NameOrId) -> SurfaceControlView:
        """Which visit drives this surface now."""
    def get_policy_history(
        self, policy_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PolicyHistory:
        """Every event of one policy, oldest first."""
    @overload
    def define_policy(
        self,
        *,
        name: str,
        conduit_id: NameOrId,
        surface_id: NameOrId,
        permitted_principal_ids: Collection[NameOrId],
        permitted_commands: Collection[str],
        permitted_command_sets: Collection[str] = ...,
        permitted_group_ids: Collection[NameOrId] = ...,
        approval: Approval | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> PolicyCreated:
        """Permit principals and groups a set of commands on one conduit and surface; it counts from the next call
        on."""
    @overload
    def define_policy(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def extend_policy(
        self,
        policy_id: NameOrId,
        *,
        permitted_principal_ids: Collection[NameOrId] = ...,
        permitted_group_ids: Collection[NameOrId] = ...,
        permitted_commands: Collection[str] = ...,
        permitted_command_sets: Collection[str] = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Add principals, groups, commands or sets of commands to a policy; they count from the next call on."""
    @overload
    def extend_policy(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def revoke_grant(
        self,
        policy_id: NameOrId,
        *,
        permitted_principal_id: NameOrId | None = ...,
        permitted_group_id: NameOrId | None = ...,
        permitted_command: str | None = ...,
        permitted_command_set: str | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Take a principal, a group, a command or a set of commands out of a policy, from the next call on."""
    @overload
    def revoke_grant(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_policy(
        self,
        policy_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PolicyView:
        """One policy, folded from its stream."""
    def list_policies(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        conduit_id: NameOrId | None = ...,
        surface_id: NameOrId | None = ...,
    ) -> Page[PolicyItem]:
        """Policies in order of definition."""
    def evaluate_policy(
        self,
        policy_id: NameOrId,
        *,
        evaluated_principal_id: NameOrId,
        evaluated_command_name: str,
        evaluated_conduit_id: NameOrId,
        evaluated_surface_id: NameOrId,
    ) -> PolicyEvaluation:
        """What this one policy would say to a call; for fault-finding, only the seam authorizes."""
    def list_permissions(
        self,
        policy_id: NameOrId,
        *,
        evaluated_principal_id: NameOrId,
        evaluated_conduit_id: NameOrId,
        evaluated_surface_id: NameOrId,
    ) -> PermissionsView:
        """What this one policy permits a principal; other people's need the permission ListPermissionsOfOthers."""
    def get_proposal_history(
        self, proposal_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ProposalHistory:
        """Every event of one proposal, oldest first."""
    @overload
    def approve_proposal(
        self, proposal_id: NameOrId, *, reason: str | None = ..., wait: int = ..., idempotency_key: str | None = ...
    ) -> ProposalOutcome | ProposalAccepted:
        """Let a proposed command be carried out at once, as its proposer; the outcome is on the proposal."""
    @overload
    def approve_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def reject_proposal(self, proposal_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Do not approve a proposed command; it takes somebody whom the policy names as approver."""
    @overload
    def reject_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def withdraw_proposal(self, proposal_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take back what you proposed."""
    @overload
    def withdraw_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_proposal(
        self,
        proposal_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ProposalView:
        """One proposal: the command, what it would do now, who may approve it, and whether you may."""
    def list_proposals(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        status: ProposalStatusName | None = ...,
        command_name: str | None = ...,
        proposed_by: NameOrId | None = ...,
    ) -> Page[ProposalItem]:
        """Proposals in the order they were made."""
    def get_visit_history(
        self, visit_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> VisitHistory:
        """Every event of one visit, oldest first."""
    @overload
    def register_visit(
        self,
        *,
        policy_id: NameOrId,
        surface_id: NameOrId,
        type: VisitTypeName,
        planned_start_at: datetime | str,
        planned_end_at: datetime | str,
        parent_id: NameOrId | None = ...,
        external_refs: Mapping[str, str] = ...,
        idempotency_key: str | None = ...,
    ) -> VisitCreated:
        """Plan a team's time on a surface."""
    @overload
    def register_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def record_visit_arrival(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that the team has arrived."""
    @overload
    def record_visit_arrival(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def start_visit(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Begin the session."""
    @overload
    def start_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def hold_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Pause the whole session: beam dump, fault, safety, long break."""
    @overload
    def hold_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def resume_visit(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Go on after a hold; sessions never resume by themselves."""
    @overload
    def resume_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def complete_visit(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """End the session as planned."""
    @overload
    def complete_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def cancel_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Call the session off before it starts."""
    @overload
    def cancel_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def abort_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Stop a session that has started."""
    @overload
    def abort_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def void_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Strike out a visit that should never have been registered."""
    @overload
    def void_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_visit(
        self,
        visit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> VisitView:
        """One visit, folded from its stream."""
    def list_visits(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        status: VisitStatusName | None = ...,
        type: Sequence[VisitTypeName] = ...,
        surface_id: NameOrId | None = ...,
        policy_id: NameOrId | None = ...,
        parent_id: NameOrId | None = ...,
        external_ref_scheme: str | None = ...,
        external_ref_value: str | None = ...,
        planned_from: datetime | str | None = ...,
        planned_to: datetime | str | None = ...,
    ) -> Page[VisitItem]:
        """Visits in order of registration."""
    @overload
    def check_in_visit(
        self,
        visit_id: NameOrId,
        *,
        actor_id: NameOrId | None = ...,
        mode: PresenceModeName,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record that somebody is here, in person or remotely: the caller, unless an actor is named."""
    @overload
    def check_in_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def check_out_visit(
        self, visit_id: NameOrId, *, actor_id: NameOrId | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Record that somebody leaves: the caller, unless an actor is named."""
    @overload
    def check_out_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def take_control_of_surface(
        self, visit_id: NameOrId, *, surface_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Drive the surface, if it is free or driven by this visit or its parent."""
    @overload
    def take_control_of_surface(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def release_control_of_surface(
        self, visit_id: NameOrId, *, surface_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Stop driving the surface; nobody gets it back by this."""
    @overload
    def release_control_of_surface(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_visit_presence(
        self,
        visit_id: NameOrId,
        *,
        open: bool | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
    ) -> Page[Presence]:
        """Who is or was here, in order of check-in; read from the visit's own stream."""
    def get_asset_history(
        self, asset_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AssetHistory:
        """Every event of one asset, oldest first."""
    @overload
    def rename_asset(self, asset_id: NameOrId, *, name: str, idempotency_key: str | None = ...) -> None:
        """Give an asset another role label; the name is no key, so nothing else changes."""
    @overload
    def rename_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def activate_asset(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put a commissioned asset into use."""
    @overload
    def activate_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def enter_asset_maintenance(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Take an active asset out of use to work on it."""
    @overload
    def enter_asset_maintenance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def exit_asset_maintenance(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put an asset back into use after maintenance."""
    @overload
    def exit_asset_maintenance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def degrade_asset(self, asset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the asset works, but not as it should; nothing happens when it is degraded already."""
    @overload
    def degrade_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def fault_asset(self, asset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the asset does not work; nothing happens when it is faulted already."""
    @overload
    def fault_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def restore_asset(self, asset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the asset works as it should again; nothing happens when it does already."""
    @overload
    def restore_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_asset(
        self,
        asset_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AssetView:
        """One asset, folded from its stream."""
    @overload
    def register_asset(
        self,
        *,
        name: str,
        tier: AssetTierName,
        parent_id: NameOrId | None = ...,
        facility_code: str | None = ...,
        family_ids: Collection[NameOrId] = ...,
        model_id: NameOrId | None = ...,
        controller_id: NameOrId | None = ...,
        located_in_enclosure_id: NameOrId | None = ...,
        drawing: Drawing | Mapping[str, Any] | None = ...,
        alternate_identifiers: Sequence[AlternateIdentifier | Mapping[str, Any]] = ...,
        owners: Sequence[Owner | Mapping[str, Any]] = ...,
        idempotency_key: str | None = ...,
    ) -> AssetCreated:
        """Register a piece of equipment: a root of a facility, or a part of another asset."""
    @overload
    def register_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def relocate_asset(
        self,
        asset_id: NameOrId,
        *,
        to_parent_id: NameOrId = ...,
        located_in_enclosure_id: NameOrId | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Move an asset, with everything below it, under another parent, into another enclosure, or both."""
    @overload
    def relocate_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def decommission_asset(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Retire an asset for good: detach it from its fixture, uninstall it, retire its parts, then this."""
    @overload
    def decommission_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_asset_tree(
        self, asset_id: NameOrId, *, direction: TreeDirectionName = ..., max_depth: int = ..., min_position: int | None = ...
    ) -> AssetTree:
        """What is below an asset, or above it, read from the streams themselves."""
    @overload
    def add_asset_family(self, asset_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Say that an asset is of a further family: it gains the family's affordances and settings schema."""
    @overload
    def add_asset_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_asset_family(self, asset_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Say that an asset is not of a family; settings only that family declares must go with the next settings
        patch."""
    @overload
    def remove_asset_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_asset_port(
        self,
        asset_id: NameOrId,
        *,
        port_name: str,
        direction: PortDirectionName,
        signal_type: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Declare a place where a signal enters or leaves the asset; one that does both is two ports."""
    @overload
    def add_asset_port(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_asset_port(self, asset_id: NameOrId, *, port_name: str, idempotency_key: str | None = ...) -> None:
        """Take a port away."""
    @overload
    def remove_asset_port(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_asset_alternate_identifier(
        self, asset_id: NameOrId, *, kind: AlternateIdentifierKindName, value: str, idempotency_key: str | None = ...
    ) -> None:
        """Record another name the asset goes by, such as its process variable."""
    @overload
    def add_asset_alternate_identifier(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_asset_alternate_identifier(
        self, asset_id: NameOrId, *, kind: AlternateIdentifierKindName, value: str, idempotency_key: str | None = ...
    ) -> None:
        """Take another name away from the asset."""
    @overload
    def remove_asset_alternate_identifier(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_asset_owner(
        self,
        asset_id: NameOrId,
        *,
        name: str,
        identifier: str | None = ...,
        identifier_type: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record an institution that owns the asset."""
    @overload
    def add_asset_owner(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_asset_owner(self, asset_id: NameOrId, *, name: str, idempotency_key: str | None = ...) -> None:
        """Take an owner away; the last one may go too."""
    @overload
    def remove_asset_owner(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_asset_partition_rule(
        self,
        asset_id: NameOrId,
        *,
        partition_rule: Affine | Mapping[str, Any] | Aggregation | LookupTable | CompositePartition | SolverReference | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Make the asset a virtual axis, or with null a plain one again."""
    @overload
    def update_asset_partition_rule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def attach_asset_to_fixture(
        self, asset_id: NameOrId, *, fixture_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Note on the asset the fixture it is bound into; from then on it stays in its mount."""
    @overload
    def attach_asset_to_fixture(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def detach_asset_from_fixture(
        self, asset_id: NameOrId, *, fixture_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Free the asset from its fixture, named so that nobody detaches it from another."""
    @overload
    def detach_asset_from_fixture(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_asset_settings(
        self, asset_id: NameOrId, *, settings_patch: Mapping[str, Any], idempotency_key: str | None = ...
    ) -> None:
        """Merge a patch into the settings: a value sets, null deletes, what is left out stays, objects merge."""
    @overload
    def update_asset_settings(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def set_asset_signal_limits(
        self,
        asset_id: NameOrId,
        *,
        low: float | None = ...,
        high: float | None = ...,
        address: str,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Limit the values that a signal of the asset may be set to; without low and high, it has no limits any
        more."""
    @overload
    def set_asset_signal_limits(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def assign_asset_external_id(
        self,
        asset_id: NameOrId,
        *,
        external_id_scheme: ExternalIdSchemeName,
        suffix: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AssignedExternalId:
        """Have a persistent identifier minted and keep it, once and for all."""
    @overload
    def assign_asset_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def mint_missing_asset_external_ids(
        self,
        *,
        external_id_scheme: ExternalIdSchemeName = ...,
        facility_code: str | None = ...,
        limit: int = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> MintSweepView | MintSweepAccepted:
        """Assign an identifier to every asset in service that lacks one, oldest first; one failure never stops the
        rest."""
    @overload
    def mint_missing_asset_external_ids(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_asset_mint_sweep(self, sweep_id: NameOrId) -> MintSweepView:
        """How far a sweep is, and what became of each asset."""
    def get_asset_pidinst(self, asset_id: NameOrId) -> PidinstRecord:
        """The asset as a PIDINST record."""
    def list_assets(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        tier: AssetTierName | None = ...,
        lifecycle: AssetLifecycleName | None = ...,
        condition: AssetConditionName | None = ...,
        parent_id: NameOrId | None = ...,
        root: bool | None = ...,
        family_id: NameOrId | None = ...,
        model_id: NameOrId | None = ...,
        facility_code: str | None = ...,
        located_in_enclosure_id: NameOrId | None = ...,
        alternate_identifier_kind: AlternateIdentifierKindName | None = ...,
        alternate_identifier_value: str | None = ...,
    ) -> Page[AssetItem]:
        """Assets in order of registration; a parent's id lists what is right below it, and `root` those below
        none."""
    def get_asset_integration_view(self, asset_id: NameOrId, *, min_position: int | None = ...) -> AssetIntegrationView:
        """An asset with its families, ports, settings, enclosures, cautions and what can be done with it."""
    def read_assets(self, *, asset_ids: Sequence[NameOrId]) -> AssetContents:
        """Up to 500 assets whole, each folded from its stream."""
    def get_family_history(
        self, family_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FamilyHistory:
        """Every event of one family, oldest first."""
    @overload
    def define_family(
        self,
        *,
        name: str,
        affordances: Collection[AffordanceName],
        settings_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> FamilyCreated:
        """Define a device class: what its assets let one do, and the schema their settings are checked against."""
    @overload
    def define_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_family(
        self,
        family_id: NameOrId,
        *,
        version_tag: str,
        affordances: Collection[AffordanceName],
        settings_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace the affordances and, where one is given, the schema: left out it stays, null withdraws it."""
    @overload
    def version_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_family_settings_schema(
        self, family_id: NameOrId, *, settings_schema: Mapping[str, Any] | None, idempotency_key: str | None = ...
    ) -> None:
        """Replace or, with null, withdraw the settings schema; units of properties that stay must stay too."""
    @overload
    def update_family_settings_schema(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_family_role(self, family_id: NameOrId, *, role_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Let the family present a role whose required affordances it has."""
    @overload
    def add_family_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_family_role(self, family_id: NameOrId, *, role_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Stop the family from presenting a role."""
    @overload
    def remove_family_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_family(self, family_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Keep the family from being newly assigned; assets that have it keep it, and its affordances still
        count."""
    @overload
    def deprecate_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_family(
        self,
        family_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FamilyView:
        """One family, folded from its stream."""
    def list_families(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: FamilyStatusName | None = ...,
        affordance: AffordanceName | None = ...,
        role_id: NameOrId | None = ...,
    ) -> Page[FamilyItem]:
        """Families in order of definition."""
    def list_affordances(self) -> Page[AffordanceRow]:
        """Every affordance a family can declare, with what it means; the list is closed and fits one page."""
    def get_role_history(
        self, role_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> RoleHistory:
        """Every event of one role, oldest first."""
    @overload
    def define_role(
        self,
        *,
        name: str,
        description: str,
        required_affordances: Collection[AffordanceName],
        optional_affordances: Collection[AffordanceName] = ...,
        produces: Collection[str] = ...,
        consumes: Collection[str] = ...,
        idempotency_key: str | None = ...,
    ) -> RoleCreated:
        """Define a functional contract by the affordances that its presenters must have."""
    @overload
    def define_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_role(
        self,
        role_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> RoleView:
        """One role, folded from its stream."""
    def list_roles(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
    ) -> Page[RoleItem]:
        """Roles in order of definition."""
    def get_model_history(
        self, model_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ModelHistory:
        """Every event of one model, oldest first."""
    @overload
    def define_model(
        self,
        *,
        name: str,
        manufacturer: Manufacturer | Mapping[str, Any],
        part_number: str,
        declared_family_ids: Collection[NameOrId],
        version_tag: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> ModelCreated:
        """Enter a vendor's model in the catalog."""
    @overload
    def define_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_model(
        self,
        model_id: NameOrId,
        *,
        name: str,
        manufacturer: Manufacturer | Mapping[str, Any],
        part_number: str,
        declared_family_ids: Collection[NameOrId],
        version_tag: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace the whole entry under a new version tag; existing assets are not touched."""
    @overload
    def version_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_model_family(self, model_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Declare a further family of this model; assets registered from now on get it."""
    @overload
    def add_model_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_model_family(self, model_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Declare a family no longer; assets that have it keep it."""
    @overload
    def remove_model_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_model(self, model_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Mark a model as no longer to be bought; it can still be bound to assets."""
    @overload
    def deprecate_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_model(
        self,
        model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ModelView:
        """One model, folded from its stream."""
    def list_models(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ModelStatusName | None = ...,
        family_id: NameOrId | None = ...,
        manufacturer_name: str | None = ...,
        part_number: str | None = ...,
    ) -> Page[ModelItem]:
        """Models in order of definition; a manufacturer's name matches whatever its case."""
    def get_frame_history(
        self, frame_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FrameHistory:
        """Every event of one frame, oldest first."""
    @overload
    def register_frame(
        self,
        *,
        name: str,
        parent_id: NameOrId | None = ...,
        placement: Placement | Mapping[str, Any] | None = ...,
        supersedes: Supersession | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> FrameCreated:
        """Register a root frame, or one placed in a parent frame."""
    @overload
    def register_frame(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_frame_placement(
        self,
        frame_id: NameOrId,
        *,
        placement: Placement | Mapping[str, Any],
        survey: Survey | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Correct where a frame sits in its parent, for instance after a survey."""
    @overload
    def update_frame_placement(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def decommission_frame(self, frame_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Retire a frame that nothing stands on any more."""
    @overload
    def decommission_frame(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_frame(
        self,
        frame_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FrameView:
        """One frame, folded from its stream."""
    def list_frames(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        parent_id: NameOrId | None = ...,
        status: FrameStatusName | None = ...,
    ) -> Page[FrameItem]:
        """Frames in order of registration."""
    def get_mount_history(
        self, mount_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> MountHistory:
        """Every event of one mount, oldest first."""
    @overload
    def register_mount(
        self,
        *,
        slot_code: str,
        parent_id: NameOrId | None = ...,
        placement: Placement | Mapping[str, Any],
        drawing: Drawing | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> MountCreated:
        """Provision a slot for an asset, placed in a frame."""
    @overload
    def register_mount(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_mount_placement(
        self,
        mount_id: NameOrId,
        *,
        placement: Placement | Mapping[str, Any],
        survey: Survey | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Correct where a mount sits in its frame, for instance after a survey."""
    @overload
    def update_mount_placement(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def install_asset(self, mount_id: NameOrId, *, asset_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Put an Active asset into an empty slot; an asset is in one slot at most."""
    @overload
    def install_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def uninstall_asset(self, mount_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take the asset out of its slot."""
    @overload
    def uninstall_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def decommission_mount(self, mount_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Retire an empty slot without slots under it; its code is free again."""
    @overload
    def decommission_mount(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_mount(
        self,
        mount_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> MountView:
        """One mount, folded from its stream."""
    def list_mounts(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        parent_id: NameOrId | None = ...,
        status: MountStatusName | None = ...,
        slot_code: str | None = ...,
        installed_asset_id: NameOrId | None = ...,
    ) -> Page[MountItem]:
        """Mounts in order of registration."""
    def get_assembly_history(
        self, assembly_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AssemblyHistory:
        """Every event of one assembly, oldest first."""
    @overload
    def define_assembly(
        self,
        *,
        name: str,
        presented_role_ids: Collection[NameOrId] = ...,
        required_slots: Sequence[RequiredSlot | Mapping[str, Any]] = ...,
        required_wires: Sequence[RequiredWire | Mapping[str, Any]] = ...,
        required_sub_assemblies: Sequence[RequiredSubAssembly | Mapping[str, Any]] = ...,
        parameter_overrides_schema: Mapping[str, Any] | None = ...,
        drawing: Drawing | Mapping[str, Any] | None = ...,
        version_tag: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AssemblyCreated:
        """Define a blueprint: its slots, the wires between them, and the assemblies it includes."""
    @overload
    def define_assembly(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_assembly(
        self,
        assembly_id: NameOrId,
        *,
        name: str,
        presented_role_ids: Collection[NameOrId] = ...,
        required_slots: Sequence[RequiredSlot | Mapping[str, Any]] = ...,
        required_wires: Sequence[RequiredWire | Mapping[str, Any]] = ...,
        required_sub_assemblies: Sequence[RequiredSubAssembly | Mapping[str, Any]] = ...,
        parameter_overrides_schema: Mapping[str, Any] | None = ...,
        drawing: Drawing | Mapping[str, Any] | None = ...,
        version_tag: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace a blueprint as a whole; fixtures made from the old one keep its hash."""
    @overload
    def version_assembly(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_assembly(
        self, assembly_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Let no fixture be made from this blueprint any more."""
    @overload
    def deprecate_assembly(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_assembly(
        self,
        assembly_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AssemblyView:
        """One assembly, folded from its stream."""
    def list_assemblies(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: AssemblyStatusName | None = ...,
        content_hash: str | None = ...,
        role_id: NameOrId | None = ...,
    ) -> Page[AssemblyItem]:
        """Assemblies in order of definition."""
    def get_fixture_history(
        self, fixture_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FixtureHistory:
        """Every event of one fixture, oldest first."""
    @overload
    def register_fixture(
        self,
        assembly_id: NameOrId,
        *,
        slot_asset_bindings: Sequence[SlotBinding | Mapping[str, Any]],
        parameter_overrides: Mapping[str, Any] = ...,
        idempotency_key: str | None = ...,
    ) -> FixtureCreated:
        """Make an assembly real: bind installed assets to its slots and to those of the assemblies it includes."""
    @overload
    def register_fixture(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def assign_fixture_external_id(
        self,
        fixture_id: NameOrId,
        *,
        external_id_scheme: ExternalIdSchemeName,
        suffix: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AssignedExternalId:
        """Have a persistent identifier minted for the fixture and keep it, once and for all."""
    @overload
    def assign_fixture_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_fixture(
        self,
        fixture_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FixtureView:
        """One fixture, folded from its stream."""
    def list_fixtures(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        assembly_id: NameOrId | None = ...,
        surface_id: NameOrId | None = ...,
        assembly_content_hash: str | None = ...,
    ) -> Page[FixtureItem]:
        """Fixtures in order of registration."""
    def get_fixture_pidinst(self, fixture_id: NameOrId) -> PidinstRecord:
        """The fixture as a PIDINST record, with the owners and manufacturers of all its assets."""
    def get_supply_history(
        self, supply_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SupplyHistory:
        """Every event of one supply, oldest first."""
    @overload
    def register_supply(
        self,
        *,
        kind: str,
        name: str,
        facility_code: str,
        containing_asset_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> SupplyCreated:
        """Make a resource known, of a whole facility or of one asset; its status is Unknown until somebody looks."""
    @overload
    def register_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def mark_supply_available(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that somebody looked, and the resource is there."""
    @overload
    def mark_supply_available(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def degrade_supply(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is there, but not as it should be: no run starts on it, a held one may resume."""
    @overload
    def degrade_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def mark_supply_unavailable(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is not there."""
    @overload
    def mark_supply_unavailable(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def mark_supply_recovering(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is coming back; restore it once it is stable."""
    @overload
    def mark_supply_recovering(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def restore_supply(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is there again as it should be."""
    @overload
    def restore_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deregister_supply(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Retire a supply for good; its address is free again."""
    @overload
    def deregister_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def observe_supply_status(
        self,
        supply_id: NameOrId,
        *,
        monitor_ref: MonitorRef | Mapping[str, Any],
        reason: str,
        new_status: SupplyStatusName,
        idempotency_key: str | None = ...,
    ) -> None:
        """Report what a monitor reads from the plant; a repeat is no event, but shows that the monitor is there."""
    @overload
    def observe_supply_status(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_supply(
        self,
        supply_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SupplyView | PastSupplyView:
        """One supply, folded from its stream, with whether a monitor watches it."""
    def list_supplies(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        facility_code: str | None = ...,
        containing_asset_id: NameOrId | None = ...,
        kind: str | None = ...,
        status: SupplyStatusName | None = ...,
    ) -> Page[SupplyItem]:
        """Supplies in order of registration, Decommissioned ones included."""
    def get_enclosure_history(
        self, enclosure_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> EnclosureHistory:
        """Every event of one enclosure, oldest first."""
    @overload
    def register_enclosure(self, *, name: str, facility_code: str, idempotency_key: str | None = ...) -> EnclosureCreated:
        """Make an interlock-gated volume known; its permit status is Unknown until it is observed."""
    @overload
    def register_enclosure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def observe_enclosure_status(
        self,
        enclosure_id: NameOrId,
        *,
        monitor_ref: MonitorRef | Mapping[str, Any],
        reason: str,
        new_status: EnclosurePermitStatusName,
        observed_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Report what a monitor reads from the interlock; a repeat is no event, but shows that the reading is
        current."""
    @overload
    def observe_enclosure_status(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def decommission_enclosure(self, enclosure_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Retire an enclosure for good: nothing starts in it any more, and its name is free again."""
    @overload
    def decommission_enclosure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_enclosure(
        self,
        enclosure_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> EnclosureView | PastEnclosureView:
        """One enclosure, folded from its stream, with the age of its last observation and whether a monitor watches
        it."""
    def list_enclosures(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        lifecycle: EnclosureLifecycleName | None = ...,
        permit_status: EnclosurePermitStatusName | None = ...,
        facility_code: str | None = ...,
    ) -> Page[EnclosureItem]:
        """Enclosures in order of registration, Decommissioned ones included, with the time of their last
        observation."""
    def get_clearance_history(
        self, clearance_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ClearanceHistory:
        """Every event of one clearance, oldest first."""
    @overload
    def register_clearance(
        self,
        *,
        template_id: NameOrId,
        facility_code: str,
        title: str,
        bindings: Sequence[RecordBinding | Mapping[str, Any] | ExternalBinding],
        declarations: Sequence[HazardDeclaration | Mapping[str, Any]] = ...,
        risk_band: RiskBandName | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        valid_from: datetime | str | None = ...,
        valid_until: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> ClearanceCreated:
        """Register a filled-in safety form; it covers nothing until it has been reviewed, approved and activated."""
    @overload
    def register_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def submit_clearance(self, clearance_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Hand the form in for review."""
    @overload
    def submit_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def start_clearance_review(
        self, clearance_id: NameOrId, *, first_reviewer_role: str, idempotency_key: str | None = ...
    ) -> None:
        """Begin the review, naming the role that looks first."""
    @overload
    def start_clearance_review(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def append_clearance_review_step(
        self,
        clearance_id: NameOrId,
        *,
        step_index: int,
        role: str,
        decision: ReviewDecisionName,
        decided_at: datetime | str,
        notes: str | Literal[""] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record what one reviewer decided; the caller is the reviewer, and only approve and reject end the
        review."""
    @overload
    def append_clearance_review_step(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def approve_clearance(
        self,
        clearance_id: NameOrId,
        *,
        valid_from: datetime | str | None = ...,
        valid_until: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the review in favour; an end of the validity window that is given replaces the registered one."""
    @overload
    def approve_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def reject_clearance(self, clearance_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """End the review against the form, for good."""
    @overload
    def reject_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def activate_clearance(self, clearance_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let the clearance count; within its validity window it lets runs start."""
    @overload
    def activate_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def expire_clearance(self, clearance_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take the clearance out of force, whatever its validity window says."""
    @overload
    def expire_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def amend_clearance(
        self,
        clearance_id: NameOrId,
        *,
        template_id: NameOrId,
        facility_code: str,
        title: str,
        bindings: Sequence[RecordBinding | Mapping[str, Any] | ExternalBinding],
        declarations: Sequence[HazardDeclaration | Mapping[str, Any]] = ...,
        risk_band: RiskBandName | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        valid_from: datetime | str | None = ...,
        valid_until: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AmendedClearance:
        """Replace the form by a new one that must be reviewed anew; this one stops covering at once, nothing is
        copied."""
    @overload
    def amend_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def assign_clearance_external_id(
        self,
        clearance_id: NameOrId,
        *,
        external_id: str,
        external_id_scheme: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Fill in the facility's own number of this form; without a scheme, the template's code is the scheme."""
    @overload
    def assign_clearance_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_clearance(
        self,
        clearance_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ClearanceView:
        """One clearance, folded from its stream; its author is a barred reviewer where CLEARANCE_FOUR_EYES is on."""
    def list_clearances(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        template_id: NameOrId | None = ...,
        template_code: str | None = ...,
        status: ClearanceStatusName | None = ...,
        risk_band: RiskBandName | None = ...,
        facility_code: str | None = ...,
        binds_to_subject_id: NameOrId | None = ...,
        binds_to_asset_id: NameOrId | None = ...,
        binds_to_run_id: NameOrId | None = ...,
        binds_to_procedure_id: NameOrId | None = ...,
        due_by: datetime | str | None = ...,
    ) -> Page[ClearanceItem]:
        """Clearances in order of registration."""
    def get_clearance_template_history(
        self, template_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ClearanceTemplateHistory:
        """Every event of one clearance template, oldest first."""
    @overload
    def define_clearance_template(
        self, *, code: str, title: str, facility_code: str, external_ref: str | None = ..., idempotency_key: str | None = ...
    ) -> ClearanceTemplateCreated:
        """Enter a kind of safety form into a facility's catalog, as a draft."""
    @overload
    def define_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def activate_clearance_template(self, template_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let clearances be registered under this template."""
    @overload
    def activate_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_clearance_template(
        self,
        template_id: NameOrId,
        *,
        new_version: int,
        supersedes_template_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record that the form was revised, and which other template it replaces, if any."""
    @overload
    def version_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_clearance_template(
        self, template_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Take no new clearances under this template; its code stays taken."""
    @overload
    def deprecate_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def withdraw_clearance_template(self, template_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Strike the template from the catalog; its code is free again."""
    @overload
    def withdraw_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_clearance_template(
        self,
        template_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ClearanceTemplateView:
        """One clearance template, folded from its stream."""
    def list_clearance_templates(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        facility_code: str | None = ...,
        status: ClearanceTemplateStatusName | None = ...,
        code: str | None = ...,
    ) -> Page[ClearanceTemplateItem]:
        """Clearance templates in order of definition."""
    def get_caution_history(
        self, caution_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CautionHistory:
        """Every event of one caution, oldest first."""
    @overload
    def register_caution(
        self,
        *,
        target: CautionTarget | Mapping[str, Any],
        category: CautionCategoryName,
        severity: CautionSeverityName,
        text: str,
        workaround: str,
        tags: Collection[str] = ...,
        expires_at: datetime | str | None = ...,
        propagate_to_children: bool = ...,
        idempotency_key: str | None = ...,
    ) -> NewCaution:
        """Warn everybody who will work with an asset, a procedure, a recipe or a plan, and say what to do about
        it."""
    @overload
    def register_caution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def supersede_caution(
        self,
        caution_id: NameOrId,
        *,
        target: CautionTarget | Mapping[str, Any],
        category: CautionCategoryName,
        severity: CautionSeverityName,
        text: str,
        workaround: str,
        tags: Collection[str] = ...,
        expires_at: datetime | str | None = ...,
        propagate_to_children: bool = ...,
        idempotency_key: str | None = ...,
    ) -> NewCaution:
        """Replace a caution by another one on the same target; nothing of the old one is copied."""
    @overload
    def supersede_caution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def retire_caution(
        self, caution_id: NameOrId, *, reason: CautionRetireReasonName, idempotency_key: str | None = ...
    ) -> None:
        """Stop warning, without a successor."""
    @overload
    def retire_caution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_caution(
        self,
        caution_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CautionView:
        """One caution, folded from its stream."""
    def list_cautions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        target_kind: CautionTargetKindName | None = ...,
        target_id: NameOrId | None = ...,
        category: CautionCategoryName | None = ...,
        severity: Sequence[CautionSeverityName] = ...,
        min_severity: CautionSeverityName | None = ...,
        status: Sequence[ListedStatusName] = ...,
        tag: str | None = ...,
        authored_by: NameOrId | None = ...,
        in_effect: bool = ...,
        inherited: bool = ...,
    ) -> Page[CautionItem]:
        """Cautions in order of registration, the Active ones unless another status is asked for."""
    def get_subject_history(
        self, subject_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SubjectHistory:
        """Every event of one subject, oldest first."""
    @overload
    def register_subject(self, *, name: str, idempotency_key: str | None = ...) -> SubjectCreated:
        """Take in something that is to be measured."""
    @overload
    def register_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def mount_subject(
        self, subject_id: NameOrId, *, asset_id: NameOrId, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Put a subject on an Active asset, which may hold several at once; the asset's condition is not looked
        at."""
    @overload
    def mount_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def measure_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that a subject was measured since it was mounted; nothing else records it."""
    @overload
    def measure_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def dismount_subject(self, subject_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take a subject off its asset; it may be mounted again, there or elsewhere."""
    @overload
    def dismount_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Take a subject out of use for good, mounted or not; only its return, storage or discarding follows."""
    @overload
    def remove_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def return_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that the subject went back to its owner."""
    @overload
    def return_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def store_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that the subject stays at the facility, in store."""
    @overload
    def store_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def discard_subject(self, subject_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the subject was disposed of."""
    @overload
    def discard_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def assign_subject_external_id(
        self, subject_id: NameOrId, *, external_id: str, external_id_scheme: str = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep the identifier a registry gave the subject, once and for all, in whatever status it is."""
    @overload
    def assign_subject_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_subject(
        self,
        subject_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SubjectView:
        """One subject, folded from its stream."""
    def list_subjects(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: SubjectStatusName | None = ...,
        mounted_on_asset_id: NameOrId | None = ...,
    ) -> Page[SubjectItem]:
        """Subjects in order of registration; an asset's id lists what is mounted on it."""
    def get_capability_history(
        self, capability_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CapabilityHistory:
        """Every event of one capability, oldest first."""
    @overload
    def define_capability(
        self,
        *,
        code: str,
        name: str,
        required_affordances: Collection[AffordanceName],
        executor_shapes: Collection[ExecutorShapeName],
        description: str | None = ...,
        parameters_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> CapabilityCreated:
        """Define the contract of a kind of operation: the affordances it needs, its parameters and who may realise
        it."""
    @overload
    def define_capability(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_capability(
        self,
        capability_id: NameOrId,
        *,
        version_tag: str,
        required_affordances: Collection[AffordanceName],
        executor_shapes: Collection[ExecutorShapeName],
        description: str | None,
        parameters_schema: Mapping[str, Any] | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace the contract as a whole: nothing is kept by leaving it out; methods written under the old one
        stand."""
    @overload
    def version_capability(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_capability(
        self,
        capability_id: NameOrId,
        *,
        reason: str | None = ...,
        replaced_by_capability_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Keep procedures from being newly registered for it, and say what replaces it; what refers to it stays as
        it is."""
    @overload
    def deprecate_capability(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_capability(
        self,
        capability_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CapabilityView:
        """One capability, folded from its stream."""
    def list_capabilities(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        code: str | None = ...,
    ) -> Page[CapabilityItem]:
        """Capabilities in order of definition."""
    def get_method_history(
        self, method_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> MethodHistory:
        """Every event of one method, oldest first."""
    @overload
    def define_method(
        self,
        *,
        name: str,
        capability_id: NameOrId,
        needed_family_ids: Collection[NameOrId] = ...,
        needed_supplies: Collection[str] = ...,
        parameters_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> MethodCreated:
        """Define a technique that realises a capability: the families and supplies it needs, and its parameters."""
    @overload
    def define_method(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_method_parameters_schema(
        self, method_id: NameOrId, *, parameters_schema: Mapping[str, Any] | None, idempotency_key: str | None = ...
    ) -> None:
        """Replace or, with null, withdraw the parameter schema; units of properties that stay must stay too."""
    @overload
    def update_method_parameters_schema(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_method_required_role(
        self, method_id: NameOrId, *, requirement: RoleRequirement | Mapping[str, Any], idempotency_key: str | None = ...
    ) -> None:
        """Add a role that an asset is to play, by its family or by an equipment role it presents, with the ports it
        needs."""
    @overload
    def add_method_required_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_method_required_role(self, method_id: NameOrId, *, role_name: str, idempotency_key: str | None = ...) -> None:
        """Take a role out of the method."""
    @overload
    def remove_method_required_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_method(
        self,
        method_id: NameOrId,
        *,
        version_tag: str,
        parameters_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Label the method as it stands and, where one is given, replace its schema: left out it stays, null
        withdraws it."""
    @overload
    def version_method(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_method(self, method_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Keep new plans from being made of it; the practices and plans there are stay as they are."""
    @overload
    def deprecate_method(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_method(
        self,
        method_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> MethodView:
        """One method, folded from its stream."""
    def list_methods(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        capability_id: NameOrId | None = ...,
    ) -> Page[MethodItem]:
        """Methods in order of definition."""
    def get_practice_history(
        self, practice_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PracticeHistory:
        """Every event of one practice, oldest first."""
    @overload
    def define_practice(
        self,
        *,
        name: str,
        method_id: NameOrId,
        site_id: NameOrId | None = ...,
        family_ids: Collection[NameOrId] = ...,
        idempotency_key: str | None = ...,
    ) -> PracticeCreated:
        """Adopt a method at a site, for a set of families, or both."""
    @overload
    def define_practice(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_practice(self, practice_id: NameOrId, *, version_tag: str, idempotency_key: str | None = ...) -> None:
        """Label the practice as it stands."""
    @overload
    def version_practice(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_practice(
        self, practice_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep new plans from being made of it; the plans there are stay as they are."""
    @overload
    def deprecate_practice(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_practice(
        self,
        practice_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PracticeView:
        """One practice, folded from its stream."""
    def list_practices(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        method_id: NameOrId | None = ...,
    ) -> Page[PracticeItem]:
        """Practices in order of definition."""
    def get_plan_history(
        self, plan_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PlanHistory:
        """Every event of one plan, oldest first."""
    @overload
    def define_plan(
        self,
        *,
        name: str,
        practice_id: NameOrId,
        asset_ids: Collection[NameOrId],
        window_starts_at: datetime | str | None = ...,
        window_ends_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> PlanCreated:
        """Bind a practice to assets that together cover what it needs, and say when it is meant to be executed."""
    @overload
    def define_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def reschedule_plan(
        self,
        plan_id: NameOrId,
        *,
        window_starts_at: datetime | str | None,
        window_ends_at: datetime | str | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Move the window or, with null for both ends, clear it; the window informs and keeps no run from
        starting."""
    @overload
    def reschedule_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_plan_default_parameters(
        self, plan_id: NameOrId, *, default_parameters_patch: Mapping[str, Any], idempotency_key: str | None = ...
    ) -> None:
        """Merge a patch into the default parameters: a value sets, null deletes, what is left out stays, objects
        merge."""
    @overload
    def update_plan_default_parameters(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_plan(self, plan_id: NameOrId, *, version_tag: str, idempotency_key: str | None = ...) -> None:
        """Label the plan as it stands; its roles are settled with that."""
    @overload
    def version_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_plan(self, plan_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Keep new runs from being started on it; those that were started stay as they are."""
    @overload
    def deprecate_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_plan(
        self,
        plan_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PlanView:
        """One plan, folded from its stream."""
    def list_plans(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        practice_id: NameOrId | None = ...,
        method_id: NameOrId | None = ...,
    ) -> Page[PlanItem]:
        """Plans in order of definition."""
    @overload
    def add_plan_wire(
        self,
        plan_id: NameOrId,
        *,
        source_asset_id: NameOrId,
        source_port_name: str,
        target_asset_id: NameOrId,
        target_port_name: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Connect an output of one asset of the plan to an input of another: a source may feed many, a target takes
        one."""
    @overload
    def add_plan_wire(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_plan_wire(
        self,
        plan_id: NameOrId,
        *,
        source_asset_id: NameOrId,
        source_port_name: str,
        target_asset_id: NameOrId,
        target_port_name: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Take a connection out of the plan."""
    @overload
    def remove_plan_wire(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def bind_plan_role(
        self, plan_id: NameOrId, *, role_name: str, asset_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Let an asset of the plan play a role of its method; unbind the role first to give it to another."""
    @overload
    def bind_plan_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def unbind_plan_role(self, plan_id: NameOrId, *, role_name: str, idempotency_key: str | None = ...) -> None:
        """Leave a role of the plan unplayed again."""
    @overload
    def unbind_plan_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def set_plan_data_registration(
        self,
        plan_id: NameOrId,
        *,
        data_registration: DataRegistration | Mapping[str, Any] | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say how the files of the plan's runs become datasets at the end of each phase or, with null, that they do
        not."""
    @overload
    def set_plan_data_registration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def inspect_plan_binding(
        self, *, practice_id: NameOrId, asset_ids: Collection[NameOrId], min_position: int | None = ...
    ) -> PlanBinding:
        """What a plan of this practice on these assets would lack, and who could provide it; nothing is written."""
    def get_recipe_history(
        self, recipe_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> RecipeHistory:
        """Every event of one recipe, oldest first."""
    @overload
    def define_recipe(
        self,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        name: str,
        capability_id: NameOrId,
        steps: Sequence[Any],
        closing_steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> RecipeCreated:
        """Write down the steps that realise a capability here, and those that leave everything safe afterwards."""
    @overload
    def define_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_recipe(
        self,
        recipe_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        version_tag: str,
        steps: Sequence[Any],
        closing_steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace all steps, closing steps and options under a tag; the tag may be used again for the same content
        only."""
    @overload
    def version_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_recipe(
        self,
        recipe_id: NameOrId,
        *,
        reason: str | None = ...,
        replaced_by_recipe_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Keep procedures from being newly registered from it, and say what replaces it; registered ones are
        conducted."""
    @overload
    def deprecate_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_recipe(
        self,
        recipe_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
        version_tag: str | None = ...,
    ) -> RecipeView:
        """One recipe, folded from its stream; with a tag, what it said in that version and since when."""
    def list_recipe_versions(self, recipe_id: NameOrId, *, order: OrderName = ...) -> Page[RecipeVersion]:
        """Every content of one recipe from its definition on, folded from its stream; all on one page."""
    def list_recipes(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        capability_id: NameOrId | None = ...,
    ) -> Page[RecipeItem]:
        """Recipes in order of definition."""
    def get_run_history(
        self, run_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> RunHistory:
        """Every event of one run, oldest first."""
    @overload
    def hold_run(
        self,
        run_id: NameOrId,
        *,
        reason: str | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Pause the run; it goes on only when somebody resumes it."""
    @overload
    def hold_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_runs(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: RunStatusName | None = ...,
        plan_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        campaign_id: NameOrId | None = ...,
    ) -> Page[RunItem]:
        """Runs in the order they were started."""
    @overload
    def complete_run(self, run_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Complete the run as intended; a held one only once it has phases and every one of them is Completed."""
    @overload
    def complete_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def stop_run(
        self,
        run_id: NameOrId,
        *,
        decided_by_decision_id: NameOrId | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the run early by choice; what it measured so far is good."""
    @overload
    def stop_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def abort_run(
        self,
        run_id: NameOrId,
        *,
        decided_by_decision_id: NameOrId | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the run in an emergency; what it measured is suspect."""
    @overload
    def abort_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def truncate_run(
        self,
        run_id: NameOrId,
        *,
        decided_by_decision_id: NameOrId | None = ...,
        reason: str,
        interrupted_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Close the books on a run that died by itself, with the best guess of when."""
    @overload
    def truncate_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_run(
        self,
        run_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> RunView:
        """One run, folded from its stream."""
    @overload
    def start_run(
        self,
        *,
        name: str,
        plan_id: NameOrId,
        subject_id: NameOrId | None = ...,
        raid: str | None = ...,
        override_parameters: Mapping[str, Any] = ...,
        pinned_calibration_ids: Collection[NameOrId] = ...,
        trigger_source: str | None = ...,
        external_refs: Mapping[str, str] = ...,
        campaign_id: NameOrId | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> RunStartedAnswer:
        """Execute a plan: pass every gate, merge the parameters, and acknowledge the cautions on it and its
        assets."""
    @overload
    def start_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def preflight_run(
        self,
        *,
        name: str,
        plan_id: NameOrId,
        subject_id: NameOrId | None = ...,
        raid: str | None = ...,
        override_parameters: Mapping[str, Any] = ...,
        pinned_calibration_ids: Collection[NameOrId] = ...,
        trigger_source: str | None = ...,
        external_refs: Mapping[str, str] = ...,
        campaign_id: NameOrId | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
    ) -> Preflight:
        """Ask every gate whether this run could start now, and change nothing."""
    @overload
    def resume_run(
        self, run_id: NameOrId, *, decided_by_decision_id: NameOrId | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Let a held run go on, if its preconditions still hold; nothing resumes by itself."""
    @overload
    def resume_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def adjust_run(
        self,
        run_id: NameOrId,
        *,
        parameters_patch: Mapping[str, Any],
        reason: str,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Merge a patch into the parameters of a run that is on: a value sets, null deletes, objects merge."""
    @overload
    def adjust_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def conduct_run(
        self,
        run_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        phases: Sequence[Phase | Mapping[str, Any]] = ...,
        procedure_ids: Sequence[NameOrId] = ...,
        wait: float = ...,
        idempotency_key: str | None = ...,
    ) -> RunConductResult | RunConductAccepted:
        """Conduct phases of the run one after the other, then complete it; the first phase that fails aborts it."""
    @overload
    def conduct_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_run_conduct(self, run_id: NameOrId) -> RunConductView:
        """How the latest conduct of a run goes, phase by phase, what it waits for and its result."""
    @overload
    def append_observations(
        self, run_id: NameOrId, *, entries: Sequence[Sample | Mapping[str, Any]], idempotency_key: str | None = ...
    ) -> Appended:
        """Add readings to a run that is on; the batch is taken whole or not at all, and repeats are harmless."""
    @overload
    def append_observations(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_run_observations(
        self,
        run_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        channel_name: str | None = ...,
        sampling_procedure: SamplingProcedureName | None = ...,
        since: datetime | str | None = ...,
    ) -> Page[Observation]:
        """The readings of a run in the order they were recorded."""
    def list_run_channels(self, run_id: NameOrId) -> Page[Channel]:
        """The channels of a run by name, each with its latest reading."""
    @overload
    def append_run_logbook_entries(
        self, run_id: NameOrId, *, entries: Sequence[NarrativeEntry | Mapping[str, Any]], idempotency_key: str | None = ...
    ) -> Appended:
        """Write into the logbook of a run, whether it is on or over; debriefs are for agents."""
    @overload
    def append_run_logbook_entries(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_run_logbook_entries(
        self,
        run_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        entry_kind: RunLogbookEntryKindName | None = ...,
    ) -> Page[RunLogbookEntry]:
        """What was written about a run, in the order it was recorded."""
    def get_beamline_now(self, asset_id: NameOrId) -> BeamlineNow:
        """What is going on at a beamline: permits, supplies, clearances, cautions, live runs and conducts,
        workers."""
    def list_waiting(
        self,
        *,
        asset_id: NameOrId | None = ...,
        kind: Sequence[WaitingKindName] = ...,
        limit: int = ...,
        cursor: str | None = ...,
        min_position: int | None = ...,
    ) -> Page[WaitingItem]:
        """Everything that waits for a person, the newest last, with the commands that resolve it and whether you
        may."""
    @overload
    def hold_everything(
        self, *, reason: str, asset_id: NameOrId | None = ..., idempotency_key: str | None = ...
    ) -> HeldEverything:
        """Hold every live run and conduct, or all on one asset, its parts and what it is part of; it can be
        repeated."""
    @overload
    def hold_everything(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_procedure_history(
        self, procedure_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ProcedureHistory:
        """Every event of one procedure, oldest first."""
    def list_procedures(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ProcedureStatusName | None = ...,
        kind: str | None = ...,
        parent_run_id: NameOrId | None = ...,
        target_asset_id: NameOrId | None = ...,
    ) -> Page[ProcedureItem]:
        """Procedures in order of registration."""
    def get_procedure(
        self,
        procedure_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ProcedureView:
        """One procedure, folded from its stream."""
    @overload
    def register_procedure(
        self,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        name: str,
        kind: str,
        target_asset_ids: Collection[NameOrId] = ...,
        parent_run_id: NameOrId | None = ...,
        max_consecutive_unconverged_iterations: int | None = ...,
        capability_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ProcedureCreated:
        """Plan a task on some assets, to be carried out by hand or conducted with steps given then."""
    @overload
    def register_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def register_procedure_from_recipe(
        self,
        recipe_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        name: str,
        kind: str,
        target_asset_ids: Collection[NameOrId] = ...,
        parent_run_id: NameOrId | None = ...,
        max_consecutive_unconverged_iterations: int | None = ...,
        bindings: Mapping[str, Any] = ...,
        idempotency_key: str | None = ...,
    ) -> ProcedureCreated:
        """Plan a task with a recipe's steps; what the request does not bind is taken from the parent run's
        parameters."""
    @overload
    def register_procedure_from_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def start_procedure(self, procedure_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Begin to carry the procedure out by hand, if its assets, supplies and enclosures allow it."""
    @overload
    def start_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def resume_procedure(
        self,
        procedure_id: NameOrId,
        *,
        re_establishment_boundary: int = ...,
        by_hand: bool = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Go on by hand after a hold; what was conducted is taken up by its own command, unless `by_hand` is
        said."""
    @overload
    def resume_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def hold_procedure(
        self,
        procedure_id: NameOrId,
        *,
        reason: str,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> RequestAccepted:
        """Pause the procedure; a live conduct finishes its step first. It goes on only when somebody resumes it."""
    @overload
    def hold_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def complete_procedure(self, procedure_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Complete the procedure, whose task is done; a live conduct does so itself."""
    @overload
    def complete_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def abort_procedure(
        self, procedure_id: NameOrId, *, reason: str, run_closing: bool = ..., idempotency_key: str | None = ...
    ) -> RequestAccepted:
        """Give the procedure up; a live conduct is cancelled and closes nothing."""
    @overload
    def abort_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def truncate_procedure(
        self,
        procedure_id: NameOrId,
        *,
        reason: str,
        interrupted_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Close the books on a procedure that died by itself, with the best guess of when."""
    @overload
    def truncate_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def conduct_procedure(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps one after the other; a failure ends in Aborted, and closing steps run either way."""
    @overload
    def conduct_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def conduct_or_hold_procedure(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps; a setpoint or check that fails holds the procedure for a person instead of aborting
        it."""
    @overload
    def conduct_or_hold_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def conduct_from_procedure(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        re_establishment_boundary: int | None = ...,
        skip: bool = ...,
        skip_reason: str | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Take a held procedure up at the first step that is not done, or at an earlier one, to establish what
        follows afresh."""
    @overload
    def conduct_from_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def conduct_until_converged(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        convergence_capture_name: str,
        criterion: PlainEqualsCriterion | Mapping[str, Any] | PlainToleranceCriterion,
        steps: Sequence[Any] = ...,
        max_consecutive_unconverged_iterations: int | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps again and again until a captured value meets a criterion; a held loop is taken up the
        same way."""
    @overload
    def conduct_until_converged(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def conduct_until_advised(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        objective: SteeringObjective | Mapping[str, Any],
        space: SteeringSpace | Mapping[str, Any],
        objective_capture_name: str,
        decide_: InMemoryDecide
        | Mapping[str, Any]
        | GridWalkDecide
        | SobolDecide
        | BotorchDecide
        | StagedDecide
        | LlmDecide
        | PluginDecide
        | CallerDecide = ...,
        budget: SteeringBudget | Mapping[str, Any] | None = ...,
        first_point: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps again and again, where the decider says, until it says stop or the budget is spent."""
    @overload
    def conduct_until_advised(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def conduct_until_advised_from(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        objective: SteeringObjective | Mapping[str, Any],
        space: SteeringSpace | Mapping[str, Any],
        objective_capture_name: str,
        decide_: InMemoryDecide
        | Mapping[str, Any]
        | GridWalkDecide
        | SobolDecide
        | BotorchDecide
        | StagedDecide
        | LlmDecide
        | PluginDecide
        | CallerDecide = ...,
        budget: SteeringBudget | Mapping[str, Any] | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Take a held search up where it stood: what was measured is known to the decider and is not measured
        again."""
    @overload
    def conduct_until_advised_from(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_procedure_steering(self, procedure_id: NameOrId) -> SteeringView:
        """What a steered conduct waits to be advised on."""
    @overload
    def advise_procedure(
        self,
        procedure_id: NameOrId,
        *,
        iteration_index: int,
        question: int | None = ...,
        advice: SteeringAdvice | Mapping[str, Any],
        wait: float = ...,
        idempotency_key: str | None = ...,
    ) -> AdviceFollowed | AdviceAccepted:
        """Tell a conduct that waits where to measure next, or to stop."""
    @overload
    def advise_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def start_iteration(self, procedure_id: NameOrId, *, iteration_index: int, idempotency_key: str | None = ...) -> None:
        """Begin the next pass."""
    @overload
    def start_iteration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def end_iteration(
        self,
        procedure_id: NameOrId,
        *,
        iteration_index: int,
        converged: bool | None,
        reason: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the open pass, and say whether it converged."""
    @overload
    def end_iteration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_procedure_iterations(self, procedure_id: NameOrId) -> Iterations:
        """Every pass of the procedure in order."""
    @overload
    def append_activities(
        self,
        procedure_id: NameOrId,
        *,
        entries: Sequence[ActivityReport | Mapping[str, Any]],
        idempotency_key: str | None = ...,
    ) -> Appended:
        """Log what was done by hand."""
    @overload
    def append_activities(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_procedure_activities(
        self,
        procedure_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        step_kind: StepKindName | None = ...,
        conduct_id: NameOrId | None = ...,
    ) -> Page[Activity]:
        """What was done, in the order it was recorded."""
    def preflight_procedure(self, procedure_id: NameOrId) -> ProcedurePreflight:
        """Ask every gate whether this procedure could start now or, from Held, go on; and change nothing."""
    @overload
    def resolve_procedure_step(
        self,
        procedure_id: NameOrId,
        *,
        conduct_id: NameOrId,
        step_index: int,
        closing: bool = ...,
        iteration_index: int = ...,
        outcome: StepVerdictName,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say whether a step whose outcome is unknown was done."""
    @overload
    def resolve_procedure_step(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def skip_procedure_wait(
        self,
        procedure_id: NameOrId,
        *,
        conduct_id: NameOrId,
        step_index: int,
        iteration_index: int = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the wait of the check at which the conduct stands, as if it had come true."""
    @overload
    def skip_procedure_wait(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_procedure_steps(
        self,
        procedure_id: NameOrId,
        *,
        closing: bool = ...,
        iteration_index: int | None = ...,
        first_index: int | None = ...,
        limit: int = ...,
    ) -> ProcedureSteps:
        """The steps of a procedure, those around the current one or from one on, with what was done about each."""
    def get_procedure_conduct(self, procedure_id: NameOrId) -> ConductView:
        """The progress of the latest conduct of a procedure, when its worker was last heard of, and its result."""
    def resolve_signals(self, *, addresses: Sequence[str], control_limits: bool = ...) -> ResolvedSignals:
        """The owners, the route, the limits and the live claims of each of these signals."""
    def read_signals(self, *, addresses: Sequence[str]) -> SignalReadings:
        """Read signals now, in the control system, for 5 seconds at most; each has its value or its error. Needs a
        worker."""
    def get_work(self, work_id: NameOrId) -> WorkView:
        """How long work stands that a request has begun: running, done with its answer, or failed with its error."""
    def get_schedule_history(
        self, schedule_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ScheduleHistory:
        """Every event of one schedule, oldest first."""
    @overload
    def define_schedule(
        self,
        *,
        name: str,
        calendar: CronCalendar | Mapping[str, Any] | EveryCalendar,
        time_zone: str = ...,
        overlap: OverlapName = ...,
        catchup_window: int = ...,
        jitter: int = ...,
        target: ConductRecipe | Mapping[str, Any] | ConductPlan,
        idempotency_key: str | None = ...,
    ) -> ScheduleCreated:
        """Conduct a recipe, or a run on a plan, on a calendar; each firing is authorized as the caller of this
        command."""
    @overload
    def define_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def hold_schedule(self, schedule_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Fire no more until somebody resumes; a firing that goes on is not touched."""
    @overload
    def hold_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def resume_schedule(self, schedule_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Fire again as the calendar says; what would have fired meanwhile is not made up for."""
    @overload
    def resume_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def trigger_schedule(self, schedule_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Fire once now, beside the calendar and whatever still goes on; it is authorized as the schedule always
        is."""
    @overload
    def trigger_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def retire_schedule(self, schedule_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Fire never again."""
    @overload
    def retire_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_schedule(
        self,
        schedule_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ScheduleView:
        """One schedule, folded from its stream, with its next and its last firings."""
    def list_schedules(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ScheduleStatusName | None = ...,
    ) -> Page[ScheduleItem]:
        """Schedules in the order they were defined, with when each fires next and what became of its last firing."""
    def get_queue_history(
        self, queue_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> QueueHistory:
        """Every event of one queue, oldest first."""
    @overload
    def open_queue(
        self, *, name: str, asset_id: NameOrId, on_failure: OnFailureName = ..., idempotency_key: str | None = ...
    ) -> QueueCreated:
        """Open the queue of a beamline: what is added to it is conducted in order, each item as who added it."""
    @overload
    def open_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_queue_items(
        self,
        queue_id: NameOrId,
        *,
        items: Sequence[NewQueueItem | Mapping[str, Any]],
        before_item_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> QueueItemsAddedAnswer:
        """Add items at the end or before one that waits, all or none; each is conducted as the caller of this
        command."""
    @overload
    def add_queue_items(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def move_queue_item(
        self,
        queue_id: NameOrId,
        *,
        item_id: NameOrId,
        before_item_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Move an item that waits before another one that waits, or to the end."""
    @overload
    def move_queue_item(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def edit_queue_item(
        self,
        queue_id: NameOrId,
        *,
        item_id: NameOrId,
        title: str = ...,
        target: ConductQueuedRecipe | Mapping[str, Any] | ConductQueuedPlan = ...,
        not_before: datetime | str | None = ...,
        pause_after: bool = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Change an item that waits; with another target it is conducted as the caller of this command."""
    @overload
    def edit_queue_item(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_queue_item(
        self, queue_id: NameOrId, *, item_id: NameOrId, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Take an item out that waits; it is not conducted."""
    @overload
    def remove_queue_item(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def hold_queue(self, queue_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Start no more items until somebody resumes; the one under way is not touched."""
    @overload
    def hold_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def resume_queue(self, queue_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Start items again, with the first that waits; what failed is not repeated."""
    @overload
    def resume_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def retire_queue(self, queue_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Close the queue for good: what waits is removed, what is under way goes on."""
    @overload
    def retire_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_queue(
        self,
        queue_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> QueueView:
        """One queue, folded from its stream, with a forecast of what comes next."""
    def list_queues(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        asset_id: NameOrId | None = ...,
        status: QueueStatusName | None = ...,
    ) -> Page[QueueOverviewItem]:
        """Queues in the order they were opened, each with how many items wait and the one under way."""
    def list_queue_items(
        self,
        queue_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        status: QueueItemStatusName | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> Page[QueueItemView]:
        """The items of a queue: the last thousand that have ended, the running one, and those that wait, in
        order."""
    def get_campaign_history(
        self, campaign_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CampaignHistory:
        """Every event of one campaign, oldest first."""
    @overload
    def register_campaign(
        self,
        *,
        name: str,
        intent: CampaignIntentName,
        lead_actor_id: NameOrId,
        subject_id: NameOrId | None = ...,
        description: str | None = ...,
        tags: Collection[str] = ...,
        external_refs: Mapping[str, str] = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> CampaignCreated:
        """Declare a campaign that runs can join."""
    @overload
    def register_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def start_campaign(self, campaign_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Begin the campaign."""
    @overload
    def start_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def hold_campaign(self, campaign_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Pause the campaign; its runs are not touched."""
    @overload
    def hold_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def resume_campaign(self, campaign_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Go on after a hold."""
    @overload
    def resume_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def close_campaign(self, campaign_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """End the campaign; its runs stay as they are, and so does who belongs to it."""
    @overload
    def close_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def abandon_campaign(self, campaign_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Give the campaign up; its runs stay as they are, and so does who belongs to it."""
    @overload
    def abandon_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_campaign(
        self,
        campaign_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CampaignView:
        """One campaign, folded from its stream."""
    def list_campaigns(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: Sequence[ListedCampaignStatusName] = ...,
        intent: CampaignIntentName | None = ...,
        lead_actor_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        tag: str | None = ...,
    ) -> Page[CampaignItem]:
        """Campaigns in order of registration, those that are not over unless another status is asked for."""
    @overload
    def add_run_to_campaign(self, campaign_id: NameOrId, run_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let a run join, whatever its status; a run belongs to one campaign at a time."""
    @overload
    def add_run_to_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_run_from_campaign(
        self, campaign_id: NameOrId, run_id: NameOrId, *, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Take a run out; to move it, add it elsewhere afterwards."""
    @overload
    def remove_run_from_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_calibration_history(
        self, calibration_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CalibrationHistory:
        """Every event of one calibration, oldest first."""
    @overload
    def define_calibration(
        self,
        *,
        target_id: NameOrId,
        quantity: str,
        operating_point: Mapping[str, Any],
        description: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> CalibrationCreated:
        """Say what is calibrated: a quantity of one target at one operating point; its values follow as
        revisions."""
    @overload
    def define_calibration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def append_calibration_revision(
        self,
        calibration_id: NameOrId,
        *,
        value: Mapping[str, Any],
        status: CalibrationStatusName,
        source: GivenSource | Mapping[str, Any],
        decided_by_decision_id: NameOrId | None = ...,
        supersedes_revision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> AppendedRevision:
        """Add a value; from now on it is the latest, and what pinned an earlier one keeps it."""
    @overload
    def append_calibration_revision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_calibration(
        self,
        calibration_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CalibrationView:
        """One calibration, folded from its stream."""
    def list_calibrations(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        target_id: NameOrId | None = ...,
        quantity: CalibrationQuantityName | None = ...,
        latest_revision_status: Sequence[CalibrationStatusName] = ...,
        latest_revision_source_kind: Sequence[SourceKindName] = ...,
    ) -> Page[CalibrationItem]:
        """Calibrations in order of definition, with what is latest of each."""
    @overload
    def publish_calibration_revision(
        self,
        calibration_id: NameOrId,
        revision_id: NameOrId,
        *,
        peer_facility_id: NameOrId,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> PublishedRevision | PublicationAccepted:
        """Sign a revision and send it to a peer; the caller is the sign-off and must be a person."""
    @overload
    def publish_calibration_revision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_calibration_at_risk_results(
        self,
        calibration_id: NameOrId,
        *,
        revision_id: NameOrId | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
    ) -> Page[CalibrationAtRiskResult]:
        """Datasets that used a superseded revision, then those derived from them; with a revision named, what used
        that one."""
    def get_dataset_history(
        self, dataset_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> DatasetHistory:
        """Every event of one dataset, oldest first."""
    @overload
    def register_dataset(
        self,
        *,
        name: str,
        uri: str,
        checksum: GivenChecksum | Mapping[str, Any],
        byte_size: int,
        encoding: GivenEncoding | Mapping[str, Any],
        producing_run_id: NameOrId | None = ...,
        producing_procedure_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        derived_from: Collection[NameOrId] = ...,
        used_calibration_ids: Collection[NameOrId] = ...,
        idempotency_key: str | None = ...,
    ) -> DatasetCreated:
        """Record a data product; it begins as a Trial that nothing may rest on. Its run may still be under way."""
    @overload
    def register_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def promote_dataset(self, dataset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Declare a Trial dataset good enough for results to rest on it; one of a simulation never is."""
    @overload
    def promote_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def demote_dataset(self, dataset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Declare that results should not have rested on a Production dataset; it never returns, but a new one may
        follow it."""
    @overload
    def demote_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def discard_dataset(self, dataset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Declare the record void; children, copies, editions and bytes stay as they are."""
    @overload
    def discard_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def assign_dataset_external_id(
        self, dataset_id: NameOrId, *, external_id: str, external_id_scheme: str = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep the identifier a registry gave the dataset, once and for all, in whatever status it is."""
    @overload
    def assign_dataset_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_dataset(
        self,
        dataset_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> DatasetView:
        """One dataset, folded from its stream."""
    def list_datasets(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: DatasetStatusName | None = ...,
        intent: DatasetIntentName | None = ...,
        producing_run_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        derived_from: NameOrId | None = ...,
        used_calibration_id: NameOrId | None = ...,
    ) -> Page[DatasetItem]:
        """Datasets in order of registration; `derived_from` lists the direct children of one."""
    def get_distribution_history(
        self,
        distribution_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> DistributionHistory:
        """Every event of one distribution, oldest first."""
    @overload
    def register_distribution(
        self,
        *,
        dataset_id: NameOrId,
        supply_id: NameOrId,
        uri: str,
        checksum: GivenChecksum | Mapping[str, Any],
        byte_size: int,
        encoding: GivenEncoding | Mapping[str, Any],
        access_protocol: str,
        idempotency_key: str | None = ...,
    ) -> DistributionCreated:
        """Record a copy of a dataset on a storage supply; it has the checksum and size of the dataset."""
    @overload
    def register_distribution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def mark_distribution_stale(self, distribution_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Say that a copy's bytes are not what they should be; that is a fact, however many copies are left."""
    @overload
    def mark_distribution_stale(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def discard_distribution(self, distribution_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Give up a copy; one whose bytes were looked at goes only while another is Verified on another supply."""
    @overload
    def discard_distribution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_distribution(
        self,
        distribution_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> DistributionView:
        """One distribution, folded from its stream."""
    def list_distributions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        supply_id: NameOrId | None = ...,
        status: DistributionStatusName | None = ...,
        access_protocol: AccessProtocolName | None = ...,
    ) -> Page[DistributionItem]:
        """Copies in order of registration."""
    def get_acquisition_history(
        self, acquisition_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AcquisitionHistory:
        """Every event of one acquisition, oldest first."""
    @overload
    def record_acquisition(
        self,
        *,
        dataset_id: NameOrId,
        producing_asset_id: NameOrId,
        captured_at: datetime | str,
        producing_run_id: NameOrId | None = ...,
        settings: Mapping[str, Any] = ...,
        evidence: Mapping[str, Any] = ...,
        idempotency_key: str | None = ...,
    ) -> AcquisitionCreated:
        """Record which asset captured a dataset, and when; nothing stands against several such records."""
    @overload
    def record_acquisition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_acquisition(
        self,
        acquisition_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AcquisitionView:
        """One acquisition, folded from its stream."""
    def list_acquisitions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        producing_asset_id: NameOrId | None = ...,
        producing_run_id: NameOrId | None = ...,
    ) -> Page[AcquisitionItem]:
        """Acquisitions in order of their recording."""
    @overload
    def ingest_scan(
        self,
        *,
        locator: str,
        producing_asset_id: NameOrId,
        supply_id: NameOrId,
        access_protocol: str,
        producing_run_id: NameOrId | None = ...,
        captured_at: datetime | str | None = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> ScanIngested | ScanIngestAccepted:
        """Read a finished scan file in Data Exchange or NXtomo layout, and record its dataset, copy and acquisition
        at once."""
    @overload
    def ingest_scan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_attestation_history(
        self, attestation_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AttestationHistory:
        """Every event of one attestation, oldest first."""
    @overload
    def record_attestation(
        self,
        *,
        dataset_id: NameOrId,
        distribution_id: NameOrId,
        kind: str = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> AttestationCreated | AttestationAccepted:
        """Have the service read a copy's bytes, compare their checksum and record the result."""
    @overload
    def record_attestation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_attestation(
        self,
        attestation_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AttestationView:
        """One attestation, folded from its stream."""
    def list_attestations(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        distribution_id: NameOrId | None = ...,
        kind: AttestationKindName | None = ...,
        outcome: AttestationOutcomeName | None = ...,
    ) -> Page[AttestationItem]:
        """Attestations in order of their recording."""
    @overload
    def attest_distributions(
        self,
        *,
        dataset_id: NameOrId | None = ...,
        supply_id: NameOrId | None = ...,
        not_verified_since: datetime | str | None = ...,
        limit: int = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> AttestationSweep | AttestationSweepAccepted:
        """Check the bytes of many copies one after the other, oldest first: of a dataset, on a supply, or all there
        are."""
    @overload
    def attest_distributions(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def register_procedure_datasets(
        self, procedure_id: NameOrId, *, wait: int = ..., idempotency_key: str | None = ...
    ) -> RegisteredProducts | RegistrationAccepted:
        """Register the files of an ended phase as datasets, as its plan says; those that are registered stay as they
        are."""
    @overload
    def register_procedure_datasets(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_procedure_files(self, procedure_id: NameOrId) -> ProcedureFilesView:
        """The files that the steps of a procedure left, as its logbook tells, and the datasets that they became."""
    def get_edition_history(
        self, edition_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> EditionHistory:
        """Every event of one edition, oldest first."""
    @overload
    def register_edition(
        self,
        *,
        kind: EditionKindName,
        title: str,
        dataset_ids: Collection[NameOrId],
        creator_ids: Sequence[NameOrId],
        publisher_facility_code: str | None = ...,
        publication_year: int | None = ...,
        license: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> EditionCreated:
        """Begin a package of datasets. Members may change until it is sealed; publisher, year and license may be
        given then."""
    @overload
    def register_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def add_dataset_to_edition(
        self, edition_id: NameOrId, *, dataset_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Make a dataset a member of an edition that is not sealed yet."""
    @overload
    def add_dataset_to_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_dataset_from_edition(
        self, edition_id: NameOrId, *, dataset_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Take a member out of an edition that is not sealed yet; one stays."""
    @overload
    def remove_dataset_from_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def seal_edition(
        self,
        edition_id: NameOrId,
        *,
        publisher_facility_code: str | None = ...,
        publication_year: int | None = ...,
        license: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Fix the members of an edition and write its manifest. All must be Production, each with a copy that is not
        Stale."""
    @overload
    def seal_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def publish_edition(
        self, edition_id: NameOrId, *, wait: int = ..., idempotency_key: str | None = ...
    ) -> PublishedEdition | EditionWorkAccepted:
        """Have a DOI minted for a sealed edition, and keep it with the manifest that names it."""
    @overload
    def publish_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def withdraw_edition(
        self, edition_id: NameOrId, *, withdrawal_reason: str, wait: int = ..., idempotency_key: str | None = ...
    ) -> EditionWorkAccepted:
        """Offer a published edition no longer; its DOI stays, and leads to the notice of that."""
    @overload
    def withdraw_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_edition(
        self,
        edition_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> EditionView:
        """One edition, folded from its stream."""
    def list_editions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: EditionStatusName | None = ...,
        kind: EditionKindName | None = ...,
        dataset_id: NameOrId | None = ...,
        publisher_facility_code: str | None = ...,
    ) -> Page[EditionItem]:
        """Editions in order of registration; `dataset_id` lists those with this member."""
    def get_edition_manifest(self, edition_id: NameOrId) -> Document:
        """The manifest of an edition: as published, or as sealed before that."""
    def get_dataset_datacite(self, dataset_id: NameOrId) -> Document:
        """The dataset as a record of DataCite 4.6, with its parents, instruments and sample; what is minted is the
        same."""
    def get_edition_datacite(self, edition_id: NameOrId) -> Document:
        """The sealed edition as a record of DataCite 4.6, with its members."""
    def get_subject_igsn(self, subject_id: NameOrId) -> Document:
        """The sample as the record that DataCite 4.6 publishes under its IGSN."""
    @overload
    def mint_dataset_external_id(self, dataset_id: NameOrId, *, idempotency_key: str | None = ...) -> AssignedExternalId:
        """Have a DOI minted for a dataset and keep it, once and for all."""
    @overload
    def mint_dataset_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def retry_catalogue_entry(
        self, dataset_id: NameOrId, *, catalogue: CatalogueNameName, wait: int = ..., idempotency_key: str | None = ...
    ) -> CataloguePass | CataloguePassAccepted:
        """Have a catalogue show a dataset once more, or one from before the catalogue was configured."""
    @overload
    def retry_catalogue_entry(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_catalogue_entries(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        catalogue: CatalogueNameName | None = ...,
        status: CatalogueEntryStatusName | None = ...,
    ) -> Page[CatalogueEntryItem]:
        """How far each catalogue has come with each dataset, in the order in which they were first asked for."""
    def get_dataset_provenance(
        self,
        dataset_id: NameOrId,
        *,
        direction: ProvenanceDirectionName = ...,
        max_depth: int = ...,
        limit: int = ...,
        copies: bool = ...,
        min_position: int | None = ...,
    ) -> DatasetProvenance:
        """Everything a dataset was made from and everything made from it, as a graph."""
    def get_dataset_provenance_picture(
        self,
        dataset_id: NameOrId,
        *,
        direction: ProvenanceDirectionName = ...,
        max_depth: int = ...,
        limit: int = ...,
        copies: bool = ...,
        min_position: int | None = ...,
    ) -> Document:
        """The provenance of a dataset as a picture; many nodes of one kind and generation are drawn as one."""
    def get_dataset_prov(
        self,
        dataset_id: NameOrId,
        *,
        direction: ProvenanceDirectionName = ...,
        max_depth: int = ...,
        limit: int = ...,
        copies: bool = ...,
        min_position: int | None = ...,
    ) -> Document:
        """The provenance of a dataset as PROV-JSON, for readers of that form."""
    def get_dataset_preview(self, dataset_id: NameOrId) -> Document:
        """A small picture of a dataset: the middle frame of the largest array in its HDF5 file, in shades of
        grey."""
    def get_decision_history(
        self, decision_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> DecisionHistory:
        """Every event of one decision, oldest first."""
    @overload
    def register_decision(
        self,
        *,
        decided_by: NameOrId,
        context: str,
        choice: str,
        parent_id: NameOrId | None = ...,
        override_kind: OverrideKindName | None = ...,
        rule: str | None = ...,
        reasoning: str | None = ...,
        confidence: float | None = ...,
        confidence_source: ConfidenceSourceName | None = ...,
        alternatives: Sequence[str] = ...,
        inputs: Mapping[str, Any] | None = ...,
        reasoning_signature: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> DecisionCreated:
        """Record a consequential choice."""
    @overload
    def register_decision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def rate_decision(
        self,
        decision_id: NameOrId,
        *,
        rating: DecisionRatingName,
        comment: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say whether a decision helped; who rates again replaces the own rating."""
    @overload
    def rate_decision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_decision(
        self,
        decision_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> DecisionView:
        """One decision, folded from its stream."""
    def list_decisions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        context: str | None = ...,
        choice: str | None = ...,
        exclude_choices: Sequence[str] = ...,
        rule: str | None = ...,
        decided_by: NameOrId | None = ...,
        confidence_band: ConfidenceBandName | None = ...,
        parent_id: NameOrId | None = ...,
    ) -> Page[DecisionItem]:
        """Decisions in the order they were registered."""
    @overload
    def append_inferences(
        self, decision_id: NameOrId, *, entries: Sequence[Span | Mapping[str, Any]], idempotency_key: str | None = ...
    ) -> Appended:
        """Add the model and tool calls behind a decision to its inference logbook."""
    @overload
    def append_inferences(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_inferences(
        self,
        decision_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        include_messages: bool = ...,
    ) -> Page[Inference]:
        """The calls behind a decision by time; prompt and answer texts only where asked for."""
    def get_agent_history(
        self, agent_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AgentHistory:
        """Every event of one agent, oldest first."""
    @overload
    def define_agent(
        self,
        *,
        kind: str,
        name: str,
        version: str,
        model_ref: ModelRef | Mapping[str, Any],
        description: str | None = ...,
        canonical_uri: str | None = ...,
        prompt_template_id: NameOrId | None = ...,
        capabilities: Collection[str] = ...,
        idempotency_key: str | None = ...,
    ) -> AgentCreated:
        """Make an agent known, and with it the actor of the same id that it acts as."""
    @overload
    def define_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def version_agent(self, agent_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put an agent into service."""
    @overload
    def version_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def suspend_agent(self, agent_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take an agent out of service; what it asks for is refused from its next call on, until somebody resumes
        it."""
    @overload
    def suspend_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def resume_agent(self, agent_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put a suspended agent back into service; what passed meanwhile is not made up for."""
    @overload
    def resume_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_agent(self, agent_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Take an agent out of service for good."""
    @overload
    def deprecate_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def grant_tool_to_agent(self, agent_id: NameOrId, *, tool_name: str, idempotency_key: str | None = ...) -> None:
        """Declare a tool of this agent; what it may do, policies alone decide."""
    @overload
    def grant_tool_to_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def revoke_tool_from_agent(self, agent_id: NameOrId, *, tool_name: str, idempotency_key: str | None = ...) -> None:
        """Take a tool from the declared ones."""
    @overload
    def revoke_tool_from_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def update_agent_budget(
        self,
        agent_id: NameOrId,
        *,
        monthly_cost_cap: float | None,
        daily_token_cap: int | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Set what the agent may spend by itself in a calendar month and day (UTC); null lifts a cap."""
    @overload
    def update_agent_budget(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_agent(
        self,
        agent_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AgentView:
        """One agent, folded from its stream."""
    def list_agents(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        kind: str | None = ...,
        status: AgentStatusName | None = ...,
    ) -> Page[AgentItem]:
        """Agents in the order they were defined."""
    def get_language_model_history(
        self,
        language_model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> LanguageModelHistory:
        """Every event of one language model, oldest first."""
    @overload
    def define_language_model(
        self,
        *,
        name: str,
        provider: str,
        model: str,
        served_via: ServingRouteName,
        pricing: Pricing | Mapping[str, Any],
        data_tier: DataTierName,
        archivability: ArchivabilityName,
        snapshot_pin: str | None = ...,
        endpoint_note: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> LanguageModelCreated:
        """Add a model to the catalog; it may be used once it is approved. No credentials are kept here."""
    @overload
    def define_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def approve_language_model(self, language_model_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let a model be used at this facility."""
    @overload
    def approve_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def announce_language_model_retirement(
        self,
        language_model_id: NameOrId,
        *,
        reason: str,
        effective_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record that the provider will end a model, and when if it is known; what rests on it is at risk from now
        on."""
    @overload
    def announce_language_model_retirement(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def retire_language_model(
        self, language_model_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Record that the provider has ended a model."""
    @overload
    def retire_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def deprecate_language_model(
        self, language_model_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Withdraw a model from use at this facility; another entry for it may be defined."""
    @overload
    def deprecate_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_language_model(
        self,
        language_model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> LanguageModelView:
        """One language model, folded from its stream."""
    def list_language_models(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: LanguageModelStatusName | None = ...,
        provider: str | None = ...,
    ) -> Page[LanguageModelItem]:
        """The catalog in the order of its entries."""
    def list_at_risk_results(
        self,
        language_model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
    ) -> AtRiskResults:
        """The decisions that a model had a part in, by the time of its latest call, and whether they are at risk."""
    @overload
    def regenerate_run_debrief(
        self,
        run_id: NameOrId,
        *,
        parent_decision_id: NameOrId | None = ...,
        agent_id: NameOrId | None = ...,
        wait: float = ...,
        idempotency_key: str | None = ...,
    ) -> RegeneratedDebrief | RegenerationAccepted:
        """Have a debrief of the run written now, by the usual agent or by the one named."""
    @overload
    def regenerate_run_debrief(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def promote_caution_proposal(self, decision_id: NameOrId, *, idempotency_key: str | None = ...) -> NewCaution:
        """Make a caution of what an agent proposed; its author is the caller who promotes it."""
    @overload
    def promote_caution_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def list_reactions(self, *, subscriber_name: str | None = ...) -> Reactions:
        """How far every subscriber of the log has come, with what it has under way and what went wrong last."""
    @overload
    def dismiss_event_in_reaction(
        self, subscriber_name: str, *, event_id: NameOrId, reason: str, idempotency_key: str | None = ...
    ) -> DecisionCreated:
        """Let a subscriber pass over the event that it cannot get past."""
    @overload
    def dismiss_event_in_reaction(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_facility_history(
        self, facility_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FacilityHistory:
        """Every event of one facility, oldest first."""
    @overload
    def register_facility(
        self,
        *,
        code: str,
        display_name: str,
        kind: FacilityKindName,
        parent_id: NameOrId | None = ...,
        alternate_identifiers: Sequence[FacilityIdentifier | Mapping[str, Any]] = ...,
        idempotency_key: str | None = ...,
    ) -> RegisteredFacility:
        """Make a site, one of its areas or a peer known; its code is taken for ever."""
    @overload
    def register_facility(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def decommission_facility(
        self, facility_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Close a facility; its code stays its own, and what was recorded under it stays valid."""
    @overload
    def decommission_facility(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_facility(
        self,
        facility_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FacilityView:
        """One facility, folded from its stream."""
    def list_facilities(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        kind: FacilityKindName | None = ...,
        status: FacilityStatusName | None = ...,
        parent_id: NameOrId | None = ...,
        code: str | None = ...,
    ) -> Page[FacilityItem]:
        """Facilities in order of registration."""
    def get_credential_history(
        self, credential_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CredentialHistory:
        """Every event of one credential, oldest first."""
    @overload
    def register_credential(
        self,
        *,
        facility_id: NameOrId,
        audience: str,
        purpose: CredentialPurposeName,
        secret_ref: str,
        public_material_ref: str | None = ...,
        expires_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> CredentialCreated:
        """Say where a facility's key or token for one audience and purpose is kept; the secret itself stays
        there."""
    @overload
    def register_credential(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def start_credential_rotation(
        self,
        credential_id: NameOrId,
        *,
        new_secret_ref: str,
        new_public_material_ref: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Name the material that is to follow; until the rotation is completed the current one stays in use."""
    @overload
    def start_credential_rotation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def complete_credential_rotation(self, credential_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Use the new material from now on; the expiry stays as it was."""
    @overload
    def complete_credential_rotation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def abort_credential_rotation(
        self, credential_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Stay with the current material."""
    @overload
    def abort_credential_rotation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def revoke_credential(
        self, credential_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Trust this credential no longer, for good; its facility may register another for the same audience and
        purpose."""
    @overload
    def revoke_credential(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_credential(
        self,
        credential_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CredentialView:
        """One credential, folded from its stream."""
    def list_credentials(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        facility_id: NameOrId | None = ...,
        purpose: CredentialPurposeName | None = ...,
        status: CredentialStatusName | None = ...,
    ) -> Page[CredentialItem]:
        """Credentials in order of registration, without their references."""
    @overload
    def add_facility_trust_anchor_credential(
        self, facility_id: NameOrId, *, credential_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Let a Site's seals rest on this credential."""
    @overload
    def add_facility_trust_anchor_credential(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def remove_facility_trust_anchor_credential(
        self, facility_id: NameOrId, *, credential_id: NameOrId, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Let no new seal rest on this credential; seals that use it already keep it."""
    @overload
    def remove_facility_trust_anchor_credential(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_permit_history(
        self, permit_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PermitHistory:
        """Every event of one permit, oldest first."""
    @overload
    def define_permit(
        self,
        *,
        peer_facility_id: NameOrId,
        audience: str,
        purpose: str,
        direction: PermitDirectionName,
        allowed_credential_ids: Collection[NameOrId],
        allowed_payload_types: Collection[str],
        allowed_artifact_kinds: Collection[str],
        abi_tier_floor: AbiTierName,
        expires_at: datetime | str,
        terms: OutboundTerms | Mapping[str, Any] | InboundTerms,
        idempotency_key: str | None = ...,
    ) -> PermitCreated:
        """Set down what may flow to or from a peer, until when and under which credentials; it counts once
        activated."""
    @overload
    def define_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def activate_permit(self, permit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put the permit in force."""
    @overload
    def activate_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def suspend_permit(self, permit_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Let nothing flow for now; only a person's resume ends it."""
    @overload
    def suspend_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def resume_permit(self, permit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let data flow again."""
    @overload
    def resume_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def revoke_permit(self, permit_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """End the permit for good; the same peer, audience and purpose may be granted anew."""
    @overload
    def revoke_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_permit(
        self,
        permit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PermitView:
        """One permit, folded from its stream."""
    def list_permits(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        direction: PermitDirectionName | None = ...,
        status: PermitStatusName | None = ...,
        peer_facility_id: NameOrId | None = ...,
    ) -> Page[PermitItem]:
        """Permits in order of definition."""
    def get_published_artifact(self, receipt_id: NameOrId) -> Document:
        """A published artifact as it was sent, as long as the permit is in force that let it go."""
    def list_published_artifacts(
        self, facility_id: NameOrId, *, limit: int = ..., cursor: str | None = ..., order: OrderName = ...
    ) -> Page[PublishedArtifact]:
        """What was published to a facility under the permits in force, in order of time."""
    def get_received_artifact_history(
        self,
        received_artifact_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> ReceivedArtifactHistory:
        """Every event of one received artifact, oldest first."""
    @overload
    def receive_artifact(
        self,
        *,
        source_facility_id: NameOrId,
        receipt_id: NameOrId,
        content_hash: str,
        uri: str | None = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> ReceptionResult | ReceptionAccepted:
        """Fetch what a peer published, check it stage by stage and keep it with the verdict; an inbound permit must
        be in force."""
    @overload
    def receive_artifact(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def recheck_received_artifact(
        self, received_artifact_id: NameOrId, *, idempotency_key: str | None = ...
    ) -> ReceptionResult:
        """Check an artifact again that could not be checked, by the permit and the keys of now; it is not fetched
        anew."""
    @overload
    def recheck_received_artifact(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def adopt_received_artifact(
        self, received_artifact_id: NameOrId, *, calibration_id: NameOrId, idempotency_key: str | None = ...
    ) -> AppendedRevision:
        """Make a verified revision of a peer one of an own calibration of the same quantity and operating point."""
    @overload
    def adopt_received_artifact(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_received_artifact(
        self,
        received_artifact_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ReceivedArtifactView:
        """One received artifact, folded from its stream."""
    def get_received_artifact_document(self, received_artifact_id: NameOrId) -> Document:
        """The artifact as it was fetched, byte for byte."""
    def list_received_artifacts(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        source_facility_id: NameOrId | None = ...,
        status: ReceivedArtifactStatusName | None = ...,
    ) -> Page[ReceivedArtifactItem]:
        """Received artifacts in order of their first reception."""
    def get_seal_history(
        self, facility_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SealHistory:
        """Every event of one seal, oldest first."""
    @overload
    def initialize_seal(
        self,
        *,
        facility_id: NameOrId,
        online_credential_id: NameOrId,
        offline_credential_id: NameOrId,
        idempotency_key: str | None = ...,
    ) -> SealCreated:
        """Say which two keys vouch for a facility's pointer: an online one that signs it, an offline root above
        that."""
    @overload
    def initialize_seal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def sign_seal_pointer(
        self,
        facility_id: NameOrId,
        *,
        new_head_hash: str,
        new_sequence_number: int,
        signature: SealSignature | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Vouch for a newer head of the facility's published records, by the given signature or by the online key
        held here."""
    @overload
    def sign_seal_pointer(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def rotate_seal_online_key(
        self,
        facility_id: NameOrId,
        *,
        new_online_credential_id: NameOrId,
        signed_by_offline_root: bool,
        offline_signature: SealSignature | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Let another key sign the facility's pointers; the offline root vouches for it."""
    @overload
    def rotate_seal_online_key(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def start_seal_republishing(
        self, facility_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Say that the facility publishes its records anew; no pointer is signed and no key rotated until that is
        completed."""
    @overload
    def start_seal_republishing(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    def complete_seal_republishing(
        self,
        facility_id: NameOrId,
        *,
        new_head_hash: str | None = ...,
        new_sequence_number: int | None = ...,
        signature: SealSignature | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say that the records are published anew, under a new head and sequence number or, without both, as they
        were."""
    @overload
    def complete_seal_republishing(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def get_seal(
        self,
        facility_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SealView:
        """One seal, folded from its stream."""
    def list_seals(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        status: SealStatusName | None = ...,
    ) -> Page[SealItem]:
        """Seals in order of initialization."""
    def get_seal_pointer(self, facility_id: NameOrId) -> SignedSealPointer:
        """The current pointer of a facility for its peers: the signed bytes, the signatures, and the keys to check
        them with."""
    def list_events(
        self,
        *,
        include: Literal["names"] | None = ...,
        after: int | None = ...,
        stream_type: Sequence[str] = ...,
        event_type: Sequence[str] = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        payloads: bool = ...,
        max_bytes: int | None = ...,
    ) -> Page[EventView]:
        """Every committed event after a position, in commit-safe order or the newest first."""
    def get_my_access(self) -> AccessView:
        """Who I am to the service, and every command that a call of mine can reach on this surface."""

class AcquisitionThing(Thing):
    """One acquisition, named by its name or id."""

    get = verb(Operations.get_acquisition)
    get_history = verb(Operations.get_acquisition_history)

class AcquisitionCollection:
    """Every acquisition."""
    def __getitem__(self, reference: NameOrId) -> AcquisitionThing: ...
    def __iter__(self) -> Iterator[AcquisitionThing]: ...
    list = listing(Operations.list_acquisitions, AcquisitionThing)
    record = maker(Operations.record_acquisition)

class ActorThing(Thing):
    """One actor, named by its name or id."""

    bind_subject = verb(Operations.bind_actor_subject)
    deactivate = verb(Operations.deactivate_actor)
    forget = verb(Operations.forget_actor)
    get = verb(Operations.get_actor)
    get_history = verb(Operations.get_actor_history)
    get_profile = verb(Operations.get_actor_profile)
    reactivate = verb(Operations.reactivate_actor)
    unbind_subject = verb(Operations.unbind_actor_subject)
    update_profile = verb(Operations.update_actor_profile)

class ActorCollection:
    """Every actor."""
    def __getitem__(self, reference: NameOrId) -> ActorThing: ...
    def __iter__(self) -> Iterator[ActorThing]: ...
    list = listing(Operations.list_actors, ActorThing)
    register = maker(Operations.register_actor)

class AgentThing(Thing):
    """One agent, named by its name or id."""

    deprecate = verb(Operations.deprecate_agent)
    get = verb(Operations.get_agent)
    get_history = verb(Operations.get_agent_history)
    grant_tool_to = verb(Operations.grant_tool_to_agent)
    resume = verb(Operations.resume_agent)
    revoke_tool_from = verb(Operations.revoke_tool_from_agent)
    suspend = verb(Operations.suspend_agent)
    update_budget = verb(Operations.update_agent_budget)
    version = verb(Operations.version_agent)

class AgentCollection:
    """Every agent."""
    def __getitem__(self, reference: NameOrId) -> AgentThing: ...
    def __iter__(self) -> Iterator[AgentThing]: ...
    list = listing(Operations.list_agents, AgentThing)
    define = maker(Operations.define_agent)

class AssemblyThing(Thing):
    """One assembly, named by its name or id."""

    deprecate = verb(Operations.deprecate_assembly)
    get = verb(Operations.get_assembly)
    get_history = verb(Operations.get_assembly_history)
    version = verb(Operations.version_assembly)

class AssemblyCollection:
    """Every assembly."""
    def __getitem__(self, reference: NameOrId) -> AssemblyThing: ...
    def __iter__(self) -> Iterator[AssemblyThing]: ...
    list = listing(Operations.list_assemblies, AssemblyThing)
    define = maker(Operations.define_assembly)

class AssetThing(Thing):
    """One asset, named by its name or id."""

    activate = verb(Operations.activate_asset)
    add_alternate_identifier = verb(Operations.add_asset_alternate_identifier)
    add_family = verb(Operations.add_asset_family)
    add_owner = verb(Operations.add_asset_owner)
    add_port = verb(Operations.add_asset_port)
    assign_external_id = verb(Operations.assign_asset_external_id)
    attach_to_fixture = verb(Operations.attach_asset_to_fixture)
    decommission = verb(Operations.decommission_asset)
    degrade = verb(Operations.degrade_asset)
    detach_from_fixture = verb(Operations.detach_asset_from_fixture)
    enter_maintenance = verb(Operations.enter_asset_maintenance)
    exit_maintenance = verb(Operations.exit_asset_maintenance)
    fault = verb(Operations.fault_asset)
    get = verb(Operations.get_asset)
    get_history = verb(Operations.get_asset_history)
    get_integration_view = verb(Operations.get_asset_integration_view)
    get_pidinst = verb(Operations.get_asset_pidinst)
    get_tree = verb(Operations.get_asset_tree)
    get_beamline_now = verb(Operations.get_beamline_now)
    relocate = verb(Operations.relocate_asset)
    remove_alternate_identifier = verb(Operations.remove_asset_alternate_identifier)
    remove_family = verb(Operations.remove_asset_family)
    remove_owner = verb(Operations.remove_asset_owner)
    remove_port = verb(Operations.remove_asset_port)
    rename = verb(Operations.rename_asset)
    restore = verb(Operations.restore_asset)
    set_signal_limits = verb(Operations.set_asset_signal_limits)
    update_partition_rule = verb(Operations.update_asset_partition_rule)
    update_settings = verb(Operations.update_asset_settings)

class AssetCollection:
    """Every asset."""
    def __getitem__(self, reference: NameOrId) -> AssetThing: ...
    def __iter__(self) -> Iterator[AssetThing]: ...
    list = listing(Operations.list_assets, AssetThing)
    get_mint_sweep = maker(Operations.get_asset_mint_sweep)
    mint_missing_external_ids = maker(Operations.mint_missing_asset_external_ids)
    reads = maker(Operations.read_assets)
    register = maker(Operations.register_asset)
    resolve_signals = maker(Operations.resolve_signals)

class AttestationThing(Thing):
    """One attestation, named by its name or id."""

    get = verb(Operations.get_attestation)
    get_history = verb(Operations.get_attestation_history)

class AttestationCollection:
    """Every attestation."""
    def __getitem__(self, reference: NameOrId) -> AttestationThing: ...
    def __iter__(self) -> Iterator[AttestationThing]: ...
    list = listing(Operations.list_attestations, AttestationThing)
    record = maker(Operations.record_attestation)

class CalibrationThing(Thing):
    """One calibration, named by its name or id."""

    append_revision = verb(Operations.append_calibration_revision)
    get = verb(Operations.get_calibration)
    get_history = verb(Operations.get_calibration_history)
    list_at_risk_results = verb(Operations.list_calibration_at_risk_results)
    publish_revision = verb(Operations.publish_calibration_revision)

class CalibrationCollection:
    """Every calibration."""
    def __getitem__(self, reference: NameOrId) -> CalibrationThing: ...
    def __iter__(self) -> Iterator[CalibrationThing]: ...
    list = listing(Operations.list_calibrations, CalibrationThing)
    define = maker(Operations.define_calibration)

class CampaignThing(Thing):
    """One campaign, named by its name or id."""

    abandon = verb(Operations.abandon_campaign)
    add_run_to = verb(Operations.add_run_to_campaign)
    close = verb(Operations.close_campaign)
    get = verb(Operations.get_campaign)
    get_history = verb(Operations.get_campaign_history)
    hold = verb(Operations.hold_campaign)
    remove_run_from = verb(Operations.remove_run_from_campaign)
    resume = verb(Operations.resume_campaign)
    start = verb(Operations.start_campaign)

class CampaignCollection:
    """Every campaign."""
    def __getitem__(self, reference: NameOrId) -> CampaignThing: ...
    def __iter__(self) -> Iterator[CampaignThing]: ...
    list = listing(Operations.list_campaigns, CampaignThing)
    register = maker(Operations.register_campaign)

class CapabilityThing(Thing):
    """One capability, named by its name or id."""

    deprecate = verb(Operations.deprecate_capability)
    get = verb(Operations.get_capability)
    get_history = verb(Operations.get_capability_history)
    version = verb(Operations.version_capability)

class CapabilityCollection:
    """Every capability."""
    def __getitem__(self, reference: NameOrId) -> CapabilityThing: ...
    def __iter__(self) -> Iterator[CapabilityThing]: ...
    list = listing(Operations.list_capabilities, CapabilityThing)
    define = maker(Operations.define_capability)

class CautionThing(Thing):
    """One caution, named by its name or id."""

    get = verb(Operations.get_caution)
    get_history = verb(Operations.get_caution_history)
    retire = verb(Operations.retire_caution)
    supersede = verb(Operations.supersede_caution)

class CautionCollection:
    """Every caution."""
    def __getitem__(self, reference: NameOrId) -> CautionThing: ...
    def __iter__(self) -> Iterator[CautionThing]: ...
    list = listing(Operations.list_cautions, CautionThing)
    register = maker(Operations.register_caution)

class ClearanceThing(Thing):
    """One clearance, named by its name or id."""

    activate = verb(Operations.activate_clearance)
    amend = verb(Operations.amend_clearance)
    append_review_step = verb(Operations.append_clearance_review_step)
    approve = verb(Operations.approve_clearance)
    assign_external_id = verb(Operations.assign_clearance_external_id)
    expire = verb(Operations.expire_clearance)
    get = verb(Operations.get_clearance)
    get_history = verb(Operations.get_clearance_history)
    reject = verb(Operations.reject_clearance)
    start_review = verb(Operations.start_clearance_review)
    submit = verb(Operations.submit_clearance)

class ClearanceCollection:
    """Every clearance."""
    def __getitem__(self, reference: NameOrId) -> ClearanceThing: ...
    def __iter__(self) -> Iterator[ClearanceThing]: ...
    list = listing(Operations.list_clearances, ClearanceThing)
    register = maker(Operations.register_clearance)

class ClearanceTemplateThing(Thing):
    """One clearance template, named by its name or id."""

    activate = verb(Operations.activate_clearance_template)
    deprecate = verb(Operations.deprecate_clearance_template)
    get = verb(Operations.get_clearance_template)
    get_history = verb(Operations.get_clearance_template_history)
    version = verb(Operations.version_clearance_template)
    withdraw = verb(Operations.withdraw_clearance_template)

class ClearanceTemplateCollection:
    """Every clearance template."""
    def __getitem__(self, reference: NameOrId) -> ClearanceTemplateThing: ...
    def __iter__(self) -> Iterator[ClearanceTemplateThing]: ...
    list = listing(Operations.list_clearance_templates, ClearanceTemplateThing)
    define = maker(Operations.define_clearance_template)

class ConduitThing(Thing):
    """One conduit, named by its name or id."""

    get = verb(Operations.get_conduit)
    get_history = verb(Operations.get_conduit_history)
    list_verdicts = verb(Operations.list_conduit_verdicts)

class ConduitCollection:
    """Every conduit."""
    def __getitem__(self, reference: NameOrId) -> ConduitThing: ...
    def __iter__(self) -> Iterator[ConduitThing]: ...
    list = listing(Operations.list_conduits, ConduitThing)
    define = maker(Operations.define_conduit)

class CredentialThing(Thing):
    """One credential, named by its name or id."""

    abort_rotation = verb(Operations.abort_credential_rotation)
    complete_rotation = verb(Operations.complete_credential_rotation)
    get = verb(Operations.get_credential)
    get_history = verb(Operations.get_credential_history)
    revoke = verb(Operations.revoke_credential)
    start_rotation = verb(Operations.start_credential_rotation)

class CredentialCollection:
    """Every credential."""
    def __getitem__(self, reference: NameOrId) -> CredentialThing: ...
    def __iter__(self) -> Iterator[CredentialThing]: ...
    list = listing(Operations.list_credentials, CredentialThing)
    register = maker(Operations.register_credential)

class DatasetThing(Thing):
    """One dataset, named by its name or id."""

    assign_external_id = verb(Operations.assign_dataset_external_id)
    demote = verb(Operations.demote_dataset)
    discard = verb(Operations.discard_dataset)
    get = verb(Operations.get_dataset)
    get_datacite = verb(Operations.get_dataset_datacite)
    get_history = verb(Operations.get_dataset_history)
    get_preview = verb(Operations.get_dataset_preview)
    get_prov = verb(Operations.get_dataset_prov)
    get_provenance = verb(Operations.get_dataset_provenance)
    get_provenance_picture = verb(Operations.get_dataset_provenance_picture)
    mint_external_id = verb(Operations.mint_dataset_external_id)
    promote = verb(Operations.promote_dataset)
    retry_catalogue_entry = verb(Operations.retry_catalogue_entry)

class DatasetCollection:
    """Every dataset."""
    def __getitem__(self, reference: NameOrId) -> DatasetThing: ...
    def __iter__(self) -> Iterator[DatasetThing]: ...
    list = listing(Operations.list_datasets, DatasetThing)
    ingest_scan = maker(Operations.ingest_scan)
    register = maker(Operations.register_dataset)

class DecisionThing(Thing):
    """One decision, named by its name or id."""

    append_inferences = verb(Operations.append_inferences)
    get = verb(Operations.get_decision)
    get_history = verb(Operations.get_decision_history)
    list_inferences = verb(Operations.list_inferences)
    promote_caution_proposal = verb(Operations.promote_caution_proposal)
    rate = verb(Operations.rate_decision)

class DecisionCollection:
    """Every decision."""
    def __getitem__(self, reference: NameOrId) -> DecisionThing: ...
    def __iter__(self) -> Iterator[DecisionThing]: ...
    list = listing(Operations.list_decisions, DecisionThing)
    dismiss_event_in_reaction = maker(Operations.dismiss_event_in_reaction)
    register = maker(Operations.register_decision)

class DistributionThing(Thing):
    """One distribution, named by its name or id."""

    discard = verb(Operations.discard_distribution)
    get = verb(Operations.get_distribution)
    get_history = verb(Operations.get_distribution_history)
    mark_stale = verb(Operations.mark_distribution_stale)

class DistributionCollection:
    """Every distribution."""
    def __getitem__(self, reference: NameOrId) -> DistributionThing: ...
    def __iter__(self) -> Iterator[DistributionThing]: ...
    list = listing(Operations.list_distributions, DistributionThing)
    attests = maker(Operations.attest_distributions)
    register = maker(Operations.register_distribution)

class EditionThing(Thing):
    """One edition, named by its name or id."""

    add_dataset_to = verb(Operations.add_dataset_to_edition)
    get = verb(Operations.get_edition)
    get_datacite = verb(Operations.get_edition_datacite)
    get_history = verb(Operations.get_edition_history)
    get_manifest = verb(Operations.get_edition_manifest)
    publish = verb(Operations.publish_edition)
    remove_dataset_from = verb(Operations.remove_dataset_from_edition)
    seal = verb(Operations.seal_edition)
    withdraw = verb(Operations.withdraw_edition)

class EditionCollection:
    """Every edition."""
    def __getitem__(self, reference: NameOrId) -> EditionThing: ...
    def __iter__(self) -> Iterator[EditionThing]: ...
    list = listing(Operations.list_editions, EditionThing)
    register = maker(Operations.register_edition)

class EnclosureThing(Thing):
    """One enclosure, named by its name or id."""

    decommission = verb(Operations.decommission_enclosure)
    get = verb(Operations.get_enclosure)
    get_history = verb(Operations.get_enclosure_history)
    observe_status = verb(Operations.observe_enclosure_status)

class EnclosureCollection:
    """Every enclosure."""
    def __getitem__(self, reference: NameOrId) -> EnclosureThing: ...
    def __iter__(self) -> Iterator[EnclosureThing]: ...
    list = listing(Operations.list_enclosures, EnclosureThing)
    register = maker(Operations.register_enclosure)

class FacilityThing(Thing):
    """One facility, named by its name or id."""

    add_trust_anchor_credential = verb(Operations.add_facility_trust_anchor_credential)
    decommission = verb(Operations.decommission_facility)
    get = verb(Operations.get_facility)
    get_history = verb(Operations.get_facility_history)
    list_published_artifacts = verb(Operations.list_published_artifacts)
    remove_trust_anchor_credential = verb(Operations.remove_facility_trust_anchor_credential)

class FacilityCollection:
    """Every facility."""
    def __getitem__(self, reference: NameOrId) -> FacilityThing: ...
    def __iter__(self) -> Iterator[FacilityThing]: ...
    list = listing(Operations.list_facilities, FacilityThing)
    register = maker(Operations.register_facility)

class FamilyThing(Thing):
    """One family, named by its name or id."""

    add_role = verb(Operations.add_family_role)
    deprecate = verb(Operations.deprecate_family)
    get = verb(Operations.get_family)
    get_history = verb(Operations.get_family_history)
    remove_role = verb(Operations.remove_family_role)
    update_settings_schema = verb(Operations.update_family_settings_schema)
    version = verb(Operations.version_family)

class FamilyCollection:
    """Every family."""
    def __getitem__(self, reference: NameOrId) -> FamilyThing: ...
    def __iter__(self) -> Iterator[FamilyThing]: ...
    list = listing(Operations.list_families, FamilyThing)
    define = maker(Operations.define_family)
    list_affordances = maker(Operations.list_affordances)

class FixtureThing(Thing):
    """One fixture, named by its name or id."""

    assign_external_id = verb(Operations.assign_fixture_external_id)
    get = verb(Operations.get_fixture)
    get_history = verb(Operations.get_fixture_history)
    get_pidinst = verb(Operations.get_fixture_pidinst)

class FixtureCollection:
    """Every fixture."""
    def __getitem__(self, reference: NameOrId) -> FixtureThing: ...
    def __iter__(self) -> Iterator[FixtureThing]: ...
    list = listing(Operations.list_fixtures, FixtureThing)
    register = maker(Operations.register_fixture)

class FrameThing(Thing):
    """One frame, named by its name or id."""

    decommission = verb(Operations.decommission_frame)
    get = verb(Operations.get_frame)
    get_history = verb(Operations.get_frame_history)
    update_placement = verb(Operations.update_frame_placement)

class FrameCollection:
    """Every frame."""
    def __getitem__(self, reference: NameOrId) -> FrameThing: ...
    def __iter__(self) -> Iterator[FrameThing]: ...
    list = listing(Operations.list_frames, FrameThing)
    register = maker(Operations.register_frame)

class GroupThing(Thing):
    """One group, named by its name or id."""

    add_member = verb(Operations.add_group_member)
    get = verb(Operations.get_group)
    get_history = verb(Operations.get_group_history)
    remove_member = verb(Operations.remove_group_member)
    rename = verb(Operations.rename_group)
    retire = verb(Operations.retire_group)

class GroupCollection:
    """Every group."""
    def __getitem__(self, reference: NameOrId) -> GroupThing: ...
    def __iter__(self) -> Iterator[GroupThing]: ...
    list = listing(Operations.list_groups, GroupThing)
    define = maker(Operations.define_group)

class LanguageModelThing(Thing):
    """One language model, named by its name or id."""

    announce_retirement = verb(Operations.announce_language_model_retirement)
    approve = verb(Operations.approve_language_model)
    deprecate = verb(Operations.deprecate_language_model)
    get = verb(Operations.get_language_model)
    get_history = verb(Operations.get_language_model_history)
    list_at_risk_results = verb(Operations.list_at_risk_results)
    retire = verb(Operations.retire_language_model)

class LanguageModelCollection:
    """Every language model."""
    def __getitem__(self, reference: NameOrId) -> LanguageModelThing: ...
    def __iter__(self) -> Iterator[LanguageModelThing]: ...
    list = listing(Operations.list_language_models, LanguageModelThing)
    define = maker(Operations.define_language_model)

class MethodThing(Thing):
    """One method, named by its name or id."""

    add_required_role = verb(Operations.add_method_required_role)
    deprecate = verb(Operations.deprecate_method)
    get = verb(Operations.get_method)
    get_history = verb(Operations.get_method_history)
    remove_required_role = verb(Operations.remove_method_required_role)
    update_parameters_schema = verb(Operations.update_method_parameters_schema)
    version = verb(Operations.version_method)

class MethodCollection:
    """Every method."""
    def __getitem__(self, reference: NameOrId) -> MethodThing: ...
    def __iter__(self) -> Iterator[MethodThing]: ...
    list = listing(Operations.list_methods, MethodThing)
    define = maker(Operations.define_method)

class ModelThing(Thing):
    """One model, named by its name or id."""

    add_family = verb(Operations.add_model_family)
    deprecate = verb(Operations.deprecate_model)
    get = verb(Operations.get_model)
    get_history = verb(Operations.get_model_history)
    remove_family = verb(Operations.remove_model_family)
    version = verb(Operations.version_model)

class ModelCollection:
    """Every model."""
    def __getitem__(self, reference: NameOrId) -> ModelThing: ...
    def __iter__(self) -> Iterator[ModelThing]: ...
    list = listing(Operations.list_models, ModelThing)
    define = maker(Operations.define_model)

class MountThing(Thing):
    """One mount, named by its name or id."""

    decommission = verb(Operations.decommission_mount)
    get = verb(Operations.get_mount)
    get_history = verb(Operations.get_mount_history)
    install_asset = verb(Operations.install_asset)
    uninstall_asset = verb(Operations.uninstall_asset)
    update_placement = verb(Operations.update_mount_placement)

class MountCollection:
    """Every mount."""
    def __getitem__(self, reference: NameOrId) -> MountThing: ...
    def __iter__(self) -> Iterator[MountThing]: ...
    list = listing(Operations.list_mounts, MountThing)
    register = maker(Operations.register_mount)

class PermitThing(Thing):
    """One permit, named by its name or id."""

    activate = verb(Operations.activate_permit)
    get = verb(Operations.get_permit)
    get_history = verb(Operations.get_permit_history)
    resume = verb(Operations.resume_permit)
    revoke = verb(Operations.revoke_permit)
    suspend = verb(Operations.suspend_permit)

class PermitCollection:
    """Every permit."""
    def __getitem__(self, reference: NameOrId) -> PermitThing: ...
    def __iter__(self) -> Iterator[PermitThing]: ...
    list = listing(Operations.list_permits, PermitThing)
    define = maker(Operations.define_permit)
    get_published_artifact = maker(Operations.get_published_artifact)

class PlanThing(Thing):
    """One plan, named by its name or id."""

    add_wire = verb(Operations.add_plan_wire)
    bind_role = verb(Operations.bind_plan_role)
    deprecate = verb(Operations.deprecate_plan)
    get = verb(Operations.get_plan)
    get_history = verb(Operations.get_plan_history)
    remove_wire = verb(Operations.remove_plan_wire)
    reschedule = verb(Operations.reschedule_plan)
    set_data_registration = verb(Operations.set_plan_data_registration)
    unbind_role = verb(Operations.unbind_plan_role)
    update_default_parameters = verb(Operations.update_plan_default_parameters)
    version = verb(Operations.version_plan)
    @overload
    def start(
        self,
        *,
        name: str | None = ...,
        subject: NameOrId | None = ...,
        campaign: NameOrId | None = ...,
        recipes: Sequence[NameOrId] | None = ...,
        parameters: Mapping[str, Any] | None = ...,
        **more_parameters: Any,
    ) -> RunThing:
        """Start a run and have its phases conducted; return the run. Parameters of the run are given by their
        names."""
    @overload
    def start(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    def preflight(
        self,
        *,
        name: str | None = ...,
        subject: NameOrId | None = ...,
        campaign: NameOrId | None = ...,
        parameters: Mapping[str, Any] | None = ...,
        **more_parameters: Any,
    ) -> Preflight:
        """Ask whether a run with these parameters could start now."""

class PlanCollection:
    """Every plan."""
    def __getitem__(self, reference: NameOrId) -> PlanThing: ...
    def __iter__(self) -> Iterator[PlanThing]: ...
    list = listing(Operations.list_plans, PlanThing)
    define = maker(Operations.define_plan)
    inspect_binding = maker(Operations.inspect_plan_binding)

class PolicyThing(Thing):
    """One policy, named by its name or id."""

    evaluate = verb(Operations.evaluate_policy)
    extend = verb(Operations.extend_policy)
    get = verb(Operations.get_policy)
    get_history = verb(Operations.get_policy_history)
    list_permissions = verb(Operations.list_permissions)
    revoke_grant = verb(Operations.revoke_grant)

class PolicyCollection:
    """Every policy."""
    def __getitem__(self, reference: NameOrId) -> PolicyThing: ...
    def __iter__(self) -> Iterator[PolicyThing]: ...
    list = listing(Operations.list_policies, PolicyThing)
    define = maker(Operations.define_policy)

class PracticeThing(Thing):
    """One practice, named by its name or id."""

    deprecate = verb(Operations.deprecate_practice)
    get = verb(Operations.get_practice)
    get_history = verb(Operations.get_practice_history)
    version = verb(Operations.version_practice)

class PracticeCollection:
    """Every practice."""
    def __getitem__(self, reference: NameOrId) -> PracticeThing: ...
    def __iter__(self) -> Iterator[PracticeThing]: ...
    list = listing(Operations.list_practices, PracticeThing)
    define = maker(Operations.define_practice)

class ProcedureThing(Thing):
    """One procedure, named by its name or id."""

    abort = verb(Operations.abort_procedure)
    advise = verb(Operations.advise_procedure)
    append_activities = verb(Operations.append_activities)
    complete = verb(Operations.complete_procedure)
    conduct_from = verb(Operations.conduct_from_procedure)
    conduct_or_hold = verb(Operations.conduct_or_hold_procedure)
    conduct = verb(Operations.conduct_procedure)
    conduct_until_advised = verb(Operations.conduct_until_advised)
    conduct_until_advised_from = verb(Operations.conduct_until_advised_from)
    conduct_until_converged = verb(Operations.conduct_until_converged)
    end_iteration = verb(Operations.end_iteration)
    get = verb(Operations.get_procedure)
    get_conduct = verb(Operations.get_procedure_conduct)
    get_files = verb(Operations.get_procedure_files)
    get_history = verb(Operations.get_procedure_history)
    get_steering = verb(Operations.get_procedure_steering)
    hold = verb(Operations.hold_procedure)
    list_activities = verb(Operations.list_procedure_activities)
    list_iterations = verb(Operations.list_procedure_iterations)
    list_steps = verb(Operations.list_procedure_steps)
    preflight = verb(Operations.preflight_procedure)
    register_datasets = verb(Operations.register_procedure_datasets)
    resolve_step = verb(Operations.resolve_procedure_step)
    resume = verb(Operations.resume_procedure)
    skip_wait = verb(Operations.skip_procedure_wait)
    start_iteration = verb(Operations.start_iteration)
    start = verb(Operations.start_procedure)
    truncate = verb(Operations.truncate_procedure)
    def watch(self, *, console: Console | None = ..., lines: bool = ...) -> ConductWatch:
        """Watch its latest conduct to its end: yields typed frames, and draws a bar."""

class ProcedureCollection:
    """Every procedure."""
    def __getitem__(self, reference: NameOrId) -> ProcedureThing: ...
    def __iter__(self) -> Iterator[ProcedureThing]: ...
    list = listing(Operations.list_procedures, ProcedureThing)
    read_signals = maker(Operations.read_signals)
    register = maker(Operations.register_procedure)
    register_from_recipe = maker(Operations.register_procedure_from_recipe)

class ProposalThing(Thing):
    """One proposal, named by its name or id."""

    approve = verb(Operations.approve_proposal)
    get = verb(Operations.get_proposal)
    get_history = verb(Operations.get_proposal_history)
    reject = verb(Operations.reject_proposal)
    withdraw = verb(Operations.withdraw_proposal)

class ProposalCollection:
    """Every proposal."""
    def __getitem__(self, reference: NameOrId) -> ProposalThing: ...
    def __iter__(self) -> Iterator[ProposalThing]: ...
    list = listing(Operations.list_proposals, ProposalThing)

class QueueThing(Thing):
    """One queue, named by its name or id."""

    add_items = verb(Operations.add_queue_items)
    edit_item = verb(Operations.edit_queue_item)
    get = verb(Operations.get_queue)
    get_history = verb(Operations.get_queue_history)
    hold = verb(Operations.hold_queue)
    list_items = verb(Operations.list_queue_items)
    move_item = verb(Operations.move_queue_item)
    remove_item = verb(Operations.remove_queue_item)
    resume = verb(Operations.resume_queue)
    retire = verb(Operations.retire_queue)
    @overload
    def add_from_table(
        self,
        table: Table,
        *,
        plan: NameOrId | None = ...,
        recipes: Sequence[NameOrId] | None = ...,
        recipe: NameOrId | None = ...,
        on: NameOrId | Sequence[NameOrId] = ...,
        before: NameOrId | None = ...,
        zone: tzinfo | None = ...,
    ) -> list[UUID]:
        """Add an item for each row of a table, all or none, and return their ids: runs on a plan, or procedures of a
        recipe on assets. Columns are the parameters; times without a zone are on the clock of `zone`."""
    @overload
    def add_from_table(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...

class QueueCollection:
    """Every queue."""
    def __getitem__(self, reference: NameOrId) -> QueueThing: ...
    def __iter__(self) -> Iterator[QueueThing]: ...
    list = listing(Operations.list_queues, QueueThing)
    open = maker(Operations.open_queue)

class ReceivedArtifactThing(Thing):
    """One received artifact, named by its name or id."""

    adopt = verb(Operations.adopt_received_artifact)
    get = verb(Operations.get_received_artifact)
    get_document = verb(Operations.get_received_artifact_document)
    get_history = verb(Operations.get_received_artifact_history)
    recheck = verb(Operations.recheck_received_artifact)

class ReceivedArtifactCollection:
    """Every received artifact."""
    def __getitem__(self, reference: NameOrId) -> ReceivedArtifactThing: ...
    def __iter__(self) -> Iterator[ReceivedArtifactThing]: ...
    list = listing(Operations.list_received_artifacts, ReceivedArtifactThing)
    receive_artifact = maker(Operations.receive_artifact)

class RecipeThing(Thing):
    """One recipe, named by its name or id."""

    deprecate = verb(Operations.deprecate_recipe)
    get = verb(Operations.get_recipe)
    get_history = verb(Operations.get_recipe_history)
    list_versions = verb(Operations.list_recipe_versions)
    version = verb(Operations.version_recipe)
    @overload
    def conduct(
        self,
        *,
        on: NameOrId | Sequence[NameOrId],
        name: str | None = ...,
        kind: str | None = ...,
        parameters: Mapping[str, Any] | None = ...,
        **more_parameters: Any,
    ) -> ProcedureThing:
        """Register a procedure of the recipe on these assets and have it conducted; return the procedure."""
    @overload
    def conduct(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...

class RecipeCollection:
    """Every recipe."""
    def __getitem__(self, reference: NameOrId) -> RecipeThing: ...
    def __iter__(self) -> Iterator[RecipeThing]: ...
    list = listing(Operations.list_recipes, RecipeThing)
    define = maker(Operations.define_recipe)

class RoleThing(Thing):
    """One role, named by its name or id."""

    get = verb(Operations.get_role)
    get_history = verb(Operations.get_role_history)

class RoleCollection:
    """Every role."""
    def __getitem__(self, reference: NameOrId) -> RoleThing: ...
    def __iter__(self) -> Iterator[RoleThing]: ...
    list = listing(Operations.list_roles, RoleThing)
    define = maker(Operations.define_role)

class RunThing(Thing):
    """One run, named by its name or id."""

    abort = verb(Operations.abort_run)
    adjust = verb(Operations.adjust_run)
    append_observations = verb(Operations.append_observations)
    append_logbook_entries = verb(Operations.append_run_logbook_entries)
    complete = verb(Operations.complete_run)
    conduct = verb(Operations.conduct_run)
    get = verb(Operations.get_run)
    get_conduct = verb(Operations.get_run_conduct)
    get_history = verb(Operations.get_run_history)
    hold = verb(Operations.hold_run)
    list_channels = verb(Operations.list_run_channels)
    list_logbook_entries = verb(Operations.list_run_logbook_entries)
    list_observations = verb(Operations.list_run_observations)
    regenerate_debrief = verb(Operations.regenerate_run_debrief)
    resume = verb(Operations.resume_run)
    stop = verb(Operations.stop_run)
    truncate = verb(Operations.truncate_run)
    def watch(self, *, console: Console | None = ..., lines: bool = ...) -> RunWatch:
        """Watch its latest conduct to its end: yields typed frames, and draws a bar."""

class RunCollection:
    """Every run."""
    def __getitem__(self, reference: NameOrId) -> RunThing: ...
    def __iter__(self) -> Iterator[RunThing]: ...
    list = listing(Operations.list_runs, RunThing)
    hold_everything = maker(Operations.hold_everything)
    preflight = maker(Operations.preflight_run)
    start = maker(Operations.start_run)

class ScheduleThing(Thing):
    """One schedule, named by its name or id."""

    get = verb(Operations.get_schedule)
    get_history = verb(Operations.get_schedule_history)
    hold = verb(Operations.hold_schedule)
    resume = verb(Operations.resume_schedule)
    retire = verb(Operations.retire_schedule)
    trigger = verb(Operations.trigger_schedule)

class ScheduleCollection:
    """Every schedule."""
    def __getitem__(self, reference: NameOrId) -> ScheduleThing: ...
    def __iter__(self) -> Iterator[ScheduleThing]: ...
    list = listing(Operations.list_schedules, ScheduleThing)
    define = maker(Operations.define_schedule)

class SealThing(Thing):
    """One seal, named by its name or id."""

    complete_republishing = verb(Operations.complete_seal_republishing)
    get = verb(Operations.get_seal)
    get_history = verb(Operations.get_seal_history)
    get_pointer = verb(Operations.get_seal_pointer)
    rotate_online_key = verb(Operations.rotate_seal_online_key)
    sign_pointer = verb(Operations.sign_seal_pointer)
    start_republishing = verb(Operations.start_seal_republishing)

class SealCollection:
    """Every seal."""
    def __getitem__(self, reference: NameOrId) -> SealThing: ...
    def __iter__(self) -> Iterator[SealThing]: ...
    list = listing(Operations.list_seals, SealThing)
    initialize = maker(Operations.initialize_seal)

class SubjectThing(Thing):
    """One subject, named by its name or id."""

    assign_external_id = verb(Operations.assign_subject_external_id)
    discard = verb(Operations.discard_subject)
    dismount = verb(Operations.dismount_subject)
    get = verb(Operations.get_subject)
    get_history = verb(Operations.get_subject_history)
    get_igsn = verb(Operations.get_subject_igsn)
    measure = verb(Operations.measure_subject)
    mount = verb(Operations.mount_subject)
    remove = verb(Operations.remove_subject)
    return_ = verb(Operations.return_subject)
    store = verb(Operations.store_subject)

class SubjectCollection:
    """Every subject."""
    def __getitem__(self, reference: NameOrId) -> SubjectThing: ...
    def __iter__(self) -> Iterator[SubjectThing]: ...
    list = listing(Operations.list_subjects, SubjectThing)
    register = maker(Operations.register_subject)

class SupplyThing(Thing):
    """One supply, named by its name or id."""

    degrade = verb(Operations.degrade_supply)
    deregister = verb(Operations.deregister_supply)
    get = verb(Operations.get_supply)
    get_history = verb(Operations.get_supply_history)
    mark_available = verb(Operations.mark_supply_available)
    mark_recovering = verb(Operations.mark_supply_recovering)
    mark_unavailable = verb(Operations.mark_supply_unavailable)
    observe_status = verb(Operations.observe_supply_status)
    restore = verb(Operations.restore_supply)

class SupplyCollection:
    """Every supply."""
    def __getitem__(self, reference: NameOrId) -> SupplyThing: ...
    def __iter__(self) -> Iterator[SupplyThing]: ...
    list = listing(Operations.list_supplies, SupplyThing)
    register = maker(Operations.register_supply)

class SurfaceThing(Thing):
    """One surface, named by its name or id."""

    get = verb(Operations.get_surface)
    get_control = verb(Operations.get_surface_control)
    get_history = verb(Operations.get_surface_history)

class SurfaceCollection:
    """Every surface."""
    def __getitem__(self, reference: NameOrId) -> SurfaceThing: ...
    def __iter__(self) -> Iterator[SurfaceThing]: ...
    list = listing(Operations.list_surfaces, SurfaceThing)
    define = maker(Operations.define_surface)

class VisitThing(Thing):
    """One visit, named by its name or id."""

    abort = verb(Operations.abort_visit)
    cancel = verb(Operations.cancel_visit)
    check_in = verb(Operations.check_in_visit)
    check_out = verb(Operations.check_out_visit)
    complete = verb(Operations.complete_visit)
    get = verb(Operations.get_visit)
    get_history = verb(Operations.get_visit_history)
    hold = verb(Operations.hold_visit)
    list_presence = verb(Operations.list_visit_presence)
    record_arrival = verb(Operations.record_visit_arrival)
    release_control_of_surface = verb(Operations.release_control_of_surface)
    resume = verb(Operations.resume_visit)
    start = verb(Operations.start_visit)
    take_control_of_surface = verb(Operations.take_control_of_surface)
    void = verb(Operations.void_visit)

class VisitCollection:
    """Every visit."""
    def __getitem__(self, reference: NameOrId) -> VisitThing: ...
    def __iter__(self) -> Iterator[VisitThing]: ...
    list = listing(Operations.list_visits, VisitThing)
    register = maker(Operations.register_visit)

class ZoneThing(Thing):
    """One zone, named by its name or id."""

    get = verb(Operations.get_zone)
    get_history = verb(Operations.get_zone_history)

class ZoneCollection:
    """Every zone."""
    def __getitem__(self, reference: NameOrId) -> ZoneThing: ...
    def __iter__(self) -> Iterator[ZoneThing]: ...
    list = listing(Operations.list_zones, ZoneThing)
    define = maker(Operations.define_zone)

class AsyncOperations:
    """The operations of the service as methods: what stands in the path comes first, fields follow by name."""

    acquisitions: AsyncAcquisitionCollection
    actors: AsyncActorCollection
    agents: AsyncAgentCollection
    assemblies: AsyncAssemblyCollection
    assets: AsyncAssetCollection
    attestations: AsyncAttestationCollection
    calibrations: AsyncCalibrationCollection
    campaigns: AsyncCampaignCollection
    capabilities: AsyncCapabilityCollection
    cautions: AsyncCautionCollection
    clearances: AsyncClearanceCollection
    clearance_templates: AsyncClearanceTemplateCollection
    conduits: AsyncConduitCollection
    credentials: AsyncCredentialCollection
    datasets: AsyncDatasetCollection
    decisions: AsyncDecisionCollection
    distributions: AsyncDistributionCollection
    editions: AsyncEditionCollection
    enclosures: AsyncEnclosureCollection
    facilities: AsyncFacilityCollection
    families: AsyncFamilyCollection
    fixtures: AsyncFixtureCollection
    frames: AsyncFrameCollection
    groups: AsyncGroupCollection
    language_models: AsyncLanguageModelCollection
    methods: AsyncMethodCollection
    models: AsyncModelCollection
    mounts: AsyncMountCollection
    permits: AsyncPermitCollection
    plans: AsyncPlanCollection
    policies: AsyncPolicyCollection
    practices: AsyncPracticeCollection
    procedures: AsyncProcedureCollection
    proposals: AsyncProposalCollection
    queues: AsyncQueueCollection
    received_artifacts: AsyncReceivedArtifactCollection
    recipes: AsyncRecipeCollection
    roles: AsyncRoleCollection
    runs: AsyncRunCollection
    schedules: AsyncScheduleCollection
    seals: AsyncSealCollection
    subjects: AsyncSubjectCollection
    supplies: AsyncSupplyCollection
    surfaces: AsyncSurfaceCollection
    visits: AsyncVisitCollection
    zones: AsyncZoneCollection
    def call_method(self, operation: Operation, *places: Any, **fields: Any) -> Any: ...
    async def get_actor_history(
        self, actor_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ActorHistory:
        """Every event of one actor, oldest first."""
    @overload
    async def register_actor(
        self,
        *,
        name: str,
        email: str | None = ...,
        phone: str | None = ...,
        affiliation: str | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        kind: ActorKindName = ...,
        idempotency_key: str | None = ...,
    ) -> ActorCreated:
        """Make a person or a machine account known to the service."""
    @overload
    async def register_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deactivate_actor(self, actor_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Refuse everything this actor asks for from now on; its past stays."""
    @overload
    async def deactivate_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def reactivate_actor(self, actor_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let a deactivated actor call again; it adds no grant."""
    @overload
    async def reactivate_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_actor_profile(
        self,
        actor_id: NameOrId,
        *,
        name: str = ...,
        email: str | None = ...,
        phone: str | None = ...,
        affiliation: str | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Change name or contact fields: a key left out stays, null clears."""
    @overload
    async def update_actor_profile(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def forget_actor(self, actor_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Erase everything personal about this actor: profile, token bindings, proposals. References to its id stay
        valid."""
    @overload
    async def forget_actor(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_actor(
        self,
        actor_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ActorView | PastActorView:
        """One actor, folded from its stream, with the name its profile has now."""
    async def get_actor_profile(self, actor_id: NameOrId) -> ActorProfileView:
        """The personal data kept about an actor; a forgotten profile shows as deleted."""
    async def list_actors(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ActorStatusName | None = ...,
        kind: Sequence[ActorKindName] = ...,
        actor_id: Sequence[NameOrId] = ...,
    ) -> Page[ActorRow]:
        """Actors in order of registration, with the names their profiles have now; to look for a name takes
        `GetActor`."""
    @overload
    async def bind_actor_subject(
        self, actor_id: NameOrId, *, issuer: str, subject: str, idempotency_key: str | None = ...
    ) -> None:
        """Let tokens of this issuer and subject act as this actor, who may do no more than the caller."""
    @overload
    async def bind_actor_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def unbind_actor_subject(
        self, actor_id: NameOrId, *, issuer: str, subject: str, idempotency_key: str | None = ...
    ) -> None:
        """Stop tokens of this issuer and subject from acting as this actor."""
    @overload
    async def unbind_actor_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_group_history(
        self, group_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> GroupHistory:
        """Every event of one group, oldest first."""
    @overload
    async def define_group(
        self, *, name: str, claim: GroupClaim | Mapping[str, Any] | None = ..., idempotency_key: str | None = ...
    ) -> GroupCreated:
        """Define a group that policies can permit; with a claim, everybody whose token has it is a member for that
        call."""
    @overload
    async def define_group(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def rename_group(self, group_id: NameOrId, *, name: str, idempotency_key: str | None = ...) -> None:
        """Give the group another name; who belongs to it stays."""
    @overload
    async def rename_group(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def retire_group(self, group_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Close the group: what policies permit it, they permit nobody through it any more."""
    @overload
    async def retire_group(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_group(
        self,
        group_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> GroupView:
        """One group, folded from its stream."""
    async def list_groups(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: GroupStatusName | None = ...,
    ) -> Page[GroupItem]:
        """Groups in order of definition."""
    @overload
    async def add_group_member(self, group_id: NameOrId, *, actor_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """List an actor as a member, from its next call on; one that is listed already stays so."""
    @overload
    async def add_group_member(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_group_member(
        self, group_id: NameOrId, *, actor_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Take an actor off the list of members, from its next call on; a claim in its token still makes it one."""
    @overload
    async def remove_group_member(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_zone_history(
        self, zone_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ZoneHistory:
        """Every event of one zone, oldest first."""
    @overload
    async def define_zone(self, *, name: str, idempotency_key: str | None = ...) -> ZoneCreated:
        """Define a trust zone."""
    @overload
    async def define_zone(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_zone(
        self,
        zone_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ZoneView:
        """One zone, folded from its stream."""
    async def list_zones(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
    ) -> Page[ZoneItem]:
        """Zones in order of definition."""
    async def get_conduit_history(
        self, conduit_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ConduitHistory:
        """Every event of one conduit, oldest first."""
    @overload
    async def define_conduit(
        self, *, name: str, source_zone_id: NameOrId, target_zone_id: NameOrId, idempotency_key: str | None = ...
    ) -> ConduitCreated:
        """Define a governed path between two zones and open its verdict logbook."""
    @overload
    async def define_conduit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_conduit(
        self,
        conduit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ConduitView:
        """One conduit, folded from its stream."""
    async def list_conduits(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        source_zone_id: NameOrId | None = ...,
        target_zone_id: NameOrId | None = ...,
    ) -> Page[ConduitItem]:
        """Conduits in order of definition."""
    async def list_conduit_verdicts(
        self,
        conduit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        actor_id: NameOrId | None = ...,
        command_name: str | None = ...,
        decision: AccessDecisionName | None = ...,
    ) -> Page[VerdictItem]:
        """Why calls over this conduit were allowed or denied, oldest first."""
    async def get_surface_history(
        self, surface_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SurfaceHistory:
        """Every event of one surface, oldest first."""
    @overload
    async def define_surface(self, *, name: str, kind: SurfaceKindName, idempotency_key: str | None = ...) -> SurfaceCreated:
        """Define an arrival point, for instance one endstation's console."""
    @overload
    async def define_surface(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_surface(
        self,
        surface_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SurfaceView:
        """One surface, folded from its stream."""
    async def list_surfaces(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        kind: SurfaceKindName | None = ...,
    ) -> Page[SurfaceItem]:
        """Surfaces in order of definition."""
    async def get_surface_control(self, surface_id: NameOrId) -> SurfaceControlView:
        """Which visit drives this surface now."""
    async def get_policy_history(
        self, policy_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PolicyHistory:
        """Every event of one policy, oldest first."""
    @overload
    async def define_policy(
        self,
        *,
        name: str,
        conduit_id: NameOrId,
        surface_id: NameOrId,
        permitted_principal_ids: Collection[NameOrId],
        permitted_commands: Collection[str],
        permitted_command_sets: Collection[str] = ...,
        permitted_group_ids: Collection[NameOrId] = ...,
        approval: Approval | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> PolicyCreated:
        """Permit principals and groups a set of commands on one conduit and surface; it counts from the next call
        on."""
    @overload
    async def define_policy(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def extend_policy(
        self,
        policy_id: NameOrId,
        *,
        permitted_principal_ids: Collection[NameOrId] = ...,
        permitted_group_ids: Collection[NameOrId] = ...,
        permitted_commands: Collection[str] = ...,
        permitted_command_sets: Collection[str] = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Add principals, groups, commands or sets of commands to a policy; they count from the next call on."""
    @overload
    async def extend_policy(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def revoke_grant(
        self,
        policy_id: NameOrId,
        *,
        permitted_principal_id: NameOrId | None = ...,
        permitted_group_id: NameOrId | None = ...,
        permitted_command: str | None = ...,
        permitted_command_set: str | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Take a principal, a group, a command or a set of commands out of a policy, from the next call on."""
    @overload
    async def revoke_grant(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_policy(
        self,
        policy_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PolicyView:
        """One policy, folded from its stream."""
    async def list_policies(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        conduit_id: NameOrId | None = ...,
        surface_id: NameOrId | None = ...,
    ) -> Page[PolicyItem]:
        """Policies in order of definition."""
    async def evaluate_policy(
        self,
        policy_id: NameOrId,
        *,
        evaluated_principal_id: NameOrId,
        evaluated_command_name: str,
        evaluated_conduit_id: NameOrId,
        evaluated_surface_id: NameOrId,
    ) -> PolicyEvaluation:
        """What this one policy would say to a call; for fault-finding, only the seam authorizes."""
    async def list_permissions(
        self,
        policy_id: NameOrId,
        *,
        evaluated_principal_id: NameOrId,
        evaluated_conduit_id: NameOrId,
        evaluated_surface_id: NameOrId,
    ) -> PermissionsView:
        """What this one policy permits a principal; other people's need the permission ListPermissionsOfOthers."""
    async def get_proposal_history(
        self, proposal_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ProposalHistory:
        """Every event of one proposal, oldest first."""
    @overload
    async def approve_proposal(
        self, proposal_id: NameOrId, *, reason: str | None = ..., wait: int = ..., idempotency_key: str | None = ...
    ) -> ProposalOutcome | ProposalAccepted:
        """Let a proposed command be carried out at once, as its proposer; the outcome is on the proposal."""
    @overload
    async def approve_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def reject_proposal(self, proposal_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Do not approve a proposed command; it takes somebody whom the policy names as approver."""
    @overload
    async def reject_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def withdraw_proposal(self, proposal_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take back what you proposed."""
    @overload
    async def withdraw_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_proposal(
        self,
        proposal_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ProposalView:
        """One proposal: the command, what it would do now, who may approve it, and whether you may."""
    async def list_proposals(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        status: ProposalStatusName | None = ...,
        command_name: str | None = ...,
        proposed_by: NameOrId | None = ...,
    ) -> Page[ProposalItem]:
        """Proposals in the order they were made."""
    async def get_visit_history(
        self, visit_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> VisitHistory:
        """Every event of one visit, oldest first."""
    @overload
    async def register_visit(
        self,
        *,
        policy_id: NameOrId,
        surface_id: NameOrId,
        type: VisitTypeName,
        planned_start_at: datetime | str,
        planned_end_at: datetime | str,
        parent_id: NameOrId | None = ...,
        external_refs: Mapping[str, str] = ...,
        idempotency_key: str | None = ...,
    ) -> VisitCreated:
        """Plan a team's time on a surface."""
    @overload
    async def register_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def record_visit_arrival(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that the team has arrived."""
    @overload
    async def record_visit_arrival(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def start_visit(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Begin the session."""
    @overload
    async def start_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def hold_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Pause the whole session: beam dump, fault, safety, long break."""
    @overload
    async def hold_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def resume_visit(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Go on after a hold; sessions never resume by themselves."""
    @overload
    async def resume_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def complete_visit(self, visit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """End the session as planned."""
    @overload
    async def complete_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def cancel_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Call the session off before it starts."""
    @overload
    async def cancel_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def abort_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Stop a session that has started."""
    @overload
    async def abort_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def void_visit(self, visit_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Strike out a visit that should never have been registered."""
    @overload
    async def void_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_visit(
        self,
        visit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> VisitView:
        """One visit, folded from its stream."""
    async def list_visits(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        status: VisitStatusName | None = ...,
        type: Sequence[VisitTypeName] = ...,
        surface_id: NameOrId | None = ...,
        policy_id: NameOrId | None = ...,
        parent_id: NameOrId | None = ...,
        external_ref_scheme: str | None = ...,
        external_ref_value: str | None = ...,
        planned_from: datetime | str | None = ...,
        planned_to: datetime | str | None = ...,
    ) -> Page[VisitItem]:
        """Visits in order of registration."""
    @overload
    async def check_in_visit(
        self,
        visit_id: NameOrId,
        *,
        actor_id: NameOrId | None = ...,
        mode: PresenceModeName,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record that somebody is here, in person or remotely: the caller, unless an actor is named."""
    @overload
    async def check_in_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def check_out_visit(
        self, visit_id: NameOrId, *, actor_id: NameOrId | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Record that somebody leaves: the caller, unless an actor is named."""
    @overload
    async def check_out_visit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def take_control_of_surface(
        self, visit_id: NameOrId, *, surface_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Drive the surface, if it is free or driven by this visit or its parent."""
    @overload
    async def take_control_of_surface(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def release_control_of_surface(
        self, visit_id: NameOrId, *, surface_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Stop driving the surface; nobody gets it back by this."""
    @overload
    async def release_control_of_surface(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_visit_presence(
        self,
        visit_id: NameOrId,
        *,
        open: bool | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
    ) -> Page[Presence]:
        """Who is or was here, in order of check-in; read from the visit's own stream."""
    async def get_asset_history(
        self, asset_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AssetHistory:
        """Every event of one asset, oldest first."""
    @overload
    async def rename_asset(self, asset_id: NameOrId, *, name: str, idempotency_key: str | None = ...) -> None:
        """Give an asset another role label; the name is no key, so nothing else changes."""
    @overload
    async def rename_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def activate_asset(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put a commissioned asset into use."""
    @overload
    async def activate_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def enter_asset_maintenance(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Take an active asset out of use to work on it."""
    @overload
    async def enter_asset_maintenance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def exit_asset_maintenance(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put an asset back into use after maintenance."""
    @overload
    async def exit_asset_maintenance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def degrade_asset(self, asset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the asset works, but not as it should; nothing happens when it is degraded already."""
    @overload
    async def degrade_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def fault_asset(self, asset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the asset does not work; nothing happens when it is faulted already."""
    @overload
    async def fault_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def restore_asset(self, asset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the asset works as it should again; nothing happens when it does already."""
    @overload
    async def restore_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_asset(
        self,
        asset_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AssetView:
        """One asset, folded from its stream."""
    @overload
    async def register_asset(
        self,
        *,
        name: str,
        tier: AssetTierName,
        parent_id: NameOrId | None = ...,
        facility_code: str | None = ...,
        family_ids: Collection[NameOrId] = ...,
        model_id: NameOrId | None = ...,
        controller_id: NameOrId | None = ...,
        located_in_enclosure_id: NameOrId | None = ...,
        drawing: Drawing | Mapping[str, Any] | None = ...,
        alternate_identifiers: Sequence[AlternateIdentifier | Mapping[str, Any]] = ...,
        owners: Sequence[Owner | Mapping[str, Any]] = ...,
        idempotency_key: str | None = ...,
    ) -> AssetCreated:
        """Register a piece of equipment: a root of a facility, or a part of another asset."""
    @overload
    async def register_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def relocate_asset(
        self,
        asset_id: NameOrId,
        *,
        to_parent_id: NameOrId = ...,
        located_in_enclosure_id: NameOrId | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Move an asset, with everything below it, under another parent, into another enclosure, or both."""
    @overload
    async def relocate_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def decommission_asset(self, asset_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Retire an asset for good: detach it from its fixture, uninstall it, retire its parts, then this."""
    @overload
    async def decommission_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_asset_tree(
        self, asset_id: NameOrId, *, direction: TreeDirectionName = ..., max_depth: int = ..., min_position: int | None = ...
    ) -> AssetTree:
        """What is below an asset, or above it, read from the streams themselves."""
    @overload
    async def add_asset_family(self, asset_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Say that an asset is of a further family: it gains the family's affordances and settings schema."""
    @overload
    async def add_asset_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_asset_family(
        self, asset_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Say that an asset is not of a family; settings only that family declares must go with the next settings
        patch."""
    @overload
    async def remove_asset_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_asset_port(
        self,
        asset_id: NameOrId,
        *,
        port_name: str,
        direction: PortDirectionName,
        signal_type: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Declare a place where a signal enters or leaves the asset; one that does both is two ports."""
    @overload
    async def add_asset_port(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_asset_port(self, asset_id: NameOrId, *, port_name: str, idempotency_key: str | None = ...) -> None:
        """Take a port away."""
    @overload
    async def remove_asset_port(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_asset_alternate_identifier(
        self, asset_id: NameOrId, *, kind: AlternateIdentifierKindName, value: str, idempotency_key: str | None = ...
    ) -> None:
        """Record another name the asset goes by, such as its process variable."""
    @overload
    async def add_asset_alternate_identifier(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_asset_alternate_identifier(
        self, asset_id: NameOrId, *, kind: AlternateIdentifierKindName, value: str, idempotency_key: str | None = ...
    ) -> None:
        """Take another name away from the asset."""
    @overload
    async def remove_asset_alternate_identifier(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_asset_owner(
        self,
        asset_id: NameOrId,
        *,
        name: str,
        identifier: str | None = ...,
        identifier_type: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record an institution that owns the asset."""
    @overload
    async def add_asset_owner(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_asset_owner(self, asset_id: NameOrId, *, name: str, idempotency_key: str | None = ...) -> None:
        """Take an owner away; the last one may go too."""
    @overload
    async def remove_asset_owner(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_asset_partition_rule(
        self,
        asset_id: NameOrId,
        *,
        partition_rule: Affine | Mapping[str, Any] | Aggregation | LookupTable | CompositePartition | SolverReference | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Make the asset a virtual axis, or with null a plain one again."""
    @overload
    async def update_asset_partition_rule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def attach_asset_to_fixture(
        self, asset_id: NameOrId, *, fixture_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Note on the asset the fixture it is bound into; from then on it stays in its mount."""
    @overload
    async def attach_asset_to_fixture(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def detach_asset_from_fixture(
        self, asset_id: NameOrId, *, fixture_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Free the asset from its fixture, named so that nobody detaches it from another."""
    @overload
    async def detach_asset_from_fixture(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_asset_settings(
        self, asset_id: NameOrId, *, settings_patch: Mapping[str, Any], idempotency_key: str | None = ...
    ) -> None:
        """Merge a patch into the settings: a value sets, null deletes, what is left out stays, objects merge."""
    @overload
    async def update_asset_settings(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def set_asset_signal_limits(
        self,
        asset_id: NameOrId,
        *,
        low: float | None = ...,
        high: float | None = ...,
        address: str,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Limit the values that a signal of the asset may be set to; without low and high, it has no limits any
        more."""
    @overload
    async def set_asset_signal_limits(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def assign_asset_external_id(
        self,
        asset_id: NameOrId,
        *,
        external_id_scheme: ExternalIdSchemeName,
        suffix: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AssignedExternalId:
        """Have a persistent identifier minted and keep it, once and for all."""
    @overload
    async def assign_asset_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def mint_missing_asset_external_ids(
        self,
        *,
        external_id_scheme: ExternalIdSchemeName = ...,
        facility_code: str | None = ...,
        limit: int = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> MintSweepView | MintSweepAccepted:
        """Assign an identifier to every asset in service that lacks one, oldest first; one failure never stops the
        rest."""
    @overload
    async def mint_missing_asset_external_ids(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_asset_mint_sweep(self, sweep_id: NameOrId) -> MintSweepView:
        """How far a sweep is, and what became of each asset."""
    async def get_asset_pidinst(self, asset_id: NameOrId) -> PidinstRecord:
        """The asset as a PIDINST record."""
    async def list_assets(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        tier: AssetTierName | None = ...,
        lifecycle: AssetLifecycleName | None = ...,
        condition: AssetConditionName | None = ...,
        parent_id: NameOrId | None = ...,
        root: bool | None = ...,
        family_id: NameOrId | None = ...,
        model_id: NameOrId | None = ...,
        facility_code: str | None = ...,
        located_in_enclosure_id: NameOrId | None = ...,
        alternate_identifier_kind: AlternateIdentifierKindName | None = ...,
        alternate_identifier_value: str | None = ...,
    ) -> Page[AssetItem]:
        """Assets in order of registration; a parent's id lists what is right below it, and `root` those below
        none."""
    async def get_asset_integration_view(
        self, asset_id: NameOrId, *, min_position: int | None = ...
    ) -> AssetIntegrationView:
        """An asset with its families, ports, settings, enclosures, cautions and what can be done with it."""
    async def read_assets(self, *, asset_ids: Sequence[NameOrId]) -> AssetContents:
        """Up to 500 assets whole, each folded from its stream."""
    async def get_family_history(
        self, family_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FamilyHistory:
        """Every event of one family, oldest first."""
    @overload
    async def define_family(
        self,
        *,
        name: str,
        affordances: Collection[AffordanceName],
        settings_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> FamilyCreated:
        """Define a device class: what its assets let one do, and the schema their settings are checked against."""
    @overload
    async def define_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_family(
        self,
        family_id: NameOrId,
        *,
        version_tag: str,
        affordances: Collection[AffordanceName],
        settings_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace the affordances and, where one is given, the schema: left out it stays, null withdraws it."""
    @overload
    async def version_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_family_settings_schema(
        self, family_id: NameOrId, *, settings_schema: Mapping[str, Any] | None, idempotency_key: str | None = ...
    ) -> None:
        """Replace or, with null, withdraw the settings schema; units of properties that stay must stay too."""
    @overload
    async def update_family_settings_schema(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_family_role(self, family_id: NameOrId, *, role_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Let the family present a role whose required affordances it has."""
    @overload
    async def add_family_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_family_role(self, family_id: NameOrId, *, role_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Stop the family from presenting a role."""
    @overload
    async def remove_family_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_family(
        self, family_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep the family from being newly assigned; assets that have it keep it, and its affordances still
        count."""
    @overload
    async def deprecate_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_family(
        self,
        family_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FamilyView:
        """One family, folded from its stream."""
    async def list_families(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: FamilyStatusName | None = ...,
        affordance: AffordanceName | None = ...,
        role_id: NameOrId | None = ...,
    ) -> Page[FamilyItem]:
        """Families in order of definition."""
    async def list_affordances(self) -> Page[AffordanceRow]:
        """Every affordance a family can declare, with what it means; the list is closed and fits one page."""
    async def get_role_history(
        self, role_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> RoleHistory:
        """Every event of one role, oldest first."""
    @overload
    async def define_role(
        self,
        *,
        name: str,
        description: str,
        required_affordances: Collection[AffordanceName],
        optional_affordances: Collection[AffordanceName] = ...,
        produces: Collection[str] = ...,
        consumes: Collection[str] = ...,
        idempotency_key: str | None = ...,
    ) -> RoleCreated:
        """Define a functional contract by the affordances that its presenters must have."""
    @overload
    async def define_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_role(
        self,
        role_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> RoleView:
        """One role, folded from its stream."""
    async def list_roles(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
    ) -> Page[RoleItem]:
        """Roles in order of definition."""
    async def get_model_history(
        self, model_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ModelHistory:
        """Every event of one model, oldest first."""
    @overload
    async def define_model(
        self,
        *,
        name: str,
        manufacturer: Manufacturer | Mapping[str, Any],
        part_number: str,
        declared_family_ids: Collection[NameOrId],
        version_tag: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> ModelCreated:
        """Enter a vendor's model in the catalog."""
    @overload
    async def define_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_model(
        self,
        model_id: NameOrId,
        *,
        name: str,
        manufacturer: Manufacturer | Mapping[str, Any],
        part_number: str,
        declared_family_ids: Collection[NameOrId],
        version_tag: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace the whole entry under a new version tag; existing assets are not touched."""
    @overload
    async def version_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_model_family(self, model_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Declare a further family of this model; assets registered from now on get it."""
    @overload
    async def add_model_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_model_family(
        self, model_id: NameOrId, *, family_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Declare a family no longer; assets that have it keep it."""
    @overload
    async def remove_model_family(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_model(
        self, model_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Mark a model as no longer to be bought; it can still be bound to assets."""
    @overload
    async def deprecate_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_model(
        self,
        model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ModelView:
        """One model, folded from its stream."""
    async def list_models(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ModelStatusName | None = ...,
        family_id: NameOrId | None = ...,
        manufacturer_name: str | None = ...,
        part_number: str | None = ...,
    ) -> Page[ModelItem]:
        """Models in order of definition; a manufacturer's name matches whatever its case."""
    async def get_frame_history(
        self, frame_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FrameHistory:
        """Every event of one frame, oldest first."""
    @overload
    async def register_frame(
        self,
        *,
        name: str,
        parent_id: NameOrId | None = ...,
        placement: Placement | Mapping[str, Any] | None = ...,
        supersedes: Supersession | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> FrameCreated:
        """Register a root frame, or one placed in a parent frame."""
    @overload
    async def register_frame(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_frame_placement(
        self,
        frame_id: NameOrId,
        *,
        placement: Placement | Mapping[str, Any],
        survey: Survey | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Correct where a frame sits in its parent, for instance after a survey."""
    @overload
    async def update_frame_placement(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def decommission_frame(self, frame_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Retire a frame that nothing stands on any more."""
    @overload
    async def decommission_frame(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_frame(
        self,
        frame_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FrameView:
        """One frame, folded from its stream."""
    async def list_frames(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        parent_id: NameOrId | None = ...,
        status: FrameStatusName | None = ...,
    ) -> Page[FrameItem]:
        """Frames in order of registration."""
    async def get_mount_history(
        self, mount_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> MountHistory:
        """Every event of one mount, oldest first."""
    @overload
    async def register_mount(
        self,
        *,
        slot_code: str,
        parent_id: NameOrId | None = ...,
        placement: Placement | Mapping[str, Any],
        drawing: Drawing | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> MountCreated:
        """Provision a slot for an asset, placed in a frame."""
    @overload
    async def register_mount(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_mount_placement(
        self,
        mount_id: NameOrId,
        *,
        placement: Placement | Mapping[str, Any],
        survey: Survey | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Correct where a mount sits in its frame, for instance after a survey."""
    @overload
    async def update_mount_placement(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def install_asset(self, mount_id: NameOrId, *, asset_id: NameOrId, idempotency_key: str | None = ...) -> None:
        """Put an Active asset into an empty slot; an asset is in one slot at most."""
    @overload
    async def install_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def uninstall_asset(self, mount_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take the asset out of its slot."""
    @overload
    async def uninstall_asset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def decommission_mount(self, mount_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Retire an empty slot without slots under it; its code is free again."""
    @overload
    async def decommission_mount(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_mount(
        self,
        mount_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> MountView:
        """One mount, folded from its stream."""
    async def list_mounts(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        parent_id: NameOrId | None = ...,
        status: MountStatusName | None = ...,
        slot_code: str | None = ...,
        installed_asset_id: NameOrId | None = ...,
    ) -> Page[MountItem]:
        """Mounts in order of registration."""
    async def get_assembly_history(
        self, assembly_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AssemblyHistory:
        """Every event of one assembly, oldest first."""
    @overload
    async def define_assembly(
        self,
        *,
        name: str,
        presented_role_ids: Collection[NameOrId] = ...,
        required_slots: Sequence[RequiredSlot | Mapping[str, Any]] = ...,
        required_wires: Sequence[RequiredWire | Mapping[str, Any]] = ...,
        required_sub_assemblies: Sequence[RequiredSubAssembly | Mapping[str, Any]] = ...,
        parameter_overrides_schema: Mapping[str, Any] | None = ...,
        drawing: Drawing | Mapping[str, Any] | None = ...,
        version_tag: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AssemblyCreated:
        """Define a blueprint: its slots, the wires between them, and the assemblies it includes."""
    @overload
    async def define_assembly(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_assembly(
        self,
        assembly_id: NameOrId,
        *,
        name: str,
        presented_role_ids: Collection[NameOrId] = ...,
        required_slots: Sequence[RequiredSlot | Mapping[str, Any]] = ...,
        required_wires: Sequence[RequiredWire | Mapping[str, Any]] = ...,
        required_sub_assemblies: Sequence[RequiredSubAssembly | Mapping[str, Any]] = ...,
        parameter_overrides_schema: Mapping[str, Any] | None = ...,
        drawing: Drawing | Mapping[str, Any] | None = ...,
        version_tag: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace a blueprint as a whole; fixtures made from the old one keep its hash."""
    @overload
    async def version_assembly(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_assembly(
        self, assembly_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Let no fixture be made from this blueprint any more."""
    @overload
    async def deprecate_assembly(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_assembly(
        self,
        assembly_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AssemblyView:
        """One assembly, folded from its stream."""
    async def list_assemblies(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: AssemblyStatusName | None = ...,
        content_hash: str | None = ...,
        role_id: NameOrId | None = ...,
    ) -> Page[AssemblyItem]:
        """Assemblies in order of definition."""
    async def get_fixture_history(
        self, fixture_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FixtureHistory:
        """Every event of one fixture, oldest first."""
    @overload
    async def register_fixture(
        self,
        assembly_id: NameOrId,
        *,
        slot_asset_bindings: Sequence[SlotBinding | Mapping[str, Any]],
        parameter_overrides: Mapping[str, Any] = ...,
        idempotency_key: str | None = ...,
    ) -> FixtureCreated:
        """Make an assembly real: bind installed assets to its slots and to those of the assemblies it includes."""
    @overload
    async def register_fixture(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def assign_fixture_external_id(
        self,
        fixture_id: NameOrId,
        *,
        external_id_scheme: ExternalIdSchemeName,
        suffix: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AssignedExternalId:
        """Have a persistent identifier minted for the fixture and keep it, once and for all."""
    @overload
    async def assign_fixture_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_fixture(
        self,
        fixture_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FixtureView:
        """One fixture, folded from its stream."""
    async def list_fixtures(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        assembly_id: NameOrId | None = ...,
        surface_id: NameOrId | None = ...,
        assembly_content_hash: str | None = ...,
    ) -> Page[FixtureItem]:
        """Fixtures in order of registration."""
    async def get_fixture_pidinst(self, fixture_id: NameOrId) -> PidinstRecord:
        """The fixture as a PIDINST record, with the owners and manufacturers of all its assets."""
    async def get_supply_history(
        self, supply_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SupplyHistory:
        """Every event of one supply, oldest first."""
    @overload
    async def register_supply(
        self,
        *,
        kind: str,
        name: str,
        facility_code: str,
        containing_asset_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> SupplyCreated:
        """Make a resource known, of a whole facility or of one asset; its status is Unknown until somebody looks."""
    @overload
    async def register_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def mark_supply_available(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that somebody looked, and the resource is there."""
    @overload
    async def mark_supply_available(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def degrade_supply(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is there, but not as it should be: no run starts on it, a held one may resume."""
    @overload
    async def degrade_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def mark_supply_unavailable(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is not there."""
    @overload
    async def mark_supply_unavailable(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def mark_supply_recovering(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is coming back; restore it once it is stable."""
    @overload
    async def mark_supply_recovering(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def restore_supply(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the resource is there again as it should be."""
    @overload
    async def restore_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deregister_supply(self, supply_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Retire a supply for good; its address is free again."""
    @overload
    async def deregister_supply(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def observe_supply_status(
        self,
        supply_id: NameOrId,
        *,
        monitor_ref: MonitorRef | Mapping[str, Any],
        reason: str,
        new_status: SupplyStatusName,
        idempotency_key: str | None = ...,
    ) -> None:
        """Report what a monitor reads from the plant; a repeat is no event, but shows that the monitor is there."""
    @overload
    async def observe_supply_status(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_supply(
        self,
        supply_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SupplyView | PastSupplyView:
        """One supply, folded from its stream, with whether a monitor watches it."""
    async def list_supplies(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        facility_code: str | None = ...,
        containing_asset_id: NameOrId | None = ...,
        kind: str | None = ...,
        status: SupplyStatusName | None = ...,
    ) -> Page[SupplyItem]:
        """Supplies in order of registration, Decommissioned ones included."""
    async def get_enclosure_history(
        self, enclosure_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> EnclosureHistory:
        """Every event of one enclosure, oldest first."""
    @overload
    async def register_enclosure(
        self, *, name: str, facility_code: str, idempotency_key: str | None = ...
    ) -> EnclosureCreated:
        """Make an interlock-gated volume known; its permit status is Unknown until it is observed."""
    @overload
    async def register_enclosure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def observe_enclosure_status(
        self,
        enclosure_id: NameOrId,
        *,
        monitor_ref: MonitorRef | Mapping[str, Any],
        reason: str,
        new_status: EnclosurePermitStatusName,
        observed_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Report what a monitor reads from the interlock; a repeat is no event, but shows that the reading is
        current."""
    @overload
    async def observe_enclosure_status(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def decommission_enclosure(
        self, enclosure_id: NameOrId, *, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Retire an enclosure for good: nothing starts in it any more, and its name is free again."""
    @overload
    async def decommission_enclosure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_enclosure(
        self,
        enclosure_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> EnclosureView | PastEnclosureView:
        """One enclosure, folded from its stream, with the age of its last observation and whether a monitor watches
        it."""
    async def list_enclosures(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        lifecycle: EnclosureLifecycleName | None = ...,
        permit_status: EnclosurePermitStatusName | None = ...,
        facility_code: str | None = ...,
    ) -> Page[EnclosureItem]:
        """Enclosures in order of registration, Decommissioned ones included, with the time of their last
        observation."""
    async def get_clearance_history(
        self, clearance_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ClearanceHistory:
        """Every event of one clearance, oldest first."""
    @overload
    async def register_clearance(
        self,
        *,
        template_id: NameOrId,
        facility_code: str,
        title: str,
        bindings: Sequence[RecordBinding | Mapping[str, Any] | ExternalBinding],
        declarations: Sequence[HazardDeclaration | Mapping[str, Any]] = ...,
        risk_band: RiskBandName | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        valid_from: datetime | str | None = ...,
        valid_until: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> ClearanceCreated:
        """Register a filled-in safety form; it covers nothing until it has been reviewed, approved and activated."""
    @overload
    async def register_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def submit_clearance(self, clearance_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Hand the form in for review."""
    @overload
    async def submit_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def start_clearance_review(
        self, clearance_id: NameOrId, *, first_reviewer_role: str, idempotency_key: str | None = ...
    ) -> None:
        """Begin the review, naming the role that looks first."""
    @overload
    async def start_clearance_review(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def append_clearance_review_step(
        self,
        clearance_id: NameOrId,
        *,
        step_index: int,
        role: str,
        decision: ReviewDecisionName,
        decided_at: datetime | str,
        notes: str | Literal[""] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record what one reviewer decided; the caller is the reviewer, and only approve and reject end the
        review."""
    @overload
    async def append_clearance_review_step(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def approve_clearance(
        self,
        clearance_id: NameOrId,
        *,
        valid_from: datetime | str | None = ...,
        valid_until: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the review in favour; an end of the validity window that is given replaces the registered one."""
    @overload
    async def approve_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def reject_clearance(self, clearance_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """End the review against the form, for good."""
    @overload
    async def reject_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def activate_clearance(self, clearance_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let the clearance count; within its validity window it lets runs start."""
    @overload
    async def activate_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def expire_clearance(self, clearance_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take the clearance out of force, whatever its validity window says."""
    @overload
    async def expire_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def amend_clearance(
        self,
        clearance_id: NameOrId,
        *,
        template_id: NameOrId,
        facility_code: str,
        title: str,
        bindings: Sequence[RecordBinding | Mapping[str, Any] | ExternalBinding],
        declarations: Sequence[HazardDeclaration | Mapping[str, Any]] = ...,
        risk_band: RiskBandName | None = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        valid_from: datetime | str | None = ...,
        valid_until: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> AmendedClearance:
        """Replace the form by a new one that must be reviewed anew; this one stops covering at once, nothing is
        copied."""
    @overload
    async def amend_clearance(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def assign_clearance_external_id(
        self,
        clearance_id: NameOrId,
        *,
        external_id: str,
        external_id_scheme: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Fill in the facility's own number of this form; without a scheme, the template's code is the scheme."""
    @overload
    async def assign_clearance_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_clearance(
        self,
        clearance_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ClearanceView:
        """One clearance, folded from its stream; its author is a barred reviewer where CLEARANCE_FOUR_EYES is on."""
    async def list_clearances(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        template_id: NameOrId | None = ...,
        template_code: str | None = ...,
        status: ClearanceStatusName | None = ...,
        risk_band: RiskBandName | None = ...,
        facility_code: str | None = ...,
        binds_to_subject_id: NameOrId | None = ...,
        binds_to_asset_id: NameOrId | None = ...,
        binds_to_run_id: NameOrId | None = ...,
        binds_to_procedure_id: NameOrId | None = ...,
        due_by: datetime | str | None = ...,
    ) -> Page[ClearanceItem]:
        """Clearances in order of registration."""
    async def get_clearance_template_history(
        self, template_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ClearanceTemplateHistory:
        """Every event of one clearance template, oldest first."""
    @overload
    async def define_clearance_template(
        self, *, code: str, title: str, facility_code: str, external_ref: str | None = ..., idempotency_key: str | None = ...
    ) -> ClearanceTemplateCreated:
        """Enter a kind of safety form into a facility's catalog, as a draft."""
    @overload
    async def define_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def activate_clearance_template(self, template_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let clearances be registered under this template."""
    @overload
    async def activate_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_clearance_template(
        self,
        template_id: NameOrId,
        *,
        new_version: int,
        supersedes_template_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record that the form was revised, and which other template it replaces, if any."""
    @overload
    async def version_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_clearance_template(
        self, template_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Take no new clearances under this template; its code stays taken."""
    @overload
    async def deprecate_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def withdraw_clearance_template(self, template_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Strike the template from the catalog; its code is free again."""
    @overload
    async def withdraw_clearance_template(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_clearance_template(
        self,
        template_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ClearanceTemplateView:
        """One clearance template, folded from its stream."""
    async def list_clearance_templates(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        facility_code: str | None = ...,
        status: ClearanceTemplateStatusName | None = ...,
        code: str | None = ...,
    ) -> Page[ClearanceTemplateItem]:
        """Clearance templates in order of definition."""
    async def get_caution_history(
        self, caution_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CautionHistory:
        """Every event of one caution, oldest first."""
    @overload
    async def register_caution(
        self,
        *,
        target: CautionTarget | Mapping[str, Any],
        category: CautionCategoryName,
        severity: CautionSeverityName,
        text: str,
        workaround: str,
        tags: Collection[str] = ...,
        expires_at: datetime | str | None = ...,
        propagate_to_children: bool = ...,
        idempotency_key: str | None = ...,
    ) -> NewCaution:
        """Warn everybody who will work with an asset, a procedure, a recipe or a plan, and say what to do about
        it."""
    @overload
    async def register_caution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def supersede_caution(
        self,
        caution_id: NameOrId,
        *,
        target: CautionTarget | Mapping[str, Any],
        category: CautionCategoryName,
        severity: CautionSeverityName,
        text: str,
        workaround: str,
        tags: Collection[str] = ...,
        expires_at: datetime | str | None = ...,
        propagate_to_children: bool = ...,
        idempotency_key: str | None = ...,
    ) -> NewCaution:
        """Replace a caution by another one on the same target; nothing of the old one is copied."""
    @overload
    async def supersede_caution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def retire_caution(
        self, caution_id: NameOrId, *, reason: CautionRetireReasonName, idempotency_key: str | None = ...
    ) -> None:
        """Stop warning, without a successor."""
    @overload
    async def retire_caution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_caution(
        self,
        caution_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CautionView:
        """One caution, folded from its stream."""
    async def list_cautions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        target_kind: CautionTargetKindName | None = ...,
        target_id: NameOrId | None = ...,
        category: CautionCategoryName | None = ...,
        severity: Sequence[CautionSeverityName] = ...,
        min_severity: CautionSeverityName | None = ...,
        status: Sequence[ListedStatusName] = ...,
        tag: str | None = ...,
        authored_by: NameOrId | None = ...,
        in_effect: bool = ...,
        inherited: bool = ...,
    ) -> Page[CautionItem]:
        """Cautions in order of registration, the Active ones unless another status is asked for."""
    async def get_subject_history(
        self, subject_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SubjectHistory:
        """Every event of one subject, oldest first."""
    @overload
    async def register_subject(self, *, name: str, idempotency_key: str | None = ...) -> SubjectCreated:
        """Take in something that is to be measured."""
    @overload
    async def register_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def mount_subject(
        self, subject_id: NameOrId, *, asset_id: NameOrId, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Put a subject on an Active asset, which may hold several at once; the asset's condition is not looked
        at."""
    @overload
    async def mount_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def measure_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that a subject was measured since it was mounted; nothing else records it."""
    @overload
    async def measure_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def dismount_subject(self, subject_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take a subject off its asset; it may be mounted again, there or elsewhere."""
    @overload
    async def dismount_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Take a subject out of use for good, mounted or not; only its return, storage or discarding follows."""
    @overload
    async def remove_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def return_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that the subject went back to its owner."""
    @overload
    async def return_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def store_subject(self, subject_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Record that the subject stays at the facility, in store."""
    @overload
    async def store_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def discard_subject(self, subject_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Record that the subject was disposed of."""
    @overload
    async def discard_subject(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def assign_subject_external_id(
        self, subject_id: NameOrId, *, external_id: str, external_id_scheme: str = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep the identifier a registry gave the subject, once and for all, in whatever status it is."""
    @overload
    async def assign_subject_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_subject(
        self,
        subject_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SubjectView:
        """One subject, folded from its stream."""
    async def list_subjects(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: SubjectStatusName | None = ...,
        mounted_on_asset_id: NameOrId | None = ...,
    ) -> Page[SubjectItem]:
        """Subjects in order of registration; an asset's id lists what is mounted on it."""
    async def get_capability_history(
        self, capability_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CapabilityHistory:
        """Every event of one capability, oldest first."""
    @overload
    async def define_capability(
        self,
        *,
        code: str,
        name: str,
        required_affordances: Collection[AffordanceName],
        executor_shapes: Collection[ExecutorShapeName],
        description: str | None = ...,
        parameters_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> CapabilityCreated:
        """Define the contract of a kind of operation: the affordances it needs, its parameters and who may realise
        it."""
    @overload
    async def define_capability(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_capability(
        self,
        capability_id: NameOrId,
        *,
        version_tag: str,
        required_affordances: Collection[AffordanceName],
        executor_shapes: Collection[ExecutorShapeName],
        description: str | None,
        parameters_schema: Mapping[str, Any] | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace the contract as a whole: nothing is kept by leaving it out; methods written under the old one
        stand."""
    @overload
    async def version_capability(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_capability(
        self,
        capability_id: NameOrId,
        *,
        reason: str | None = ...,
        replaced_by_capability_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Keep procedures from being newly registered for it, and say what replaces it; what refers to it stays as
        it is."""
    @overload
    async def deprecate_capability(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_capability(
        self,
        capability_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CapabilityView:
        """One capability, folded from its stream."""
    async def list_capabilities(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        code: str | None = ...,
    ) -> Page[CapabilityItem]:
        """Capabilities in order of definition."""
    async def get_method_history(
        self, method_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> MethodHistory:
        """Every event of one method, oldest first."""
    @overload
    async def define_method(
        self,
        *,
        name: str,
        capability_id: NameOrId,
        needed_family_ids: Collection[NameOrId] = ...,
        needed_supplies: Collection[str] = ...,
        parameters_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> MethodCreated:
        """Define a technique that realises a capability: the families and supplies it needs, and its parameters."""
    @overload
    async def define_method(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_method_parameters_schema(
        self, method_id: NameOrId, *, parameters_schema: Mapping[str, Any] | None, idempotency_key: str | None = ...
    ) -> None:
        """Replace or, with null, withdraw the parameter schema; units of properties that stay must stay too."""
    @overload
    async def update_method_parameters_schema(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_method_required_role(
        self, method_id: NameOrId, *, requirement: RoleRequirement | Mapping[str, Any], idempotency_key: str | None = ...
    ) -> None:
        """Add a role that an asset is to play, by its family or by an equipment role it presents, with the ports it
        needs."""
    @overload
    async def add_method_required_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_method_required_role(
        self, method_id: NameOrId, *, role_name: str, idempotency_key: str | None = ...
    ) -> None:
        """Take a role out of the method."""
    @overload
    async def remove_method_required_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_method(
        self,
        method_id: NameOrId,
        *,
        version_tag: str,
        parameters_schema: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Label the method as it stands and, where one is given, replace its schema: left out it stays, null
        withdraws it."""
    @overload
    async def version_method(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_method(
        self, method_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep new plans from being made of it; the practices and plans there are stay as they are."""
    @overload
    async def deprecate_method(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_method(
        self,
        method_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> MethodView:
        """One method, folded from its stream."""
    async def list_methods(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        capability_id: NameOrId | None = ...,
    ) -> Page[MethodItem]:
        """Methods in order of definition."""
    async def get_practice_history(
        self, practice_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PracticeHistory:
        """Every event of one practice, oldest first."""
    @overload
    async def define_practice(
        self,
        *,
        name: str,
        method_id: NameOrId,
        site_id: NameOrId | None = ...,
        family_ids: Collection[NameOrId] = ...,
        idempotency_key: str | None = ...,
    ) -> PracticeCreated:
        """Adopt a method at a site, for a set of families, or both."""
    @overload
    async def define_practice(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_practice(self, practice_id: NameOrId, *, version_tag: str, idempotency_key: str | None = ...) -> None:
        """Label the practice as it stands."""
    @overload
    async def version_practice(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_practice(
        self, practice_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep new plans from being made of it; the plans there are stay as they are."""
    @overload
    async def deprecate_practice(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_practice(
        self,
        practice_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PracticeView:
        """One practice, folded from its stream."""
    async def list_practices(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        method_id: NameOrId | None = ...,
    ) -> Page[PracticeItem]:
        """Practices in order of definition."""
    async def get_plan_history(
        self, plan_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PlanHistory:
        """Every event of one plan, oldest first."""
    @overload
    async def define_plan(
        self,
        *,
        name: str,
        practice_id: NameOrId,
        asset_ids: Collection[NameOrId],
        window_starts_at: datetime | str | None = ...,
        window_ends_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> PlanCreated:
        """Bind a practice to assets that together cover what it needs, and say when it is meant to be executed."""
    @overload
    async def define_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def reschedule_plan(
        self,
        plan_id: NameOrId,
        *,
        window_starts_at: datetime | str | None,
        window_ends_at: datetime | str | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Move the window or, with null for both ends, clear it; the window informs and keeps no run from
        starting."""
    @overload
    async def reschedule_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_plan_default_parameters(
        self, plan_id: NameOrId, *, default_parameters_patch: Mapping[str, Any], idempotency_key: str | None = ...
    ) -> None:
        """Merge a patch into the default parameters: a value sets, null deletes, what is left out stays, objects
        merge."""
    @overload
    async def update_plan_default_parameters(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_plan(self, plan_id: NameOrId, *, version_tag: str, idempotency_key: str | None = ...) -> None:
        """Label the plan as it stands; its roles are settled with that."""
    @overload
    async def version_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_plan(
        self, plan_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep new runs from being started on it; those that were started stay as they are."""
    @overload
    async def deprecate_plan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_plan(
        self,
        plan_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PlanView:
        """One plan, folded from its stream."""
    async def list_plans(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        practice_id: NameOrId | None = ...,
        method_id: NameOrId | None = ...,
    ) -> Page[PlanItem]:
        """Plans in order of definition."""
    @overload
    async def add_plan_wire(
        self,
        plan_id: NameOrId,
        *,
        source_asset_id: NameOrId,
        source_port_name: str,
        target_asset_id: NameOrId,
        target_port_name: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Connect an output of one asset of the plan to an input of another: a source may feed many, a target takes
        one."""
    @overload
    async def add_plan_wire(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_plan_wire(
        self,
        plan_id: NameOrId,
        *,
        source_asset_id: NameOrId,
        source_port_name: str,
        target_asset_id: NameOrId,
        target_port_name: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Take a connection out of the plan."""
    @overload
    async def remove_plan_wire(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def bind_plan_role(
        self, plan_id: NameOrId, *, role_name: str, asset_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Let an asset of the plan play a role of its method; unbind the role first to give it to another."""
    @overload
    async def bind_plan_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def unbind_plan_role(self, plan_id: NameOrId, *, role_name: str, idempotency_key: str | None = ...) -> None:
        """Leave a role of the plan unplayed again."""
    @overload
    async def unbind_plan_role(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def set_plan_data_registration(
        self,
        plan_id: NameOrId,
        *,
        data_registration: DataRegistration | Mapping[str, Any] | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say how the files of the plan's runs become datasets at the end of each phase or, with null, that they do
        not."""
    @overload
    async def set_plan_data_registration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def inspect_plan_binding(
        self, *, practice_id: NameOrId, asset_ids: Collection[NameOrId], min_position: int | None = ...
    ) -> PlanBinding:
        """What a plan of this practice on these assets would lack, and who could provide it; nothing is written."""
    async def get_recipe_history(
        self, recipe_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> RecipeHistory:
        """Every event of one recipe, oldest first."""
    @overload
    async def define_recipe(
        self,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        name: str,
        capability_id: NameOrId,
        steps: Sequence[Any],
        closing_steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> RecipeCreated:
        """Write down the steps that realise a capability here, and those that leave everything safe afterwards."""
    @overload
    async def define_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_recipe(
        self,
        recipe_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        version_tag: str,
        steps: Sequence[Any],
        closing_steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Replace all steps, closing steps and options under a tag; the tag may be used again for the same content
        only."""
    @overload
    async def version_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_recipe(
        self,
        recipe_id: NameOrId,
        *,
        reason: str | None = ...,
        replaced_by_recipe_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Keep procedures from being newly registered from it, and say what replaces it; registered ones are
        conducted."""
    @overload
    async def deprecate_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_recipe(
        self,
        recipe_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
        version_tag: str | None = ...,
    ) -> RecipeView:
        """One recipe, folded from its stream; with a tag, what it said in that version and since when."""
    async def list_recipe_versions(self, recipe_id: NameOrId, *, order: OrderName = ...) -> Page[RecipeVersion]:
        """Every content of one recipe from its definition on, folded from its stream; all on one page."""
    async def list_recipes(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: TemplateStatusName | None = ...,
        capability_id: NameOrId | None = ...,
    ) -> Page[RecipeItem]:
        """Recipes in order of definition."""
    async def get_run_history(
        self, run_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> RunHistory:
        """Every event of one run, oldest first."""
    @overload
    async def hold_run(
        self,
        run_id: NameOrId,
        *,
        reason: str | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Pause the run; it goes on only when somebody resumes it."""
    @overload
    async def hold_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_runs(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: RunStatusName | None = ...,
        plan_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        campaign_id: NameOrId | None = ...,
    ) -> Page[RunItem]:
        """Runs in the order they were started."""
    @overload
    async def complete_run(self, run_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Complete the run as intended; a held one only once it has phases and every one of them is Completed."""
    @overload
    async def complete_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def stop_run(
        self,
        run_id: NameOrId,
        *,
        decided_by_decision_id: NameOrId | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the run early by choice; what it measured so far is good."""
    @overload
    async def stop_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def abort_run(
        self,
        run_id: NameOrId,
        *,
        decided_by_decision_id: NameOrId | None = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the run in an emergency; what it measured is suspect."""
    @overload
    async def abort_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def truncate_run(
        self,
        run_id: NameOrId,
        *,
        decided_by_decision_id: NameOrId | None = ...,
        reason: str,
        interrupted_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Close the books on a run that died by itself, with the best guess of when."""
    @overload
    async def truncate_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_run(
        self,
        run_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> RunView:
        """One run, folded from its stream."""
    @overload
    async def start_run(
        self,
        *,
        name: str,
        plan_id: NameOrId,
        subject_id: NameOrId | None = ...,
        raid: str | None = ...,
        override_parameters: Mapping[str, Any] = ...,
        pinned_calibration_ids: Collection[NameOrId] = ...,
        trigger_source: str | None = ...,
        external_refs: Mapping[str, str] = ...,
        campaign_id: NameOrId | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> RunStartedAnswer:
        """Execute a plan: pass every gate, merge the parameters, and acknowledge the cautions on it and its
        assets."""
    @overload
    async def start_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def preflight_run(
        self,
        *,
        name: str,
        plan_id: NameOrId,
        subject_id: NameOrId | None = ...,
        raid: str | None = ...,
        override_parameters: Mapping[str, Any] = ...,
        pinned_calibration_ids: Collection[NameOrId] = ...,
        trigger_source: str | None = ...,
        external_refs: Mapping[str, str] = ...,
        campaign_id: NameOrId | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
    ) -> Preflight:
        """Ask every gate whether this run could start now, and change nothing."""
    @overload
    async def resume_run(
        self, run_id: NameOrId, *, decided_by_decision_id: NameOrId | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Let a held run go on, if its preconditions still hold; nothing resumes by itself."""
    @overload
    async def resume_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def adjust_run(
        self,
        run_id: NameOrId,
        *,
        parameters_patch: Mapping[str, Any],
        reason: str,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Merge a patch into the parameters of a run that is on: a value sets, null deletes, objects merge."""
    @overload
    async def adjust_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def conduct_run(
        self,
        run_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        phases: Sequence[Phase | Mapping[str, Any]] = ...,
        procedure_ids: Sequence[NameOrId] = ...,
        wait: float = ...,
        idempotency_key: str | None = ...,
    ) -> RunConductResult | RunConductAccepted:
        """Conduct phases of the run one after the other, then complete it; the first phase that fails aborts it."""
    @overload
    async def conduct_run(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_run_conduct(self, run_id: NameOrId) -> RunConductView:
        """How the latest conduct of a run goes, phase by phase, what it waits for and its result."""
    @overload
    async def append_observations(
        self, run_id: NameOrId, *, entries: Sequence[Sample | Mapping[str, Any]], idempotency_key: str | None = ...
    ) -> Appended:
        """Add readings to a run that is on; the batch is taken whole or not at all, and repeats are harmless."""
    @overload
    async def append_observations(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_run_observations(
        self,
        run_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        channel_name: str | None = ...,
        sampling_procedure: SamplingProcedureName | None = ...,
        since: datetime | str | None = ...,
    ) -> Page[Observation]:
        """The readings of a run in the order they were recorded."""
    async def list_run_channels(self, run_id: NameOrId) -> Page[Channel]:
        """The channels of a run by name, each with its latest reading."""
    @overload
    async def append_run_logbook_entries(
        self, run_id: NameOrId, *, entries: Sequence[NarrativeEntry | Mapping[str, Any]], idempotency_key: str | None = ...
    ) -> Appended:
        """Write into the logbook of a run, whether it is on or over; debriefs are for agents."""
    @overload
    async def append_run_logbook_entries(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_run_logbook_entries(
        self,
        run_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        entry_kind: RunLogbookEntryKindName | None = ...,
    ) -> Page[RunLogbookEntry]:
        """What was written about a run, in the order it was recorded."""
    async def get_beamline_now(self, asset_id: NameOrId) -> BeamlineNow:
        """What is going on at a beamline: permits, supplies, clearances, cautions, live runs and conducts,
        workers."""
    async def list_waiting(
        self,
        *,
        asset_id: NameOrId | None = ...,
        kind: Sequence[WaitingKindName] = ...,
        limit: int = ...,
        cursor: str | None = ...,
        min_position: int | None = ...,
    ) -> Page[WaitingItem]:
        """Everything that waits for a person, the newest last, with the commands that resolve it and whether you
        may."""
    @overload
    async def hold_everything(
        self, *, reason: str, asset_id: NameOrId | None = ..., idempotency_key: str | None = ...
    ) -> HeldEverything:
        """Hold every live run and conduct, or all on one asset, its parts and what it is part of; it can be
        repeated."""
    @overload
    async def hold_everything(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_procedure_history(
        self, procedure_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ProcedureHistory:
        """Every event of one procedure, oldest first."""
    async def list_procedures(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ProcedureStatusName | None = ...,
        kind: str | None = ...,
        parent_run_id: NameOrId | None = ...,
        target_asset_id: NameOrId | None = ...,
    ) -> Page[ProcedureItem]:
        """Procedures in order of registration."""
    async def get_procedure(
        self,
        procedure_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ProcedureView:
        """One procedure, folded from its stream."""
    @overload
    async def register_procedure(
        self,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        name: str,
        kind: str,
        target_asset_ids: Collection[NameOrId] = ...,
        parent_run_id: NameOrId | None = ...,
        max_consecutive_unconverged_iterations: int | None = ...,
        capability_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ProcedureCreated:
        """Plan a task on some assets, to be carried out by hand or conducted with steps given then."""
    @overload
    async def register_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def register_procedure_from_recipe(
        self,
        recipe_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        name: str,
        kind: str,
        target_asset_ids: Collection[NameOrId] = ...,
        parent_run_id: NameOrId | None = ...,
        max_consecutive_unconverged_iterations: int | None = ...,
        bindings: Mapping[str, Any] = ...,
        idempotency_key: str | None = ...,
    ) -> ProcedureCreated:
        """Plan a task with a recipe's steps; what the request does not bind is taken from the parent run's
        parameters."""
    @overload
    async def register_procedure_from_recipe(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def start_procedure(self, procedure_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Begin to carry the procedure out by hand, if its assets, supplies and enclosures allow it."""
    @overload
    async def start_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def resume_procedure(
        self,
        procedure_id: NameOrId,
        *,
        re_establishment_boundary: int = ...,
        by_hand: bool = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Go on by hand after a hold; what was conducted is taken up by its own command, unless `by_hand` is
        said."""
    @overload
    async def resume_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def hold_procedure(
        self,
        procedure_id: NameOrId,
        *,
        reason: str,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> RequestAccepted:
        """Pause the procedure; a live conduct finishes its step first. It goes on only when somebody resumes it."""
    @overload
    async def hold_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def complete_procedure(self, procedure_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Complete the procedure, whose task is done; a live conduct does so itself."""
    @overload
    async def complete_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def abort_procedure(
        self, procedure_id: NameOrId, *, reason: str, run_closing: bool = ..., idempotency_key: str | None = ...
    ) -> RequestAccepted:
        """Give the procedure up; a live conduct is cancelled and closes nothing."""
    @overload
    async def abort_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def truncate_procedure(
        self,
        procedure_id: NameOrId,
        *,
        reason: str,
        interrupted_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Close the books on a procedure that died by itself, with the best guess of when."""
    @overload
    async def truncate_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def conduct_procedure(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps one after the other; a failure ends in Aborted, and closing steps run either way."""
    @overload
    async def conduct_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def conduct_or_hold_procedure(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        steps: Sequence[Any] = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps; a setpoint or check that fails holds the procedure for a person instead of aborting
        it."""
    @overload
    async def conduct_or_hold_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def conduct_from_procedure(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        re_establishment_boundary: int | None = ...,
        skip: bool = ...,
        skip_reason: str | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Take a held procedure up at the first step that is not done, or at an earlier one, to establish what
        follows afresh."""
    @overload
    async def conduct_from_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def conduct_until_converged(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        convergence_capture_name: str,
        criterion: PlainEqualsCriterion | Mapping[str, Any] | PlainToleranceCriterion,
        steps: Sequence[Any] = ...,
        max_consecutive_unconverged_iterations: int | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps again and again until a captured value meets a criterion; a held loop is taken up the
        same way."""
    @overload
    async def conduct_until_converged(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def conduct_until_advised(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        objective: SteeringObjective | Mapping[str, Any],
        space: SteeringSpace | Mapping[str, Any],
        objective_capture_name: str,
        decide_: InMemoryDecide
        | Mapping[str, Any]
        | GridWalkDecide
        | SobolDecide
        | BotorchDecide
        | StagedDecide
        | LlmDecide
        | PluginDecide
        | CallerDecide = ...,
        budget: SteeringBudget | Mapping[str, Any] | None = ...,
        first_point: Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Conduct the steps again and again, where the decider says, until it says stop or the budget is spent."""
    @overload
    async def conduct_until_advised(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def conduct_until_advised_from(
        self,
        procedure_id: NameOrId,
        *,
        watch: Collection[WatchedGateName] | None = ...,
        on_unknown_outcome: OnUnknownOutcomeName | None = ...,
        wait: float = ...,
        objective: SteeringObjective | Mapping[str, Any],
        space: SteeringSpace | Mapping[str, Any],
        objective_capture_name: str,
        decide_: InMemoryDecide
        | Mapping[str, Any]
        | GridWalkDecide
        | SobolDecide
        | BotorchDecide
        | StagedDecide
        | LlmDecide
        | PluginDecide
        | CallerDecide = ...,
        budget: SteeringBudget | Mapping[str, Any] | None = ...,
        decided_by_decision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> ConductResult | ConductAccepted:
        """Take a held search up where it stood: what was measured is known to the decider and is not measured
        again."""
    @overload
    async def conduct_until_advised_from(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_procedure_steering(self, procedure_id: NameOrId) -> SteeringView:
        """What a steered conduct waits to be advised on."""
    @overload
    async def advise_procedure(
        self,
        procedure_id: NameOrId,
        *,
        iteration_index: int,
        question: int | None = ...,
        advice: SteeringAdvice | Mapping[str, Any],
        wait: float = ...,
        idempotency_key: str | None = ...,
    ) -> AdviceFollowed | AdviceAccepted:
        """Tell a conduct that waits where to measure next, or to stop."""
    @overload
    async def advise_procedure(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def start_iteration(
        self, procedure_id: NameOrId, *, iteration_index: int, idempotency_key: str | None = ...
    ) -> None:
        """Begin the next pass."""
    @overload
    async def start_iteration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def end_iteration(
        self,
        procedure_id: NameOrId,
        *,
        iteration_index: int,
        converged: bool | None,
        reason: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the open pass, and say whether it converged."""
    @overload
    async def end_iteration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_procedure_iterations(self, procedure_id: NameOrId) -> Iterations:
        """Every pass of the procedure in order."""
    @overload
    async def append_activities(
        self,
        procedure_id: NameOrId,
        *,
        entries: Sequence[ActivityReport | Mapping[str, Any]],
        idempotency_key: str | None = ...,
    ) -> Appended:
        """Log what was done by hand."""
    @overload
    async def append_activities(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_procedure_activities(
        self,
        procedure_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        step_kind: StepKindName | None = ...,
        conduct_id: NameOrId | None = ...,
    ) -> Page[Activity]:
        """What was done, in the order it was recorded."""
    async def preflight_procedure(self, procedure_id: NameOrId) -> ProcedurePreflight:
        """Ask every gate whether this procedure could start now or, from Held, go on; and change nothing."""
    @overload
    async def resolve_procedure_step(
        self,
        procedure_id: NameOrId,
        *,
        conduct_id: NameOrId,
        step_index: int,
        closing: bool = ...,
        iteration_index: int = ...,
        outcome: StepVerdictName,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say whether a step whose outcome is unknown was done."""
    @overload
    async def resolve_procedure_step(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def skip_procedure_wait(
        self,
        procedure_id: NameOrId,
        *,
        conduct_id: NameOrId,
        step_index: int,
        iteration_index: int = ...,
        reason: str,
        idempotency_key: str | None = ...,
    ) -> None:
        """End the wait of the check at which the conduct stands, as if it had come true."""
    @overload
    async def skip_procedure_wait(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_procedure_steps(
        self,
        procedure_id: NameOrId,
        *,
        closing: bool = ...,
        iteration_index: int | None = ...,
        first_index: int | None = ...,
        limit: int = ...,
    ) -> ProcedureSteps:
        """The steps of a procedure, those around the current one or from one on, with what was done about each."""
    async def get_procedure_conduct(self, procedure_id: NameOrId) -> ConductView:
        """The progress of the latest conduct of a procedure, when its worker was last heard of, and its result."""
    async def resolve_signals(self, *, addresses: Sequence[str], control_limits: bool = ...) -> ResolvedSignals:
        """The owners, the route, the limits and the live claims of each of these signals."""
    async def read_signals(self, *, addresses: Sequence[str]) -> SignalReadings:
        """Read signals now, in the control system, for 5 seconds at most; each has its value or its error. Needs a
        worker."""
    async def get_work(self, work_id: NameOrId) -> WorkView:
        """How long work stands that a request has begun: running, done with its answer, or failed with its error."""
    async def get_schedule_history(
        self, schedule_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> ScheduleHistory:
        """Every event of one schedule, oldest first."""
    @overload
    async def define_schedule(
        self,
        *,
        name: str,
        calendar: CronCalendar | Mapping[str, Any] | EveryCalendar,
        time_zone: str = ...,
        overlap: OverlapName = ...,
        catchup_window: int = ...,
        jitter: int = ...,
        target: ConductRecipe | Mapping[str, Any] | ConductPlan,
        idempotency_key: str | None = ...,
    ) -> ScheduleCreated:
        """Conduct a recipe, or a run on a plan, on a calendar; each firing is authorized as the caller of this
        command."""
    @overload
    async def define_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def hold_schedule(self, schedule_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Fire no more until somebody resumes; a firing that goes on is not touched."""
    @overload
    async def hold_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def resume_schedule(self, schedule_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Fire again as the calendar says; what would have fired meanwhile is not made up for."""
    @overload
    async def resume_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def trigger_schedule(self, schedule_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Fire once now, beside the calendar and whatever still goes on; it is authorized as the schedule always
        is."""
    @overload
    async def trigger_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def retire_schedule(self, schedule_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Fire never again."""
    @overload
    async def retire_schedule(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_schedule(
        self,
        schedule_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ScheduleView:
        """One schedule, folded from its stream, with its next and its last firings."""
    async def list_schedules(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: ScheduleStatusName | None = ...,
    ) -> Page[ScheduleItem]:
        """Schedules in the order they were defined, with when each fires next and what became of its last firing."""
    async def get_queue_history(
        self, queue_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> QueueHistory:
        """Every event of one queue, oldest first."""
    @overload
    async def open_queue(
        self, *, name: str, asset_id: NameOrId, on_failure: OnFailureName = ..., idempotency_key: str | None = ...
    ) -> QueueCreated:
        """Open the queue of a beamline: what is added to it is conducted in order, each item as who added it."""
    @overload
    async def open_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_queue_items(
        self,
        queue_id: NameOrId,
        *,
        items: Sequence[NewQueueItem | Mapping[str, Any]],
        before_item_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> QueueItemsAddedAnswer:
        """Add items at the end or before one that waits, all or none; each is conducted as the caller of this
        command."""
    @overload
    async def add_queue_items(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def move_queue_item(
        self,
        queue_id: NameOrId,
        *,
        item_id: NameOrId,
        before_item_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Move an item that waits before another one that waits, or to the end."""
    @overload
    async def move_queue_item(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def edit_queue_item(
        self,
        queue_id: NameOrId,
        *,
        item_id: NameOrId,
        title: str = ...,
        target: ConductQueuedRecipe | Mapping[str, Any] | ConductQueuedPlan = ...,
        not_before: datetime | str | None = ...,
        pause_after: bool = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Change an item that waits; with another target it is conducted as the caller of this command."""
    @overload
    async def edit_queue_item(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_queue_item(
        self, queue_id: NameOrId, *, item_id: NameOrId, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Take an item out that waits; it is not conducted."""
    @overload
    async def remove_queue_item(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def hold_queue(self, queue_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Start no more items until somebody resumes; the one under way is not touched."""
    @overload
    async def hold_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def resume_queue(self, queue_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...) -> None:
        """Start items again, with the first that waits; what failed is not repeated."""
    @overload
    async def resume_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def retire_queue(self, queue_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Close the queue for good: what waits is removed, what is under way goes on."""
    @overload
    async def retire_queue(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_queue(
        self,
        queue_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> QueueView:
        """One queue, folded from its stream, with a forecast of what comes next."""
    async def list_queues(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        asset_id: NameOrId | None = ...,
        status: QueueStatusName | None = ...,
    ) -> Page[QueueOverviewItem]:
        """Queues in the order they were opened, each with how many items wait and the one under way."""
    async def list_queue_items(
        self,
        queue_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        status: QueueItemStatusName | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> Page[QueueItemView]:
        """The items of a queue: the last thousand that have ended, the running one, and those that wait, in
        order."""
    async def get_campaign_history(
        self, campaign_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CampaignHistory:
        """Every event of one campaign, oldest first."""
    @overload
    async def register_campaign(
        self,
        *,
        name: str,
        intent: CampaignIntentName,
        lead_actor_id: NameOrId,
        subject_id: NameOrId | None = ...,
        description: str | None = ...,
        tags: Collection[str] = ...,
        external_refs: Mapping[str, str] = ...,
        external_id: str | None = ...,
        external_id_scheme: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> CampaignCreated:
        """Declare a campaign that runs can join."""
    @overload
    async def register_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def start_campaign(self, campaign_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Begin the campaign."""
    @overload
    async def start_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def hold_campaign(self, campaign_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Pause the campaign; its runs are not touched."""
    @overload
    async def hold_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def resume_campaign(self, campaign_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Go on after a hold."""
    @overload
    async def resume_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def close_campaign(self, campaign_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """End the campaign; its runs stay as they are, and so does who belongs to it."""
    @overload
    async def close_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def abandon_campaign(self, campaign_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Give the campaign up; its runs stay as they are, and so does who belongs to it."""
    @overload
    async def abandon_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_campaign(
        self,
        campaign_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CampaignView:
        """One campaign, folded from its stream."""
    async def list_campaigns(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: Sequence[ListedCampaignStatusName] = ...,
        intent: CampaignIntentName | None = ...,
        lead_actor_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        tag: str | None = ...,
    ) -> Page[CampaignItem]:
        """Campaigns in order of registration, those that are not over unless another status is asked for."""
    @overload
    async def add_run_to_campaign(
        self, campaign_id: NameOrId, run_id: NameOrId, *, idempotency_key: str | None = ...
    ) -> None:
        """Let a run join, whatever its status; a run belongs to one campaign at a time."""
    @overload
    async def add_run_to_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_run_from_campaign(
        self, campaign_id: NameOrId, run_id: NameOrId, *, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Take a run out; to move it, add it elsewhere afterwards."""
    @overload
    async def remove_run_from_campaign(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_calibration_history(
        self, calibration_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CalibrationHistory:
        """Every event of one calibration, oldest first."""
    @overload
    async def define_calibration(
        self,
        *,
        target_id: NameOrId,
        quantity: str,
        operating_point: Mapping[str, Any],
        description: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> CalibrationCreated:
        """Say what is calibrated: a quantity of one target at one operating point; its values follow as
        revisions."""
    @overload
    async def define_calibration(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def append_calibration_revision(
        self,
        calibration_id: NameOrId,
        *,
        value: Mapping[str, Any],
        status: CalibrationStatusName,
        source: GivenSource | Mapping[str, Any],
        decided_by_decision_id: NameOrId | None = ...,
        supersedes_revision_id: NameOrId | None = ...,
        idempotency_key: str | None = ...,
    ) -> AppendedRevision:
        """Add a value; from now on it is the latest, and what pinned an earlier one keeps it."""
    @overload
    async def append_calibration_revision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_calibration(
        self,
        calibration_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CalibrationView:
        """One calibration, folded from its stream."""
    async def list_calibrations(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        target_id: NameOrId | None = ...,
        quantity: CalibrationQuantityName | None = ...,
        latest_revision_status: Sequence[CalibrationStatusName] = ...,
        latest_revision_source_kind: Sequence[SourceKindName] = ...,
    ) -> Page[CalibrationItem]:
        """Calibrations in order of definition, with what is latest of each."""
    @overload
    async def publish_calibration_revision(
        self,
        calibration_id: NameOrId,
        revision_id: NameOrId,
        *,
        peer_facility_id: NameOrId,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> PublishedRevision | PublicationAccepted:
        """Sign a revision and send it to a peer; the caller is the sign-off and must be a person."""
    @overload
    async def publish_calibration_revision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_calibration_at_risk_results(
        self,
        calibration_id: NameOrId,
        *,
        revision_id: NameOrId | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
    ) -> Page[CalibrationAtRiskResult]:
        """Datasets that used a superseded revision, then those derived from them; with a revision named, what used
        that one."""
    async def get_dataset_history(
        self, dataset_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> DatasetHistory:
        """Every event of one dataset, oldest first."""
    @overload
    async def register_dataset(
        self,
        *,
        name: str,
        uri: str,
        checksum: GivenChecksum | Mapping[str, Any],
        byte_size: int,
        encoding: GivenEncoding | Mapping[str, Any],
        producing_run_id: NameOrId | None = ...,
        producing_procedure_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        derived_from: Collection[NameOrId] = ...,
        used_calibration_ids: Collection[NameOrId] = ...,
        idempotency_key: str | None = ...,
    ) -> DatasetCreated:
        """Record a data product; it begins as a Trial that nothing may rest on. Its run may still be under way."""
    @overload
    async def register_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def promote_dataset(self, dataset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Declare a Trial dataset good enough for results to rest on it; one of a simulation never is."""
    @overload
    async def promote_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def demote_dataset(self, dataset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Declare that results should not have rested on a Production dataset; it never returns, but a new one may
        follow it."""
    @overload
    async def demote_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def discard_dataset(self, dataset_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Declare the record void; children, copies, editions and bytes stay as they are."""
    @overload
    async def discard_dataset(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def assign_dataset_external_id(
        self, dataset_id: NameOrId, *, external_id: str, external_id_scheme: str = ..., idempotency_key: str | None = ...
    ) -> None:
        """Keep the identifier a registry gave the dataset, once and for all, in whatever status it is."""
    @overload
    async def assign_dataset_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_dataset(
        self,
        dataset_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> DatasetView:
        """One dataset, folded from its stream."""
    async def list_datasets(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: DatasetStatusName | None = ...,
        intent: DatasetIntentName | None = ...,
        producing_run_id: NameOrId | None = ...,
        subject_id: NameOrId | None = ...,
        derived_from: NameOrId | None = ...,
        used_calibration_id: NameOrId | None = ...,
    ) -> Page[DatasetItem]:
        """Datasets in order of registration; `derived_from` lists the direct children of one."""
    async def get_distribution_history(
        self,
        distribution_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> DistributionHistory:
        """Every event of one distribution, oldest first."""
    @overload
    async def register_distribution(
        self,
        *,
        dataset_id: NameOrId,
        supply_id: NameOrId,
        uri: str,
        checksum: GivenChecksum | Mapping[str, Any],
        byte_size: int,
        encoding: GivenEncoding | Mapping[str, Any],
        access_protocol: str,
        idempotency_key: str | None = ...,
    ) -> DistributionCreated:
        """Record a copy of a dataset on a storage supply; it has the checksum and size of the dataset."""
    @overload
    async def register_distribution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def mark_distribution_stale(
        self, distribution_id: NameOrId, *, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Say that a copy's bytes are not what they should be; that is a fact, however many copies are left."""
    @overload
    async def mark_distribution_stale(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def discard_distribution(
        self, distribution_id: NameOrId, *, reason: str, idempotency_key: str | None = ...
    ) -> None:
        """Give up a copy; one whose bytes were looked at goes only while another is Verified on another supply."""
    @overload
    async def discard_distribution(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_distribution(
        self,
        distribution_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> DistributionView:
        """One distribution, folded from its stream."""
    async def list_distributions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        supply_id: NameOrId | None = ...,
        status: DistributionStatusName | None = ...,
        access_protocol: AccessProtocolName | None = ...,
    ) -> Page[DistributionItem]:
        """Copies in order of registration."""
    async def get_acquisition_history(
        self, acquisition_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AcquisitionHistory:
        """Every event of one acquisition, oldest first."""
    @overload
    async def record_acquisition(
        self,
        *,
        dataset_id: NameOrId,
        producing_asset_id: NameOrId,
        captured_at: datetime | str,
        producing_run_id: NameOrId | None = ...,
        settings: Mapping[str, Any] = ...,
        evidence: Mapping[str, Any] = ...,
        idempotency_key: str | None = ...,
    ) -> AcquisitionCreated:
        """Record which asset captured a dataset, and when; nothing stands against several such records."""
    @overload
    async def record_acquisition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_acquisition(
        self,
        acquisition_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AcquisitionView:
        """One acquisition, folded from its stream."""
    async def list_acquisitions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        producing_asset_id: NameOrId | None = ...,
        producing_run_id: NameOrId | None = ...,
    ) -> Page[AcquisitionItem]:
        """Acquisitions in order of their recording."""
    @overload
    async def ingest_scan(
        self,
        *,
        locator: str,
        producing_asset_id: NameOrId,
        supply_id: NameOrId,
        access_protocol: str,
        producing_run_id: NameOrId | None = ...,
        captured_at: datetime | str | None = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> ScanIngested | ScanIngestAccepted:
        """Read a finished scan file in Data Exchange or NXtomo layout, and record its dataset, copy and acquisition
        at once."""
    @overload
    async def ingest_scan(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_attestation_history(
        self, attestation_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AttestationHistory:
        """Every event of one attestation, oldest first."""
    @overload
    async def record_attestation(
        self,
        *,
        dataset_id: NameOrId,
        distribution_id: NameOrId,
        kind: str = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> AttestationCreated | AttestationAccepted:
        """Have the service read a copy's bytes, compare their checksum and record the result."""
    @overload
    async def record_attestation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_attestation(
        self,
        attestation_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AttestationView:
        """One attestation, folded from its stream."""
    async def list_attestations(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        distribution_id: NameOrId | None = ...,
        kind: AttestationKindName | None = ...,
        outcome: AttestationOutcomeName | None = ...,
    ) -> Page[AttestationItem]:
        """Attestations in order of their recording."""
    @overload
    async def attest_distributions(
        self,
        *,
        dataset_id: NameOrId | None = ...,
        supply_id: NameOrId | None = ...,
        not_verified_since: datetime | str | None = ...,
        limit: int = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> AttestationSweep | AttestationSweepAccepted:
        """Check the bytes of many copies one after the other, oldest first: of a dataset, on a supply, or all there
        are."""
    @overload
    async def attest_distributions(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def register_procedure_datasets(
        self, procedure_id: NameOrId, *, wait: int = ..., idempotency_key: str | None = ...
    ) -> RegisteredProducts | RegistrationAccepted:
        """Register the files of an ended phase as datasets, as its plan says; those that are registered stay as they
        are."""
    @overload
    async def register_procedure_datasets(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_procedure_files(self, procedure_id: NameOrId) -> ProcedureFilesView:
        """The files that the steps of a procedure left, as its logbook tells, and the datasets that they became."""
    async def get_edition_history(
        self, edition_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> EditionHistory:
        """Every event of one edition, oldest first."""
    @overload
    async def register_edition(
        self,
        *,
        kind: EditionKindName,
        title: str,
        dataset_ids: Collection[NameOrId],
        creator_ids: Sequence[NameOrId],
        publisher_facility_code: str | None = ...,
        publication_year: int | None = ...,
        license: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> EditionCreated:
        """Begin a package of datasets. Members may change until it is sealed; publisher, year and license may be
        given then."""
    @overload
    async def register_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def add_dataset_to_edition(
        self, edition_id: NameOrId, *, dataset_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Make a dataset a member of an edition that is not sealed yet."""
    @overload
    async def add_dataset_to_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_dataset_from_edition(
        self, edition_id: NameOrId, *, dataset_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Take a member out of an edition that is not sealed yet; one stays."""
    @overload
    async def remove_dataset_from_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def seal_edition(
        self,
        edition_id: NameOrId,
        *,
        publisher_facility_code: str | None = ...,
        publication_year: int | None = ...,
        license: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Fix the members of an edition and write its manifest. All must be Production, each with a copy that is not
        Stale."""
    @overload
    async def seal_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def publish_edition(
        self, edition_id: NameOrId, *, wait: int = ..., idempotency_key: str | None = ...
    ) -> PublishedEdition | EditionWorkAccepted:
        """Have a DOI minted for a sealed edition, and keep it with the manifest that names it."""
    @overload
    async def publish_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def withdraw_edition(
        self, edition_id: NameOrId, *, withdrawal_reason: str, wait: int = ..., idempotency_key: str | None = ...
    ) -> EditionWorkAccepted:
        """Offer a published edition no longer; its DOI stays, and leads to the notice of that."""
    @overload
    async def withdraw_edition(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_edition(
        self,
        edition_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> EditionView:
        """One edition, folded from its stream."""
    async def list_editions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: EditionStatusName | None = ...,
        kind: EditionKindName | None = ...,
        dataset_id: NameOrId | None = ...,
        publisher_facility_code: str | None = ...,
    ) -> Page[EditionItem]:
        """Editions in order of registration; `dataset_id` lists those with this member."""
    async def get_edition_manifest(self, edition_id: NameOrId) -> Document:
        """The manifest of an edition: as published, or as sealed before that."""
    async def get_dataset_datacite(self, dataset_id: NameOrId) -> Document:
        """The dataset as a record of DataCite 4.6, with its parents, instruments and sample; what is minted is the
        same."""
    async def get_edition_datacite(self, edition_id: NameOrId) -> Document:
        """The sealed edition as a record of DataCite 4.6, with its members."""
    async def get_subject_igsn(self, subject_id: NameOrId) -> Document:
        """The sample as the record that DataCite 4.6 publishes under its IGSN."""
    @overload
    async def mint_dataset_external_id(
        self, dataset_id: NameOrId, *, idempotency_key: str | None = ...
    ) -> AssignedExternalId:
        """Have a DOI minted for a dataset and keep it, once and for all."""
    @overload
    async def mint_dataset_external_id(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def retry_catalogue_entry(
        self, dataset_id: NameOrId, *, catalogue: CatalogueNameName, wait: int = ..., idempotency_key: str | None = ...
    ) -> CataloguePass | CataloguePassAccepted:
        """Have a catalogue show a dataset once more, or one from before the catalogue was configured."""
    @overload
    async def retry_catalogue_entry(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_catalogue_entries(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        dataset_id: NameOrId | None = ...,
        catalogue: CatalogueNameName | None = ...,
        status: CatalogueEntryStatusName | None = ...,
    ) -> Page[CatalogueEntryItem]:
        """How far each catalogue has come with each dataset, in the order in which they were first asked for."""
    async def get_dataset_provenance(
        self,
        dataset_id: NameOrId,
        *,
        direction: ProvenanceDirectionName = ...,
        max_depth: int = ...,
        limit: int = ...,
        copies: bool = ...,
        min_position: int | None = ...,
    ) -> DatasetProvenance:
        """Everything a dataset was made from and everything made from it, as a graph."""
    async def get_dataset_provenance_picture(
        self,
        dataset_id: NameOrId,
        *,
        direction: ProvenanceDirectionName = ...,
        max_depth: int = ...,
        limit: int = ...,
        copies: bool = ...,
        min_position: int | None = ...,
    ) -> Document:
        """The provenance of a dataset as a picture; many nodes of one kind and generation are drawn as one."""
    async def get_dataset_prov(
        self,
        dataset_id: NameOrId,
        *,
        direction: ProvenanceDirectionName = ...,
        max_depth: int = ...,
        limit: int = ...,
        copies: bool = ...,
        min_position: int | None = ...,
    ) -> Document:
        """The provenance of a dataset as PROV-JSON, for readers of that form."""
    async def get_dataset_preview(self, dataset_id: NameOrId) -> Document:
        """A small picture of a dataset: the middle frame of the largest array in its HDF5 file, in shades of
        grey."""
    async def get_decision_history(
        self, decision_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> DecisionHistory:
        """Every event of one decision, oldest first."""
    @overload
    async def register_decision(
        self,
        *,
        decided_by: NameOrId,
        context: str,
        choice: str,
        parent_id: NameOrId | None = ...,
        override_kind: OverrideKindName | None = ...,
        rule: str | None = ...,
        reasoning: str | None = ...,
        confidence: float | None = ...,
        confidence_source: ConfidenceSourceName | None = ...,
        alternatives: Sequence[str] = ...,
        inputs: Mapping[str, Any] | None = ...,
        reasoning_signature: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> DecisionCreated:
        """Record a consequential choice."""
    @overload
    async def register_decision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def rate_decision(
        self,
        decision_id: NameOrId,
        *,
        rating: DecisionRatingName,
        comment: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say whether a decision helped; who rates again replaces the own rating."""
    @overload
    async def rate_decision(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_decision(
        self,
        decision_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> DecisionView:
        """One decision, folded from its stream."""
    async def list_decisions(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        context: str | None = ...,
        choice: str | None = ...,
        exclude_choices: Sequence[str] = ...,
        rule: str | None = ...,
        decided_by: NameOrId | None = ...,
        confidence_band: ConfidenceBandName | None = ...,
        parent_id: NameOrId | None = ...,
    ) -> Page[DecisionItem]:
        """Decisions in the order they were registered."""
    @overload
    async def append_inferences(
        self, decision_id: NameOrId, *, entries: Sequence[Span | Mapping[str, Any]], idempotency_key: str | None = ...
    ) -> Appended:
        """Add the model and tool calls behind a decision to its inference logbook."""
    @overload
    async def append_inferences(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_inferences(
        self,
        decision_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        include_messages: bool = ...,
    ) -> Page[Inference]:
        """The calls behind a decision by time; prompt and answer texts only where asked for."""
    async def get_agent_history(
        self, agent_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> AgentHistory:
        """Every event of one agent, oldest first."""
    @overload
    async def define_agent(
        self,
        *,
        kind: str,
        name: str,
        version: str,
        model_ref: ModelRef | Mapping[str, Any],
        description: str | None = ...,
        canonical_uri: str | None = ...,
        prompt_template_id: NameOrId | None = ...,
        capabilities: Collection[str] = ...,
        idempotency_key: str | None = ...,
    ) -> AgentCreated:
        """Make an agent known, and with it the actor of the same id that it acts as."""
    @overload
    async def define_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def version_agent(self, agent_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put an agent into service."""
    @overload
    async def version_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def suspend_agent(self, agent_id: NameOrId, *, reason: str, idempotency_key: str | None = ...) -> None:
        """Take an agent out of service; what it asks for is refused from its next call on, until somebody resumes
        it."""
    @overload
    async def suspend_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def resume_agent(self, agent_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put a suspended agent back into service; what passed meanwhile is not made up for."""
    @overload
    async def resume_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_agent(
        self, agent_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Take an agent out of service for good."""
    @overload
    async def deprecate_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def grant_tool_to_agent(self, agent_id: NameOrId, *, tool_name: str, idempotency_key: str | None = ...) -> None:
        """Declare a tool of this agent; what it may do, policies alone decide."""
    @overload
    async def grant_tool_to_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def revoke_tool_from_agent(self, agent_id: NameOrId, *, tool_name: str, idempotency_key: str | None = ...) -> None:
        """Take a tool from the declared ones."""
    @overload
    async def revoke_tool_from_agent(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def update_agent_budget(
        self,
        agent_id: NameOrId,
        *,
        monthly_cost_cap: float | None,
        daily_token_cap: int | None,
        idempotency_key: str | None = ...,
    ) -> None:
        """Set what the agent may spend by itself in a calendar month and day (UTC); null lifts a cap."""
    @overload
    async def update_agent_budget(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_agent(
        self,
        agent_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> AgentView:
        """One agent, folded from its stream."""
    async def list_agents(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        kind: str | None = ...,
        status: AgentStatusName | None = ...,
    ) -> Page[AgentItem]:
        """Agents in the order they were defined."""
    async def get_language_model_history(
        self,
        language_model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> LanguageModelHistory:
        """Every event of one language model, oldest first."""
    @overload
    async def define_language_model(
        self,
        *,
        name: str,
        provider: str,
        model: str,
        served_via: ServingRouteName,
        pricing: Pricing | Mapping[str, Any],
        data_tier: DataTierName,
        archivability: ArchivabilityName,
        snapshot_pin: str | None = ...,
        endpoint_note: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> LanguageModelCreated:
        """Add a model to the catalog; it may be used once it is approved. No credentials are kept here."""
    @overload
    async def define_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def approve_language_model(self, language_model_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let a model be used at this facility."""
    @overload
    async def approve_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def announce_language_model_retirement(
        self,
        language_model_id: NameOrId,
        *,
        reason: str,
        effective_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Record that the provider will end a model, and when if it is known; what rests on it is at risk from now
        on."""
    @overload
    async def announce_language_model_retirement(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def retire_language_model(
        self, language_model_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Record that the provider has ended a model."""
    @overload
    async def retire_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def deprecate_language_model(
        self, language_model_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Withdraw a model from use at this facility; another entry for it may be defined."""
    @overload
    async def deprecate_language_model(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_language_model(
        self,
        language_model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> LanguageModelView:
        """One language model, folded from its stream."""
    async def list_language_models(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        status: LanguageModelStatusName | None = ...,
        provider: str | None = ...,
    ) -> Page[LanguageModelItem]:
        """The catalog in the order of its entries."""
    async def list_at_risk_results(
        self,
        language_model_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
    ) -> AtRiskResults:
        """The decisions that a model had a part in, by the time of its latest call, and whether they are at risk."""
    @overload
    async def regenerate_run_debrief(
        self,
        run_id: NameOrId,
        *,
        parent_decision_id: NameOrId | None = ...,
        agent_id: NameOrId | None = ...,
        wait: float = ...,
        idempotency_key: str | None = ...,
    ) -> RegeneratedDebrief | RegenerationAccepted:
        """Have a debrief of the run written now, by the usual agent or by the one named."""
    @overload
    async def regenerate_run_debrief(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def promote_caution_proposal(self, decision_id: NameOrId, *, idempotency_key: str | None = ...) -> NewCaution:
        """Make a caution of what an agent proposed; its author is the caller who promotes it."""
    @overload
    async def promote_caution_proposal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def list_reactions(self, *, subscriber_name: str | None = ...) -> Reactions:
        """How far every subscriber of the log has come, with what it has under way and what went wrong last."""
    @overload
    async def dismiss_event_in_reaction(
        self, subscriber_name: str, *, event_id: NameOrId, reason: str, idempotency_key: str | None = ...
    ) -> DecisionCreated:
        """Let a subscriber pass over the event that it cannot get past."""
    @overload
    async def dismiss_event_in_reaction(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_facility_history(
        self, facility_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> FacilityHistory:
        """Every event of one facility, oldest first."""
    @overload
    async def register_facility(
        self,
        *,
        code: str,
        display_name: str,
        kind: FacilityKindName,
        parent_id: NameOrId | None = ...,
        alternate_identifiers: Sequence[FacilityIdentifier | Mapping[str, Any]] = ...,
        idempotency_key: str | None = ...,
    ) -> RegisteredFacility:
        """Make a site, one of its areas or a peer known; its code is taken for ever."""
    @overload
    async def register_facility(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def decommission_facility(
        self, facility_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Close a facility; its code stays its own, and what was recorded under it stays valid."""
    @overload
    async def decommission_facility(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_facility(
        self,
        facility_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> FacilityView:
        """One facility, folded from its stream."""
    async def list_facilities(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        name: str | None = ...,
        q: str | None = ...,
        kind: FacilityKindName | None = ...,
        status: FacilityStatusName | None = ...,
        parent_id: NameOrId | None = ...,
        code: str | None = ...,
    ) -> Page[FacilityItem]:
        """Facilities in order of registration."""
    async def get_credential_history(
        self, credential_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> CredentialHistory:
        """Every event of one credential, oldest first."""
    @overload
    async def register_credential(
        self,
        *,
        facility_id: NameOrId,
        audience: str,
        purpose: CredentialPurposeName,
        secret_ref: str,
        public_material_ref: str | None = ...,
        expires_at: datetime | str | None = ...,
        idempotency_key: str | None = ...,
    ) -> CredentialCreated:
        """Say where a facility's key or token for one audience and purpose is kept; the secret itself stays
        there."""
    @overload
    async def register_credential(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def start_credential_rotation(
        self,
        credential_id: NameOrId,
        *,
        new_secret_ref: str,
        new_public_material_ref: str | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Name the material that is to follow; until the rotation is completed the current one stays in use."""
    @overload
    async def start_credential_rotation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def complete_credential_rotation(self, credential_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Use the new material from now on; the expiry stays as it was."""
    @overload
    async def complete_credential_rotation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def abort_credential_rotation(
        self, credential_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Stay with the current material."""
    @overload
    async def abort_credential_rotation(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def revoke_credential(
        self, credential_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Trust this credential no longer, for good; its facility may register another for the same audience and
        purpose."""
    @overload
    async def revoke_credential(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_credential(
        self,
        credential_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> CredentialView:
        """One credential, folded from its stream."""
    async def list_credentials(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        facility_id: NameOrId | None = ...,
        purpose: CredentialPurposeName | None = ...,
        status: CredentialStatusName | None = ...,
    ) -> Page[CredentialItem]:
        """Credentials in order of registration, without their references."""
    @overload
    async def add_facility_trust_anchor_credential(
        self, facility_id: NameOrId, *, credential_id: NameOrId, idempotency_key: str | None = ...
    ) -> None:
        """Let a Site's seals rest on this credential."""
    @overload
    async def add_facility_trust_anchor_credential(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def remove_facility_trust_anchor_credential(
        self, facility_id: NameOrId, *, credential_id: NameOrId, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Let no new seal rest on this credential; seals that use it already keep it."""
    @overload
    async def remove_facility_trust_anchor_credential(
        self, *places: Any, dry_run: Literal[True], **fields: Any
    ) -> DryRun: ...
    async def get_permit_history(
        self, permit_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> PermitHistory:
        """Every event of one permit, oldest first."""
    @overload
    async def define_permit(
        self,
        *,
        peer_facility_id: NameOrId,
        audience: str,
        purpose: str,
        direction: PermitDirectionName,
        allowed_credential_ids: Collection[NameOrId],
        allowed_payload_types: Collection[str],
        allowed_artifact_kinds: Collection[str],
        abi_tier_floor: AbiTierName,
        expires_at: datetime | str,
        terms: OutboundTerms | Mapping[str, Any] | InboundTerms,
        idempotency_key: str | None = ...,
    ) -> PermitCreated:
        """Set down what may flow to or from a peer, until when and under which credentials; it counts once
        activated."""
    @overload
    async def define_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def activate_permit(self, permit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Put the permit in force."""
    @overload
    async def activate_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def suspend_permit(
        self, permit_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Let nothing flow for now; only a person's resume ends it."""
    @overload
    async def suspend_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def resume_permit(self, permit_id: NameOrId, *, idempotency_key: str | None = ...) -> None:
        """Let data flow again."""
    @overload
    async def resume_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def revoke_permit(
        self, permit_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """End the permit for good; the same peer, audience and purpose may be granted anew."""
    @overload
    async def revoke_permit(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_permit(
        self,
        permit_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> PermitView:
        """One permit, folded from its stream."""
    async def list_permits(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        direction: PermitDirectionName | None = ...,
        status: PermitStatusName | None = ...,
        peer_facility_id: NameOrId | None = ...,
    ) -> Page[PermitItem]:
        """Permits in order of definition."""
    async def get_published_artifact(self, receipt_id: NameOrId) -> Document:
        """A published artifact as it was sent, as long as the permit is in force that let it go."""
    async def list_published_artifacts(
        self, facility_id: NameOrId, *, limit: int = ..., cursor: str | None = ..., order: OrderName = ...
    ) -> Page[PublishedArtifact]:
        """What was published to a facility under the permits in force, in order of time."""
    async def get_received_artifact_history(
        self,
        received_artifact_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
    ) -> ReceivedArtifactHistory:
        """Every event of one received artifact, oldest first."""
    @overload
    async def receive_artifact(
        self,
        *,
        source_facility_id: NameOrId,
        receipt_id: NameOrId,
        content_hash: str,
        uri: str | None = ...,
        wait: int = ...,
        idempotency_key: str | None = ...,
    ) -> ReceptionResult | ReceptionAccepted:
        """Fetch what a peer published, check it stage by stage and keep it with the verdict; an inbound permit must
        be in force."""
    @overload
    async def receive_artifact(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def recheck_received_artifact(
        self, received_artifact_id: NameOrId, *, idempotency_key: str | None = ...
    ) -> ReceptionResult:
        """Check an artifact again that could not be checked, by the permit and the keys of now; it is not fetched
        anew."""
    @overload
    async def recheck_received_artifact(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def adopt_received_artifact(
        self, received_artifact_id: NameOrId, *, calibration_id: NameOrId, idempotency_key: str | None = ...
    ) -> AppendedRevision:
        """Make a verified revision of a peer one of an own calibration of the same quantity and operating point."""
    @overload
    async def adopt_received_artifact(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_received_artifact(
        self,
        received_artifact_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> ReceivedArtifactView:
        """One received artifact, folded from its stream."""
    async def get_received_artifact_document(self, received_artifact_id: NameOrId) -> Document:
        """The artifact as it was fetched, byte for byte."""
    async def list_received_artifacts(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        source_facility_id: NameOrId | None = ...,
        status: ReceivedArtifactStatusName | None = ...,
    ) -> Page[ReceivedArtifactItem]:
        """Received artifacts in order of their first reception."""
    async def get_seal_history(
        self, facility_id: NameOrId, *, include: Literal["names"] | None = ..., limit: int = ..., cursor: str | None = ...
    ) -> SealHistory:
        """Every event of one seal, oldest first."""
    @overload
    async def initialize_seal(
        self,
        *,
        facility_id: NameOrId,
        online_credential_id: NameOrId,
        offline_credential_id: NameOrId,
        idempotency_key: str | None = ...,
    ) -> SealCreated:
        """Say which two keys vouch for a facility's pointer: an online one that signs it, an offline root above
        that."""
    @overload
    async def initialize_seal(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def sign_seal_pointer(
        self,
        facility_id: NameOrId,
        *,
        new_head_hash: str,
        new_sequence_number: int,
        signature: SealSignature | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Vouch for a newer head of the facility's published records, by the given signature or by the online key
        held here."""
    @overload
    async def sign_seal_pointer(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def rotate_seal_online_key(
        self,
        facility_id: NameOrId,
        *,
        new_online_credential_id: NameOrId,
        signed_by_offline_root: bool,
        offline_signature: SealSignature | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Let another key sign the facility's pointers; the offline root vouches for it."""
    @overload
    async def rotate_seal_online_key(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def start_seal_republishing(
        self, facility_id: NameOrId, *, reason: str | None = ..., idempotency_key: str | None = ...
    ) -> None:
        """Say that the facility publishes its records anew; no pointer is signed and no key rotated until that is
        completed."""
    @overload
    async def start_seal_republishing(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    @overload
    async def complete_seal_republishing(
        self,
        facility_id: NameOrId,
        *,
        new_head_hash: str | None = ...,
        new_sequence_number: int | None = ...,
        signature: SealSignature | Mapping[str, Any] | None = ...,
        idempotency_key: str | None = ...,
    ) -> None:
        """Say that the records are published anew, under a new head and sequence number or, without both, as they
        were."""
    @overload
    async def complete_seal_republishing(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def get_seal(
        self,
        facility_id: NameOrId,
        *,
        include: Literal["names"] | None = ...,
        as_of: datetime | str | None = ...,
        as_of_version: int | None = ...,
    ) -> SealView:
        """One seal, folded from its stream."""
    async def list_seals(
        self,
        *,
        include: Literal["names"] | None = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        min_position: int | None = ...,
        created_from: datetime | str | None = ...,
        created_to: datetime | str | None = ...,
        status: SealStatusName | None = ...,
    ) -> Page[SealItem]:
        """Seals in order of initialization."""
    async def get_seal_pointer(self, facility_id: NameOrId) -> SignedSealPointer:
        """The current pointer of a facility for its peers: the signed bytes, the signatures, and the keys to check
        them with."""
    async def list_events(
        self,
        *,
        include: Literal["names"] | None = ...,
        after: int | None = ...,
        stream_type: Sequence[str] = ...,
        event_type: Sequence[str] = ...,
        limit: int = ...,
        cursor: str | None = ...,
        order: OrderName = ...,
        payloads: bool = ...,
        max_bytes: int | None = ...,
    ) -> Page[EventView]:
        """Every committed event after a position, in commit-safe order or the newest first."""
    async def get_my_access(self) -> AccessView:
        """Who I am to the service, and every command that a call of mine can reach on this surface."""

class AsyncAcquisitionThing(AsyncThing):
    """One acquisition, named by its name or id."""

    get = verb(AsyncOperations.get_acquisition)
    get_history = verb(AsyncOperations.get_acquisition_history)

class AsyncAcquisitionCollection:
    """Every acquisition."""
    def __getitem__(self, reference: NameOrId) -> AsyncAcquisitionThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncAcquisitionThing]: ...
    list = async_listing(AsyncOperations.list_acquisitions, AsyncAcquisitionThing)
    record = maker(AsyncOperations.record_acquisition)

class AsyncActorThing(AsyncThing):
    """One actor, named by its name or id."""

    bind_subject = verb(AsyncOperations.bind_actor_subject)
    deactivate = verb(AsyncOperations.deactivate_actor)
    forget = verb(AsyncOperations.forget_actor)
    get = verb(AsyncOperations.get_actor)
    get_history = verb(AsyncOperations.get_actor_history)
    get_profile = verb(AsyncOperations.get_actor_profile)
    reactivate = verb(AsyncOperations.reactivate_actor)
    unbind_subject = verb(AsyncOperations.unbind_actor_subject)
    update_profile = verb(AsyncOperations.update_actor_profile)

class AsyncActorCollection:
    """Every actor."""
    def __getitem__(self, reference: NameOrId) -> AsyncActorThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncActorThing]: ...
    list = async_listing(AsyncOperations.list_actors, AsyncActorThing)
    register = maker(AsyncOperations.register_actor)

class AsyncAgentThing(AsyncThing):
    """One agent, named by its name or id."""

    deprecate = verb(AsyncOperations.deprecate_agent)
    get = verb(AsyncOperations.get_agent)
    get_history = verb(AsyncOperations.get_agent_history)
    grant_tool_to = verb(AsyncOperations.grant_tool_to_agent)
    resume = verb(AsyncOperations.resume_agent)
    revoke_tool_from = verb(AsyncOperations.revoke_tool_from_agent)
    suspend = verb(AsyncOperations.suspend_agent)
    update_budget = verb(AsyncOperations.update_agent_budget)
    version = verb(AsyncOperations.version_agent)

class AsyncAgentCollection:
    """Every agent."""
    def __getitem__(self, reference: NameOrId) -> AsyncAgentThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncAgentThing]: ...
    list = async_listing(AsyncOperations.list_agents, AsyncAgentThing)
    define = maker(AsyncOperations.define_agent)

class AsyncAssemblyThing(AsyncThing):
    """One assembly, named by its name or id."""

    deprecate = verb(AsyncOperations.deprecate_assembly)
    get = verb(AsyncOperations.get_assembly)
    get_history = verb(AsyncOperations.get_assembly_history)
    version = verb(AsyncOperations.version_assembly)

class AsyncAssemblyCollection:
    """Every assembly."""
    def __getitem__(self, reference: NameOrId) -> AsyncAssemblyThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncAssemblyThing]: ...
    list = async_listing(AsyncOperations.list_assemblies, AsyncAssemblyThing)
    define = maker(AsyncOperations.define_assembly)

class AsyncAssetThing(AsyncThing):
    """One asset, named by its name or id."""

    activate = verb(AsyncOperations.activate_asset)
    add_alternate_identifier = verb(AsyncOperations.add_asset_alternate_identifier)
    add_family = verb(AsyncOperations.add_asset_family)
    add_owner = verb(AsyncOperations.add_asset_owner)
    add_port = verb(AsyncOperations.add_asset_port)
    assign_external_id = verb(AsyncOperations.assign_asset_external_id)
    attach_to_fixture = verb(AsyncOperations.attach_asset_to_fixture)
    decommission = verb(AsyncOperations.decommission_asset)
    degrade = verb(AsyncOperations.degrade_asset)
    detach_from_fixture = verb(AsyncOperations.detach_asset_from_fixture)
    enter_maintenance = verb(AsyncOperations.enter_asset_maintenance)
    exit_maintenance = verb(AsyncOperations.exit_asset_maintenance)
    fault = verb(AsyncOperations.fault_asset)
    get = verb(AsyncOperations.get_asset)
    get_history = verb(AsyncOperations.get_asset_history)
    get_integration_view = verb(AsyncOperations.get_asset_integration_view)
    get_pidinst = verb(AsyncOperations.get_asset_pidinst)
    get_tree = verb(AsyncOperations.get_asset_tree)
    get_beamline_now = verb(AsyncOperations.get_beamline_now)
    relocate = verb(AsyncOperations.relocate_asset)
    remove_alternate_identifier = verb(AsyncOperations.remove_asset_alternate_identifier)
    remove_family = verb(AsyncOperations.remove_asset_family)
    remove_owner = verb(AsyncOperations.remove_asset_owner)
    remove_port = verb(AsyncOperations.remove_asset_port)
    rename = verb(AsyncOperations.rename_asset)
    restore = verb(AsyncOperations.restore_asset)
    set_signal_limits = verb(AsyncOperations.set_asset_signal_limits)
    update_partition_rule = verb(AsyncOperations.update_asset_partition_rule)
    update_settings = verb(AsyncOperations.update_asset_settings)

class AsyncAssetCollection:
    """Every asset."""
    def __getitem__(self, reference: NameOrId) -> AsyncAssetThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncAssetThing]: ...
    list = async_listing(AsyncOperations.list_assets, AsyncAssetThing)
    get_mint_sweep = maker(AsyncOperations.get_asset_mint_sweep)
    mint_missing_external_ids = maker(AsyncOperations.mint_missing_asset_external_ids)
    reads = maker(AsyncOperations.read_assets)
    register = maker(AsyncOperations.register_asset)
    resolve_signals = maker(AsyncOperations.resolve_signals)

class AsyncAttestationThing(AsyncThing):
    """One attestation, named by its name or id."""

    get = verb(AsyncOperations.get_attestation)
    get_history = verb(AsyncOperations.get_attestation_history)

class AsyncAttestationCollection:
    """Every attestation."""
    def __getitem__(self, reference: NameOrId) -> AsyncAttestationThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncAttestationThing]: ...
    list = async_listing(AsyncOperations.list_attestations, AsyncAttestationThing)
    record = maker(AsyncOperations.record_attestation)

class AsyncCalibrationThing(AsyncThing):
    """One calibration, named by its name or id."""

    append_revision = verb(AsyncOperations.append_calibration_revision)
    get = verb(AsyncOperations.get_calibration)
    get_history = verb(AsyncOperations.get_calibration_history)
    list_at_risk_results = verb(AsyncOperations.list_calibration_at_risk_results)
    publish_revision = verb(AsyncOperations.publish_calibration_revision)

class AsyncCalibrationCollection:
    """Every calibration."""
    def __getitem__(self, reference: NameOrId) -> AsyncCalibrationThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncCalibrationThing]: ...
    list = async_listing(AsyncOperations.list_calibrations, AsyncCalibrationThing)
    define = maker(AsyncOperations.define_calibration)

class AsyncCampaignThing(AsyncThing):
    """One campaign, named by its name or id."""

    abandon = verb(AsyncOperations.abandon_campaign)
    add_run_to = verb(AsyncOperations.add_run_to_campaign)
    close = verb(AsyncOperations.close_campaign)
    get = verb(AsyncOperations.get_campaign)
    get_history = verb(AsyncOperations.get_campaign_history)
    hold = verb(AsyncOperations.hold_campaign)
    remove_run_from = verb(AsyncOperations.remove_run_from_campaign)
    resume = verb(AsyncOperations.resume_campaign)
    start = verb(AsyncOperations.start_campaign)

class AsyncCampaignCollection:
    """Every campaign."""
    def __getitem__(self, reference: NameOrId) -> AsyncCampaignThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncCampaignThing]: ...
    list = async_listing(AsyncOperations.list_campaigns, AsyncCampaignThing)
    register = maker(AsyncOperations.register_campaign)

class AsyncCapabilityThing(AsyncThing):
    """One capability, named by its name or id."""

    deprecate = verb(AsyncOperations.deprecate_capability)
    get = verb(AsyncOperations.get_capability)
    get_history = verb(AsyncOperations.get_capability_history)
    version = verb(AsyncOperations.version_capability)

class AsyncCapabilityCollection:
    """Every capability."""
    def __getitem__(self, reference: NameOrId) -> AsyncCapabilityThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncCapabilityThing]: ...
    list = async_listing(AsyncOperations.list_capabilities, AsyncCapabilityThing)
    define = maker(AsyncOperations.define_capability)

class AsyncCautionThing(AsyncThing):
    """One caution, named by its name or id."""

    get = verb(AsyncOperations.get_caution)
    get_history = verb(AsyncOperations.get_caution_history)
    retire = verb(AsyncOperations.retire_caution)
    supersede = verb(AsyncOperations.supersede_caution)

class AsyncCautionCollection:
    """Every caution."""
    def __getitem__(self, reference: NameOrId) -> AsyncCautionThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncCautionThing]: ...
    list = async_listing(AsyncOperations.list_cautions, AsyncCautionThing)
    register = maker(AsyncOperations.register_caution)

class AsyncClearanceThing(AsyncThing):
    """One clearance, named by its name or id."""

    activate = verb(AsyncOperations.activate_clearance)
    amend = verb(AsyncOperations.amend_clearance)
    append_review_step = verb(AsyncOperations.append_clearance_review_step)
    approve = verb(AsyncOperations.approve_clearance)
    assign_external_id = verb(AsyncOperations.assign_clearance_external_id)
    expire = verb(AsyncOperations.expire_clearance)
    get = verb(AsyncOperations.get_clearance)
    get_history = verb(AsyncOperations.get_clearance_history)
    reject = verb(AsyncOperations.reject_clearance)
    start_review = verb(AsyncOperations.start_clearance_review)
    submit = verb(AsyncOperations.submit_clearance)

class AsyncClearanceCollection:
    """Every clearance."""
    def __getitem__(self, reference: NameOrId) -> AsyncClearanceThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncClearanceThing]: ...
    list = async_listing(AsyncOperations.list_clearances, AsyncClearanceThing)
    register = maker(AsyncOperations.register_clearance)

class AsyncClearanceTemplateThing(AsyncThing):
    """One clearance template, named by its name or id."""

    activate = verb(AsyncOperations.activate_clearance_template)
    deprecate = verb(AsyncOperations.deprecate_clearance_template)
    get = verb(AsyncOperations.get_clearance_template)
    get_history = verb(AsyncOperations.get_clearance_template_history)
    version = verb(AsyncOperations.version_clearance_template)
    withdraw = verb(AsyncOperations.withdraw_clearance_template)

class AsyncClearanceTemplateCollection:
    """Every clearance template."""
    def __getitem__(self, reference: NameOrId) -> AsyncClearanceTemplateThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncClearanceTemplateThing]: ...
    list = async_listing(AsyncOperations.list_clearance_templates, AsyncClearanceTemplateThing)
    define = maker(AsyncOperations.define_clearance_template)

class AsyncConduitThing(AsyncThing):
    """One conduit, named by its name or id."""

    get = verb(AsyncOperations.get_conduit)
    get_history = verb(AsyncOperations.get_conduit_history)
    list_verdicts = verb(AsyncOperations.list_conduit_verdicts)

class AsyncConduitCollection:
    """Every conduit."""
    def __getitem__(self, reference: NameOrId) -> AsyncConduitThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncConduitThing]: ...
    list = async_listing(AsyncOperations.list_conduits, AsyncConduitThing)
    define = maker(AsyncOperations.define_conduit)

class AsyncCredentialThing(AsyncThing):
    """One credential, named by its name or id."""

    abort_rotation = verb(AsyncOperations.abort_credential_rotation)
    complete_rotation = verb(AsyncOperations.complete_credential_rotation)
    get = verb(AsyncOperations.get_credential)
    get_history = verb(AsyncOperations.get_credential_history)
    revoke = verb(AsyncOperations.revoke_credential)
    start_rotation = verb(AsyncOperations.start_credential_rotation)

class AsyncCredentialCollection:
    """Every credential."""
    def __getitem__(self, reference: NameOrId) -> AsyncCredentialThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncCredentialThing]: ...
    list = async_listing(AsyncOperations.list_credentials, AsyncCredentialThing)
    register = maker(AsyncOperations.register_credential)

class AsyncDatasetThing(AsyncThing):
    """One dataset, named by its name or id."""

    assign_external_id = verb(AsyncOperations.assign_dataset_external_id)
    demote = verb(AsyncOperations.demote_dataset)
    discard = verb(AsyncOperations.discard_dataset)
    get = verb(AsyncOperations.get_dataset)
    get_datacite = verb(AsyncOperations.get_dataset_datacite)
    get_history = verb(AsyncOperations.get_dataset_history)
    get_preview = verb(AsyncOperations.get_dataset_preview)
    get_prov = verb(AsyncOperations.get_dataset_prov)
    get_provenance = verb(AsyncOperations.get_dataset_provenance)
    get_provenance_picture = verb(AsyncOperations.get_dataset_provenance_picture)
    mint_external_id = verb(AsyncOperations.mint_dataset_external_id)
    promote = verb(AsyncOperations.promote_dataset)
    retry_catalogue_entry = verb(AsyncOperations.retry_catalogue_entry)

class AsyncDatasetCollection:
    """Every dataset."""
    def __getitem__(self, reference: NameOrId) -> AsyncDatasetThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncDatasetThing]: ...
    list = async_listing(AsyncOperations.list_datasets, AsyncDatasetThing)
    ingest_scan = maker(AsyncOperations.ingest_scan)
    register = maker(AsyncOperations.register_dataset)

class AsyncDecisionThing(AsyncThing):
    """One decision, named by its name or id."""

    append_inferences = verb(AsyncOperations.append_inferences)
    get = verb(AsyncOperations.get_decision)
    get_history = verb(AsyncOperations.get_decision_history)
    list_inferences = verb(AsyncOperations.list_inferences)
    promote_caution_proposal = verb(AsyncOperations.promote_caution_proposal)
    rate = verb(AsyncOperations.rate_decision)

class AsyncDecisionCollection:
    """Every decision."""
    def __getitem__(self, reference: NameOrId) -> AsyncDecisionThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncDecisionThing]: ...
    list = async_listing(AsyncOperations.list_decisions, AsyncDecisionThing)
    dismiss_event_in_reaction = maker(AsyncOperations.dismiss_event_in_reaction)
    register = maker(AsyncOperations.register_decision)

class AsyncDistributionThing(AsyncThing):
    """One distribution, named by its name or id."""

    discard = verb(AsyncOperations.discard_distribution)
    get = verb(AsyncOperations.get_distribution)
    get_history = verb(AsyncOperations.get_distribution_history)
    mark_stale = verb(AsyncOperations.mark_distribution_stale)

class AsyncDistributionCollection:
    """Every distribution."""
    def __getitem__(self, reference: NameOrId) -> AsyncDistributionThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncDistributionThing]: ...
    list = async_listing(AsyncOperations.list_distributions, AsyncDistributionThing)
    attests = maker(AsyncOperations.attest_distributions)
    register = maker(AsyncOperations.register_distribution)

class AsyncEditionThing(AsyncThing):
    """One edition, named by its name or id."""

    add_dataset_to = verb(AsyncOperations.add_dataset_to_edition)
    get = verb(AsyncOperations.get_edition)
    get_datacite = verb(AsyncOperations.get_edition_datacite)
    get_history = verb(AsyncOperations.get_edition_history)
    get_manifest = verb(AsyncOperations.get_edition_manifest)
    publish = verb(AsyncOperations.publish_edition)
    remove_dataset_from = verb(AsyncOperations.remove_dataset_from_edition)
    seal = verb(AsyncOperations.seal_edition)
    withdraw = verb(AsyncOperations.withdraw_edition)

class AsyncEditionCollection:
    """Every edition."""
    def __getitem__(self, reference: NameOrId) -> AsyncEditionThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncEditionThing]: ...
    list = async_listing(AsyncOperations.list_editions, AsyncEditionThing)
    register = maker(AsyncOperations.register_edition)

class AsyncEnclosureThing(AsyncThing):
    """One enclosure, named by its name or id."""

    decommission = verb(AsyncOperations.decommission_enclosure)
    get = verb(AsyncOperations.get_enclosure)
    get_history = verb(AsyncOperations.get_enclosure_history)
    observe_status = verb(AsyncOperations.observe_enclosure_status)

class AsyncEnclosureCollection:
    """Every enclosure."""
    def __getitem__(self, reference: NameOrId) -> AsyncEnclosureThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncEnclosureThing]: ...
    list = async_listing(AsyncOperations.list_enclosures, AsyncEnclosureThing)
    register = maker(AsyncOperations.register_enclosure)

class AsyncFacilityThing(AsyncThing):
    """One facility, named by its name or id."""

    add_trust_anchor_credential = verb(AsyncOperations.add_facility_trust_anchor_credential)
    decommission = verb(AsyncOperations.decommission_facility)
    get = verb(AsyncOperations.get_facility)
    get_history = verb(AsyncOperations.get_facility_history)
    list_published_artifacts = verb(AsyncOperations.list_published_artifacts)
    remove_trust_anchor_credential = verb(AsyncOperations.remove_facility_trust_anchor_credential)

class AsyncFacilityCollection:
    """Every facility."""
    def __getitem__(self, reference: NameOrId) -> AsyncFacilityThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncFacilityThing]: ...
    list = async_listing(AsyncOperations.list_facilities, AsyncFacilityThing)
    register = maker(AsyncOperations.register_facility)

class AsyncFamilyThing(AsyncThing):
    """One family, named by its name or id."""

    add_role = verb(AsyncOperations.add_family_role)
    deprecate = verb(AsyncOperations.deprecate_family)
    get = verb(AsyncOperations.get_family)
    get_history = verb(AsyncOperations.get_family_history)
    remove_role = verb(AsyncOperations.remove_family_role)
    update_settings_schema = verb(AsyncOperations.update_family_settings_schema)
    version = verb(AsyncOperations.version_family)

class AsyncFamilyCollection:
    """Every family."""
    def __getitem__(self, reference: NameOrId) -> AsyncFamilyThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncFamilyThing]: ...
    list = async_listing(AsyncOperations.list_families, AsyncFamilyThing)
    define = maker(AsyncOperations.define_family)
    list_affordances = maker(AsyncOperations.list_affordances)

class AsyncFixtureThing(AsyncThing):
    """One fixture, named by its name or id."""

    assign_external_id = verb(AsyncOperations.assign_fixture_external_id)
    get = verb(AsyncOperations.get_fixture)
    get_history = verb(AsyncOperations.get_fixture_history)
    get_pidinst = verb(AsyncOperations.get_fixture_pidinst)

class AsyncFixtureCollection:
    """Every fixture."""
    def __getitem__(self, reference: NameOrId) -> AsyncFixtureThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncFixtureThing]: ...
    list = async_listing(AsyncOperations.list_fixtures, AsyncFixtureThing)
    register = maker(AsyncOperations.register_fixture)

class AsyncFrameThing(AsyncThing):
    """One frame, named by its name or id."""

    decommission = verb(AsyncOperations.decommission_frame)
    get = verb(AsyncOperations.get_frame)
    get_history = verb(AsyncOperations.get_frame_history)
    update_placement = verb(AsyncOperations.update_frame_placement)

class AsyncFrameCollection:
    """Every frame."""
    def __getitem__(self, reference: NameOrId) -> AsyncFrameThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncFrameThing]: ...
    list = async_listing(AsyncOperations.list_frames, AsyncFrameThing)
    register = maker(AsyncOperations.register_frame)

class AsyncGroupThing(AsyncThing):
    """One group, named by its name or id."""

    add_member = verb(AsyncOperations.add_group_member)
    get = verb(AsyncOperations.get_group)
    get_history = verb(AsyncOperations.get_group_history)
    remove_member = verb(AsyncOperations.remove_group_member)
    rename = verb(AsyncOperations.rename_group)
    retire = verb(AsyncOperations.retire_group)

class AsyncGroupCollection:
    """Every group."""
    def __getitem__(self, reference: NameOrId) -> AsyncGroupThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncGroupThing]: ...
    list = async_listing(AsyncOperations.list_groups, AsyncGroupThing)
    define = maker(AsyncOperations.define_group)

class AsyncLanguageModelThing(AsyncThing):
    """One language model, named by its name or id."""

    announce_retirement = verb(AsyncOperations.announce_language_model_retirement)
    approve = verb(AsyncOperations.approve_language_model)
    deprecate = verb(AsyncOperations.deprecate_language_model)
    get = verb(AsyncOperations.get_language_model)
    get_history = verb(AsyncOperations.get_language_model_history)
    list_at_risk_results = verb(AsyncOperations.list_at_risk_results)
    retire = verb(AsyncOperations.retire_language_model)

class AsyncLanguageModelCollection:
    """Every language model."""
    def __getitem__(self, reference: NameOrId) -> AsyncLanguageModelThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncLanguageModelThing]: ...
    list = async_listing(AsyncOperations.list_language_models, AsyncLanguageModelThing)
    define = maker(AsyncOperations.define_language_model)

class AsyncMethodThing(AsyncThing):
    """One method, named by its name or id."""

    add_required_role = verb(AsyncOperations.add_method_required_role)
    deprecate = verb(AsyncOperations.deprecate_method)
    get = verb(AsyncOperations.get_method)
    get_history = verb(AsyncOperations.get_method_history)
    remove_required_role = verb(AsyncOperations.remove_method_required_role)
    update_parameters_schema = verb(AsyncOperations.update_method_parameters_schema)
    version = verb(AsyncOperations.version_method)

class AsyncMethodCollection:
    """Every method."""
    def __getitem__(self, reference: NameOrId) -> AsyncMethodThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncMethodThing]: ...
    list = async_listing(AsyncOperations.list_methods, AsyncMethodThing)
    define = maker(AsyncOperations.define_method)

class AsyncModelThing(AsyncThing):
    """One model, named by its name or id."""

    add_family = verb(AsyncOperations.add_model_family)
    deprecate = verb(AsyncOperations.deprecate_model)
    get = verb(AsyncOperations.get_model)
    get_history = verb(AsyncOperations.get_model_history)
    remove_family = verb(AsyncOperations.remove_model_family)
    version = verb(AsyncOperations.version_model)

class AsyncModelCollection:
    """Every model."""
    def __getitem__(self, reference: NameOrId) -> AsyncModelThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncModelThing]: ...
    list = async_listing(AsyncOperations.list_models, AsyncModelThing)
    define = maker(AsyncOperations.define_model)

class AsyncMountThing(AsyncThing):
    """One mount, named by its name or id."""

    decommission = verb(AsyncOperations.decommission_mount)
    get = verb(AsyncOperations.get_mount)
    get_history = verb(AsyncOperations.get_mount_history)
    install_asset = verb(AsyncOperations.install_asset)
    uninstall_asset = verb(AsyncOperations.uninstall_asset)
    update_placement = verb(AsyncOperations.update_mount_placement)

class AsyncMountCollection:
    """Every mount."""
    def __getitem__(self, reference: NameOrId) -> AsyncMountThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncMountThing]: ...
    list = async_listing(AsyncOperations.list_mounts, AsyncMountThing)
    register = maker(AsyncOperations.register_mount)

class AsyncPermitThing(AsyncThing):
    """One permit, named by its name or id."""

    activate = verb(AsyncOperations.activate_permit)
    get = verb(AsyncOperations.get_permit)
    get_history = verb(AsyncOperations.get_permit_history)
    resume = verb(AsyncOperations.resume_permit)
    revoke = verb(AsyncOperations.revoke_permit)
    suspend = verb(AsyncOperations.suspend_permit)

class AsyncPermitCollection:
    """Every permit."""
    def __getitem__(self, reference: NameOrId) -> AsyncPermitThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncPermitThing]: ...
    list = async_listing(AsyncOperations.list_permits, AsyncPermitThing)
    define = maker(AsyncOperations.define_permit)
    get_published_artifact = maker(AsyncOperations.get_published_artifact)

class AsyncPlanThing(AsyncThing):
    """One plan, named by its name or id."""

    add_wire = verb(AsyncOperations.add_plan_wire)
    bind_role = verb(AsyncOperations.bind_plan_role)
    deprecate = verb(AsyncOperations.deprecate_plan)
    get = verb(AsyncOperations.get_plan)
    get_history = verb(AsyncOperations.get_plan_history)
    remove_wire = verb(AsyncOperations.remove_plan_wire)
    reschedule = verb(AsyncOperations.reschedule_plan)
    set_data_registration = verb(AsyncOperations.set_plan_data_registration)
    unbind_role = verb(AsyncOperations.unbind_plan_role)
    update_default_parameters = verb(AsyncOperations.update_plan_default_parameters)
    version = verb(AsyncOperations.version_plan)
    @overload
    async def start(
        self,
        *,
        name: str | None = ...,
        subject: NameOrId | None = ...,
        campaign: NameOrId | None = ...,
        recipes: Sequence[NameOrId] | None = ...,
        parameters: Mapping[str, Any] | None = ...,
        **more_parameters: Any,
    ) -> AsyncRunThing:
        """Start a run and have its phases conducted; return the run. Parameters of the run are given by their
        names."""
    @overload
    async def start(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...
    async def preflight(
        self,
        *,
        name: str | None = ...,
        subject: NameOrId | None = ...,
        campaign: NameOrId | None = ...,
        parameters: Mapping[str, Any] | None = ...,
        **more_parameters: Any,
    ) -> Preflight:
        """Ask whether a run with these parameters could start now."""

class AsyncPlanCollection:
    """Every plan."""
    def __getitem__(self, reference: NameOrId) -> AsyncPlanThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncPlanThing]: ...
    list = async_listing(AsyncOperations.list_plans, AsyncPlanThing)
    define = maker(AsyncOperations.define_plan)
    inspect_binding = maker(AsyncOperations.inspect_plan_binding)

class AsyncPolicyThing(AsyncThing):
    """One policy, named by its name or id."""

    evaluate = verb(AsyncOperations.evaluate_policy)
    extend = verb(AsyncOperations.extend_policy)
    get = verb(AsyncOperations.get_policy)
    get_history = verb(AsyncOperations.get_policy_history)
    list_permissions = verb(AsyncOperations.list_permissions)
    revoke_grant = verb(AsyncOperations.revoke_grant)

class AsyncPolicyCollection:
    """Every policy."""
    def __getitem__(self, reference: NameOrId) -> AsyncPolicyThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncPolicyThing]: ...
    list = async_listing(AsyncOperations.list_policies, AsyncPolicyThing)
    define = maker(AsyncOperations.define_policy)

class AsyncPracticeThing(AsyncThing):
    """One practice, named by its name or id."""

    deprecate = verb(AsyncOperations.deprecate_practice)
    get = verb(AsyncOperations.get_practice)
    get_history = verb(AsyncOperations.get_practice_history)
    version = verb(AsyncOperations.version_practice)

class AsyncPracticeCollection:
    """Every practice."""
    def __getitem__(self, reference: NameOrId) -> AsyncPracticeThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncPracticeThing]: ...
    list = async_listing(AsyncOperations.list_practices, AsyncPracticeThing)
    define = maker(AsyncOperations.define_practice)

class AsyncProcedureThing(AsyncThing):
    """One procedure, named by its name or id."""

    abort = verb(AsyncOperations.abort_procedure)
    advise = verb(AsyncOperations.advise_procedure)
    append_activities = verb(AsyncOperations.append_activities)
    complete = verb(AsyncOperations.complete_procedure)
    conduct_from = verb(AsyncOperations.conduct_from_procedure)
    conduct_or_hold = verb(AsyncOperations.conduct_or_hold_procedure)
    conduct = verb(AsyncOperations.conduct_procedure)
    conduct_until_advised = verb(AsyncOperations.conduct_until_advised)
    conduct_until_advised_from = verb(AsyncOperations.conduct_until_advised_from)
    conduct_until_converged = verb(AsyncOperations.conduct_until_converged)
    end_iteration = verb(AsyncOperations.end_iteration)
    get = verb(AsyncOperations.get_procedure)
    get_conduct = verb(AsyncOperations.get_procedure_conduct)
    get_files = verb(AsyncOperations.get_procedure_files)
    get_history = verb(AsyncOperations.get_procedure_history)
    get_steering = verb(AsyncOperations.get_procedure_steering)
    hold = verb(AsyncOperations.hold_procedure)
    list_activities = verb(AsyncOperations.list_procedure_activities)
    list_iterations = verb(AsyncOperations.list_procedure_iterations)
    list_steps = verb(AsyncOperations.list_procedure_steps)
    preflight = verb(AsyncOperations.preflight_procedure)
    register_datasets = verb(AsyncOperations.register_procedure_datasets)
    resolve_step = verb(AsyncOperations.resolve_procedure_step)
    resume = verb(AsyncOperations.resume_procedure)
    skip_wait = verb(AsyncOperations.skip_procedure_wait)
    start_iteration = verb(AsyncOperations.start_iteration)
    start = verb(AsyncOperations.start_procedure)
    truncate = verb(AsyncOperations.truncate_procedure)
    def watch(self, *, console: Console | None = ..., lines: bool = ...) -> AsyncConductWatch:
        """Watch its latest conduct to its end: yields typed frames, and draws a bar."""

class AsyncProcedureCollection:
    """Every procedure."""
    def __getitem__(self, reference: NameOrId) -> AsyncProcedureThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncProcedureThing]: ...
    list = async_listing(AsyncOperations.list_procedures, AsyncProcedureThing)
    read_signals = maker(AsyncOperations.read_signals)
    register = maker(AsyncOperations.register_procedure)
    register_from_recipe = maker(AsyncOperations.register_procedure_from_recipe)

class AsyncProposalThing(AsyncThing):
    """One proposal, named by its name or id."""

    approve = verb(AsyncOperations.approve_proposal)
    get = verb(AsyncOperations.get_proposal)
    get_history = verb(AsyncOperations.get_proposal_history)
    reject = verb(AsyncOperations.reject_proposal)
    withdraw = verb(AsyncOperations.withdraw_proposal)

class AsyncProposalCollection:
    """Every proposal."""
    def __getitem__(self, reference: NameOrId) -> AsyncProposalThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncProposalThing]: ...
    list = async_listing(AsyncOperations.list_proposals, AsyncProposalThing)

class AsyncQueueThing(AsyncThing):
    """One queue, named by its name or id."""

    add_items = verb(AsyncOperations.add_queue_items)
    edit_item = verb(AsyncOperations.edit_queue_item)
    get = verb(AsyncOperations.get_queue)
    get_history = verb(AsyncOperations.get_queue_history)
    hold = verb(AsyncOperations.hold_queue)
    list_items = verb(AsyncOperations.list_queue_items)
    move_item = verb(AsyncOperations.move_queue_item)
    remove_item = verb(AsyncOperations.remove_queue_item)
    resume = verb(AsyncOperations.resume_queue)
    retire = verb(AsyncOperations.retire_queue)
    @overload
    async def add_from_table(
        self,
        table: Table,
        *,
        plan: NameOrId | None = ...,
        recipes: Sequence[NameOrId] | None = ...,
        recipe: NameOrId | None = ...,
        on: NameOrId | Sequence[NameOrId] = ...,
        before: NameOrId | None = ...,
        zone: tzinfo | None = ...,
    ) -> list[UUID]:
        """Add an item for each row of a table, all or none, and return their ids: runs on a plan, or procedures of a
        recipe on assets. Columns are the parameters; times without a zone are on the clock of `zone`."""
    @overload
    async def add_from_table(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...

class AsyncQueueCollection:
    """Every queue."""
    def __getitem__(self, reference: NameOrId) -> AsyncQueueThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncQueueThing]: ...
    list = async_listing(AsyncOperations.list_queues, AsyncQueueThing)
    open = maker(AsyncOperations.open_queue)

class AsyncReceivedArtifactThing(AsyncThing):
    """One received artifact, named by its name or id."""

    adopt = verb(AsyncOperations.adopt_received_artifact)
    get = verb(AsyncOperations.get_received_artifact)
    get_document = verb(AsyncOperations.get_received_artifact_document)
    get_history = verb(AsyncOperations.get_received_artifact_history)
    recheck = verb(AsyncOperations.recheck_received_artifact)

class AsyncReceivedArtifactCollection:
    """Every received artifact."""
    def __getitem__(self, reference: NameOrId) -> AsyncReceivedArtifactThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncReceivedArtifactThing]: ...
    list = async_listing(AsyncOperations.list_received_artifacts, AsyncReceivedArtifactThing)
    receive_artifact = maker(AsyncOperations.receive_artifact)

class AsyncRecipeThing(AsyncThing):
    """One recipe, named by its name or id."""

    deprecate = verb(AsyncOperations.deprecate_recipe)
    get = verb(AsyncOperations.get_recipe)
    get_history = verb(AsyncOperations.get_recipe_history)
    list_versions = verb(AsyncOperations.list_recipe_versions)
    version = verb(AsyncOperations.version_recipe)
    @overload
    async def conduct(
        self,
        *,
        on: NameOrId | Sequence[NameOrId],
        name: str | None = ...,
        kind: str | None = ...,
        parameters: Mapping[str, Any] | None = ...,
        **more_parameters: Any,
    ) -> AsyncProcedureThing:
        """Register a procedure of the recipe on these assets and have it conducted; return the procedure."""
    @overload
    async def conduct(self, *places: Any, dry_run: Literal[True], **fields: Any) -> DryRun: ...

class AsyncRecipeCollection:
    """Every recipe."""
    def __getitem__(self, reference: NameOrId) -> AsyncRecipeThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncRecipeThing]: ...
    list = async_listing(AsyncOperations.list_recipes, AsyncRecipeThing)
    define = maker(AsyncOperations.define_recipe)

class AsyncRoleThing(AsyncThing):
    """One role, named by its name or id."""

    get = verb(AsyncOperations.get_role)
    get_history = verb(AsyncOperations.get_role_history)

class AsyncRoleCollection:
    """Every role."""
    def __getitem__(self, reference: NameOrId) -> AsyncRoleThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncRoleThing]: ...
    list = async_listing(AsyncOperations.list_roles, AsyncRoleThing)
    define = maker(AsyncOperations.define_role)

class AsyncRunThing(AsyncThing):
    """One run, named by its name or id."""

    abort = verb(AsyncOperations.abort_run)
    adjust = verb(AsyncOperations.adjust_run)
    append_observations = verb(AsyncOperations.append_observations)
    append_logbook_entries = verb(AsyncOperations.append_run_logbook_entries)
    complete = verb(AsyncOperations.complete_run)
    conduct = verb(AsyncOperations.conduct_run)
    get = verb(AsyncOperations.get_run)
    get_conduct = verb(AsyncOperations.get_run_conduct)
    get_history = verb(AsyncOperations.get_run_history)
    hold = verb(AsyncOperations.hold_run)
    list_channels = verb(AsyncOperations.list_run_channels)
    list_logbook_entries = verb(AsyncOperations.list_run_logbook_entries)
    list_observations = verb(AsyncOperations.list_run_observations)
    regenerate_debrief = verb(AsyncOperations.regenerate_run_debrief)
    resume = verb(AsyncOperations.resume_run)
    stop = verb(AsyncOperations.stop_run)
    truncate = verb(AsyncOperations.truncate_run)
    def watch(self, *, console: Console | None = ..., lines: bool = ...) -> AsyncRunWatch:
        """Watch its latest conduct to its end: yields typed frames, and draws a bar."""

class AsyncRunCollection:
    """Every run."""
    def __getitem__(self, reference: NameOrId) -> AsyncRunThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncRunThing]: ...
    list = async_listing(AsyncOperations.list_runs, AsyncRunThing)
    hold_everything = maker(AsyncOperations.hold_everything)
    preflight = maker(AsyncOperations.preflight_run)
    start = maker(AsyncOperations.start_run)

class AsyncScheduleThing(AsyncThing):
    """One schedule, named by its name or id."""

    get = verb(AsyncOperations.get_schedule)
    get_history = verb(AsyncOperations.get_schedule_history)
    hold = verb(AsyncOperations.hold_schedule)
    resume = verb(AsyncOperations.resume_schedule)
    retire = verb(AsyncOperations.retire_schedule)
    trigger = verb(AsyncOperations.trigger_schedule)

class AsyncScheduleCollection:
    """Every schedule."""
    def __getitem__(self, reference: NameOrId) -> AsyncScheduleThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncScheduleThing]: ...
    list = async_listing(AsyncOperations.list_schedules, AsyncScheduleThing)
    define = maker(AsyncOperations.define_schedule)

class AsyncSealThing(AsyncThing):
    """One seal, named by its name or id."""

    complete_republishing = verb(AsyncOperations.complete_seal_republishing)
    get = verb(AsyncOperations.get_seal)
    get_history = verb(AsyncOperations.get_seal_history)
    get_pointer = verb(AsyncOperations.get_seal_pointer)
    rotate_online_key = verb(AsyncOperations.rotate_seal_online_key)
    sign_pointer = verb(AsyncOperations.sign_seal_pointer)
    start_republishing = verb(AsyncOperations.start_seal_republishing)

class AsyncSealCollection:
    """Every seal."""
    def __getitem__(self, reference: NameOrId) -> AsyncSealThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncSealThing]: ...
    list = async_listing(AsyncOperations.list_seals, AsyncSealThing)
    initialize = maker(AsyncOperations.initialize_seal)

class AsyncSubjectThing(AsyncThing):
    """One subject, named by its name or id."""

    assign_external_id = verb(AsyncOperations.assign_subject_external_id)
    discard = verb(AsyncOperations.discard_subject)
    dismount = verb(AsyncOperations.dismount_subject)
    get = verb(AsyncOperations.get_subject)
    get_history = verb(AsyncOperations.get_subject_history)
    get_igsn = verb(AsyncOperations.get_subject_igsn)
    measure = verb(AsyncOperations.measure_subject)
    mount = verb(AsyncOperations.mount_subject)
    remove = verb(AsyncOperations.remove_subject)
    return_ = verb(AsyncOperations.return_subject)
    store = verb(AsyncOperations.store_subject)

class AsyncSubjectCollection:
    """Every subject."""
    def __getitem__(self, reference: NameOrId) -> AsyncSubjectThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncSubjectThing]: ...
    list = async_listing(AsyncOperations.list_subjects, AsyncSubjectThing)
    register = maker(AsyncOperations.register_subject)

class AsyncSupplyThing(AsyncThing):
    """One supply, named by its name or id."""

    degrade = verb(AsyncOperations.degrade_supply)
    deregister = verb(AsyncOperations.deregister_supply)
    get = verb(AsyncOperations.get_supply)
    get_history = verb(AsyncOperations.get_supply_history)
    mark_available = verb(AsyncOperations.mark_supply_available)
    mark_recovering = verb(AsyncOperations.mark_supply_recovering)
    mark_unavailable = verb(AsyncOperations.mark_supply_unavailable)
    observe_status = verb(AsyncOperations.observe_supply_status)
    restore = verb(AsyncOperations.restore_supply)

class AsyncSupplyCollection:
    """Every supply."""
    def __getitem__(self, reference: NameOrId) -> AsyncSupplyThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncSupplyThing]: ...
    list = async_listing(AsyncOperations.list_supplies, AsyncSupplyThing)
    register = maker(AsyncOperations.register_supply)

class AsyncSurfaceThing(AsyncThing):
    """One surface, named by its name or id."""

    get = verb(AsyncOperations.get_surface)
    get_control = verb(AsyncOperations.get_surface_control)
    get_history = verb(AsyncOperations.get_surface_history)

class AsyncSurfaceCollection:
    """Every surface."""
    def __getitem__(self, reference: NameOrId) -> AsyncSurfaceThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncSurfaceThing]: ...
    list = async_listing(AsyncOperations.list_surfaces, AsyncSurfaceThing)
    define = maker(AsyncOperations.define_surface)

class AsyncVisitThing(AsyncThing):
    """One visit, named by its name or id."""

    abort = verb(AsyncOperations.abort_visit)
    cancel = verb(AsyncOperations.cancel_visit)
    check_in = verb(AsyncOperations.check_in_visit)
    check_out = verb(AsyncOperations.check_out_visit)
    complete = verb(AsyncOperations.complete_visit)
    get = verb(AsyncOperations.get_visit)
    get_history = verb(AsyncOperations.get_visit_history)
    hold = verb(AsyncOperations.hold_visit)
    list_presence = verb(AsyncOperations.list_visit_presence)
    record_arrival = verb(AsyncOperations.record_visit_arrival)
    release_control_of_surface = verb(AsyncOperations.release_control_of_surface)
    resume = verb(AsyncOperations.resume_visit)
    start = verb(AsyncOperations.start_visit)
    take_control_of_surface = verb(AsyncOperations.take_control_of_surface)
    void = verb(AsyncOperations.void_visit)

class AsyncVisitCollection:
    """Every visit."""
    def __getitem__(self, reference: NameOrId) -> AsyncVisitThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncVisitThing]: ...
    list = async_listing(AsyncOperations.list_visits, AsyncVisitThing)
    register = maker(AsyncOperations.register_visit)

class AsyncZoneThing(AsyncThing):
    """One zone, named by its name or id."""

    get = verb(AsyncOperations.get_zone)
    get_history = verb(AsyncOperations.get_zone_history)

class AsyncZoneCollection:
    """Every zone."""
    def __getitem__(self, reference: NameOrId) -> AsyncZoneThing: ...
    def __aiter__(self) -> AsyncIterator[AsyncZoneThing]: ...
    list = async_listing(AsyncOperations.list_zones, AsyncZoneThing)
    define = maker(AsyncOperations.define_zone)
