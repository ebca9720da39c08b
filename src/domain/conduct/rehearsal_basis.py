"""What a rehearsal and the start of a conduct know of the signals that steps touch: a start compares both."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from baton.domain.conduct.ledger import LedgerPort
from baton.domain.conduct.twin import LastValue
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.signals import owners_of, tightest_limits
from baton.domain.equipment.values import SignalLimits
from baton.domain.procedure.touched import NOT_ADDRESSES, TouchedSignals, load_written_signals
from baton.domain.shared.reads import Reads, ask
from baton.domain.start.fingerprint import StepsBasis, refuse_outdated, short_hash


class SignalBasis(NamedTuple):
    """The signals that steps touch: their owners, and the values that conducts left in them."""

    owners: Mapping[str, tuple[Asset, ...]]
    last: Mapping[str, LastValue]

    @property
    def limits(self) -> dict[str, SignalLimits | None]:
        """The limits that owners set, by address."""
        return {address: tightest_limits(address, owners) for address, owners in self.owners.items()}

    @property
    def limits_hash(self) -> str:
        """Return the hash of the limits that owners set."""
        return short_hash({address: [one.low, one.high] for address, one in self.limits.items() if one is not None})

    @property
    def values_hash(self) -> str:
        """Return the hash of the last values, however old they are."""
        return short_hash({address: [str(one.value), one.unit, one.unit_known] for address, one in self.last.items()})


NOTHING_KNOWN = SignalBasis({}, {})


def load_signal_basis(touched: TouchedSignals) -> Reads[SignalBasis]:
    """Load what is known of the signals that steps touch."""
    found = dict.fromkeys((*touched.written, *touched.read))
    addresses = tuple(one for one in found if not one.startswith(NOT_ADDRESSES))
    if not addresses:
        return NOTHING_KNOWN
    return SignalBasis((yield from owners_of(addresses)), (yield from ask(LedgerPort.last_values, addresses)))


def steps_hash_of(parts: Sequence[StepsBasis]) -> str:
    """Return the hash of the steps of all procedures."""
    return short_hash([part.document for part in parts])


def refuse_outdated_steps(rehearsed: str | None, parts: Sequence[StepsBasis]) -> Reads[None]:
    """Refuse a conduct that names a rehearsal, where its steps or what is known of their signals have changed since."""
    if rehearsed is None:
        return
    signals = yield from load_written_signals([step for part in parts for step in part.steps.every_step])
    basis = yield from load_signal_basis(signals.touched)
    hashes = {"steps": steps_hash_of(parts), "limits": basis.limits_hash, "values": basis.values_hash}
    refuse_outdated(rehearsed, **hashes)
