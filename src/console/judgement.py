"""Judgements: what gates say of something that is to start, in sentences, with links to what opens those that are closed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from baton.console.display import href_of, is_uuid, short_id, words_of
from baton.console.page_queries import PageQueries, Shown
from baton.console.verbs import form_href, holders_href
from baton.domain.contexts import REGISTRY
from baton.domain.shared.naming import name_field

MOST_LINKS = 4
ABOUT = {
    "clearance_present": "Clearance",
    "clearance_active": "Clearance",
    "supply_present": "Supply",
    "supply_available": "Supply",
    "enclosure_permitted": "Enclosure",
    "plan_current": "Plan",
    "subject_mounted": "Subject",
    "assets_in_service": "Asset",
    "families_covered": "Family",
    "wires_connected": "Asset",
    "roles_played": "Asset",
    "campaign_open": "Campaign",
    **dict.fromkeys(("targets_found", "targets_in_service", "targets_unclaimed", "assets_ready"), "Asset"),
    **dict.fromkeys(("signals_owned", "units_agree", "setpoints_within_limits"), "Asset"),
    "supplies_available": "Supply",
    "enclosures_permitted": "Enclosure",
    "clearance_in_force": "Clearance",
}  # What the ids are of that each gate asks about.
GATES = {
    "grants_present": "Permissions held",
    "pins_bounded": "Calibrations not too many",
    "refs_bounded": "References not too many",
}  # The gates whose names say too little to people.
OTHERS = "Parameters"
GROUPS = {
    "Safety": ("clearance_present", "clearance_active", "clearance_in_force", "enclosure_permitted", "enclosures_permitted"),
    "Beam": ("supply_present", "supply_available", "supplies_available"),
    "Equipment": (
        *("assets_in_service", "families_covered", "wires_connected", "roles_played", "assets_ready"),
        *("targets_found", "targets_in_service", "targets_unclaimed", "signals_owned", "calibrations_valid"),
    ),
    "Sample": ("subject_mounted", "campaign_open"),
    OTHERS: (),
    "Permissions": ("grants_present",),
}  # The gates by the words that people use; one that stands nowhere is about parameters.
OPENED_BY = {"subject_mounted": "mount_subject"}
"""The verb that opens a gate, where one does whatever keeps it closed."""
WHERE = {
    "clearance_present": ("Clearances", "/console/clearances"),
    "clearance_in_force": ("Clearances", "/console/clearances"),
    "supply_present": ("Supplies", "/console/supplies"),
    "plan_current": ("Other plans", "/console/start"),
}  # Where to go on where there is no such thing yet.


@dataclass(frozen=True)
class Remedy:
    """A link to what opens a gate; one that leads to a form is opened in place."""

    text: str
    href: str

    @property
    def is_form(self) -> bool:
        return self.href.startswith("/console/do/")


@dataclass(frozen=True)
class ClosedGate:
    """A gate that is closed: why, and what opens it."""

    name: str
    sentence: str
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True)
class GateGroup:
    """Gates about one subject: those that are closed, and the names of the open ones."""

    name: str
    closed: tuple[ClosedGate, ...]
    open: tuple[str, ...]


@dataclass(frozen=True)
class Judgement:
    """Whether something may start: the closed gates, the names of the open ones, the cautions that starting acknowledges,
    what is wrong with single fields by their places, and what alone is proposed where it takes an approval."""

    closed: tuple[ClosedGate, ...] = ()
    open: tuple[str, ...] = ()
    cautions: tuple[Shown, ...] = ()
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    remark: str = ""
    proposal: str = ""
    unknown_units: tuple[str, ...] = ()  # the signals whose unit the control system does not state
    overwritten: tuple[str, ...] = ()  # the addresses of registered copies that its recipes would write over

    @property
    def groups(self) -> tuple[GateGroup, ...]:
        """The gates in the groups that people know, those with a closed gate first."""
        found = [
            GateGroup(
                group,
                tuple(gate for gate in self.closed if group_of(gate.name) == group),
                tuple(name for name in self.open if group_of(name) == group),
            )
            for group in GROUPS
        ]
        return tuple(sorted((one for one in found if one.closed or one.open), key=lambda one: not one.closed))

    @property
    def count(self) -> int:
        return len(self.closed) + len(self.open)

    @property
    def passed(self) -> bool:
        return not self.closed and not self.errors


def gate_words(gate: str) -> str:
    """Return the name of a gate as people read it."""
    return GATES.get(gate) or words_of(gate)


def group_of(name: str) -> str:
    """Return the group of a gate, by its name as people read it."""
    return next((group for group, gates in GROUPS.items() if name in map(gate_words, gates)), OTHERS)


def missing_grants(needed: Iterable[str], queries: PageQueries) -> ClosedGate | None:
    """Return the gate that permissions close which the person does not hold; None where none is missing."""
    missing = [name for name in dict.fromkeys(needed) if name not in queries.permitted]
    if not missing:
        return None
    sentence = f"It takes the permission {' and '.join(missing)}; ask an administrator for it."
    return ClosedGate(gate_words("grants_present"), sentence, grant_remedies(missing))


def grant_remedies(names: Iterable[str]) -> tuple[Remedy, ...]:
    """Return links to those who hold permissions."""
    return tuple(Remedy(f"Who holds {name}", holders_href(name)) for name in names)


async def closed_gate(verdict: Shown, queries: PageQueries) -> ClosedGate:
    """Return a gate that a preflight found closed, with links to what opens it."""
    gate, facts = verdict["gate"], verdict["facts"] or {}
    named, sentence = gate_words(gate), verdict["detail"] or "It is closed."
    if gate == "grants_present":
        return ClosedGate(named, sentence, grant_remedies(facts.get("missing", ())))
    concerned = set(ids_in(facts)) & set(verdict["subjects"]) or set(verdict["subjects"])
    kind = ABOUT.get(gate)
    shown = sorted(concerned)[:MOST_LINKS] if kind is not None else []
    remedies = [one for id in shown for one in await remedies_on(gate, str(kind), id, queries)]
    if not remedies and gate in WHERE:
        remedies = [Remedy(*WHERE[gate])]
    return ClosedGate(named, sentence, tuple(remedies))


async def remedies_on(gate: str, kind: str, id: str, queries: PageQueries) -> list[Remedy]:
    """Return links to a thing that keeps a gate closed, and to the form of the verb that opens it."""
    found = [Remedy(await name_of(kind, id, queries), href_of(kind, id))]
    verb = REGISTRY.operations.get(OPENED_BY.get(gate, ""))
    if verb is not None and queries.may(verb):
        found.append(Remedy(f"{words_of(verb.name)}…", form_href(verb, id)))
    elif verb is not None:
        found.append(Remedy(f"Who can {words_of(verb.name).lower()}", holders_href(verb.command_name)))
    return found


async def name_of(kind: str, id: str, queries: PageQueries) -> str:
    """Return what a thing is called, as far as the person may see it."""
    aggregate = REGISTRY.aggregates[kind]
    getting = REGISTRY.operations.get(f"get_{aggregate.label.replace(' ', '_')}")
    view = None if getting is None else await queries.show_found(getting.input, id)  # type: ignore[arg-type]
    return str((view or {}).get(name_field(aggregate) or "") or f"{words_of(aggregate.label)} {short_id(id)}")


def ids_in(value: object) -> Iterator[str]:
    """Yield every id that plain data holds."""
    match value:
        case str() if is_uuid(value):
            yield value
        case dict():
            for one in value.values():
                yield from ids_in(one)
        case list() | tuple():
            for one in value:
                yield from ids_in(one)
