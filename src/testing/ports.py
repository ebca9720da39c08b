"""Ports in memory beside the store: a workflow engine and its calendars, which keep what is to be run and run nothing, and
what agents act with: names of people, what was spent, a language model with prepared answers; and the bytes of copies."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID

from baton.application.language_models import ChatRequest, ChatResponse, LanguageModelError, Usage, chat_response
from baton.application.ports import CalendarEntry, CalendarView, Clock, EngineUnavailableError, EngineView, Job
from baton.domain.access.actor import Actor, ActorKind, ActorProfile
from baton.domain.agent.agent import SpentAmounts, day_start, month_start, next_day, next_month
from baton.domain.agent.reactions import OpenItem
from baton.domain.agent.redaction import KnownPerson, NameBook, name_book
from baton.domain.data.attestation import NO_VERIFIER, VERIFIERS, ByteReading
from baton.domain.data.values import scheme_of
from baton.domain.decision.decision import Inference
from baton.domain.schedule.calendar import next_firings
from baton.testing.store import MemoryStore

A = TypeVar("A")
Canned = Mapping[str, Any] | LanguageModelError | Callable[[ChatRequest], Mapping[str, Any]]


class MemoryEngine:
    """Jobs by id; one that is open stays so until a test ends it, and an engine that is not `reachable` does nothing."""

    def __init__(self) -> None:
        self.started: list[Job] = []  # every job that was begun, those that have ended too
        self.told: list[str] = []  # the ids of open jobs that were told of news, once for each time
        self.reachable = True
        self._open: dict[str, EngineView] = {}
        self._begun: dict[str, datetime] = {}

    async def start(self, job: Job) -> bool:
        self._reach()
        if job.news and job.id in self._open:
            self.told.append(job.id)
            return True
        if job.id in self._open or (job.once and any(job.id == known.id for known in self.started)):
            return False
        self._open[job.id] = EngineView.OPEN
        self._begun[job.id] = datetime.now(UTC)
        self.started.append(job)
        return True

    async def view(self, id: str) -> EngineView:
        self._reach()
        return self._open.get(id, EngineView.ABSENT)

    async def terminate(self, id: str, reason: str) -> None:
        self._reach()
        self.end(id)

    async def answer(self, job: Job, returns: type[A], seconds: float) -> A:
        self._reach()
        raise EngineUnavailableError("Nothing is run here, so nothing answers.")

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        self._reach()
        begun = self._begun
        return [
            OpenItem(
                event_id=UUID(job.memo["event_id"]), workflow_id=job.id, started_at=begun[job.id], attempt=1, last_error=None
            )
            for job in self.started
            if job.workflow in workflows and job.id in self._open and "event_id" in job.memo
        ]

    def end(self, id: str) -> None:
        self._open.pop(id, None)

    def stall(self, id: str) -> None:
        self._open[id] = EngineView.STALLED

    def _reach(self) -> None:
        if not self.reachable:
            raise EngineUnavailableError("The workflow engine cannot be reached; the work is recorded and will start.")


class MemoryCalendars:
    """Entries by id; `entries` and the counts may be changed past the port, as somebody in the engine would."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reachable = True
        self.entries: dict[str, CalendarEntry] = {}
        self.missed: dict[str, int] = {}
        self.skipped: dict[str, int] = {}

    async def put(self, entry: CalendarEntry) -> None:
        self._reach()
        kept = self.entries.get(entry.id)
        self.entries[entry.id] = entry if kept is None else entry.over(kept.paused, kept.note)

    async def view(self, entry: CalendarEntry) -> CalendarView | None:
        self._reach()
        kept = self.entries.get(entry.id)
        if kept is None:
            return None
        defined = replace(entry, paused=kept.paused, note=kept.note)
        counts = (self.missed.get(entry.id, 0), self.skipped.get(entry.id, 0))
        times = next_firings(kept.calendar, kept.time_zone, self._clock(), 10)
        return CalendarView(kept == defined, kept.paused, kept.note, *counts, times)

    async def remove(self, id: str) -> None:
        self._reach()
        for kept in (self.entries, self.missed, self.skipped):
            kept.pop(id, None)

    async def list_ids(self, prefix: str) -> Sequence[str]:
        self._reach()
        return sorted(id for id in self.entries if id.startswith(prefix))

    def _reach(self) -> None:
        if not self.reachable:
            raise EngineUnavailableError("The workflow engine cannot be reached; its calendars are put right later.")


class MemoryPeople:
    """The names of people, from the profiles of a store; the book is kept until a profile changes."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._profiles: list[ActorProfile] = []
        self._book = NameBook()

    async def book(self) -> NameBook:
        profiles = [row for row in self._store.records_of(ActorProfile) if isinstance(row, ActorProfile)]
        if profiles != self._profiles:
            people = filter(self._is_person, profiles)
            self._book = name_book(KnownPerson(one.name, one.email, one.phone, one.external_id) for one in people)
            self._profiles = profiles
        return self._book

    def _is_person(self, profile: ActorProfile) -> bool:
        actor = self._store.state((Actor.__name__, profile.actor_id))
        return not isinstance(actor, Actor) or actor.kind is ActorKind.HUMAN


class MemorySpending:
    """The sums of the calls that agents have recorded themselves, by the time they are accounted to."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def of(self, agent_id: UUID, at: datetime) -> SpentAmounts:
        own = [row for row in self._store.summaries_of(Inference) if isinstance(row, Inference) and row.actor_id == agent_id]
        month = [row for row in own if month_start(at) <= row.occurred_at < next_month(at)]
        day = [row for row in month if day_start(at) <= row.occurred_at < next_day(at)]
        tokens = sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in day)
        return SpentAmounts(sum(row.cost or 0.0 for row in month), tokens)


class ScriptedModel:
    """Answers from a queue and keeps the requests. Its answers are checked by the schema like any other model's."""

    def __init__(
        self, *answers: Canned, usage: Usage = Usage(input_tokens=100, output_tokens=20), model_id: str = "scripted-1"
    ) -> None:
        self.answers = deque(answers)
        self._usage = usage
        self._model_id = model_id
        self.requests: list[ChatRequest] = []

    async def chat(self, request: ChatRequest) -> ChatResponse:
        self.requests.append(request)
        if not self.answers:
            raise AssertionError("the model was asked more often than it has answers")
        answer = self.answers.popleft()
        if isinstance(answer, LanguageModelError):
            raise answer
        given = answer if isinstance(answer, Mapping) else answer(request)
        return chat_response(request, given, usage=self._usage, stop_reason="end", model_id=self._model_id)


class MemoryByteSource:
    """Bytes by their URI; what is not there cannot be read. It keeps the URIs that were read, in order."""

    def __init__(self, contents: Mapping[str, bytes] | None = None) -> None:
        self.contents = dict(contents or {})
        self.read_uris: list[str] = []

    async def read(self, uri: str) -> ByteReading:
        kind = VERIFIERS.get(scheme_of(uri), NO_VERIFIER)
        self.read_uris.append(uri)
        if (content := self.contents.get(uri)) is None:
            return ByteReading(verifier_kind=kind, error_detail="There is nothing under this address.")
        return ByteReading(verifier_kind=kind, digest=sha256(content).hexdigest(), byte_size=len(content))

    async def aclose(self) -> None:
        return
