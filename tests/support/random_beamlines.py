"""Beamlines made at random: any names, any depth, any parts, for what must hold of all of them."""

import random
from typing import Any

from baton.beamline.kinds.kind import path_of

WORDS = (
    "rotary",
    "lift",
    "slit",
    "Camera",
    "x/y table",
    "mirror \\ 2",
    "Blende für Strahl",
    "off",
    "1.5",
    "a: b",
    "# 7",
    "ω",
)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "unevaluatedProperties": False,
    "properties": {"speed": {"type": "number"}, "note": {"type": "string"}, "axes": {"type": "array"}},
}
AFFORDANCES = ("Rotatable", "Translatable", "Homeable", "Limitable", "Imageable", "Capturing", "Identifiable")


def random_beamline(seed: int, assets: int) -> dict[str, Any]:
    """Return the plain data of a file with this many assets, all of whose references lead somewhere."""
    chance = random.Random(seed)
    families = [
        {"name": f"Family {n}", "affordances": chance.sample(AFFORDANCES, 3), "settings_schema": SCHEMA} for n in range(8)
    ]
    models = [
        {
            "name": f"Model {n % 4}",
            "manufacturer": {"name": f"Maker {n}"},
            "part_number": f"P/{n}",
            "families": [f"Family {n}"],
        }
        for n in range(6)
    ]
    enclosures = [{"name": f"Hutch {n}"} for n in range(3)]
    trees: list[dict[str, Any]] = []
    placed: list[tuple[dict[str, Any], str, int]] = []
    for number in range(assets):
        entry = random_asset(chance, number)
        depth = 0
        if placed and chance.random() < 0.97:
            parent, path, depth = chance.choice(placed)
            parent.setdefault("children", []).append(entry)
            path = f"{path}/{path_of(entry['name'])}"
            depth += 1
        else:
            trees.append(entry)
            path = path_of(entry["name"])
        if depth < 8:
            placed.append((entry, path, depth))
    paths = [path for _, path, _ in placed]
    supplies = [
        {
            "name": f"Supply {n}",
            "kind": chance.choice(["gas", "Storage"]),
            **({"asset": chance.choice(paths)} if n % 2 else {}),
        }
        for n in range(10)
    ]
    capability = {"code": "baton.capability.random", "name": "Anything", "executor_shapes": ["METHOD", "PROCEDURE"]}
    recipes = [
        {
            "name": f"Recipe {n}",
            "capability": "Anything",
            "steps": [
                {"kind": "setpoint", "address": f"bl:{step}", "value": chance.choice([1, 2.5, "Open", True, [1, 2]])}
                for step in range(chance.randint(1, 5))
            ],
            **({"watch": chance.sample(["enclosure", "supply"], chance.randint(0, 2))} if n % 2 else {}),
        }
        for n in range(6)
    ]
    plans = [
        {"name": f"Plan {n}", "practice": "Anything here", "assets": chance.sample(paths, min(3, len(paths)))}
        for n in range(6)
    ]
    return {
        "enclosures": enclosures,
        "families": families,
        "models": models,
        "assets": trees,
        "supplies": supplies,
        "capabilities": [capability],
        "methods": [{"name": "Anything at all", "capability": "Anything"}],
        "practices": [{"name": "Anything here", "method": "Anything at all", "site": "facility"}],
        "plans": plans,
        "recipes": recipes,
    }


def random_asset(chance: random.Random, number: int) -> dict[str, Any]:
    """Return an asset with some of the parts that one may have."""
    entry: dict[str, Any] = {"name": f"{chance.choice(WORDS)} {number}"}
    signal = f"bl:m{number}"
    if chance.random() < 0.5:
        entry["tier"] = chance.choice(["Unit", "Component", "Device"])
    if chance.random() < 0.5:
        entry["identifiers"] = [{"kind": "EPICS_PV", "value": signal}, {"kind": "SerialNumber", "value": str(number)}]
        if chance.random() < 0.5:
            entry["signal_limits"] = {signal: {"low": chance.choice([0, -1.5]), "high": chance.choice([2, 1e6])}}
    if chance.random() < 0.2:
        entry["enclosure"] = f"Hutch {chance.randrange(3)}"
    if chance.random() < 0.3:
        entry["families"] = sorted({f"Family {chance.randrange(8)}", f"Family {chance.randrange(8)}"})
        if chance.random() < 0.5:
            entry["settings"] = {"speed": chance.choice([1, 0.1]), "note": chance.choice(WORDS), "axes": [1, {"a": None}]}
    elif chance.random() < 0.3:
        maker = chance.randrange(6)
        entry["model"] = path_of(f"Maker {maker}", f"P/{maker}")
    if chance.random() < 0.1:
        entry["ports"] = [{"name": "out", "direction": "Output", "signal_type": "TTL"}]
        entry["owners"] = [{"name": "University"}]
    if chance.random() < 0.1:
        entry["lifecycle"] = chance.choice(["Commissioned", "Maintenance"])
    return entry
