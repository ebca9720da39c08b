"""Flat fields at an imaging beamline, from the capability to the practice, payload for payload."""

import json
from typing import Any

from baton.domain.kernel import Event
from tests.support.domain.assets import family
from tests.support.domain.lifecycle_table import command
from tests.support.domain.payloads import payload
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


def named_payload(event: Event) -> dict[str, Any]:
    return {"event": type(event).__name__, **payload(event)}


def test_from_the_capability_to_the_practice() -> None:
    world = World()
    shutter, camera = family(world, "Shutter", None, "Triggerable"), family(world, "Camera", None, "Imageable")
    facility = site(world)

    acquisition = {
        "code": "baton.capability.acquisition",
        "name": "Acquisition",
        "required_affordances": ["Imageable", "Triggerable"],
        "executor_shapes": ["METHOD", "PROCEDURE"],
        "parameters_schema": PARAMETERS,
    }
    (defined,) = world.when(command("define_capability", acquisition))
    assert named_payload(defined) == {"event": "CapabilityDefined", **acquisition, "description": None}

    flat_field = {"name": "flat_field", "capability_id": str(defined.stream_id), "needed_supplies": ["photon_beam"]}
    (method,) = world.when(command("define_method", {**flat_field, "needed_family_ids": [shutter, camera]}))
    families = {"needed_family_ids": sorted([str(shutter), str(camera)])}
    assert named_payload(method) == {"event": "MethodDefined", **flat_field, **families, "parameters_schema": None}

    narrower = {"parameters_schema": schema_with_dwell(1)}
    (updated,) = world.when(command("update_method_parameters_schema", narrower), on=method.stream_id)
    assert named_payload(updated) == {"event": "MethodParametersSchemaUpdated", **narrower, "parameters_schema_revision": 1}
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
    detector = {"role_name": "detector", "family_id": str(camera), "required_ports": [trigger]}
    (added,) = world.when(command("add_method_required_role", {"requirement": detector}), on=method.stream_id)
    assert named_payload(added) == {"event": "MethodRequiredRoleAdded", **detector, "role_id": None, "optional": False}

    adopted = {"name": "Flat field, imaging hutch", "method_id": str(method.stream_id), "site_id": str(facility)}
    (practice,) = world.when(command("define_practice", adopted))
    assert named_payload(practice) == {"event": "PracticeDefined", **adopted, "family_ids": []}
