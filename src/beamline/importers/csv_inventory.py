"""Devices out of an inventory as CSV, by a mapping of its columns."""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from baton.beamline.importers.drafts import DeviceDraft, SignalRange, family_of_words
from baton.beamline.importers.sources import UnreadableSourceError, read_text

FIELDS = {
    "name": ("name", "device", "device name", "component", "label"),
    "within": ("within", "parent", "location", "area", "assembly", "system", "group"),
    "family": ("family", "type", "kind", "category", "device type"),
    "manufacturer": ("manufacturer", "vendor", "maker", "brand"),
    "part_number": ("part number", "part_number", "part no", "model", "model number"),
    "serial_number": ("serial number", "serial_number", "serial", "s/n", "sn"),
    "inventory_number": ("inventory number", "inventory_number", "inventory", "asset tag", "tag"),
    "signal": ("signal", "pv", "epics pv", "pv prefix", "prefix", "record"),
    "low_limit": ("low limit", "low_limit", "min", "lower limit"),
    "high_limit": ("high limit", "high_limit", "max", "upper limit"),
    "unit": ("unit", "units", "egu"),
    "description": ("description", "comment", "remarks", "notes"),
}
MOST_ROWS = 100_000
LONGEST_FIELD = 10_000


def import_csv(path: Path, mapping: Mapping[str, str] | None = None) -> tuple[list[DeviceDraft], dict[str, str]]:
    """Return the devices of an inventory, and the column that each field was taken from."""
    columns, rows = read_rows(path)
    used = dict(mapping) if mapping is not None else guess_mapping(columns)
    if unknown := sorted(set(used) - set(FIELDS)):
        raise UnreadableSourceError(f"The mapping names the fields {', '.join(unknown)}; there are {', '.join(FIELDS)}.")
    if absent := sorted(set(used.values()) - set(columns)):
        raise UnreadableSourceError(f"{path.name} has no column {', '.join(absent)}; it has {', '.join(columns)}.")
    if "name" not in used:
        raise UnreadableSourceError(
            f"No column of {path.name} is known to hold names; write a mapping such as name: {columns[0]}."
        )
    drafts = [
        draft_of({name: (row.get(column) or "").strip() for name, column in used.items()}, f"{path.name}, line {line}")
        for line, row in rows
        if any((value or "").strip() for value in row.values())
    ]
    if not drafts:
        raise UnreadableSourceError(f"{path.name} has a heading and no rows.")
    return drafts, used


def read_mapping(path: Path) -> dict[str, str]:
    """Return which column holds which field, as a YAML or JSON file says it."""
    try:
        mapping = YAML(typ="safe", pure=True).load(read_text(path))
    except YAMLError as error:
        raise UnreadableSourceError(f"{path.name} is no YAML: {error}.") from None
    if not isinstance(mapping, dict) or not all(isinstance(part, str) for pair in mapping.items() for part in pair):
        raise UnreadableSourceError(f"{path.name} is no mapping; write lines such as name: Device.")
    return mapping


def read_rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the columns of a CSV file and its rows with their lines; commas, semicolons and tabs are told apart."""
    content = read_text(path)
    heading = content.partition("\n")[0]
    delimiter = max(",;\t", key=heading.count)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        columns = [column.strip() for column in next(reader, [])]
        for cells in reader:
            if any(len(cell) > LONGEST_FIELD for cell in cells):
                detail = f"field larger than field limit ({LONGEST_FIELD})"
                raise UnreadableSourceError(f"{path.name}, line {reader.line_num}: {detail}.")
            if len(cells) > len(columns):
                raise UnreadableSourceError(f"{path.name}, line {reader.line_num}: more cells than the heading has columns.")
            if len(rows) == MOST_ROWS:
                raise UnreadableSourceError(f"{path.name} has more than {MOST_ROWS:,} rows; split it.")
            rows.append((reader.line_num, dict(zip(columns, cells, strict=False))))
    except csv.Error as error:
        raise UnreadableSourceError(f"{path.name}, line {reader.line_num}: {error}.") from None
    if not any(columns):
        raise UnreadableSourceError(f"{path.name} has no heading; its first line names the columns.")
    if len(set(columns)) != len(columns):
        raise UnreadableSourceError(f"{path.name} has two columns of one name in its heading.")
    return columns, rows


def guess_mapping(columns: list[str]) -> dict[str, str]:
    """Return the column that each field is likely to be in."""
    plain = {column.lower().replace("_", " "): column for column in reversed(columns)}
    found = {name: plain[word] for name, words in FIELDS.items() for word in reversed(words) if word in plain}
    return {name: column for name, column in found.items() if column not in list(found.values())[: list(found).index(name)]}


def draft_of(row: Mapping[str, str], source: str) -> DeviceDraft:
    """Return the device of one row."""
    name = row["name"]
    if not name:
        raise UnreadableSourceError(f"{source}: the row has no name.")
    said = row.get("family", "")
    family = family_of_words(said, name)
    questions: tuple[str, ...] = ()
    if family is None:
        questions = (f"no family known for {said or name}",)
    elif said.lower() != family.lower():
        questions = (f"family guessed from {said or name}",)
    signal = row.get("signal", "").rstrip(":")
    low, high = (bound(row.get(name, ""), source) for name in ("low_limit", "high_limit"))
    limited = signal and (low is not None or high is not None)
    maker, part = row.get("manufacturer", ""), row.get("part_number", "")
    return DeviceDraft(
        name=name,
        within=tuple(part.strip() for part in row.get("within", "").split("/") if part.strip()),
        family=family,
        model=(maker, part) if maker and part else None,
        serial_number=row.get("serial_number") or None,
        inventory_number=row.get("inventory_number") or None,
        signals=(signal,) if signal else (),
        limits={signal: SignalRange(low, high, row.get("unit", ""))} if limited else {},
        description=row.get("description", ""),
        source=source,
        questions=questions,
    )


def bound(cell: str, source: str) -> float | None:
    """Return the number in a cell, None where it is empty."""
    if not cell:
        return None
    try:
        value = float(cell.replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UnreadableSourceError(f"{source}: {cell!r} is no number.")
    return value
