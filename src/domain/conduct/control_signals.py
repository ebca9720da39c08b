"""Signals of the control system: what is on record about them (owners, routes, limits, the conduct that has them), and what
a worker reads of them now."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Any, Protocol, Self
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from baton.domain.conduct.conduct import CONDUCTED_ASSETS
from baton.domain.conduct.messages import Message, OwnedRequest
from baton.domain.equipment.asset import Asset, asset
from baton.domain.equipment.signals import SignalLimits, owners_of, tightest_limits
from baton.domain.kernel import Call, Query, Value
from baton.domain.procedure.procedure import Procedure, procedure
from baton.domain.recipe.steps import Address
from baton.domain.shared.deployment import DeclaredRoute, DeploymentPort
from baton.domain.shared.reads import Holders, Reads, ask, find_all, is_permitted
from baton.domain.shared.refusals import UnauthorizedError, Unavailable
from baton.domain.step.results import route_of


def _check_trimmed(address: str) -> str:
    if address != address.strip():
        raise ValueError("an address has no space before or behind it")
    return address


SignalAddress = Annotated[Address, AfterValidator(_check_trimmed)]


MAX_READ = 50  # signals that a worker reads at once
MAX_ADDRESS_BYTES = 20_000  # of all addresses together; what a workflow is given stays small


class SignalsUnreadableError(Unavailable, context="operation"):
    """No worker read the signals in time; the control system may be well all the same."""


class ReadSignalsRequest(OwnedRequest):
    """The argument of the workflow that reads signals, and of its activity."""

    request_id: UUID
    addresses: tuple[str, ...]

    @property
    def workflow_id(self) -> str:
        return f"read-signals:{self.request_id}"


class SignalError(Value):
    """Why a signal could not be read."""

    code: str
    """The class name of the failure."""
    detail: str


class SignalSample(Message):
    """What a worker read of one signal; all of it is bounded, and a value that is not small is its kind and shape."""

    value: Any = None
    kind: str | None = None
    unit: str | None = None
    quality: str | None = None
    quality_detail: str | None = None
    time: datetime | None = None
    control_limits: SignalLimits | None = None
    error: SignalError | None = None


class SignalSamples(Message):
    """What a worker read, in the order of the addresses."""

    samples: tuple[SignalSample, ...]


class SignalOwner(Value):
    """An asset that owns a signal."""

    asset_id: UUID
    name: str


class SignalRoute(Value):
    """The control system that serves a signal; one that is read-only is never written."""

    substrate: str
    simulated: bool
    read_only: bool
    """Whether the signal is never written."""

    @classmethod
    def of(cls, route: DeclaredRoute) -> Self:
        """Return what is shown of a route."""
        return cls(substrate=route.substrate, simulated=route.simulated, read_only=route.read_only)


class SignalClaim(Value):
    """The live conduct that has an owner of a signal to itself."""

    asset_id: UUID
    """The asset that the conduct has to itself."""
    procedure_id: UUID
    conduct_id: UUID


class ResolvedSignal(Value):
    """A signal with what is on record about it: without owners nobody owns it, without a route nothing serves it."""

    address: str
    owners: tuple[SignalOwner, ...]
    """The assets that own the signal."""
    route: SignalRoute | None
    limits: SignalLimits | None
    control_limits: SignalLimits | None
    control_error: SignalError | None  # why the control system did not say whether it has limits
    """Why the control system could not be asked for its limits."""
    claims: tuple[SignalClaim, ...]
    """The live conducts that have an owner of the signal to themselves."""


class ResolvedSignals(Value):
    """The signals in the order they were asked for, each once."""

    signals: tuple[ResolvedSignal, ...]


class SignalPort(Protocol):
    """Reads signals of the control system."""

    async def read_signals(self, request: ReadSignalsRequest) -> Sequence[SignalSample]:
        """Have a worker read signals, each in its place; raise SignalsUnreadableError where none does in time."""


@asset.query(post="", path="/signals/resolve", returns=ResolvedSignals, refuses=[SignalsUnreadableError])
class ResolveSignals(Query[ResolvedSignals]):
    """The owners, the route, the limits and the live claims of each of these signals.

    The control system is asked for limits of its own only where `control_limits` is said; that needs a worker.
    """

    addresses: Annotated[tuple[SignalAddress, ...], Field(min_length=1, max_length=1000)]
    control_limits: Annotated[
        bool,
        Field(description="Whether to ask the control system for its own limits: of 50 signals at most, with ReadSignals."),
    ] = False

    @model_validator(mode="after")
    def _check_count(self) -> Self:
        if self.control_limits and len(self.addresses) > MAX_READ:
            raise ValueError(f"the control system is asked about {MAX_READ} addresses at most")
        return self

    def answer(self, call: Call) -> Reads[ResolvedSignals]:
        addresses = tuple(dict.fromkeys(self.addresses))
        routes = (yield from ask(DeploymentPort.deployment)).control_routes
        owners = yield from owners_of(addresses)
        claims = yield from claims_of({owner.id for found in owners.values() for owner in found})
        declared: dict[str, SignalSample] = {}
        if self.control_limits:
            if not (yield from is_permitted(ReadSignals.operation.command_name)):
                detail = "Asking the control system needs ReadSignals, which your policies do not permit; leave it out."
                raise UnauthorizedError(detail, reason="denied")
            samples = yield from ask(
                SignalPort.read_signals, ReadSignalsRequest(request_id=call.new_id, addresses=addresses)
            )
            declared = dict(zip(addresses, samples, strict=True))
        return ResolvedSignals(
            signals=tuple(
                resolved_signal(address, found, route_of(address, routes), declared.get(address, SignalSample()), claims)
                for address, found in owners.items()
            )
        )


def claims_of(asset_ids: set[UUID]) -> Reads[dict[UUID, SignalClaim]]:
    """Return the live conducts that have these assets to themselves, by asset."""
    holders: dict[str, UUID] = yield Holders(CONDUCTED_ASSETS, tuple(map(str, sorted(asset_ids))))
    procedures = yield from find_all(Procedure, holders.values())
    return {
        UUID(key): SignalClaim(asset_id=UUID(key), procedure_id=holder, conduct_id=conduct_id)
        for key, holder in holders.items()
        if (conduct_id := procedures[holder].live_conduct_id) is not None
    }


def resolved_signal(
    address: str,
    owners: tuple[Asset, ...],
    route: DeclaredRoute | None,
    sample: SignalSample,
    claims: dict[UUID, SignalClaim],
) -> ResolvedSignal:
    """Return what is known about one signal."""
    return ResolvedSignal(
        address=address,
        owners=tuple(SignalOwner(asset_id=owner.id, name=owner.name) for owner in owners),
        route=None if route is None else SignalRoute.of(route),
        limits=tightest_limits(address, owners),
        control_limits=sample.control_limits,
        control_error=sample.error,
        claims=tuple(claims[owner.id] for owner in owners if owner.id in claims),
    )


class SignalReading(Value):
    """A signal as it reads now. Without an error it has a value; without a time the source gave none."""

    address: str
    value: Annotated[Any, Field(description='Plain JSON; a large array, image, table or text as {"kind", "shape"}.')]
    kind: str | None
    """What kind of value it is."""
    unit: str | None
    quality: str | None
    quality_detail: str | None
    """What the control system says about the quality."""
    time: datetime | None
    limits: Annotated[SignalLimits | None, Field(description="Those that the owners of the signal set.")]
    control_limits: Annotated[SignalLimits | None, Field(description="Those that the control system declares.")]
    route: SignalRoute | None
    error: Annotated[SignalError | None, Field(description="Why it could not be read.")]


class SignalReadings(Value):
    """The signals in the order they were asked for, each once."""

    signals: tuple[SignalReading, ...]


def _bounded_addresses(addresses: Collection[str]) -> object:
    if sum(len(address.encode()) for address in addresses) > MAX_ADDRESS_BYTES:
        raise ValueError(f"the addresses must have at most {MAX_ADDRESS_BYTES} bytes together")
    return addresses


@procedure.query(post="", path="/signals/read", returns=SignalReadings, refuses=[SignalsUnreadableError])
class ReadSignals(Query[SignalReadings]):
    """Read signals now, in the control system, for 5 seconds at most; each has its value or its error. Needs a worker."""

    addresses: Annotated[tuple[Address, ...], Field(min_length=1, max_length=MAX_READ), AfterValidator(_bounded_addresses)]

    def answer(self, call: Call) -> Reads[SignalReadings]:
        addresses = tuple(dict.fromkeys(self.addresses))
        owners = yield from owners_of(addresses)
        routes = (yield from ask(DeploymentPort.deployment)).control_routes
        samples = yield from ask(SignalPort.read_signals, ReadSignalsRequest(request_id=call.new_id, addresses=addresses))
        readings = []
        for address, sample in zip(addresses, samples, strict=True):
            found, route = tightest_limits(address, owners[address]), route_of(address, routes)
            readings.append(
                SignalReading(
                    address=address, limits=found, route=None if route is None else SignalRoute.of(route), **dict(sample)
                )
            )
        return SignalReadings(signals=tuple(readings))
