"""The recipe of the worked example, in wire form, and any steps there could be."""

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.recipe.steps import RESERVED
from tests.support.domain.templates import capability
from tests.support.domain.world import World

Raw = dict[str, Any]

STEPS: list[Raw] = [
    {"kind": "capture", "address": "bl:sample:x.RBV", "capture_name": "sample_home"},
    {"kind": "setpoint", "address": "bl:shutter", "value": "open", "verify": True},
    {"kind": "check", "address": "bl:shutter:status", "criterion": {"kind": "equals", "expected": "open"}, "timeout": 10.0},
    {"kind": "setpoint", "address": "bl:sample:x", "value": {"__binding__": "retract_position"}, "verify": False},
    {
        "kind": "check",
        "address": "bl:sample:x.RBV",
        "criterion": {"kind": "within_tolerance", "expected": {"__binding__": "retract_position"}, "tolerance": 0.05},
        "timeout": 60.0,
    },
    {
        "kind": "action",
        "name": "collect",
        "params": {
            "detector": "bl:cam1",
            "trigger_mode": "Internal",
            "repetitions": {"__binding__": "repetitions"},
            "dwell": {"__binding__": "dwell"},
        },
    },
    {
        "kind": "compute",
        "command": ["flatstats", "--mean"],
        "input_uris": ["file:///data/flat.h5"],
        "output_uri": None,
        "parameters": {},
        "capture_name": "flat_mean",
        "output_ref_name": None,
    },
]
CLOSING_STEPS: list[Raw] = [
    {"kind": "setpoint", "address": "bl:sample:x", "value": {"__capture__": "sample_home"}, "verify": True},
    {"kind": "setpoint", "address": "bl:shutter", "value": "closed", "verify": True},
]
BINDINGS = {"dwell": 0.1, "repetitions": 20, "retract_position": 20.0}

SENTINELS = {
    "BindingRef": {"__binding__": "dwell"},
    "CaptureRef": {"__capture__": "home"},
    "SteeringRef": {"__steering__": "focus"},
    "OutputRef": {"__output__": "recon"},
}


def recipe_fields(**fields: Any) -> Raw:
    """The fields of the example's recipe, with these changed."""
    return {"name": "flat_field_recipe", "steps": STEPS, "closing_steps": CLOSING_STEPS, **fields}


def recipe(world: World, capability_id: UUID | None = None, **fields: Any) -> UUID:
    realised = capability(world) if capability_id is None else capability_id
    return world.create(DefineRecipe(**recipe_fields(capability_id=realised, **fields)))


def setpoint(value: Any = 1, **fields: Any) -> Raw:
    return {"kind": "setpoint", "address": "bl:m1", "value": value, "verify": False, **fields}


def action(**params: Any) -> Raw:
    return {"kind": "action", "name": "collect", "params": params}


def check(expected: Any = 1, **fields: Any) -> Raw:
    return {"kind": "check", "address": "bl:m1", "criterion": {"kind": "equals", "expected": expected}, **fields}


def near(expected: Any = 1, tolerance: Any = 0.5) -> Raw:
    criterion = {"kind": "within_tolerance", "expected": expected, "tolerance": tolerance}
    return {"kind": "check", "address": "bl:m1", "criterion": criterion}


def capture(name: Any = "home", **fields: Any) -> Raw:
    return {"kind": "capture", "address": "bl:m1", "capture_name": name, **fields}


def compute(**fields: Any) -> Raw:
    unset = {"input_uris": [], "output_uri": None, "parameters": {}, "capture_name": None, "output_ref_name": None}
    return {"kind": "compute", "command": ["recon"], **unset, **fields}


def publishing_step(name: str, *inputs: Any) -> Raw:
    """A compute step that publishes its artifact, made from these."""
    return compute(input_uris=list(inputs), output_uri=f"file:///{name}.h5", output_ref_name=name)


texts = st.text(min_size=1, max_size=20)
names = texts.map(str.strip).filter(bool)
keys = st.text(max_size=12).filter(lambda key: key not in RESERVED)
numbers = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.booleans() | numbers | st.text(max_size=20)
documents = st.recursive(
    st.none() | scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
values = scalars | st.lists(documents, max_size=3)


def sentinels(*kinds: str) -> st.SearchStrategy[Raw]:
    """Any sentinel of these kinds, in wire form."""
    keys = (key for kind in kinds for key in SENTINELS[kind])
    return st.one_of(*(st.fixed_dictionaries({key: texts if key == "__binding__" else names}) for key in keys))


KNOWN_LATER = ("CaptureRef", "SteeringRef")


def raw_steps(*bound: str) -> st.SearchStrategy[Raw]:
    """Any step of proper shape in wire form, field for field as it is written, with these kinds of sentinel besides."""
    operand = sentinels(*bound, *KNOWN_LATER)
    argument = st.dictionaries(keys, documents | sentinels(*bound) if bound else documents, max_size=3)
    parameters = st.dictionaries(keys, documents | operand, max_size=3)
    tolerance = st.floats(0, allow_nan=False, allow_infinity=False)
    criterion = st.fixed_dictionaries({"kind": st.just("equals"), "expected": values | operand}) | st.fixed_dictionaries(
        {"kind": st.just("within_tolerance"), "expected": numbers | operand, "tolerance": tolerance}
    )
    uris = st.lists(st.text(max_size=20) | sentinels("OutputRef"), max_size=3)
    argv = st.lists(texts, min_size=1, max_size=3)
    computing = {"kind": st.just("compute"), "command": argv, "input_uris": uris}
    unset = st.none()
    return st.one_of(
        st.fixed_dictionaries(
            {"kind": st.just("setpoint"), "address": names, "value": values | operand, "verify": st.booleans()}
        ),
        st.fixed_dictionaries({"kind": st.just("action"), "name": names, "params": argument}),
        st.fixed_dictionaries(
            {"kind": st.just("check"), "address": names, "criterion": criterion},
            optional={"timeout": st.floats(0, 3600, exclude_min=True)},
        ),
        st.fixed_dictionaries({"kind": st.just("capture"), "address": names, "capture_name": names}),
        st.fixed_dictionaries(
            {
                **computing,
                "output_uri": unset,
                "parameters": parameters,
                "capture_name": unset | names,
                "output_ref_name": unset,
            }
        ),
        st.fixed_dictionaries(
            {
                **computing,
                "output_uri": texts,
                "parameters": parameters,
                "capture_name": unset,
                "output_ref_name": unset | names,
            }
        ),
    )


recipe_lists = st.lists(raw_steps("BindingRef"), max_size=6)
resolved_lists = st.lists(raw_steps(), max_size=6)
