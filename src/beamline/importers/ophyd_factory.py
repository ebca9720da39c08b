"""Devices out of a site's own Python: its factory is run in a process of its own, without the caller's credentials."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from baton.beamline.importers.drafts import DeviceDraft, SignalRange, family_of_axis, family_of_words
from baton.beamline.importers.sources import UnreadableSourceError

PROGRAM = "baton.infrastructure.control.ophyd_description"
PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ", "TANGO_HOST")
PREFIXES_PASSED_ON = ("EPICS_CA_", "EPICS_PVA_")
MOST_SECONDS = 300.0
MOST_CHARACTERS = 64 * 1024 * 1024
SIMULATED = ("soft://", "sim://", "mock+")
PARTS = re.compile(r"([:./])")


def import_ophyd(source: str, connect: bool) -> tuple[list[DeviceDraft], dict[str, list[str]]]:
    """Return the devices of a factory, and the addresses of each."""
    described = sorted(run_factory(source, connect), key=lambda one: one["name"])
    if not described:
        raise UnreadableSourceError(f"{source} returns no device.")
    known = {
        one["name"]: sorted({at for signal in one["signals"] if (at := address_of(signal["source"]))}) for one in described
    }
    prefixes = {name: owned_prefixes(name, known) for name in known}
    drafts = [draft_of(one, prefixes[one["name"]], source) for one in described]
    return drafts, {name: [*prefixes[name], f"ophyd:{name}"] for name in known}


def run_factory(source: str, connect: bool) -> list[dict[str, Any]]:
    """Run the site's Python in a process that has only the variables of Python and of control systems, and an empty home."""
    passed_on = {
        name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith(PREFIXES_PASSED_ON)
    }
    command = [sys.executable, "-m", PROGRAM, source, *(["--connect"] if connect else [])]
    with tempfile.TemporaryDirectory(prefix="baton-import-") as home:
        try:
            done = subprocess.run(
                command,
                env={**passed_on, "HOME": home},
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise UnreadableSourceError(f"{source} took more than {MOST_SECONDS:g} s.") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it ended without a word"]
        raise UnreadableSourceError(f"{source} could not be run: {lines[-1][:500]}.")
    if len(done.stdout) > MOST_CHARACTERS:
        raise UnreadableSourceError(f"{source} describes more than {MOST_CHARACTERS // 1024**2} MB of devices.")
    described: list[dict[str, Any]] = json.loads(done.stdout)
    return described


def draft_of(device: Mapping[str, Any], prefixes: Sequence[str], source: str) -> DeviceDraft:
    """Return the device that a process has described."""
    name, kind, signals = device["name"], device.get("class", ""), device["signals"]
    units = {signal["path"]: signal["units"] for signal in signals}
    moves = "Movable" in device.get("protocols", ())
    unit = units.get(device.get("readback") or "", "")
    family = family_of_axis(unit, name, kind) if moves and kind != "SignalRW" else family_of_words(name, kind)
    questions = [f"family guessed from {kind or name}" if family else f"no family known for {kind or name}"]
    if "error" in device:
        questions.append(f"it could not be asked: {device['error']}")
    elif not device["connected"]:
        questions.append("it was not connected (--connect), so its signals and limits are not known")
    if any(signal["source"].startswith(SIMULATED) for signal in signals):
        questions.append("its signals are simulated, so they have no addresses in a control system")
    return DeviceDraft(
        name=name,
        family=family,
        signals=(*prefixes, f"ophyd:{name}"),
        limits=limits_of(device),
        source=f"{name} of {source}",
        questions=tuple(questions),
        notes=(
            f"{kind or 'no class'}: {', '.join(device.get('protocols', ())) or 'no protocol'}",
            *(f"ophyd:{signal['path']}: {signal_text(signal)}" for signal in signals),
        ),
    )


def limits_of(device: Mapping[str, Any]) -> dict[str, SignalRange]:
    """Return between which values a device may be set, at its signals' own addresses and at those behind routes of ophyd."""
    limits: dict[str, SignalRange] = {}
    for signal in device["signals"]:
        if signal["limits"] is None:
            continue
        low, high = signal["limits"]
        allowed = SignalRange(low, high, signal["units"])
        if signal["path"] == device.get("readback"):
            limits[f"ophyd:{device['name']}"] = allowed
        if signal["writable"]:
            limits[f"ophyd:{signal['path']}"] = allowed
            if address := address_of(signal["source"]):
                limits[address] = allowed
    return limits


def signal_text(signal: Mapping[str, Any]) -> str:
    """Return what a signal is, in a line."""
    access = {(True, True): "read and written", (True, False): "read", (False, True): "written"}
    unit = f" in {signal['units']}" if signal["units"] else ""
    choices = f", one of {', '.join(signal['choices'])}" if signal["choices"] else ""
    way = access.get((signal["readable"], signal["writable"]), "neither read nor written")
    return f"{signal['type'] or 'value'}{unit}{choices}, {way}, {signal['source']}"


def address_of(source: str) -> str | None:
    """Return the address in the control system that a signal's source names; None for a simulated one."""
    scheme, found, rest = source.partition("://")
    if not found or source.startswith(SIMULATED):
        return None
    if scheme in ("ca", "pva"):
        return rest or None
    return f"tango:{rest.removesuffix('#dbase=no')}" if scheme == "tango" else None


def owned_prefixes(name: str, known: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the identifiers that own all addresses of a device: their common part, or each where others have that too."""
    addresses = known[name]
    others = [address for other, theirs in known.items() if other != name for address in theirs]
    common = common_part(addresses)
    if not common or any(common_part([common, address]) == common for address in others):
        return list(addresses)
    return [common]


def common_part(addresses: Sequence[str]) -> str:
    """Return what addresses begin with, up to the end of a part."""
    split = [PARTS.split(address) for address in addresses]
    alike = takewhile(lambda parts: len(set(parts)) == 1, zip(*split, strict=False))
    return "".join(parts[0] for parts in alike).rstrip(":./")


def read_factory(source: str) -> str:
    """Return a factory's name as the process takes it: of a file of happi, its full path."""
    return str(Path(source).resolve()) if source.endswith(".json") else source
