"""The settings of an asset: patched as one object, checked against the schemas of all its families at once.

A stored number stands in the unit of the schema revision it was written under. Where a family has changed the unit
since, the number must be set again before anything else is written; nothing is ever converted.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from baton.domain.equipment.asset import IN_SERVICE, Asset, AssetSettingsUpdated, asset
from baton.domain.equipment.family import Family
from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.reads import Reads, every
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.schema import check_union
from baton.domain.shared.stored_values import is_within, merge_patch, paths_set_by, units_changed


class InvalidAssetSettingsError(Invalid, context="equipment"):
    """The settings break a schema of the asset's families, or no family declares one, or a unit changed under a value."""


@asset.command(patch="/{asset_id}/settings", allowed=IN_SERVICE, essential=True)
class UpdateAssetSettings(JudgedVerb[Asset, dict[UUID, Family]]):
    """Merge a patch into the settings: a value sets, null deletes, what is left out stays, objects merge."""

    settings_patch: dict[str, Any]

    def gather(self, asset: Asset, call: Call) -> Reads[dict[UUID, Family]]:
        return (yield from every(Family, sorted(asset.family_ids | asset.schema_revisions.keys())))

    def decide(self, asset: Asset, call: Call, families: dict[UUID, Family]) -> Outcome:
        merged = merge_patch(asset.settings, self.settings_patch)
        current = [families[id] for id in sorted(asset.family_ids) if id in families]
        restated = restated_keys(asset, families, current)
        if stale := sorted(restated - paths_set_by(self.settings_patch, restated)):
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


def restated_keys(asset: Asset, families: Mapping[UUID, Family], current: Iterable[Family]) -> frozenset[str]:
    """Return the stored keys, as dotted paths, that are declared now in another unit than they were written in.

    Keys that no family declares any more, or that two families declare differently, are the schema check's business.
    """
    schemas = [family.settings_schema for family in current if family.settings_schema is not None]
    declared = {name for schema in schemas for name in schema.get("properties", {})}
    written: dict[str, tuple[str, str]] = {}
    for id, revision in asset.schema_revisions.items():
        if id in families:
            written |= families[id].units_by_revision[revision]
    now: dict[str, set[tuple[str, str]]] = {}
    for family in current:
        for path, unit in family.units_by_revision[family.settings_schema_revision].items():
            now.setdefault(path, set()).add(unit)
    disputed = {path for path, units in now.items() if len(units) > 1}
    changed = units_changed(
        asset.settings,
        {path: unit for path, unit in written.items() if path not in disputed},
        {path: next(iter(units)) for path, units in now.items() if path not in disputed},
    )
    return frozenset(path for path in changed if {} in schemas or any(is_within(path, name) for name in declared))
