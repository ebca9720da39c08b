"""The ports that decisions and answers may ask beyond the store: `deployment = yield from ask(Ports.deployment)`. The
composition root gives one object with these methods; tests give any object that has the methods they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from baton.domain.access.edge_queries import ListEvents
    from baton.domain.agent.agent import SpentAmounts
    from baton.domain.agent.language_model import ModelRef
    from baton.domain.agent.reactions import LoggedEvent, OpenItem, Reaction
    from baton.domain.data.catalogue import CatalogueName
    from baton.domain.data.lineage import Lineage, LineageDirection
    from baton.domain.data.preview import RegisteredFile
    from baton.domain.data.procedure_files import FileRow
    from baton.domain.equipment.values import ExternalIdScheme
    from baton.domain.kernel import Call, Command, Document, Event, State
    from baton.domain.operation.conduct.action_signals import ActionSignals
    from baton.domain.operation.conduct.control_signals import ReadSignalsRequest, SignalSample
    from baton.domain.operation.conduct.estimates import ConductWalk, StepDuration, StepKey
    from baton.domain.operation.conduct.results import ActuationKind, DeclaredRoute
    from baton.domain.operation.conduct.step_list import LedgerPart, ListedSteps, ListPlace
    from baton.domain.operation.conduct.views import MeasuredObjective
    from baton.domain.operation.conduct.work_items import WorkFound
    from baton.domain.shared.citation import Citation
    from baton.domain.shared.listing import Page, Summary
    from baton.domain.shared.refusals import Refusal
    from baton.domain.shared.signatures import PublicKey, Signature, SignatureVerdict
    from baton.domain.trust.proposal import Proposal, ProposalView
    from baton.domain.trust.proposal_basis import ProposalBasis


@dataclass(frozen=True)
class Deployment:
    """The settings of this deployment that decisions and answers may know."""

    base_url: str
    landing_page_template: str | None
    publisher: str
    minted_schemes: frozenset[ExternalIdScheme]
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
    monitored_enclosures: frozenset[str]  # The enclosures that the monitor watches, by the keys of their names.
    monitored_supplies: frozenset[str]  # The supplies that the monitor watches, by the keys of their addresses.
    seal_signatures_required: bool  # Whether a seal takes a pointer or a new online key only with its signature.
    catalogues: frozenset[CatalogueName]  # Those that datasets are entered into.
    peer_addresses: Mapping[str, str]  # Where published artifacts of peers are fetched from, by the codes of facilities.
    control_routes: tuple[DeclaredRoute, ...]  # What serves each signal; where writes are disabled, all are read-only.


@dataclass(frozen=True)
class ProviderFacts:
    """What is configured about one issuer and subject."""

    known: bool
    bound: bool
    any_configured: bool = True  # Whether there is any identity provider at all.


@dataclass(frozen=True)
class MintedIdentifier:
    """An identifier that a registry issued."""

    scheme: ExternalIdScheme
    value: str


Orders = Sequence[tuple["Command", UUID]]  # Commands, and what each is about.


class Ports(Protocol):
    """Everything outside the store that a decision or an answer may ask."""

    async def execute_each(self, call: Call, orders: Orders, dry_run: bool) -> Sequence[Refusal | None]:
        """Execute commands as the caller, each in a transaction of its own; return the refusal of each, or None."""

    async def deployment(self) -> Deployment:
        """Return what may be known of this deployment."""

    async def monitor_term(self, enclosure_names: Sequence[str]) -> int | None:
        """Return the term of the monitor that leads, where it has said so of late and has read each of these permits."""

    async def identity_provider(self, issuer: str, subject: str) -> ProviderFacts:
        """Return whether the issuer is configured, and whether its settings bind the subject."""

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        """Have the registry issue an identifier; raise ExternalIdMintError where it does not."""

    async def event_page(self, call: Call, query: ListEvents) -> Page[dict[str, Any]]:
        """Return the events of the log that the caller may read."""

    async def measured_objective(self, procedure_id: UUID, conduct_id: UUID) -> MeasuredObjective | None:
        """Return the objective of a loop as measured last."""

    async def image_count(self, procedure_id: UUID) -> int:
        """Return how many images the actions of a procedure took and its setpoints to an `Acquire` signal began."""

    async def file_rows(self, procedure_id: UUID) -> Sequence[FileRow]:
        """Return what the ledger says about steps of a procedure that left files, in the order it was written."""

    async def conduct_walk(self, procedure_id: UUID, conduct_id: UUID) -> ConductWalk | None:
        """Return the steps that a conduct walks or walked, and the caps of its passes."""

    async def registered_walk(self, procedure_id: UUID) -> ConductWalk | None:
        """Return the steps that a procedure was registered with; None where they come with the request that conducts it."""

    async def step_durations(self, keys: Sequence[StepKey]) -> Mapping[StepKey, StepDuration]:
        """Return how long steps of these kinds on these targets took lately; what was never done is left out."""

    async def listed_steps(self, procedure_id: UUID, pinned: bool, place: ListPlace) -> ListedSteps:
        """Return a part of the steps that a procedure is conducted by or, unless they are pinned, was registered with."""

    async def ledger_part(self, conduct_ids: tuple[UUID, ...], place: ListPlace) -> LedgerPart:
        """Return what the ledger holds of a part of a list, of each of these conducts."""

    async def actuation_kind(self, conduct_id: UUID) -> ActuationKind | None:
        """Return what the steps of a conduct were done on so far, by its ledger."""

    async def completed_step_count(self, conduct_id: UUID) -> int:
        """Return how many steps of its pass a conduct has completed, by its ledger."""

    async def rehearse_proposal(self, proposal: Proposal, view: ProposalView, texts: bool) -> ProposalView:
        """Return the view of a proposal with what its command would do now, if it was carried out as its proposer."""

    async def examine_proposal(self, proposal: Proposal) -> ProposalBasis:
        """Return what a proposed command would do now, if it was carried out as its proposer, and what that rests on."""

    async def find_work(self, work_id: UUID) -> WorkFound | None:
        """Return a piece of long work with its state."""

    async def spent_amounts(self, agent_id: UUID) -> SpentAmounts:
        """Return what an agent has spent in this calendar month and on this day."""

    async def is_model_configured(self, model_ref: ModelRef) -> bool:
        """Return whether this deployment can call a language model."""

    async def subscriber_names(self) -> Sequence[str]:
        """Return the names of everything that follows the log."""

    async def unprocessed_counts(self, reactions: Sequence[Reaction]) -> Mapping[str, int]:
        """Return how many events each subscriber has still before it, up to a thousand."""

    async def open_items(self, subscriber_names: Sequence[str]) -> Mapping[str, Sequence[OpenItem] | None]:
        """Return what each subscriber has under way; None while the engine cannot be asked."""

    async def read_signals(self, request: ReadSignalsRequest) -> Sequence[SignalSample]:
        """Have a worker read signals, each in its place; raise SignalsUnreadableError where none does in time."""

    async def logged_event(self, event_id: UUID, reaction: Reaction) -> LoggedEvent | None:
        """Return an event as a dismissal judges it."""

    async def sign(self, secret_ref: str, content: bytes) -> Signature | None:
        """Return a signature over these bytes, or None where the key is not held here."""

    async def verify_signature(
        self, public_material_ref: str | None, content: bytes, signature: Signature
    ) -> SignatureVerdict:
        """Return what checking a signature over these bytes against a credential's public material finds."""

    async def published_artifact(self, receipt_id: UUID) -> bytes | None:
        """Return what was sent under a receipt, or None where it is not kept here."""

    async def public_key(self, public_material_ref: str | None) -> PublicKey | None:
        """Return the key that public material stands for, or None where this deployment cannot read it."""

    async def dataset_lineage(
        self, dataset_ids: Sequence[UUID], direction: LineageDirection, max_depth: int, limit: int
    ) -> Lineage:
        """Return what leads to or from these datasets, by the projection, within so many generations and datasets."""

    async def summary_rows(
        self, summary: type[Summary], columns: Sequence[str], column: str, values: Sequence[UUID], limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return these columns, or all, of the rows of a projection whose column is or holds one of these values."""

    async def preview(self, files: Sequence[RegisteredFile]) -> Document:
        """Return a picture of the first of these files that can be read here and is as it was registered; raise
        DatasetPreviewUnavailableError where there is none."""

    async def stream_recorders(self, state: type[State], ids: Sequence[UUID]) -> Mapping[UUID, UUID]:
        """Return who recorded the first event of each of these streams."""

    async def events_of_streams(
        self, ids: Sequence[UUID], events: Sequence[type[Event]], keys: Sequence[str]
    ) -> Sequence[Event]:
        """Return the events of these types on many streams that have something under one of these keys, oldest first."""
