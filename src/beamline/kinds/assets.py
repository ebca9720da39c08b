"""Assets: a tree of names, so that a path tells each from all others."""

from collections.abc import Iterator
from typing import Any

from baton.beamline.file import AssetEntry
from baton.beamline.kinds.kind import (
    REASON,
    Names,
    Obstacle,
    RecordedThing,
    Ref,
    Section,
    Step,
    Update,
    plain,
    ref,
    refs,
    shown_change,
    split_path,
)
from baton.domain.equipment.asset import AssetTier
from baton.domain.equipment.values import NO_LIMITS, NO_OVERVIEW, value_field

MOVES = {
    ("Commissioned", "Active"): ("activate_asset",),
    ("Commissioned", "Maintenance"): ("activate_asset", "enter_asset_maintenance"),
    ("Active", "Maintenance"): ("enter_asset_maintenance",),
    ("Maintenance", "Active"): ("exit_asset_maintenance",),
}


class AssetSection(Section[AssetEntry]):
    """The assets; their texts are the ends of their paths, which `record` and `changes` work out from the trees."""

    section, label, lists, id_name, axis = "assets", "asset", "list_assets", "asset_id", "lifecycle"
    nullable = frozenset({"enclosure", "partition_rule", "drawing", "model", "controller"})
    domain_names = {
        "families": "family_ids",
        "enclosure": "located_in_enclosure_id",
        "model": "model_id",
        "controller": "controller_id",
        "identifiers": "alternate_identifiers",
    }
    creates = "register_asset"
    later = {
        "ports": (),
        "settings": {},
        "signal_limits": {},
        "overview": NO_OVERVIEW,
        "partition_rule": None,
        "lifecycle": "Commissioned",
    }
    unrecorded = frozenset({"formerly", "children"})
    fixed = ("tier", "facility", "model", "controller", "drawing")
    why_fixed = "no command changes it; register another asset and retire this one"

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> AssetEntry:
        return self.read_entry(view, names, lifecycle=str(view.lifecycle))

    def creation(self, entry: AssetEntry) -> tuple[str, dict[str, Any]]:
        """Return the registration of an asset; `changes` adds its parent."""
        tier = entry.tier or (AssetTier.UNIT if entry.facility else AssetTier.DEVICE)
        return self.creates, self.arguments(entry, tier=tier, families=refs("families", entry.families) or None)

    def differences(self, old: AssetEntry, new: AssetEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        if self.differs(old, new, "enclosure"):
            place = {"located_in_enclosure_id": ref("enclosures", new.enclosure), "reason": REASON}
            yield Update("relocate_asset", place, shown_change("enclosure", old.enclosure, new.enclosure))
        more, fewer = self.gained_and_lost(old, new, "families")
        declared = frozenset() if view is None else view.model_families
        yield from (Update("add_asset_family", {"family_id": Ref("families", one)}, f"family {one}") for one in more)
        yield from self.members(old, new, "identifiers", "alternate_identifier", plain, ("kind", "value"))
        yield from self.patch("update_asset_settings", old, new, "settings")
        yield from (
            Update("remove_asset_family", {"family_id": Ref("families", one)}, f"family {one} no longer")
            for one in fewer
            if one not in declared
        )
        yield from self.members(old, new, "owners", "owner", plain, ("name",))
        yield from self.members(old, new, "ports", "port", port_fields, ("port_name",))
        yield from self.limits(old, new)
        if self.differs(old, new, "overview"):
            sentence = shown_change("overview", old.overview, new.overview)
            yield Update("set_asset_overview", plain(new.overview), sentence, at=("overview",))
        if self.differs(old, new, "partition_rule"):
            rule = {"partition_rule": plain(new.partition_rule)}
            yield Update(
                "update_asset_partition_rule", rule, shown_change("partition_rule", old.partition_rule, new.partition_rule)
            )
        yield from self.lifecycle(str(old.lifecycle), new.lifecycle)

    def members(
        self, old: AssetEntry, new: AssetEntry, name: str, verb: str, form: Any, key: tuple[str, ...]
    ) -> Iterator[Step]:
        """Yield what a list of parts gains and loses, by a pair of verbs; what is lost goes first."""
        added, removed = self.gained_and_lost(old, new, name)
        for one in removed:
            own = {field: value for field, value in form(one).items() if field in key}
            yield Update(f"remove_asset_{verb}", own, f"{verb} {' '.join(map(str, own.values()))} no longer")
        for one in added:
            own = {field: value for field, value in form(one).items() if value is not None}
            yield Update(f"add_asset_{verb}", own, f"{verb} {' '.join(str(own[field]) for field in key)}")

    def limits(self, old: AssetEntry, new: AssetEntry) -> Iterator[Step]:
        """Yield the limits that differ; a signal that the file does not name has none."""
        if not self.asks(new, "signal_limits"):
            return
        before = {value_field(at): (at, one) for at, one in (old.signal_limits or {}).items()}
        after = {value_field(at): (at, one) for at, one in (new.signal_limits or {}).items()}
        for signal in sorted(before | after):
            address, limits = after.get(signal, (before.get(signal, ("", NO_LIMITS))[0], NO_LIMITS))
            present = before.get(signal, ("", NO_LIMITS))[1]
            if present != limits:
                arguments = {"address": address, "low": limits.low, "high": limits.high, "reason": REASON}
                sentence = shown_change(f"limits of {address}", present, limits)
                yield Update("set_asset_signal_limits", arguments, sentence, at=("signal_limits", address))

    def lifecycle(self, old: str, new: str | None) -> Iterator[Step]:
        """Yield the verbs that lead to the wanted state; without one, a merely commissioned asset is put into use."""
        wanted = new or ("Active" if old == "Commissioned" else old)
        if old == wanted:
            return
        if (old, wanted) not in MOVES:
            yield Obstacle(f"{shown_change('lifecycle', old, wanted)}: an asset that was in use is not commissioned again")
        for verb in MOVES.get((old, wanted), ()):
            yield Update(verb, {}, shown_change("lifecycle", old, wanted))

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, Any]]:
        return "decommission_asset", {}


def port_fields(port: Any) -> dict[str, Any]:
    """Return a port as its verbs name it."""
    return {"port_name": port.name, "direction": str(port.direction), "signal_type": port.signal_type}


def parent_of(path: str) -> str | None:
    """Return the path of the asset above, or None for a root."""
    parts = split_path(path)
    return "/".join(parts[:-1]) or None
