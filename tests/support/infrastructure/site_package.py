"""A site's package as it is found in the environment of a process."""

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ONE_OF_EACH = """
from baton.plugin import Citation, ExternalIdScheme, MintedIdentifier, Reading, SteeringAdvice, SteeringVerdict


async def bake(control, time, params):
    await control.write(params["heater"], params["temperature"])
    return {"temperature": (await control.read(params["heater"])).value}


def no_coroutine(control, time, params):
    return {}


class Constant:
    async def read(self, address):
        return Reading(value=7)

    async def write(self, address, value, wait=True, timeout=30.0, fence=None):
        fence and fence()

    async def subscribe(self, address):
        yield Reading(value=7)

    async def close(self):
        pass


class Stop:
    def __init__(self, options):
        self.rationale = options["rationale"]

    async def advise_next(self, evidence):
        return SteeringAdvice(verdict=SteeringVerdict.STOP, rationale=self.rationale)

    async def close(self):
        pass


class Handles:
    schemes = frozenset({ExternalIdScheme.HANDLE})

    async def mint(self, scheme, suffix, metadata: Citation):
        return MintedIdentifier(scheme, f"20.500.12345/{suffix}")

    async def tombstone(self, scheme, value, reason):
        pass

    async def aclose(self):
        pass


NUMBER = 7
"""
OFFERS = {
    "baton.actions": {"bake": "bl7_site.plugins:bake"},
    "baton.control": {"constant": "bl7_site.plugins:Constant"},
    "baton.deciders": {"stop": "bl7_site.plugins:Stop"},
    "baton.minters": {"handles": "bl7_site.plugins:Handles"},
}


def install_site_package(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str = "bl7_site",
    modules: Mapping[str, str] | None = None,
    offers: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Install a package of these modules with these entry points; by default one that offers one of each."""
    modules, offers = modules or {"plugins": ONE_OF_EACH}, offers or OFFERS
    package = directory / name
    package.mkdir()
    (package / "__init__.py").touch()
    for module, source in modules.items():
        (package / f"{module}.py").write_text(source)
    metadata = directory / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    lines = (
        f"[{group}]\n" + "\n".join(f"{point} = {place}" for point, place in points.items())
        for group, points in offers.items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(directory)
    for module in [name, *(f"{name}.{module}" for module in modules)]:
        monkeypatch.delitem(sys.modules, module, raising=False)
    importlib.invalidate_caches()
