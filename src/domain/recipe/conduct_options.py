"""What may be chosen for a conduct: the gates that are watched meanwhile, and what an unknown outcome leads to."""

from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import Field

from baton.domain.kernel import SortedSet, Value


class WatchedGate(StrEnum):
    ENCLOSURE = "enclosure"
    SUPPLY = "supply"


class OnUnknownOutcome(StrEnum):
    ABORT = "abort"  # The conduct fails, closing steps run, and the procedure is Aborted.
    HOLD = "hold"  # The procedure is Held until a person says whether the step was done.


WatchedGates = SortedSet[WatchedGate]
CONDUCT_CODES = frozenset({"command", "kind", "substrate", "watch", "on_unknown_outcome"})
"""The fields of a stored arrangement whose texts are codes, readable by everybody who may read the event."""


class ConductChoices(Protocol):
    """Anything that may choose options of a conduct; what it does not choose is None."""

    @property
    def watch(self) -> frozenset[WatchedGate] | None: ...
    @property
    def on_unknown_outcome(self) -> OnUnknownOutcome | None: ...


class ChosenOptions(Value):
    """The options that a recipe, a procedure or a request chooses; null leaves the choice to what comes after it.

    A choice that is not made is not written either, so that what is stored of requests without options is as it was.
    """

    watch: Annotated[
        WatchedGates | None,
        Field(
            description="Gates that hold it when they close; [] for none. Left out: the procedure's, its "
            "recipe's, else enclosure.",
            exclude_if=lambda watch: watch is None,
        ),
    ] = None
    on_unknown_outcome: Annotated[
        OnUnknownOutcome | None,
        Field(
            description="What an unknown outcome leads to. Left out: the procedure's, its recipe's, the command's choice.",
            exclude_if=lambda outcome: outcome is None,
        ),
    ] = None


class ConductOptions(Value):
    """The options of a conduct, all chosen."""

    watch: WatchedGates = frozenset({WatchedGate.ENCLOSURE})
    on_unknown_outcome: OnUnknownOutcome = OnUnknownOutcome.ABORT


DEFAULT_OPTIONS = ConductOptions()
UNWATCHED = ConductOptions(watch=frozenset())  # Of conducts that began before there were options.
HOLDING_OPTIONS = ConductOptions(on_unknown_outcome=OnUnknownOutcome.HOLD)  # The defaults of conduct_or_hold_procedure.


def first_choices(*sources: ConductChoices) -> ChosenOptions:
    """Return of each option the choice of the first source that makes one."""
    found = {name: [getattr(source, name) for source in sources] for name in ChosenOptions.model_fields}
    return ChosenOptions(**{name: next((one for one in values if one is not None), None) for name, values in found.items()})


def conduct_options(*sources: ConductChoices, default: ConductOptions = DEFAULT_OPTIONS) -> ConductOptions:
    """Return the options of a conduct: those of the first source that chooses each, then the default."""
    return ConductOptions.model_validate(dict(first_choices(*sources, default)))
