"""The story of a stretch of time, read from the log: each event that matters as a sentence, with how long it lasted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from baton.console.display import GOOD, LIVE, LOOK, PLAIN, STOP, instant_of, reason_text, words_of
from baton.domain.supply.coverage import PHOTON_BEAM
from baton.domain.supply.supply import SupplyTransition

Envelope = Mapping[str, Any]  # An event as the log shows it.


class Telling(NamedTuple):
    """How an event is told: its look, its words, and the events of its stream that end what it began."""

    look: str
    words: str
    ended_by: tuple[str, ...] = ()


TOLD = {
    "RunHeld": Telling(LOOK, "Held", ("RunResumed",)),
    "SupplyMarkedUnavailable": Telling(STOP, "Lost", ("SupplyRestored", "SupplyMarkedAvailable", "SupplyDegraded")),
    "SupplyDegraded": Telling(LOOK, "Degraded", ("SupplyRestored", "SupplyMarkedAvailable", "SupplyMarkedUnavailable")),
    "EnclosurePermitObserved": Telling(LOOK, "No permit", ("EnclosurePermitObserved",)),
    "QueueHeld": Telling(LOOK, "Queue held", ("QueueResumed", "QueueRetired")),
    "QueueItemBlocked": Telling(LOOK, "Queue waits", ("QueueItemStarted", "QueueItemRefused", "QueueItemRemoved")),
    "QueueItemRefused": Telling(STOP, "Refused in the queue"),
    "QueueItemFailed": Telling(STOP, "Failed in the queue"),
    "ScheduleFiringRefused": Telling(STOP, "Schedule refused"),
    "ProposalRefused": Telling(STOP, "Refused after its approval"),
    "ProposalRejected": Telling(LOOK, "Proposal rejected"),
    "CautionRegistered": Telling(LOOK, "Caution"),
    "SubjectMounted": Telling(LIVE, "Mounted"),
    "SubjectDismounted": Telling(PLAIN, "Dismounted"),
}
"""The events that are told, by their names; the list of runs has their ends."""
TO_STATUS = {event.__name__: event.to_status for event in SupplyTransition.__subclasses__()}
WANTED = tuple(dict.fromkeys((*TOLD, *(name for told in TOLD.values() for name in told.ended_by), *TO_STATUS)))
"""These events, those that end what they began, and every change of a supply."""
REASONS = ("reason", "detail", "text")  # The keys of a payload that say why.


@dataclass(frozen=True)
class Happening:
    """Something that happened: to which thing, why, by whom, until when, and how often it was said again."""

    at: datetime
    look: str
    words: str
    about: str
    id: str
    name: str
    why: str
    who: str
    until: datetime | None = None
    lasted: bool = False  # Whether it is something that lasts.
    times: int = 1

    def is_said_again(self, later: "Happening") -> bool:
        """Return whether a later event says the same while this lasts."""
        still = self.lasted and (self.until is None or later.at < self.until)
        return still and (self.words, self.why) == (later.words, later.why)

    def seconds(self, ends: datetime) -> float:
        """Return how long it lasted, until the end of what is looked at where it lasts still."""
        return ((self.until or ends) - self.at) / timedelta(seconds=1)


def happenings_in(events: Iterable[Envelope], kinds: Mapping[str, str]) -> list[Happening]:
    """Return what happened by these events, oldest first; `kinds` are those of supplies, by their ids."""
    ordered = sorted(events, key=lambda one: (one["occurred_at"], one["position"]))
    found: list[Happening] = []
    for place, event in enumerate(ordered):
        told = TOLD.get(event["event_type"])
        if told is None or event["payload"].get("to_status") == "Permitted":
            continue
        made = happening_of(event, told, kinds)
        last = next((one for one in reversed(found) if one.id == made.id), None)
        if last is not None and last.is_said_again(made):
            found[found.index(last)] = replace(last, times=last.times + 1)
            continue
        end = next((one for one in ordered[place + 1 :] if ends_it(one, event, told)), None)
        found.append(replace(made, until=None if end is None else instant_of(end["occurred_at"])))
    return found


def ends_it(event: Envelope, begun: Envelope, told: Telling) -> bool:
    """Return whether an event ends what another one of its stream began."""
    return event["stream_id"] == begun["stream_id"] and event["event_type"] in told.ended_by


def happening_of(event: Envelope, told: Telling, kinds: Mapping[str, str]) -> Happening:
    """Return one event as it is told."""
    payload, at = event["payload"], instant_of(event["occurred_at"])
    assert at is not None, "every event has its time"
    words = told.words
    if kinds.get(event["stream_id"]) == PHOTON_BEAM:
        words = f"Beam {words.lower()}"
    why = next((str(payload[name]) for name in REASONS if payload.get(name)), "")
    look = STOP if payload.get("severity") == "Danger" else told.look
    return Happening(
        at=at,
        look=look,
        words=words,
        about=event["stream_type"],
        id=event["stream_id"],
        name=name_of(event),
        why=reason_text(why).rstrip("."),
        who=event["principal_name"] or "",
        lasted=bool(told.ended_by),
    )


def name_of(event: Envelope) -> str:
    """Return what the thing of an event is called; a caution by its target, and what was mounted with its place."""
    payload = event["payload"]
    stream = event.get("stream") or payload.get("target") or {}
    name = str(stream.get("name") or words_of(event["stream_type"]).lower())
    place = (payload.get("asset") or {}).get("name")
    return f"{name} on {place}" if place else name


class StateSpan(NamedTuple):
    """A supply or a permit from one moment to another."""

    begins: datetime
    ends: datetime
    look: str
    words: str


LOOKS_OF_STATES = {
    "Available": GOOD,
    "Permitted": GOOD,
    "Degraded": LOOK,
    "NotPermitted": LOOK,
    "Recovering": LOOK,
    "Unknown": PLAIN,
}


def states_in(events: Sequence[Envelope], begins: datetime, ends: datetime) -> list[StateSpan]:
    """Return the states of one supply or enclosure, as its changes say them; there must be one."""
    changes = [(instant_of(one["occurred_at"]) or begins, one) for one in events]
    first = str(changes[0][1]["payload"]["from_status"])
    told = [(begins, first), *((at, to_status_of(one)) for at, one in changes)]
    until = [*(at for at, _ in told[1:]), ends]
    return [
        StateSpan(at, end, LOOKS_OF_STATES.get(status, STOP), words_of(status))
        for (at, status), end in zip(told, until, strict=True)
        if end > at
    ]


def to_status_of(event: Envelope) -> str:
    """Return the status that a change leads to."""
    return str(event["payload"].get("to_status") or TO_STATUS[event["event_type"]].value)
