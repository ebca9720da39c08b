"""The file that an importer writes: everything it found as entries of a beamline file, and its questions as comments."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from baton.beamline.importers.drafts import DeviceDraft, SignalRange

PLAIN = re.compile(r"[A-Za-z][\w./-]*(?: [\w./-]+)*")  # a text that YAML reads as itself without quotes
WORDS_OF_YAML = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
INDENT = "  "


@dataclass
class Branch:
    """A place in the tree: the devices that stand in it, and the places within."""

    devices: list[DeviceDraft] = field(default_factory=list)
    within: "defaultdict[str, Branch]" = field(default_factory=lambda: defaultdict(Branch))


def review_text(drafts: Iterable[DeviceDraft], root: str, facility: str | None = None, sections: Iterable[str] = ()) -> str:
    """Return a beamline file of these devices below one root and of further sections, for a person to read before it is
    applied."""
    found = list(drafts)
    asked = sum(1 for draft in found if draft.questions)
    models = models_of(found)
    lines = [
        f"# {len(found)} devices were found. Look at {asked} of them: '# ?' stands above what was guessed or is not known.",
        "# Families come from the starter catalog (baton catalog load). Then: baton diff -f FILE, baton apply -f FILE",
        "baton: 1",
        *([f"facility: {scalar(facility)}"] if facility else []),
        *model_lines(models),
        "assets:",
        f"{INDENT}- name: {scalar(root)}",
        f"{INDENT * 2}tier: Unit",
        *([f"{INDENT * 2}children:"] if found else []),
        *branch_lines(tree_of(found), models, 3),
        *sections,
    ]
    return "\n".join(lines) + "\n"


def models_of(drafts: Iterable[DeviceDraft]) -> dict[tuple[str, str], list[str]]:
    """Return the families of every model; one whose family nobody knows cannot be defined, and is left out."""
    families: dict[tuple[str, str], set[str]] = defaultdict(set)
    for draft in drafts:
        if draft.model is not None and draft.family is not None:
            families[draft.model].add(draft.family)
    return {model: sorted(known) for model, known in sorted(families.items())}


def model_lines(models: Mapping[tuple[str, str], list[str]]) -> Iterator[str]:
    """Yield the section of models."""
    if models:
        yield "models:"
    for (maker, part), families in models.items():
        yield f"{INDENT}- name: {scalar(f'{maker} {part}')}"
        yield f"{INDENT * 2}manufacturer: {{name: {scalar(maker)}}}"
        yield f"{INDENT * 2}part_number: {scalar(part)}"
        yield f"{INDENT * 2}families: [{', '.join(families)}]"


def tree_of(drafts: Iterable[DeviceDraft]) -> Branch:
    """Return the devices by the places they stand in, no two of one name in one place."""
    root = Branch()
    for draft in drafts:
        branch = root
        for place in draft.within:
            branch = branch.within[place]
        branch.devices.append(draft)
    return root


def branch_lines(branch: Branch, models: Mapping[tuple[str, str], list[str]], depth: int) -> Iterator[str]:
    """Yield the entries of a place, its own devices first."""
    for draft in with_unique_names(branch.devices, taken=branch.within):
        yield from device_lines(draft, models, depth)
    for name, place in branch.within.items():
        yield f"{INDENT * depth}- name: {scalar(name)}"
        yield f"{INDENT * (depth + 1)}tier: Component"
        yield f"{INDENT * (depth + 1)}children:"
        yield from branch_lines(place, models, depth + 2)


def with_unique_names(devices: list[DeviceDraft], taken: Iterable[str]) -> Iterator[DeviceDraft]:
    """Yield devices whose names differ: where two are alike, with the signal, the serial number or a count behind."""
    shared = {name for name, count in Counter([*taken, *(one.name for one in devices)]).items() if count > 1}
    used: set[str] = set()
    for number, draft in enumerate(devices, start=1):
        name = draft.name
        if name in shared:
            name = f"{name} ({next(iter(draft.signals), None) or draft.serial_number or number})"
        if name in used:
            name = f"{name} {number}"
        used.add(name)
        yield replace(draft, name=name)


def device_lines(draft: DeviceDraft, models: Mapping[tuple[str, str], list[str]], depth: int) -> Iterator[str]:
    """Yield the entry of one device, with its questions above."""
    outer, inner = INDENT * depth, INDENT * (depth + 1)
    yield from (f"{outer}# ? {comment(question)}" for question in draft.questions)
    yield f"{outer}- name: {scalar(draft.name)}  # {comment(draft.source)}"
    if draft.description and draft.description != draft.name:
        yield f"{inner}# {comment(draft.description)}"
    yield from (f"{inner}# {comment(note)}" for note in draft.notes)
    if draft.model in models and draft.model is not None:
        yield f"{inner}model: {scalar('/'.join(draft.model))}"
    elif draft.family is not None:
        yield f"{inner}families: [{draft.family}]"
    identifiers = [
        *(("EPICS_PV", signal) for signal in draft.signals),
        *([("SerialNumber", draft.serial_number)] if draft.serial_number else []),
        *([("InventoryNumber", draft.inventory_number)] if draft.inventory_number else []),
    ]
    if identifiers:
        yield f"{inner}identifiers:"
        yield from (f"{inner}{INDENT}- {{kind: {kind}, value: {scalar(value)}}}" for kind, value in identifiers)
    if draft.limits:
        yield f"{inner}signal_limits:"
        yield from (f"{inner}{INDENT}{scalar(address)}: {limit_text(limits)}" for address, limits in draft.limits.items())


def limit_text(limits: SignalRange) -> str:
    """Return the limits of a signal, with their unit behind them."""
    bounds = {"low": limits.low, "high": limits.high}
    shown = ", ".join(f"{name}: {value:g}" for name, value in bounds.items() if value is not None)
    return f"{{{shown}}}" + (f"  # in {comment(limits.unit)}" if limits.unit else "")


def scalar(text: str) -> str:
    """Return a text as YAML reads it back; in quotes unless it is plainly a text."""
    plain = PLAIN.fullmatch(text) is not None and text.lower() not in WORDS_OF_YAML
    return text if plain else json.dumps(text, ensure_ascii=False)


def comment(text: str) -> str:
    """Return a text that fits behind a comment's sign: in one line."""
    return " ".join(text.split())
