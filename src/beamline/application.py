"""Applying changes: the ordinary commands, issued as the caller, several at once where none needs another. A creation and a
new version have keys that follow from their content, so that a plan that was cut off is simply worked out and applied again:
what was done before is on record, and what was under way then is answered, not repeated."""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID

from baton.beamline.changes import ChangePlan, ThingChange
from baton.beamline.kinds import KINDS
from baton.beamline.kinds.kind import Pin, Ref, Update
from baton.beamline.reading import BeamlineFileError
from baton.beamline.record import ALL_KINDS, AT_ONCE, BeamlineRecord, Key
from baton.client import Baton
from baton.client.index import OPERATIONS, OperationEntry
from baton.client.refusals import ArgumentsError, ProposedError, Refusal
from baton.domain.registry import REGISTRY
from baton.domain.shared.canonical import content_hash


@dataclass
class Results:
    """What came of a plan: how many commands were done, and of each thing that was not, why; `proposed` are those whose
    command waits for the approval of a second person."""

    done: int = 0
    proposed: dict[Key, str] = field(default_factory=dict)
    refused: dict[Key, str] = field(default_factory=dict)
    skipped: dict[Key, str] = field(default_factory=dict)


class PlanApplication:
    """Applies one plan as the caller of a client."""

    def __init__(
        self, client: Baton, plan: ChangePlan, record: BeamlineRecord, advance: Callable[[int], None] = lambda count: None
    ) -> None:
        self.client = client
        self.plan = plan
        self.advance = advance
        self.results = Results()
        self.ids: dict[Key, UUID] = {key: thing.id for key, thing in record.things.items()}
        self.ids |= {
            ("assets", new): self.ids["assets", old] for new, old in plan.moved.items() if ("assets", old) in self.ids
        }

    def run(self) -> Results:
        """Issue every command, those that nothing holds up at once; then retire, one after the other."""
        self.work_off(prepared_sorter(self.plan), changes_of(self.plan))
        for change in self.plan.retirements:
            self.issue_all(change)
        return self.results

    def work_off(self, sorter: "TopologicalSorter[Key]", changes: Mapping[Key, ThingChange]) -> None:
        """Issue the commands of each thing once all that it needs is there."""
        ready: deque[Key] = deque()
        running: dict[Future[None], Key] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while sorter.is_active():
                ready.extend(sorter.get_ready())
                while ready and len(running) < 2 * AT_ONCE:
                    key = ready.popleft()
                    running[pool.submit(self.issue_all, changes[key])] = key
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    sorter.done(running.pop(future))
                    future.result()

    def issue_all(self, change: ThingChange) -> None:
        """Issue the commands of one thing in order, up to the first that is refused."""
        key = (change.section, change.key)
        if lost := [need for need in sorted(change.needs) if need not in self.ids or need in self.results.refused]:
            self.results.skipped[key] = f"it needs {ALL_KINDS[lost[0][0]].label} {lost[0][1]}, which is not as the file says"
            self.advance(len(change.updates))
            return
        for place, update in enumerate(change.updates):
            try:
                self.issue(change, update, creates=change.creates and place == 0)
            except (Refusal, ArgumentsError) as refusal:
                self.results.refused[key] = f"{change.place_of(update)}{refusal_sentence(update, refusal)}"
                self.advance(len(change.updates) - place)
                return
            except ProposedError as waiting:
                self.results.proposed[key] = f"{update.operation} waits for approval: {waiting.proposed.proposal_id}"
                self.advance(len(change.updates) - place)
                return
            self.results.done += 1
            self.advance(1)

    def issue(self, change: ThingChange, update: Update, *, creates: bool) -> None:
        """Issue one command."""
        operation = OPERATIONS[update.operation]
        arguments: dict[str, object] = {name: self.resolve_argument(value) for name, value in update.arguments.items()}
        own = (change.section, change.key)
        if creates:
            making = command_key(operation, [plain_ids(arguments), change.generation])
            answer = self.client.invoke(operation, arguments, making)
            self.ids[own] = getattr(answer, KINDS[change.section].id_name)
            return
        assert operation.target is not None
        arguments[operation.target] = self.ids[own]
        key = None if update.repeatable else command_key(operation, [plain_ids(arguments), self.version_of(own, operation)])
        self.client.invoke(operation, arguments, key)

    def version_of(self, key: Key, operation: OperationEntry) -> int:
        """Return how many events a thing has: a change back and forth is three different commands."""
        aggregate = REGISTRY.operations[operation.name].aggregate
        assert aggregate is not None
        history = next(one for one in aggregate.operations if one.name.endswith("_history"))
        return sum(1 for _ in self.client.every(history.name, **{aggregate.id_name: self.ids[key]}))

    def resolve_argument(self, value: object) -> Any:
        """Return an argument with ids for its references."""
        match value:
            case Ref("principals", key):
                return self.ids.get(("actors", key)) or self.ids["agents", key]
            case Ref(section, key):
                return self.ids[section, key]
            case Pin(assembly):
                view = self.client.call("get_assembly", assembly_id=self.resolve_argument(assembly))
                return view.content_hash
            case Mapping():
                return {name: self.resolve_argument(one) for name, one in value.items()}
            case list() | tuple():
                return [self.resolve_argument(one) for one in value]
            case _:
                return value


def changes_of(plan: ChangePlan) -> dict[Key, ThingChange]:
    """Return what is made and changed by commands."""
    return {(one.section, one.key): one for one in plan.changes if one.updates}


def prepared_sorter(plan: ChangePlan) -> "TopologicalSorter[Key]":
    """Return the things in the order in which one needs the other; refuse those that need each other."""
    changes = changes_of(plan)
    sorter: TopologicalSorter[Key] = TopologicalSorter(
        {key: [need for need in change.needs if need in changes] for key, change in changes.items()}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        circle = ", ".join(f"{section} {key}" for section, key in error.args[1])
        raise BeamlineFileError([f"These need each other, and none can be made first: {circle}."]) from None
    return sorter


def refusal_sentence(update: Update, refusal: Refusal | ArgumentsError) -> str:
    """Return why a command is refused, or was not sent."""
    return str(refusal) if isinstance(refusal, ArgumentsError) else f"{update.operation} is refused: {refusal.detail}"


def command_key(operation: OperationEntry, content: object) -> str:
    """Return the idempotency key that follows from what a command says."""
    return f"file-{content_hash([operation.name, content])}"


def plain_ids(arguments: object) -> object:
    """Return arguments as JSON data, for a key."""
    match arguments:
        case Mapping():
            return {str(name): plain_ids(one) for name, one in arguments.items()}
        case list() | tuple() | set() | frozenset():
            return [plain_ids(one) for one in arguments]
        case datetime() | UUID():
            return str(arguments)
        case _:
            return getattr(arguments, "value", arguments)
