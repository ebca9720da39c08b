"""The settings of an asset: patched as one object, checked against the schemas of all its families at once.

A stored number stands in the unit of the schema revision it was written under. Where a family has changed the unit
since, the number must be set again before anything else is written; nothing is ever converted.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from domain.equipment.asset import IN_SERVICE, Asset, AssetSettingsUpdated, asset
from domain.equipment.family import Family
from domain.kernel import Call, Command, Outcome
from domain.shared.canonical import canonical_json
from domain.shared.merge_patch import merge_patch
from domain.shared.reads import Reads, every
from domain.shared.refusals import Invalid
from domain.shared.schema import ELEMENT, check_union

Unit = tuple[str, str]


class InvalidAssetSettingsError(Invalid):
    """The settings break a schema of the asset's families, or no family declares one, or a unit changed under a value."""


@asset.command(patch="/{asset_id}/settings", allowed=IN_SERVICE, refuses=[InvalidAssetSettingsError], essential=True)
class UpdateAssetSettings(Command):
    """Merge a patch into the settings: a value sets, null deletes, what is left out stays, objects merge."""

    settings_patch: dict[str, Any]

    def gather(self, asset: Asset, call: Call) -> Reads[dict[UUID, Family]]:
        return (yield from every(Family, sorted(asset.family_ids | asset.schema_revisions.keys())))

    def decide(self, asset: Asset, call: Call, families: dict[UUID, Family]) -> Outcome:
        merged = merge_patch(asset.settings, self.settings_patch)
        current = [families[id] for id in sorted(asset.family_ids) if id in families]
        restated = units_changed(asset, families, current)
        if stale := sorted(restated - set_by(self.settings_patch, restated)):
            raise InvalidAssetSettingsError(
                f"The unit of {', '.join(stale)} changed since it was stored; set it again in the new unit or null it.",
                reason="unit_changed",
                facts={"keys": stale},
            )
        check_union({family.name: family.settings_schema for family in current}, merged, InvalidAssetSettingsError)
        if not restated and canonical_json(merged) == canonical_json(asset.settings):
            return []
        revisions = {family.id: family.settings_schema_revision for family in current}
        return [AssetSettingsUpdated(settings=merged, schema_revisions=revisions)]


def units_changed(asset: Asset, families: Mapping[UUID, Family], current: Iterable[Family]) -> frozenset[str]:
    """The stored keys, as dotted paths, that are declared now in another unit than they were written in.

    An array is set as a whole, so it stands for what is in it. Keys that no family declares any more, or that two
    families declare differently, are the schema check's business.
    """
    schemas = [family.settings_schema for family in current if family.settings_schema is not None]
    declared = {name for schema in schemas for name in schema.get("properties", {})}
    written: dict[str, Unit] = {}
    for id, revision in asset.schema_revisions.items():
        if id in families:
            written |= families[id].units_by_revision[revision]
    now: dict[str, set[Unit]] = {}
    for family in current:
        for path, unit in family.units_by_revision[family.settings_schema_revision].items():
            now.setdefault(path, set()).add(unit)
    return frozenset(
        path.partition(f".{ELEMENT}")[0]
        for path in stored_paths(asset.settings)
        if written.get(path) != next(iter(now.get(path, ())), None)
        and len(now.get(path, ())) <= 1
        and ({} in schemas or any(within(path, name) for name in declared))
    )


def stored_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The dotted path of everything in a settings object, as schemas spell it."""
    match value:
        case Mapping():
            for key, item in value.items():
                yield ".".join((*path, key))
                yield from stored_paths(item, (*path, key))
        case list() | tuple():
            for item in value:
                yield ".".join((*path, ELEMENT))
                yield from stored_paths(item, (*path, ELEMENT))


def set_by(patch: Mapping[str, Any], paths: Iterable[str]) -> frozenset[str]:
    """Which of these paths a patch sets or nulls, themselves or with what they stand in."""
    ends = [end for end, value in patched(patch) if not isinstance(value, Mapping)]
    return frozenset(path for path in paths if any(within(path, end) for end in ends))


def patched(patch: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every dotted path a patch mentions, with what it puts there."""
    for key, value in patch.items():
        yield ".".join((*path, key)), value
        if isinstance(value, Mapping):
            yield from patched(value, (*path, key))


def within(path: str, outer: str) -> bool:
    """Whether a path is the outer one or stands in it."""
    return path == outer or path.startswith(f"{outer}.")
