"""Devices out of EPICS databases: each motor record is one; the other records are one device for each prefix."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from baton.beamline.importers.drafts import FAMILY_OF_UNIT, DeviceDraft, SignalRange, family_of_axis, family_of_words
from baton.beamline.importers.epics_records import MOST_RECORDS, EpicsRecord, read_records, read_substitutions
from baton.beamline.importers.sources import UnreadableSourceError

LIMIT_FIELDS = (("DRVL", "DRVH"), ("LLM", "HLM"), ("DLLM", "DHLM"))


def import_epics(paths: Iterable[Path], substitutions: Iterable[Path], macros: Mapping[str, str]) -> list[DeviceDraft]:
    """Return the devices that databases and substitutions describe."""
    records = list(islice(all_records(paths, substitutions, macros), MOST_RECORDS + 1))
    if len(records) > MOST_RECORDS:
        raise UnreadableSourceError(f"There are more than {MOST_RECORDS:,} records; import one part at a time.")
    if not records:
        raise UnreadableSourceError("There is no record in these files; give a .db, .template or .substitutions file.")
    return drafts_of({record.name: record for record in records}.values())


def all_records(paths: Iterable[Path], substitutions: Iterable[Path], macros: Mapping[str, str]) -> Iterator[EpicsRecord]:
    """Yield the records of all files; one that ends in `.substitutions` or `.subs` is read as such."""
    for path in substitutions:
        yield from read_substitutions(path, macros)
    for path in paths:
        if path.suffix in {".substitutions", ".subs", ".substitution"}:
            yield from read_substitutions(path, macros)
        else:
            yield from read_records(path, macros)


def drafts_of(records: Iterable[EpicsRecord]) -> list[DeviceDraft]:
    """Return the devices of these records, in the order in which the first record of each stands."""
    groups: dict[str, list[EpicsRecord]] = defaultdict(list)
    for record in records:
        groups[record.name if record.type == "motor" else prefix_of(record.name)].append(record)
    above = {prefix[:place] for prefix in groups for place, sign in enumerate(prefix) if sign == ":"}
    return [draft_of(prefix, members, prefix in above) for prefix, members in groups.items()]


def prefix_of(name: str) -> str:
    """Return what a record shares with the others of its device: its name up to the last colon."""
    return name.rpartition(":")[0] or name


def draft_of(prefix: str, records: list[EpicsRecord], shared: bool) -> DeviceDraft:
    """Return the device of the records of one group; a prefix that other devices share is not its own."""
    questions = [f"other devices begin with {prefix}: as well, so each record is named"] if shared else []
    described = next((record for record in records if record.fields.get("DESC", "").strip()), records[0])
    description = described.fields.get("DESC", "").strip()
    family = family_of(records, prefix, description)
    if family is None:
        questions.append(f"no family known for {records[0].type} records under {prefix}")
    elif records[0].type != "motor" or records[0].fields.get("EGU", "").strip().lower() not in FAMILY_OF_UNIT:
        questions.append(f"family guessed from {description or prefix}")
    return DeviceDraft(
        name=description or prefix,
        family=family,
        signals=tuple(record.name for record in records) if shared else (prefix,),
        limits={record.name: limits for record in records if (limits := limits_of(record)) is not None},
        source=records[0].source,
        questions=tuple(questions),
    )


def family_of(records: list[EpicsRecord], prefix: str, description: str) -> str | None:
    """Return the family of a device by the names of its records, its words and the unit of its motor."""
    if records[0].type == "motor":
        return family_of_axis(records[0].fields.get("EGU", ""), description, prefix)
    names = {record.name.rpartition(":")[2] for record in records}
    return "Camera" if {"Acquire", "AcquireTime"} <= names else family_of_words(description, prefix)


def limits_of(record: EpicsRecord) -> SignalRange | None:
    """Return between which values a record may be set; equal ends mean that there are none."""
    for low_field, high_field in LIMIT_FIELDS:
        low, high = number(record.fields.get(low_field)), number(record.fields.get(high_field))
        if (low is not None or high is not None) and (low or 0) != (high or 0):
            return SignalRange(low or 0.0, high or 0.0, record.fields.get("EGU", "").strip())
    return None


def number(text: str | None) -> float | None:
    """Return the number that a field holds; None where it holds none."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
