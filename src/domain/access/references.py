"""Names of what an answer refers to, beside the ids: `plan` beside `plan_id`, `last_adjusted_by_name` beside
`last_adjusted_by`; and who brought something about. One read for each kind, however many ids there are."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.domain.access.actor import Actor, appearance, names_of
from baton.domain.kernel import Aggregate, Event, FurtherView, TimeTravel, Value
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import NamedListQuery, Page, Where
from baton.domain.shared.naming import name_field, name_member, referred_aggregate
from baton.domain.shared.reads import Reads, Rows, find_all, latest_events, permitted_commands

References = dict[str, set[UUID]]  # Ids by the name of their aggregate.
ReferredNames = Mapping[tuple[str, UUID], str | None]
SCALARS = frozenset({str, int, float, bool, type(None)})
Acts = Mapping[str, tuple[type[Event], ...]]  # Events by what was done: started, held, ended.


@dataclass(frozen=True, kw_only=True)
class ActsByTurns(FurtherView):
    """When work was last held and resumed, and ended, and by whom."""

    held_at: datetime | None
    held_by: UUID | None
    held_by_name: str | None
    resumed_at: datetime | None
    resumed_by: UUID | None
    resumed_by_name: str | None
    ended_at: datetime | None
    ended_by: UUID | None
    ended_by_name: str | None


class Reference(Value):
    """Something that is referred to; its name is null where the caller may not get it."""

    id: UUID
    name: str | None


@dataclass(frozen=True)
class Mention:
    """A key of plain data that refers to things with names, and the key that their names go under."""

    aggregate: Aggregate
    ids: tuple[UUID, ...]
    member: str
    single: bool

    def describe(self, names: ReferredNames) -> Any:
        """Return what is shown of the things it refers to."""
        found = [{"id": str(id), "name": names.get((self.aggregate.name, id))} for id in self.ids]
        if self.member.endswith("name"):
            return found[0]["name"]
        return found[0] if self.single else found


def include_names(data: Any, owner: Aggregate | None) -> Reads[Any]:
    """Return plain data with the names of all that it refers to; `owner` is the aggregate that it is about."""
    mentions: list[tuple[Mention, dict[str, Any]]] = []
    named = copy_noting(data, owner, mentions)
    wanted: References = {}
    for mention, _ in mentions:
        wanted.setdefault(mention.aggregate.name, set()).update(mention.ids)
    names: dict[tuple[str, UUID], str | None] = {}
    permitted = (yield from permitted_commands()) if wanted else frozenset()
    for aggregate, ids in sorted(wanted.items()):
        found = yield from names_under(REGISTRY.aggregates[aggregate], ids, permitted)
        names |= {(aggregate, id): name for id, name in found.items()}
    for mention, place in mentions:
        place[mention.member] = mention.describe(names)
    return named


def copy_noting(data: Any, owner: Aggregate | None, mentions: list[tuple[Mention, dict[str, Any]]]) -> Any:
    """Return a copy of plain data, and note every mention in it, however deep, with the object that its names go into."""
    if type(data) in SCALARS:
        return data
    if isinstance(data, Mapping):
        within = owner_within(data, owner)
        copied = {key: copy_noting(part, within, mentions) for key, part in data.items()}
        mentions.extend((mention, copied) for mention in mentions_of(data, owner))
        return copied
    if isinstance(data, list | tuple):
        return [copy_noting(part, owner, mentions) for part in data]
    return data


def mentions_of(data: Mapping[str, Any], owner: Aggregate | None) -> Iterator[Mention]:
    """Yield the mentions among the keys of one object: not of the thing itself, and none that has its name there already."""
    for key, value in data.items():
        member = name_member(key)
        if member is None or member in data or f"{member}_name" in data or (ids := ids_in(value)) is None:
            continue
        aggregate = referred_kind(data, key, owner)
        is_itself = aggregate is owner and owner is not None and key == owner.id_name and "items" not in data
        if aggregate is not None and name_field(aggregate) is not None and not is_itself:
            yield Mention(aggregate, ids, member, not isinstance(value, list | tuple))


def referred_kind(data: Mapping[str, Any], key: str, owner: Aggregate | None) -> Aggregate | None:
    """Return what a key of an object refers to; a kind beside it, as in `target_kind` and `target_id`, says it too."""
    kind = data.get({"id": "kind", "stream_id": "stream_type"}.get(key, f"{key.removesuffix('_id')}_kind"))
    told = REGISTRY.aggregates.get(kind) if isinstance(kind, str) else None
    return told or referred_aggregate(key, owner)


def owner_within(data: Mapping[str, Any], owner: Aggregate | None) -> Aggregate | None:
    """Return what the parts of an object are about: those of an event are about its stream."""
    return REGISTRY.aggregates.get(str(data["stream_type"])) if "stream_type" in data else owner


def ids_in(value: object) -> tuple[UUID, ...] | None:
    """Return the id, or the ids, that a value holds; None where it holds anything else."""
    try:
        return tuple(map(to_id, value)) if isinstance(value, list | tuple) else (to_id(value),)
    except ValueError:
        return None


def to_id(value: object) -> UUID:
    """Return an id as plain data holds it."""
    return value if isinstance(value, UUID) else UUID(value) if isinstance(value, str) else UUID("")


def names_under(aggregate: Aggregate, ids: Iterable[UUID], permitted: frozenset[str]) -> Reads[dict[UUID, str | None]]:
    """Return the names of these things, as far as the caller may get them: from the list, and what is too new for that from
    its stream."""
    wanted = tuple(sorted(ids))
    if aggregate.state is Actor:
        actors = yield from names_of((id, None) for id in wanted)
        return {id: name for (id, _), name in actors.items()}
    if f"Get{aggregate.name}" not in permitted:
        return {}
    query = next(one.input for one in aggregate.operations if issubclass(one.input, NamedListQuery))
    id_column, name_column = next(iter(query.summary.model_fields)), query.name_column()
    wanted_rows = Where(id_column, "in", wanted)
    page: Page[Any] = yield Rows(query.summary, query.model_construct(limit=len(wanted)), (wanted_rows,))
    listed = {getattr(row, id_column): getattr(row, name_column) for row in page.items}
    states = yield from find_all(aggregate.state, (id for id in wanted if id not in listed))
    return listed | {id: getattr(state, name_column) for id, state in states.items()}


def reference_to(aggregate: Aggregate, id: UUID | None) -> Reads[Reference | None]:
    """Return a thing by its id and name, where there is one."""
    if id is None:
        return None
    names = yield from names_under(aggregate, (id,), (yield from permitted_commands()))
    return Reference(id=id, name=names.get(id))


def acts_of(query: TimeTravel, id: UUID, once: Acts, by_turns: Acts) -> Reads[dict[str, Any]]:
    """Return when the latest of each of these kinds of event happened on a stream, and who brought it about, as
    `<kind>_at`, `<kind>_by` and `<kind>_by_name`. The kinds of `by_turns` follow on one another, so that the last events
    hold one of each."""
    kinds = {event: kind for group in (once, by_turns) for kind, events in group.items() for event in events}
    found: list[Event] = []
    for group in (once, by_turns):
        events = [event for kind in group.values() for event in kind]
        past = latest_events(id, *events, count=len(group), as_of=query.as_of, as_of_version=query.as_of_version)
        found += yield from past
    latest = {kinds[type(event)]: event for event in reversed(found)}
    appearances = {kind: appearance(event) for kind, event in latest.items()}
    names = yield from names_of(appearances.values())
    acts: dict[str, object] = {}
    for kind in dict.fromkeys(kinds.values()):
        event, who = latest.get(kind), appearances.get(kind)
        acts[f"{kind}_at"] = event and event.occurred_at
        acts[f"{kind}_by"] = who and who[0]
        acts[f"{kind}_by_name"] = who and names[who]
    return acts
