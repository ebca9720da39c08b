"""The ports of a process: what decisions and answers may ask of settings, providers, registries and the engine."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from baton.application.long_work import find_work
from baton.application.monitoring.supply_monitor import registration_of
from baton.application.ports import Caller
from baton.application.settings import Settings
from baton.domain.access.actor import Actor, ActorKind, SubjectBinding
from baton.domain.access.edge_queries import ListEvents
from baton.domain.agent.language_model import ModelRef
from baton.domain.agent.reactions import LoggedEvent, OpenItem, Reaction
from baton.domain.enclosure.enclosure import RegisterEnclosure, enclosure_key
from baton.domain.equipment.values import ExternalIdScheme
from baton.domain.federation.facility import Facility
from baton.domain.kernel import Call
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.views import MeasuredObjective
from baton.domain.operation.conduct.work_items import WorkFound
from baton.domain.operation.steering.decider_choice import offered_deciders
from baton.domain.shared.citation import Citation
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.listing import Page
from baton.domain.shared.ports import Deployment, MintedIdentifier, ProviderFacts
from baton.domain.supply.supply import address_key
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.store import PostgresStore

if TYPE_CHECKING:
    from baton.cli.composition.runtime import Runtime


class RuntimePorts:
    """Implements the ports of decisions and answers with what a process has opened."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._monitored = monitored_keys(runtime.settings)
        self._facility_name: str | None = None

    async def load_facility_name(self) -> str:
        """Read the name of this facility, or its code where it has none yet."""
        code = self._runtime.settings.self_facility_code
        async with self._runtime.store.session() as session:
            holder = (await session.holders(FACILITY_CODE, [code])).get(code)
            rows = await session.load(Facility.__name__, [holder]) if holder else ()
        facility: Facility | None = Facility.aggregate.replay(rows)
        self._facility_name = facility.display_name if facility else None
        return self._facility_name or code

    async def deployment(self) -> Deployment:
        runtime, settings = self._runtime, self._runtime.settings
        return Deployment(
            base_url=settings.public_base_url or "",
            landing_page_template=settings.landing_page_template,
            publisher=settings.facility_publisher or self._facility_name or await self.load_facility_name(),
            minted_schemes=frozenset() if runtime.minter is None else runtime.minter.schemes,
            self_facility_code=settings.self_facility_code,
            enclosure_observation_ttl=timedelta(seconds=settings.enclosure_observation_ttl_seconds),
            deciders=offered_deciders(settings.decide_substrates),
            compute_programs=frozenset(settings.compute_programs),
            approved_models_only=settings.require_approved_language_model,
            action_timeout=settings.action_timeout_seconds,
            compute_timeout=settings.compute_timeout_seconds,
            clearance_four_eyes=settings.four_eyes,
            policies_enforced=settings.enforced,
            **self._monitored,
        )

    async def identity_provider(self, issuer: str, subject: str) -> ProviderFacts:
        identity = self._runtime.identity
        return ProviderFacts(identity.knows(issuer), identity.binds(issuer, subject))

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        assert self._runtime.minter is not None, "without a minter the deployment offers no scheme"
        return await self._runtime.minter.mint(scheme, suffix, metadata)

    async def event_page(self, call: Call, query: ListEvents) -> Page[dict[str, Any]]:
        return await self._runtime.feed.page(Caller.of(call), query)

    async def measured_objective(self, procedure_id: UUID, conduct_id: UUID) -> MeasuredObjective | None:
        return await self._runtime.conduct_reader.read_objective(procedure_id, conduct_id)

    async def actuation_kind(self, conduct_id: UUID) -> ActuationKind | None:
        return (await PostgresLedger(self._runtime.store).tally(conduct_id, 0)).actuation_kind

    async def completed_step_count(self, conduct_id: UUID) -> int:
        return (await PostgresLedger(self._runtime.store).tally(conduct_id, 0, of_pass=True)).completed_count

    async def find_work(self, work_id: UUID) -> WorkFound | None:
        return await find_work(self._runtime.service.works.values(), work_id)

    async def is_model_configured(self, model_ref: ModelRef) -> bool:
        return self._runtime.agents.consultation.is_configured(model_ref)

    async def subscriber_names(self) -> Sequence[str]:
        return await self._runtime.reactions.subscriber_names()

    async def unprocessed_counts(self, reactions: Sequence[Reaction]) -> Mapping[str, int]:
        return await self._runtime.reactions.unprocessed_counts(reactions)

    async def open_items(self, subscriber_names: Sequence[str]) -> Mapping[str, Sequence[OpenItem] | None]:
        return await self._runtime.reactions.open_items(subscriber_names)

    async def logged_event(self, event_id: UUID, reaction: Reaction) -> LoggedEvent | None:
        return await self._runtime.reactions.logged_event(event_id, reaction)


def monitored_keys(settings: Settings) -> dict[str, frozenset[str]]:
    """Return the keys under which the monitored enclosures and supplies are claimed; they follow from the settings alone."""
    code = settings.self_facility_code
    names = (RegisterEnclosure(name=name, facility_code=code) for name in settings.monitored_enclosures)
    return {
        "monitored_enclosures": frozenset(map(enclosure_key, names)),
        "monitored_supplies": frozenset(address_key(registration_of(one, code)) for one in settings.monitored_supplies),
    }


class StoredBindings:
    """Reads the token bindings that were made at run time."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def actor_of(self, issuer: str, subject: str) -> tuple[UUID, ActorKind] | None:
        async with self._store.session() as session:
            rows = await session.records(SubjectBinding, {"issuer": issuer, "subject": subject})
            if not rows:
                return None
            binding: Any = rows[0]
            events = await session.load(Actor.__name__, [binding.actor_id])
        actor: Actor | None = Actor.aggregate.replay(events)
        return (binding.actor_id, actor.kind) if actor else None
