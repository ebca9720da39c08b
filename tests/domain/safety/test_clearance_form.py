"""What a safety form may say: what it covers, the hazards declared there, its number, its window, its template."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.safety.clearance import Clearance, RegisterClearance
from tests.support.domain.clearances import (
    NFPA,
    SITE,
    binding,
    clearance_fields,
    clearance_of,
    day,
    hazard_declaration,
    proposal,
    register_clearance,
    site_world,
    template,
)
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


def registration_payload(world: World, id: UUID) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(world.streams["Clearance", id][0].payload())
    return payload


def declaration_fields(**parts: Any) -> dict[str, Any]:
    """What a form says that covers a subject and declares a hazard of it."""
    sample = binding("Subject")
    return {"bindings": [sample], "declarations": [hazard_declaration(sample, **parts)]}


def register_rated(world: World, rating: dict[str, Any]) -> UUID:
    return register_clearance(world, **declaration_fields(classifications=[rating]))


def test_what_is_covered_is_a_set(world: World) -> None:
    furnace, cell = binding("Asset"), binding("Subject")
    spaced = {"kind": "External", "scheme": " proposal ", "value": " P-7731 "}
    one = clearance_of(world, register_clearance(world, bindings=[cell, furnace, cell, proposal(), spaced]))
    other = clearance_of(world, register_clearance(world, bindings=[proposal(), furnace, cell]))
    assert (len(one.bindings), one.bindings) == (3, other.bindings)
    assert registration_payload(world, one.id)["bindings"] == registration_payload(world, other.id)["bindings"]


def test_equal_declarations_are_one_and_notes_may_be_empty(world: World) -> None:
    cell = binding("Subject")
    id = register_clearance(
        world,
        bindings=[cell],
        declarations=[hazard_declaration(cell), hazard_declaration(cell), hazard_declaration(cell, notes="")],
    )
    assert sorted(str(declaration.notes) for declaration in clearance_of(world, id).declarations) == ["", "None"]


@pytest.mark.parametrize(
    ("fields", "refusal", "reason"),
    [
        ({"title": "  "}, "InvalidClearanceTitleError", "blank"),
        ({"bindings": []}, "InvalidClearanceBindingsError", "empty"),
        ({"bindings": [{**proposal(), "scheme": " "}]}, "InvalidClearanceBindingsError", "blank"),
        ({"bindings": [proposal("  ")]}, "InvalidClearanceBindingsError", "blank"),
        ({"external_id": " "}, "InvalidClearanceExternalIdError", "blank"),
        ({"external_id": "7", "external_id_scheme": " "}, "InvalidClearanceExternalIdError", "blank"),
        ({"external_id_scheme": "ESAF"}, "InvalidClearanceExternalIdError", "scheme_without_id"),
        ({"facility_code": "North Ring"}, "InvalidFacilityCodeError", "pattern"),
        ({"declarations": [hazard_declaration(binding("Subject"))]}, "InvalidClearanceDeclarationTargetError", None),
        ({"declarations": [hazard_declaration(proposal("P-1"))]}, "InvalidClearanceDeclarationTargetError", None),
        (declaration_fields(mitigations=["PPE:gloves", " "]), "InvalidClearanceMitigationRefError", "blank"),
        (declaration_fields(notes="   "), "InvalidClearanceHazardNotesError", "blank"),
    ],
)
def test_a_form_that_says_something_impossible_is_refused(
    world: World, fields: dict[str, Any], refusal: str, reason: str | None
) -> None:
    with expect_refusal(refusal, reason):
        register_clearance(world, **fields)


@pytest.mark.parametrize(
    "rating",
    [
        {**NFPA, "health": 0, "flammability": 4, "special": "CRYO"},
        {"kind": "RiskBand", "band": "Red"},
        {"kind": "GHS", "code": "GHS02", "statement_codes": ["H225", "H319"]},
        {"kind": "Scheme", "scheme": "BSL", "code": "2", "severity_label": ""},
        {"kind": "Scheme", "scheme": "laser", "code": "3B", "severity_label": "eye hazard"},
    ],
)
def test_every_scheme_keeps_its_own_words(world: World, rating: dict[str, Any]) -> None:
    (declaration,) = clearance_of(world, register_rated(world, rating)).declarations
    (kept,) = declaration.classifications
    assert kept.model_dump(mode="json", exclude_unset=True) == rating


@pytest.mark.parametrize(
    ("rating", "reason"),
    [
        ({**NFPA, "health": 5}, "out_of_range"),
        ({**NFPA, "flammability": -1}, "out_of_range"),
        ({**NFPA, "instability": 10**30}, "out_of_range"),
        ({"kind": "GHS", "code": "GHS01", "statement_codes": [" "]}, "blank"),
        ({"kind": "Scheme", "scheme": " ", "code": "2", "severity_label": ""}, "blank"),
        ({"kind": "Scheme", "scheme": "BSL", "code": " ", "severity_label": ""}, "blank"),
        ({"kind": "Scheme", "scheme": "BSL", "code": "2", "severity_label": " "}, "blank"),
    ],
)
def test_a_rating_out_of_its_scheme_is_refused(world: World, rating: dict[str, Any], reason: str) -> None:
    with expect_refusal("InvalidHazardClassificationError", reason):
        register_rated(world, rating)


@pytest.mark.parametrize(
    "rating",
    [
        {**NFPA, "special": "HOT"},
        {**NFPA, "health": 2.5},
        {**NFPA, "health": "2"},
        {"kind": "GHS", "code": "GHS10", "statement_codes": []},
        {"kind": "GHS", "code": "GHS01", "statement_codes": ["H" * 17]},
        {"kind": "Scheme", "scheme": "s" * 51, "code": "2", "severity_label": ""},
        {"kind": "Scheme", "scheme": "BSL", "code": "c" * 101, "severity_label": ""},
        {"kind": "Scheme", "scheme": "BSL", "code": "2", "severity_label": "l" * 101},
        {"kind": "Vibes", "code": "2"},
    ],
)
def test_a_rating_of_the_wrong_shape_is_malformed(world: World, rating: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        register_rated(world, rating)


@for_each(
    "fields",
    [
        {"title": ""},
        {"title": "t" * 201},
        {"external_id": "e" * 101},
        {"external_id": "7", "external_id_scheme": "s" * 51},
        {"facility_code": "f" * 33},
        {"bindings": [{"kind": "Subject"}]},
        {"bindings": [{"kind": "External", "id": str(new_id())}]},
        {"bindings": [{"kind": "Campaign", "id": str(new_id())}]},
        {"bindings": [{**proposal(), "scheme": "s" * 51}]},
        {"bindings": [proposal("v" * 201)]},
        {"bindings": [binding("Asset") for _ in range(101)]},
        {"declarations": [hazard_declaration(proposal(), mitigations=["m" * 201])]},
        {"declarations": [hazard_declaration(proposal(), notes="n" * 2001)]},
        {"risk_band": "Orange"},
        {"valid_from": "2026-06-01T00:00:00"},
    ],
)
def test_a_form_of_the_wrong_shape_is_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RegisterClearance(**clearance_fields(new_id(), **fields))


@given(st.integers(1, 28), st.integers(1, 28))
def test_a_window_opens_before_it_closes(begins: int, ends: int) -> None:
    window = {"valid_from": day(begins), "valid_until": day(ends)}
    world = site_world()
    if begins < ends:
        register_clearance(world, **window)
    else:
        with expect_refusal("InvalidClearanceValidityWindowError"):
            register_clearance(world, **window)


@pytest.mark.parametrize(("scheme", "kept"), [(None, "ESAF"), ("EDMS", "EDMS")])
def test_the_scheme_of_a_number_is_the_template_unless_named(world: World, scheme: str | None, kept: str) -> None:
    id = register_clearance(world, template_id=template(world), external_id=" 2026-7 ", external_id_scheme=scheme)
    state = clearance_of(world, id)
    assert (state.external_id, state.external_id_scheme) == ("2026-7", kept)


@pytest.mark.parametrize("status", ["Draft", "Deprecated", "Withdrawn"])
def test_only_an_active_template_takes_clearances(world: World, status: str) -> None:
    template_id = template(world, status)
    with expect_refusal("ClearanceTemplateNotBindableError", status.lower()) as caught:
        register_clearance(world, template_id=template_id)
    assert caught.value.facts == {"template_id": str(template_id), "status": status}


def test_template_then_facility_then_values_then_targets_then_window_then_the_template_status(world: World) -> None:
    draft = template(world, "Draft")
    wrong = {"facility_code": "west-ring", "title": " ", "bindings": [], "declarations": [hazard_declaration(proposal())]}
    wrong |= {"valid_from": day(2), "valid_until": day(1), "template_id": new_id()}
    mended: list[tuple[str, dict[str, Any]]] = [
        ("ClearanceTemplateNotFoundError", {"template_id": draft}),
        ("ClearanceFacilityNotFoundError", {"facility_code": SITE}),
        ("InvalidClearanceTitleError", {"title": "Tomography"}),
        ("InvalidClearanceBindingsError", {"bindings": [binding("Asset")]}),
        ("InvalidClearanceDeclarationTargetError", {"declarations": []}),
        ("InvalidClearanceValidityWindowError", {"valid_until": day(3)}),
        ("ClearanceTemplateNotBindableError", {"template_id": template(world, code="SAF")}),
    ]
    for refusal, repair in mended:
        with expect_refusal(refusal):
            world.create(RegisterClearance(**wrong))
        wrong |= repair
    world.create(RegisterClearance(**wrong))


def test_whatever_a_person_may_have_written_is_marked() -> None:
    marked = {event.__name__: event.personal for event in Clearance.aggregate.events.values() if event.personal}
    assert marked == {
        "ClearanceRegistered": {"title", "declarations"},
        "ClearanceReviewStepAppended": {"notes"},
        "ClearanceRejected": {"reason"},
        "ClearanceExpired": {"reason"},
    }
