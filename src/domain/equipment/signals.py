"""Which assets own a signal of the control system, and between which values it may be set."""

from collections.abc import Collection, Iterable
from typing import Annotated, Self

from pydantic import model_validator

from baton.domain.equipment.asset import DECOMMISSIONED, IN_SERVICE, Asset, AssetSignalLimitsSet, asset
from baton.domain.equipment.values import NO_LIMITS, AlternateIdentifier, AlternateIdentifierKind, value_field
from baton.domain.equipment.values import SignalLimits as SignalLimits
from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.shared.reads import Reads, find_all, members_by_key
from baton.domain.shared.text import Reason
from baton.domain.shared.writes import Delist, Enlist

SIGNALS = "epics-pv"  # Look-up kind: the assets in service by their EPICS_PV identifiers.


def signal_entries(identifiers: Iterable[AlternateIdentifier]) -> list[Enlist]:
    """Return the look-up rows under which an asset with these identifiers is found as an owner of signals."""
    return [Enlist(SIGNALS, value) for value in signal_identifiers(identifiers)]


def signal_removals(identifiers: Iterable[AlternateIdentifier]) -> list[Delist]:
    """Return the removal of the look-up rows of these identifiers."""
    return [Delist(SIGNALS, value) for value in signal_identifiers(identifiers)]


def signal_identifiers(identifiers: Iterable[AlternateIdentifier]) -> list[str]:
    """Return the values of the identifiers that name signals."""
    return sorted({one.value for one in identifiers if one.kind is AlternateIdentifierKind.EPICS_PV})


def owning_identifiers(address: str) -> tuple[str, ...]:
    """Return every identifier that would own an address, longest first: the address itself, and each part of it up to a ':',
    '.' or '/', without that character or with it, since prefixes such as `BL:ROT:` are customary. An EPICS record stands for
    its VAL field, so `BL:ROT` and `BL:ROT.VAL` are one signal and have the same owners."""
    whole = value_field(address)
    ends = [place for place, character in enumerate(whole) if character in ":./"]
    parts = {whole[:length] for place in ends for length in (place, place + 1)} - {""}
    return tuple(sorted({whole, *parts}, key=len, reverse=True))


def owners_among(address: str, assets: Iterable[Asset]) -> tuple[Asset, ...]:
    """Return those of these assets that own an address: of the ones in service, all that have the longest identifier."""
    held = [(one, signal_identifiers(one.alternate_identifiers)) for one in assets if one.lifecycle is not DECOMMISSIONED]
    for identifier in owning_identifiers(address):
        if owners := [one for one, identifiers in held if identifier in identifiers]:
            return tuple(sorted(owners, key=lambda owner: owner.id))
    return ()


def owners_of(addresses: Collection[str]) -> Reads[dict[str, tuple[Asset, ...]]]:
    """Return the owners of each address, none for one that nobody owns."""
    candidates = {address: owning_identifiers(address) for address in addresses}
    keys = dict.fromkeys(identifier for identifiers in candidates.values() for identifier in identifiers)
    ids_by_key = yield from members_by_key(SIGNALS, *keys)
    assets = yield from find_all(Asset, (id for ids in ids_by_key.values() for id in ids))
    return {
        address: owners_among(address, {id: assets[id] for key in identifiers for id in ids_by_key.get(key, ())}.values())
        for address, identifiers in candidates.items()
    }


def tightest_limits(address: str, owners: Iterable[Asset]) -> SignalLimits | None:
    """Return the limits that all owners together set on an address; None where none of them sets any."""
    whole = value_field(address)
    limits = [one for owner in owners for at, one in owner.signal_limits.items() if value_field(at) == whole]
    lows = [one.low for one in limits if one.low is not None]
    highs = [one.high for one in limits if one.high is not None]
    return SignalLimits(low=max(lows, default=None), high=min(highs, default=None)) if limits else None


@asset.command(post="/{asset_id}/signal-limits", allowed=IN_SERVICE)
class SetAssetSignalLimits(SignalLimits, JudgedVerb[Asset, tuple[Asset, ...]]):
    """Limit the values that a signal of the asset may be set to; without low and high, it has no limits any more.

    Limits hold for exactly this address (a record and its VAL field are one); of several owners, all limits hold.
    """

    address: Annotated[str, asset.text("signal_address", 300, label="signal's address")]
    """The signal, by its address in the control system, such as bl7:rotary."""
    reason: Reason

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("low must not be above high")
        return self

    def gather(self, asset: Asset, call: Call) -> Reads[tuple[Asset, ...]]:
        return (yield from owners_of([self.address]))[self.address]

    def decide(self, asset: Asset, call: Call, owners: tuple[Asset, ...]) -> Outcome:
        limits = SignalLimits(low=self.low, high=self.high)
        if limits == (tightest_limits(self.address, [asset]) or NO_LIMITS):
            return []
        if limits != NO_LIMITS and asset.id not in {owner.id for owner in owners}:
            detail = f"{self.address} is no signal of this asset; read the asset for its EPICS_PV identifiers, or add one."
            raise self.cannot("not_owned", detail, owner_ids=[owner.id for owner in owners])
        return [AssetSignalLimitsSet(**dict(self))]
