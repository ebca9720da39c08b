"""Flat fields at an imaging beamline, from the capability to the practice, payload for payload."""

import json
from typing import Any
from uuid import UUID

from baton.domain.kernel import Event
from tests.support.domain.assets import family
from tests.support.domain.lifecycle_table import command
from tests.support.domain.templates import site
from tests.support.domain.world import World, expect_refusal

PARAMETERS = json.loads(
    """{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"dwell":{"type":"number",
    "minimum":0.0001,"maximum":10,"unit":{"system":"udunits","code":"s"}},"repetitions":{"type":"integer","minimum":1},
    "retract_position":{"type":"number","unit":{"system":"udunits","code":"mm"}}},"required":["dwell","repetitions"],
    "additionalProperties":false,"unevaluatedProperties":false}"""
)


def schema_with_dwell(maximum: float) -> dict[str, Any]:
    """The same schema with another longest dwell."""
    properties = PARAMETERS["properties"]
    return {**PARAMETERS, "properties": {**properties, "dwell": {**properties["dwell"], "maximum": maximum}}}


def payload(event: Event) -> dict[str, Any]:
    """What the event says, apart from what every event says."""
    stored = json.loads(event.payload())
    assert UUID(stored.pop(event.aggregate.id_name)) == event.stream_id
    assert stored.pop("occurred_at")
    return {"event": type(event).__name__, **stored}


def test_from_the_capability_to_the_practice() -> None:
    world = World()
    shutter, camera = family(world, "Shutter", None, "Triggerable"), family(world, "Camera", None, "Imageable")
    facility = site(world)

    (defined,) = world.when(
        command(
            "define_capability",
            {
                "code": "baton.capability.acquisition",
                "name": "Acquisition",
                "required_affordances": ["Imageable", "Triggerable"],
                "executor_shapes": ["METHOD", "PROCEDURE"],
                "parameters_schema": PARAMETERS,
            },
        )
    )
    assert payload(defined) == {
        "event": "CapabilityDefined",
        "code": "baton.capability.acquisition",
        "name": "Acquisition",
        "description": None,
        "required_affordances": ["Imageable", "Triggerable"],
        "executor_shapes": ["METHOD", "PROCEDURE"],
        "parameters_schema": PARAMETERS,
    }

    needs = {"needed_family_ids": [shutter, camera], "needed_supplies": ["photon_beam"]}
    flat_field = {"name": "flat_field", "capability_id": defined.stream_id}
    (method,) = world.when(command("define_method", {**flat_field, **needs}))
    assert payload(method) == {
        "event": "MethodDefined",
        "name": "flat_field",
        "capability_id": str(defined.stream_id),
        "needed_family_ids": sorted([str(shutter), str(camera)]),
        "needed_supplies": ["photon_beam"],
        "parameters_schema": None,
    }

    narrower = command("update_method_parameters_schema", {"parameters_schema": schema_with_dwell(1)})
    assert [payload(event) for event in world.when(narrower, on=method.stream_id)] == [
        {
            "event": "MethodParametersSchemaUpdated",
            "parameters_schema": schema_with_dwell(1),
            "parameters_schema_revision": 1,
        }
    ]
    with expect_refusal("MethodParametersNotSubsetError") as caught:
        wider = command("update_method_parameters_schema", {"parameters_schema": schema_with_dwell(20)})
        world.when(wider, on=method.stream_id)
    assert caught.value.status == 409
    assert caught.value.facts == {
        "method_id": str(method.stream_id),
        "capability_id": str(defined.stream_id),
        "rule": "6",
        "path": "$.properties.dwell.maximum",
    }

    trigger = {"port_name": "trigger_in", "direction": "Input", "signal_type": "TTL"}
    detector = {"role_name": "detector", "family_id": camera, "required_ports": [trigger]}
    added = world.when(command("add_method_required_role", {"requirement": detector}), on=method.stream_id)
    assert [payload(event) for event in added] == [
        {
            "event": "MethodRequiredRoleAdded",
            "role_name": "detector",
            "family_id": str(camera),
            "role_id": None,
            "required_ports": [trigger],
            "optional": False,
        }
    ]

    adopted = {"name": "Flat field, imaging hutch", "method_id": method.stream_id, "site_id": facility}
    (practice,) = world.when(command("define_practice", adopted))
    assert payload(practice) == {
        "event": "PracticeDefined",
        "name": "Flat field, imaging hutch",
        "method_id": str(method.stream_id),
        "site_id": str(facility),
        "family_ids": [],
    }
