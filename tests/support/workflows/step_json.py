"""Steps as requests and recipes write them."""

from typing import Any

PROGRAMS = ("find", "find-offset", "fit", "flatstats", "look", "measure", "program", "recon", "reconstruct", "reduce")
"""What compute steps of tests run; none of it is on this machine."""


def setpoint(address: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "setpoint", "address": address, "value": value, **more}


def check(address: str, expected: Any, tolerance: float | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": "check", "address": address, "criterion": criterion(expected, tolerance), **more}


def criterion(expected: Any, tolerance: float | None = None) -> dict[str, Any]:
    if tolerance is None:
        return {"kind": "equals", "expected": expected}
    return {"kind": "within_tolerance", "expected": expected, "tolerance": tolerance}


def capture(address: str, name: str) -> dict[str, Any]:
    return {"kind": "capture", "address": address, "capture_name": name}


def action(name: str, **params: Any) -> dict[str, Any]:
    return {"kind": "action", "name": name, "params": params}


def compute(*command: str, **more: Any) -> dict[str, Any]:
    return {"kind": "compute", "command": list(command), **more}


def captured_value(name: str) -> dict[str, Any]:
    return {"__capture__": name}


def steered_value(axis: str) -> dict[str, Any]:
    return {"__steering__": axis}
