"""The catalog of language models: what it refuses, what a model costs, and which results rest on it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.agent.language_model import (
    AnnounceLanguageModelRetirement,
    ApproveLanguageModel,
    DefineLanguageModel,
    DeprecateLanguageModel,
    LanguageModel,
    Pricing,
    ReproducibilityGrade,
    RetireLanguageModel,
    is_at_risk,
    model_calls,
    price_of,
    reproducibility_grade,
)
from baton.domain.decision.decision import Inference
from baton.domain.kernel import instant
from baton.domain.registry import REGISTRY
from tests.support.domain.language_models import FREE, PRICED, entry
from tests.support.domain.lifecycle_table import command
from tests.support.domain.world import START, World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return World()


def define_model(world: World, **fields: Any) -> UUID:
    return world.create(DefineLanguageModel(**entry(**fields)))


def approve_model(world: World, **fields: Any) -> UUID:
    id = define_model(world, **fields)
    world.when(ApproveLanguageModel(), on=id)
    return id


def test_an_entry_keeps_what_it_was_defined_with(world: World) -> None:
    id = define_model(world, snapshot_pin="large-4-20260601", endpoint_note="Through the site gateway")
    view = world.show(REGISTRY.operations["get_language_model"].input(), on=id)
    assert view.model_dump(mode="json") == {
        "id": str(id),
        "language_model_id": str(id),
        "created_at": instant(world.now),
        "name": "Acme large",
        "model_ref": {"provider": "acme", "model": "large-4", "snapshot_pin": "large-4-20260601"},
        "served_via": "Direct",
        "endpoint_note": "Through the site gateway",
        "pricing": PRICED,
        "data_tier": "Internal",
        "archivability": "Alias",
        "status": "Defined",
        "retirement_effective_at": None,
        "end_reason": None,
    }


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"name": " "}, "InvalidLanguageModelNameError"),
        ({"provider": " "}, "InvalidModelRefError"),
        ({"model": " "}, "InvalidModelRefError"),
        ({"snapshot_pin": " "}, "InvalidModelRefError"),
        ({"endpoint_note": " "}, "InvalidEndpointNoteError"),
        *(({"pricing": {**FREE, kind: -0.01}}, "InvalidLanguageModelPricingError") for kind in FREE),
    ],
)
def test_values_are_refused_by_their_own_class(world: World, fields: dict[str, Any], refusal: str) -> None:
    with expect_refusal(refusal):
        define_model(world, **fields)


@for_each("price", [float("nan"), float("inf"), "3", None])
def test_a_price_is_a_number(price: Any) -> None:
    with pytest.raises(ValidationError):
        DefineLanguageModel(**entry(pricing={**FREE, "input": price}))


def test_the_unit_of_a_price_is_declared() -> None:
    schema = Pricing.model_json_schema()
    for price in schema["properties"].values():
        assert price["unit"] == {"system": "qudt", "code": "CCY_USD"}
        assert price["description"] == "In US dollars per million tokens."


def test_a_model_is_in_the_catalog_once(world: World) -> None:
    first = approve_model(world)
    with expect_refusal("LanguageModelAlreadyExistsError", "identity_taken"):
        define_model(world, name="The same by another name")
    for other in ({"provider": "bolt"}, {"model": "large-5"}, {"snapshot_pin": "large-4-20260601"}):
        define_model(world, **other)
    world.when(RetireLanguageModel(), on=first)
    with expect_refusal("LanguageModelAlreadyExistsError", "identity_taken"):
        define_model(world)


def test_a_deprecated_entry_makes_room_for_another(world: World) -> None:
    world.when(DeprecateLanguageModel(), on=define_model(world))
    world.when(DeprecateLanguageModel(), on=define_model(world))
    define_model(world)


def test_the_latest_reason_given_stays(world: World) -> None:
    id, end = approve_model(world), START + timedelta(days=90)
    world.when(AnnounceLanguageModelRetirement(reason="Provider notice", effective_at=end), on=id)
    world.when(RetireLanguageModel(), on=id)
    entry: LanguageModel = world.state(LanguageModel, id)
    assert (entry.end_reason, entry.retirement_effective_at) == ("Provider notice", end)
    other = approve_model(world, model="large-5")
    world.when(AnnounceLanguageModelRetirement(reason="Provider notice"), on=other)
    world.when(DeprecateLanguageModel(reason="Replaced"), on=other)
    entry = world.state(LanguageModel, other)
    assert (entry.end_reason, entry.retirement_effective_at) == ("Replaced", None)


@pytest.mark.parametrize("verb", ["announce_language_model_retirement", "retire_language_model", "deprecate_language_model"])
def test_a_reason_is_never_blank(world: World, verb: str) -> None:
    with expect_refusal("InvalidLanguageModelReasonError"):
        world.when(command(verb, {"reason": "  "}), on=approve_model(world))


def test_the_price_is_that_of_the_newest_entry_in_the_catalog(world: World) -> None:
    def price(model: str = "large-4") -> Pricing | None:
        found: Pricing | None = world.fulfil(price_of("acme", model))
        return found

    assert price() is None
    first = define_model(world)
    assert price() == Pricing(**PRICED)
    newer = define_model(world, snapshot_pin="large-4-20260601", pricing=FREE)
    assert price() == Pricing(**FREE)
    assert price("large-5") is None
    world.when(DeprecateLanguageModel(), on=newer)
    assert price() == Pricing(**PRICED)
    world.when(ApproveLanguageModel(), on=first)
    world.when(RetireLanguageModel(), on=first)
    assert price() == Pricing(**PRICED), "a retired model has its price"


@pytest.mark.parametrize("archivability", ["Pinned", "Alias"])
@pytest.mark.parametrize(
    "ended", ["", "announce_language_model_retirement", "retire_language_model", "deprecate_language_model"]
)
def test_results_are_at_risk_where_the_provider_ends_what_it_alone_holds(
    world: World, archivability: str, ended: str
) -> None:
    id = approve_model(world, archivability=archivability)
    if ended:
        world.when(command(ended, {"reason": "notice"}), on=id)
    entry: LanguageModel = world.state(LanguageModel, id)
    alias = archivability == "Alias"
    assert reproducibility_grade(entry) is (
        ReproducibilityGrade.ATTRIBUTABLE_ONLY if alias else ReproducibilityGrade.RE_EXECUTABLE
    )
    by_provider = ended in ("announce_language_model_retirement", "retire_language_model")
    assert is_at_risk(entry) == (alias and by_provider)


DECISIONS = sorted(new_id() for _ in range(3))


def call(request: str, response: str | None = None, decision: int = 0, minutes: int = 0) -> Inference:
    known = {name: new_id() for name in ("logbook_id", "actor_id", "correlation_id", "event_id")}
    span = {"operation_name": "chat", "provider_name": "acme", "command_name": "AppendInferences", "finish_reasons": ()}
    asked = {"request_model": request, "response_model": response, "decision_id": DECISIONS[decision]}
    empty = dict.fromkeys(set(Inference.model_fields) - {"recorded_at"})
    return Inference(**{**empty, **known, **span, **asked, "occurred_at": START + timedelta(minutes=minutes)})


def calls_of_the_model(calls: list[Inference]) -> list[tuple[UUID, Any]]:
    rows = [row for row in model_calls(calls) if (row.provider_name, row.model) == ("acme", "large-4")]
    return sorted((row.decision_id, row.occurred_at) for row in rows)


@for_each(
    ("request_model", "response_model", "matches"),
    [
        *(("large-4", None, True), ("large-4", "large-4-20260601", True)),
        *(("newest", "large-4", True), ("newest", "large-4-20260601", True)),
        *(("newest", None, False), ("large-4-20260601", None, False), ("large", "large", False)),
        *(("large-4.1", "large-4.1-20260601", False), ("large-4-1", "large-4-1-20260601", False)),
        *(("large-4-mini", "large-4-mini", False), ("newest", "large-4-2026060", False)),
        *(("newest", "large-4-202606011", False), ("newest", "large-4-latest", False)),
    ],
)
def test_a_model_is_known_by_its_name_and_by_its_dated_name(
    request_model: str, response_model: str | None, matches: bool
) -> None:
    found = calls_of_the_model([call(request_model, response_model)])
    assert found == ([(DECISIONS[0], START)] if matches else [])


def test_each_decision_shows_its_newest_call_of_the_model() -> None:
    calls = [
        call("newest", "large-4", minutes=5),
        call("large-4", "large-4-20260601", minutes=1),
        call("large-5", "large-5", minutes=9),
        call("large-4", decision=1, minutes=3),
        call("large-5", decision=2, minutes=4),
    ]
    newest = [(DECISIONS[0], START + timedelta(minutes=5)), (DECISIONS[1], START + timedelta(minutes=3))]
    assert calls_of_the_model(calls) == newest
