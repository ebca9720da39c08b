"""Addresses of the control system that two assets claim, in a file or on record: gates and limits count for all of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from baton.beamline.changes import WantedThing
from baton.beamline.record import BeamlineRecord
from baton.client import Baton
from baton.client.refusals import Forbidden
from baton.domain.equipment.signals import signal_identifiers
from baton.domain.equipment.values import AlternateIdentifierKind

MOST_ADDRESSES, MOST_ASSETS = 1000, 500  # that one request names
T = TypeVar("T")


def shared_addresses(
    client: Baton, things: Iterable[WantedThing], record: BeamlineRecord, moved: Mapping[str, str]
) -> tuple[str, ...]:
    """Return a sentence for each address that an asset of the files claims and another one, too."""
    speaking = [one for one in things if one.section == "assets" and one.entry.identifiers is not None]
    claims: dict[str, list[WantedThing]] = defaultdict(list)
    for thing in speaking:
        for address in signal_identifiers(thing.entry.identifiers):
            claims[address].append(thing)
    known = {moved.get(one.key, one.key) for one in speaking}  # What the record says of these is what the files replace.
    found = []
    for address, others in claims_on_record(client, tuple(claims), record, known).items():
        first, *more = claims[address]
        rivals = sorted({*(one.key for one in more), *others})
        if rivals:
            said = f"{first.place}: {first.key} claims the address {address}, and so does {' and '.join(rivals)}"
            found.append(f"{said}; gates, claims and limits count for all of them.")
    return tuple(found)


def claims_on_record(
    client: Baton, addresses: Sequence[str], record: BeamlineRecord, known: set[str]
) -> dict[str, list[str]]:
    """Return the other assets on record that claim each of these addresses; none where the caller may not ask."""
    claims: dict[str, list[str]] = {address: [] for address in addresses}
    paths = {thing.id: key for (section, key), thing in record.things.items() if section == "assets"}
    owners: set[UUID] = set()
    with suppress(Forbidden):
        for part in parts(addresses, MOST_ADDRESSES):
            signals = client.call("resolve_signals", addresses=part).signals
            owners |= {owner.asset_id for one in signals for owner in one.owners if paths.get(owner.asset_id) not in known}
        for ids in parts(sorted(owners), MOST_ASSETS):
            for asset in client.call("read_assets", asset_ids=ids).items:
                held = {one.value for one in asset.alternate_identifiers if one.kind == AlternateIdentifierKind.EPICS_PV}
                for address in claims.keys() & held:
                    claims[address].append(paths.get(asset.asset_id, str(asset.asset_id)))
    return claims


def parts(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield values in parts of at most this size."""
    yield from (values[start : start + size] for start in range(0, len(values), size))
