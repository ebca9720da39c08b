"""The bytes of stored sets and expansions, printed so that two processes with different hash seeds can be compared."""

from uuid import UUID

from baton.domain.contexts import REGISTRY
from baton.domain.equipment.affordance import Affordance
from baton.domain.recipe.expansion import expand, expansion_of, steps_hash
from baton.domain.recipe.step_checks import read_closing_steps, read_steps
from baton.domain.shared.canonical import content_hash
from tests.support.domain.flat_field import BINDINGS, CLOSING_STEPS, STEPS, action

IDS = [UUID(int=number * 0x9E3779B97F4A7C15) for number in range(1, 30)]


def stored_sets() -> str:
    """Return the stored form of every set an event can hold, and the hash of one in a request."""
    lines = []
    for event in (event for aggregate in REGISTRY.aggregates.values() for event in aggregate.events.values()):
        for name, info in event.model_fields.items():
            if "frozenset" in str(info.annotation):
                members = Affordance if "Affordance" in str(info.annotation) else IDS
                members = map(str, IDS) if "frozenset[str]" in str(info.annotation) else members
                partial = event.model_construct(**{name: frozenset(members)})
                lines.append(f"{event.__name__}.{name}={partial.model_dump_json(include={name})}")
    define = REGISTRY.operations["define_policy"].input
    request = {"name": "n", "conduit_id": IDS[0], "surface_id": IDS[1], "permitted_commands": []}
    command = define(**request, permitted_principal_ids=IDS)
    lines.append(content_hash(command.model_dump(mode="json")))
    return "\n".join(sorted(lines))


def expansions() -> str:
    """Return the bytes and hashes of the worked example's expansion, and of one with many bindings."""
    example = expansion_of(read_steps(STEPS), read_closing_steps(CLOSING_STEPS), BINDINGS)
    many = action(**{str(number): {"__binding__": "x"} for number in range(50)})
    steps = expand(read_steps([many]), {"x": {"b": 1, "a": [2.0]}})
    hashes = [example.steps_hash, content_hash(BINDINGS), steps_hash(steps, ())]
    return "\n".join([*hashes, example.model_dump_json(), str(steps)])


def stored_bytes() -> str:
    return f"{stored_sets()}\n{expansions()}"


if __name__ == "__main__":
    print(stored_bytes())
