"""Verbs: the commands of a thing as buttons. A verb that its state does not allow, or the person may not give, is shown with
the sentence that says why; a verb that is declared tomorrow appears here by itself."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from baton.console.display import words_of
from baton.console.page_queries import PageQueries, Shown
from baton.domain.access.actor import ActorKind
from baton.domain.kernel import Aggregate
from baton.domain.registry import Operation

HALTING = frozenset({"hold", "stop", "abort"})
"""The first words of verbs that stop something; they are never greyed."""
NOT_PERMITTED = "You may not:"


@dataclass(frozen=True)
class VerbButton:
    """A command on a thing: where its form is, and why it cannot be given, if so."""

    operation: Operation
    label: str
    href: str
    why_not: str | None = None
    proposed: bool = False  # whether it becomes a proposal

    @property
    def text(self) -> str:
        """What stands on the button."""
        return proposal_label(self.label) if self.proposed else self.label

    @property
    def name(self) -> str:
        return self.operation.name

    @property
    def lacks_permission(self) -> bool:
        """Whether the person may not give it, so that somebody else is needed."""
        return (self.why_not or "").startswith(NOT_PERMITTED)

    @property
    def halts(self) -> bool:
        """Whether it stops something."""
        return self.name.partition("_")[0] in HALTING


def verb_label(operation: Operation) -> str:
    """Return a verb without the thing it is about: `hold_run` -> `Hold`."""
    aggregate = operation.aggregate
    label = words_of(operation.name)
    if aggregate is None:
        return label
    return words_of("_".join(operation.name.replace(f"_{aggregate.label.replace(' ', '_')}", "").split("_"))) or label


def proposal_label(label: str) -> str:
    """Return what stands on the button of a verb that becomes a proposal."""
    return f"Propose: {label[:1].lower()}{label[1:]}"


def holders_href(command_name: str) -> str:
    """Return the address of the page that names those who hold a permission."""
    return f"/console/people?command={command_name}"


def form_href(operation: Operation, target: UUID | str | None = None, **fields: Any) -> str:
    """Return the address of the form of a command."""
    given = {} if target is None or operation.target is None else {operation.target: str(target)}
    query = urlencode({**given, **{name: str(value) for name, value in fields.items() if value is not None}})
    return f"/console/do/{operation.name}" + (f"?{query}" if query else "")


def verb_button(operation: Operation, queries: PageQueries, state: str | None, target: UUID | str | None) -> VerbButton:
    """Return the button of a command on a thing in this state."""
    why_not = None
    if state is not None and operation.allowed is not None and state not in {one.value for one in operation.allowed}:
        allowed = ", ".join(sorted(words_of(one) for one in operation.allowed)) or "no state"
        label = operation.aggregate.label if operation.aggregate else "thing"
        why_not = f"The {label} is {words_of(state)}; this is possible only from {allowed}."
    elif operation.callers and ActorKind.HUMAN not in operation.callers:
        why_not = f"Only a {' or a '.join(words_of(one).lower() for one in operation.callers)} gives it, no person."
    elif not queries.may(operation):
        why_not = f"{NOT_PERMITTED} it takes the permission {operation.command_name}."
    return VerbButton(operation, verb_label(operation), form_href(operation, target), why_not, queries.proposes(operation))


def verbs_of(aggregate: Aggregate, view: Shown, queries: PageQueries) -> list[VerbButton]:
    """Return the buttons of every command on a thing, those first that can be given now."""
    state, target = view.get(aggregate.axis), view.get(aggregate.id_name) or view.get("id")
    commands = [one for one in aggregate.operations if one.kind == "command" and one.target == aggregate.id_name]
    buttons = [verb_button(one, queries, state, target) for one in commands]
    return sorted(buttons, key=lambda button: button.why_not is not None and not button.halts)


def creations_of(aggregate: Aggregate, queries: PageQueries) -> list[VerbButton]:
    """Return the buttons of the commands that make a new thing, or are about no single one."""
    commands = [one for one in aggregate.operations if one.kind == "command" and one.target is None]
    return [replace(verb_button(one, queries, None, None), label=words_of(one.name)) for one in commands]
