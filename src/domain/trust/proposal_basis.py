"""What an approval is of: what a proposed command would record, without times and new ids, and the versions of the streams
that it rests on. Two looks at a proposal are the same where their digests are."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from baton.domain.kernel import Value
from baton.domain.registry import REGISTRY
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.dry_run import WouldRecord
from baton.domain.shared.refusals import Conflict

UNAPPROVED = {"ids_are_examples"}  # Of an event, for its reader alone: no part of the digest.
NEW = "(new)"  # Stands for times and new ids: what another dry run of the same command finds otherwise.
MOST_DIFFERENCES = 20
MOST_TOLD = 3
LONGEST_VALUE = 200  # Characters.


class StreamVersion(Value):
    """A stream that a command read, and its last version then."""

    stream: str
    stream_id: UUID
    version: int


class Difference(Value):
    """One place in which a proposed command is not what it was: a field that it would record, or a stream that it read."""

    place: str
    """The event and its field, or the stream, that is not as it was."""
    was: Any
    """What was there when the proposal was looked at."""
    now: Any
    """What is there now."""

    def __str__(self) -> str:
        return f"{self.place} was {self.was} and is {self.now}"


@dataclass(frozen=True)
class ProposalBasis:
    """What a proposed command would record now, decided twice so that times and new ids show, and the streams that it read;
    or how it would be refused."""

    command_name: str
    target_id: UUID | None
    would: tuple[WouldRecord, ...] = ()
    again: tuple[WouldRecord, ...] = ()
    rests_on: tuple[StreamVersion, ...] = ()
    refusal: dict[str, Any] | None = None

    @cached_property
    def digest(self) -> str:
        """The digest that is shown with it, and approved."""
        refused = self.refusal and [self.refusal["code"], self.refusal["reason"]]
        streams = [[one.stream, one.stream_id, one.version] for one in self.rests_on]
        return content_hash([self.command_name, self.target_id, lasting_events(self.would, self.again), streams, refused])


@dataclass(frozen=True)
class KeptBasis:
    """What is kept of a proposal's basis from when it was proposed, or approved."""

    digest: str | None
    would: tuple[WouldRecord, ...]
    rests_on: tuple[StreamVersion, ...]

    def differences(self, now: ProposalBasis) -> tuple[Difference, ...]:
        """Return what is not as it was, without free texts; the first few of it."""
        if now.refusal is not None:
            return (Difference(place="refusal", was=None, now=now.refusal["code"]),)
        found = [*event_differences(self.would, now), *stream_differences(self.rests_on, now.rests_on)]
        return tuple(found[:MOST_DIFFERENCES])

    def refuse_changed(self, now: ProposalBasis, shown: str | None) -> None:
        """Refuse where a proposed command is not what was shown under this digest."""
        if shown is not None and shown != now.digest:
            since = "it was shown" if shown == self.digest else "it was proposed"
            raise ProposalChangedError.of(self.differences(now), since)


class ProposalChangedError(Conflict, context="trust", reason="changed_since"):
    """What a proposed command would do is not what the approver saw; nothing was done, and the proposal stays open."""

    @classmethod
    def of(cls, differs: Sequence[Difference], since: str) -> "ProposalChangedError":
        """Return the refusal that says what differs since the proposal was shown, proposed or approved."""
        told = "; ".join(map(str, differs[:MOST_TOLD])) + ("; and more" if len(differs) > MOST_TOLD else "")
        what = f"{told}, since {since}" if told else "the digest is not that of what get_proposal shows"
        detail = f"This is not what was approved: {what}. Look at the proposal again, and approve what it shows then."
        return cls(detail, facts={"differs": [one.model_dump(mode="json") for one in differs], "since": since})


def lasting_events(would: Iterable[WouldRecord], again: Iterable[WouldRecord]) -> Any:
    """Return what a command would record as plain data, with NEW for what another dry run found otherwise."""
    return common(*([one.model_dump(mode="json", exclude=UNAPPROVED) for one in events] for events in (would, again)))


def common(one: object, other: object) -> Any:
    """Return what two pieces of plain data have in common; where they differ, NEW."""
    match one, other:
        case dict(), dict() if one.keys() == other.keys():
            return {name: common(part, other[name]) for name, part in one.items()}
        case list(), list() if len(one) == len(other):
            return [common(*pair) for pair in zip(one, other, strict=True)]
        case _:
            return one if one == other else NEW


def without_texts(event: WouldRecord) -> WouldRecord:
    """Return an event that would be recorded with its free texts null."""
    kind = REGISTRY.aggregates[event.stream].events[event.event_type]
    return event.model_copy(update={"payload": kind.without_texts(event.payload)})


def event_differences(kept: Sequence[WouldRecord], now: ProposalBasis) -> Iterator[Difference]:
    """Yield where the events differ that would be recorded; which events, where they are others."""
    types, others = [one.event_type for one in kept], [one.event_type for one in now.would]
    if types != others:
        yield Difference(place="events", was=bounded_value(types), now=bounded_value(others))
        return
    known = [one.model_dump(mode="json") for one in map(without_texts, kept)]
    present = lasting_events(map(without_texts, now.would), map(without_texts, now.again))
    for event_type, was, is_now in zip(types, known, present, strict=True):
        yield from value_differences(event_type, was["payload"], is_now["payload"])


def value_differences(place: str, was: object, now: object) -> Iterator[Difference]:
    """Yield where two pieces of plain data differ; NEW differs from nothing."""
    match was, now:
        case _, str() if now == NEW:
            return
        case dict(), dict():
            for name in {**was, **now}:
                yield from value_differences(f"{place}.{name}", was.get(name), now.get(name))
        case list(), list() if len(was) == len(now):
            for index, pair in enumerate(zip(was, now, strict=True)):
                yield from value_differences(f"{place}[{index}]", *pair)
        case _:
            if was != now:
                yield Difference(place=place, was=bounded_value(was), now=bounded_value(now))


def stream_differences(kept: Iterable[StreamVersion], now: Iterable[StreamVersion]) -> Iterator[Difference]:
    """Yield the streams that are at another version, or that were read before or now only."""
    was, is_now = ({(one.stream, one.stream_id): one.version for one in read} for read in (kept, now))
    for stream, id in sorted(was.keys() | is_now.keys()):
        if was.get((stream, id)) != is_now.get((stream, id)):
            place = f"the version of {stream} {id}"
            yield Difference(place=place, was=was.get((stream, id)), now=is_now.get((stream, id)))


def bounded_value(value: object) -> Any:
    """Return a value that is not too long to be shown; of a longer one, its beginning as text."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
