"""The ports that decisions and answers may ask beyond the store, each declared in the lowest context that asks it."""

from collections.abc import Awaitable, Callable
from inspect import getmembers, isfunction
from typing import Any, Protocol, get_type_hints

from baton.domain.access.identity_provider import IdentityPort
from baton.domain.agent.agent import AgentPort
from baton.domain.agent.reactions import ReactionPort
from baton.domain.conduct.control_signals import SignalPort
from baton.domain.conduct.estimates import ConductTimePort
from baton.domain.conduct.ledger import LedgerPort
from baton.domain.conduct.rehearsal import RehearsalPort
from baton.domain.conduct.signals import MonitorPort
from baton.domain.conduct.step_list import StepListPort
from baton.domain.conduct.work_items import WorkPort
from baton.domain.data.crate import CratePort
from baton.domain.data.lineage import LineagePort
from baton.domain.data.preview import PreviewPort
from baton.domain.data.procedure_files import FilePort
from baton.domain.federation.credential import KeyPort
from baton.domain.federation.published_artifact import ArtifactPort
from baton.domain.shared.citation import IdentifierPort
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.step.plan_steps import PlanStepPort
from baton.domain.step.signal_units import UnitPort
from baton.domain.trust.proposal import ProposalPort
from baton.domain.views.event_log import EventPort
from baton.domain.views.hold_everything import OrderPort
from baton.domain.views.run_report import ReportPort
from baton.domain.views.step_reliability import ReliabilityPort


class Ports(Protocol):
    """Every port; the runtime of a process has them all."""

    @property
    def deployment(self) -> DeploymentPort: ...
    @property
    def identifiers(self) -> IdentifierPort: ...
    @property
    def identity(self) -> IdentityPort: ...
    @property
    def proposals(self) -> ProposalPort: ...
    @property
    def keys(self) -> KeyPort: ...
    @property
    def publisher(self) -> ArtifactPort: ...
    @property
    def units(self) -> UnitPort: ...
    @property
    def signals(self) -> SignalPort: ...
    @property
    def monitors(self) -> MonitorPort: ...
    @property
    def conduct_reader(self) -> LedgerPort: ...
    @property
    def conduct_times(self) -> ConductTimePort: ...
    @property
    def reliability(self) -> ReliabilityPort: ...
    @property
    def rehearsals(self) -> RehearsalPort: ...
    @property
    def step_lists(self) -> StepListPort: ...
    @property
    def plan_steps(self) -> PlanStepPort: ...
    @property
    def works(self) -> WorkPort: ...
    @property
    def files(self) -> FilePort: ...
    @property
    def lineage(self) -> LineagePort: ...
    @property
    def crates(self) -> CratePort: ...
    @property
    def previews(self) -> PreviewPort: ...
    @property
    def reports(self) -> ReportPort: ...
    @property
    def agents(self) -> AgentPort: ...
    @property
    def reactions(self) -> ReactionPort: ...
    @property
    def feed(self) -> EventPort: ...
    @property
    def orders(self) -> OrderPort: ...


PORT_OF: dict[Any, str] = {
    method: name
    for name, port in getmembers(Ports, lambda member: isinstance(member, property))
    for _, method in getmembers(get_type_hints(port.fget)["return"], isfunction)
}  # By each method that can be asked, the port that has it.


def method_of(ports: Ports, method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[Any]]:
    """Return a method as these ports implement it."""
    implemented: Callable[..., Awaitable[object]] = getattr(getattr(ports, PORT_OF[method]), method.__name__)
    return implemented
