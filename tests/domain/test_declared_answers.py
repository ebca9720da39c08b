"""Rows of lists and views of one thing repeat fields of a state; what they repeat has the type that the state declares."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel

from baton.domain.contexts import REGISTRY
from baton.domain.kernel import State
from baton.domain.registry import LateForm
from baton.domain.shared.listing import Summary
from tests.support.tables import for_each

OTHERWISE = {
    ("ClearanceSummary", "bindings"): "the ids by kind, to filter by",
    ("QueueView", "items"): "those that have not ended, as they are shown",
    ("ScheduleView", "target"): "as it was given",
}
"""The fields that have the name of a state's field and show something else, each with what it shows."""


def declared_type(state: type[State], name: str) -> Any:
    """Return the type of a field or property of a state; None where it has none of this name."""
    found = getattr(state, name, None)
    return get_type_hints(found.fget)["return"] if isinstance(found, property) else get_type_hints(state).get(name)


def repeated_fields(form: type[BaseModel], state: type[State]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields of a form that a state has too, with both types as they are without annotations."""
    for name, declared in get_type_hints(form).items():
        if name in form.model_fields and (own := declared_type(state, name)) is not None:
            yield name, declared, own


def forms() -> dict[str, tuple[type[BaseModel], type[State]]]:
    rows: dict[str, tuple[type[BaseModel], type[State]]] = {
        one.summary.__name__: (one.summary, one.aggregate.state) for one in REGISTRY.projections.values()
    }
    for aggregate in REGISTRY.aggregates.values():
        get = REGISTRY.operations.get(f"get_{aggregate.label.replace(' ', '_')}")
        if get is not None and not isinstance(get.declared_form, LateForm):
            for form in get_args(get.declared_form) or (get.declared_form,):
                rows[form.__name__] = (form, aggregate.state)
    return rows


FORMS = forms()


@for_each("name", FORMS)
def test_a_repeated_field_has_the_type_of_the_states(name: str) -> None:
    form, state = FORMS[name]
    repeated = [one for one in repeated_fields(form, state) if (name, one[0]) not in OTHERWISE]
    assert repeated, "it shows some of the state"
    assert [(field, shown, own) for field, shown, own in repeated if shown != own] == []


def test_what_shows_something_else_is_still_there() -> None:
    for name, field in OTHERWISE:
        form, state = FORMS[name]
        assert any(one == field and shown != own for one, shown, own in repeated_fields(form, state)), (name, field)


def test_rows_are_declared_classes() -> None:
    assert all(issubclass(one.summary, Summary) for one in REGISTRY.projections.values())
    assert {"RunSummary", "SupplyView", "QueueView"} <= FORMS.keys()
