"""What the filters of every list mean, said without the code that answers them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from baton.domain.registry import Operation
from baton.domain.shared.listing import NamedListQuery

Item = dict[str, Any]
Asked = dict[str, Any]


@dataclass(frozen=True)
class Filter:
    """What an item offers a filter to ask for, and which items it then keeps."""

    offers: Callable[[Item], list[Asked]]
    keeps: Callable[[Item, Asked], bool]


def equal(name: str) -> Filter:
    """The item's own value of that name; a list asks for none of those that have none."""
    return Filter(
        lambda item: [] if item[name] is None else [{name: item[name]}], lambda item, asked: item[name] == asked[name]
    )


def any_of(name: str) -> Filter:
    return Filter(
        lambda item: [] if item[name] is None else [{name: [item[name]]}], lambda item, asked: item[name] in asked[name]
    )


def member(name: str, of: str) -> Filter:
    return Filter(lambda item: [{name: value} for value in item[of]], lambda item, asked: asked[name] in item[of])


def equals(*names: str) -> dict[str, Filter]:
    """Filters that each ask for an item's own value of their name."""
    return {name: equal(name) for name in names}


def bound(kind: str) -> Filter:
    """What a clearance covers of one kind."""
    name = f"binds_to_{kind}_id"
    return Filter(
        lambda item: [{name: id} for id in item["bindings"][f"{kind}_ids"]],
        lambda item, asked: asked[name] in item["bindings"][f"{kind}_ids"],
    )


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def until_of(item: Item) -> Any:
    """Until when the newest revision of a calibration is valid, where it says so."""
    return item["latest_revision_valid_until"]


def target_filters(item: Item) -> list[Asked]:
    """Every way to ask for the target of a caution."""
    kind, id = item["target"]["kind"], item["target"]["id"]
    ways: list[Asked] = [{"target_kind": kind}, {"target_id": id}, {"target_kind": kind, "target_id": id}]
    return ways + [{**ways[-1], "inherited": flag} for flag in (True, False) if kind == "Asset"]


def on_target(item: Item, asked: Asked) -> bool:
    """Whether a caution is on the target asked for; none of those in stock reaches the target of another."""
    kind, id = item["target"]["kind"], item["target"]["id"]
    return kind == asked.get("target_kind", kind) and id == asked.get("target_id", id)


SEVERITIES = ["Notice", "Caution", "Warning"]

WHOLE: dict[str, Asked] = {"list_campaigns": {"status": "all"}, "list_cautions": {"status": "all"}}
"""Lists that leave some out unless asked for them, and what asks for all."""

SHOWN = {"include_messages"}
"""What is asked about how items are shown rather than which."""

ONE_VALUED = {("list_attestations", "kind")}
"""Filters of what has one value only, so that every item has it."""

MEANT: dict[str, dict[str, Filter]] = {
    "list_actors": {"status": equal("status"), "kind": any_of("kind"), "actor_id": any_of("actor_id")},
    "list_groups": equals("status"),
    "list_zones": {},
    "list_conduits": equals("source_zone_id", "target_zone_id"),
    "list_conduit_verdicts": equals("actor_id", "command_name", "decision"),
    "list_surfaces": equals("kind"),
    "list_policies": equals("conduit_id", "surface_id"),
    "list_proposals": equals("status", "command_name", "proposed_by"),
    "list_visits": {
        "type": any_of("type"),
        **equals("status", "surface_id", "policy_id", "parent_id"),
        "external_ref_scheme external_ref_value": Filter(
            lambda item: [
                {"external_ref_scheme": scheme, "external_ref_value": value}
                for scheme, value in item["external_refs"].items()
            ],
            lambda item, asked: item["external_refs"].get(asked["external_ref_scheme"]) == asked["external_ref_value"],
        ),
        "planned_from": Filter(
            lambda item: [{"planned_from": item["planned_end_at"]}, {"planned_from": item["planned_start_at"]}],
            lambda item, asked: instant(item["planned_end_at"]) >= instant(asked["planned_from"]),
        ),
        "planned_to": Filter(
            lambda item: [{"planned_to": item["planned_start_at"]}, {"planned_to": item["planned_end_at"]}],
            lambda item, asked: instant(item["planned_start_at"]) <= instant(asked["planned_to"]),
        ),
    },
    "list_assets": {
        **equals("tier", "lifecycle", "condition", "parent_id", "model_id", "facility_code", "located_in_enclosure_id"),
        "family_id": member("family_id", "family_ids"),
        "root": Filter(
            lambda item: [{"root": item["parent_id"] is None}],
            lambda item, asked: (item["parent_id"] is None) is asked["root"],
        ),
        "alternate_identifier_kind alternate_identifier_value": Filter(
            lambda item: [
                {"alternate_identifier_kind": one["kind"], "alternate_identifier_value": one["value"]}
                for one in item["alternate_identifiers"]
            ],
            lambda item, asked: (
                {"kind": asked["alternate_identifier_kind"], "value": asked["alternate_identifier_value"]}
                in item["alternate_identifiers"]
            ),
        ),
    },
    "list_families": {
        "status": equal("status"),
        "affordance": member("affordance", "affordances"),
        "role_id": member("role_id", "presented_role_ids"),
    },
    "list_roles": {},
    "list_models": {
        **equals("status", "part_number"),
        "family_id": member("family_id", "declared_family_ids"),
        "manufacturer_name": Filter(
            lambda item: [
                {"manufacturer_name": item["manufacturer"]["name"]},
                {"manufacturer_name": f" {item['manufacturer']['name'].swapcase()} "},
            ],
            lambda item, asked: item["manufacturer"]["name"].lower() == asked["manufacturer_name"].strip().lower(),
        ),
    },
    "list_frames": equals("parent_id", "status"),
    "list_mounts": equals("parent_id", "status", "slot_code", "installed_asset_id"),
    "list_assemblies": {**equals("status", "content_hash"), "role_id": member("role_id", "presented_role_ids")},
    "list_fixtures": equals("assembly_id", "surface_id", "assembly_content_hash"),
    "list_supplies": equals("facility_code", "containing_asset_id", "kind", "status"),
    "list_enclosures": equals("lifecycle", "permit_status", "facility_code"),
    "list_clearance_templates": equals("facility_code", "status", "code"),
    "list_clearances": {
        **equals("template_id", "template_code", "status", "risk_band", "facility_code"),
        **{f"binds_to_{kind}_id": bound(kind) for kind in ("subject", "asset", "run", "procedure")},
        "due_by": Filter(
            lambda item: [{"due_by": item["valid_until"]}] if item["valid_until"] else [],
            lambda item, asked: item["valid_until"] is not None and instant(item["valid_until"]) <= instant(asked["due_by"]),
        ),
    },
    "list_cautions": {
        "target_kind target_id inherited": Filter(target_filters, on_target),
        **equals("category", "authored_by"),
        "severity min_severity": Filter(
            lambda item: [{"severity": [item["severity"]]}, {"min_severity": item["severity"]}],
            lambda item, asked: (
                item["severity"] in asked["severity"]
                if "severity" in asked
                else SEVERITIES.index(item["severity"]) >= SEVERITIES.index(asked["min_severity"])
            ),
        ),
        "status": any_of("status"),
        "tag": member("tag", "tags"),
        "in_effect": Filter(
            lambda item: [{"in_effect": True}],
            lambda item, asked: (
                item["status"] == "Active"
                and (item["expires_at"] is None or instant(item["expires_at"]) > datetime.now(UTC))
            ),
        ),
    },
    "list_subjects": equals("status", "mounted_on_asset_id"),
    "list_capabilities": equals("status", "code"),
    "list_methods": equals("status", "capability_id"),
    "list_practices": equals("status", "method_id"),
    "list_plans": equals("status", "practice_id", "method_id"),
    "list_recipes": equals("status", "capability_id"),
    "list_schedules": equals("status"),
    "list_queues": equals("status", "asset_id"),
    "list_queue_items": equals("status"),
    "list_procedures": {
        **equals("status", "kind", "parent_run_id"),
        "target_asset_id": member("target_asset_id", "target_asset_ids"),
    },
    "list_procedure_activities": {
        "step_kind": equal("step_kind"),
        "conduct_id": Filter(
            lambda item: [{"conduct_id": item["conduct_id"] or item["procedure_id"]}],
            lambda item, asked: item["conduct_id"] == asked["conduct_id"],
        ),
    },
    "list_runs": {
        "run_id": any_of("run_id"),
        **equals("status", "plan_id", "subject_id", "campaign_id", "launch_id", "witnessed"),
    },
    "list_launches": equals("status", "by", "plan_id", "recipe_id", "queue_id", "schedule_id", "launched_by"),
    "list_run_observations": {
        **equals("channel_name", "sampling_procedure"),
        "since": Filter(
            lambda item: [{"since": item["recorded_at"]}],
            lambda item, asked: instant(item["recorded_at"]) > instant(asked["since"]),
        ),
    },
    "list_run_logbook_entries": {
        "entry_kind": Filter(
            lambda item: [{"entry_kind": "Note"}, {"entry_kind": "Debrief"}],
            lambda item, asked: item["entry_kind"] == asked["entry_kind"],
        )
    },
    "list_campaigns": {
        "status": any_of("status"),
        **equals("intent", "lead_actor_id", "subject_id"),
        "tag": member("tag", "tags"),
    },
    "list_calibrations": {
        **equals("target_id", "quantity"),
        "latest_revision_status": any_of("latest_revision_status"),
        "latest_revision_source_kind": any_of("latest_revision_source_kind"),
        "due_by": Filter(
            lambda item: [] if until_of(item) is None else [{"due_by": until_of(item)}],
            lambda item, asked: until_of(item) is not None and instant(until_of(item)) <= instant(asked["due_by"]),
        ),
    },
    "list_datasets": {
        **equals("status", "intent", "producing_run_id", "subject_id"),
        "derived_from": member("derived_from", "derived_from"),
        "used_calibration_id": member("used_calibration_id", "used_calibration_ids"),
    },
    "list_catalogue_entries": equals("dataset_id", "catalogue", "status"),
    "list_distributions": {
        "dataset_ids": Filter(
            lambda item: [{"dataset_ids": [item["dataset_id"]]}],
            lambda item, asked: item["dataset_id"] in asked["dataset_ids"],
        ),
        **equals("dataset_id", "supply_id", "status", "access_protocol"),
    },
    "list_attestations": equals("dataset_id", "distribution_id", "kind", "outcome"),
    "list_editions": {
        **equals("status", "kind", "publisher_facility_code"),
        "dataset_id": member("dataset_id", "dataset_ids"),
    },
    "list_acquisitions": equals("dataset_id", "producing_asset_id", "producing_run_id"),
    "list_decisions": {
        **equals("context", "choice", "rule", "decided_by", "confidence_band", "parent_id"),
        "exclude_choices": Filter(
            lambda item: [{"exclude_choices": [item["choice"]]}],
            lambda item, asked: item["choice"] not in asked["exclude_choices"],
        ),
    },
    "list_inferences": {},
    "list_agents": equals("kind", "status"),
    "list_language_models": equals("status", "provider"),
    "list_at_risk_results": {},
    "list_facilities": equals("kind", "status", "parent_id", "code"),
    "list_credentials": equals("facility_id", "purpose", "status"),
    "list_permits": equals("direction", "status", "peer_facility_id"),
    "list_seals": equals("status"),
    "list_received_artifacts": equals("source_facility_id", "status"),
}
"""The filters of each list by name; those that go together, or exclude each other, share one."""


def time_filters(time: str) -> dict[str, Filter]:
    """The filters that every list has by the time its items are listed under."""

    def around(name: str, item: Item) -> list[Asked]:
        return [{name: item[time]}, {name: (instant(item[time]) + timedelta(microseconds=1)).isoformat()}]

    return {
        "created_from": Filter(
            lambda item: around("created_from", item),
            lambda item, asked: instant(item[time]) >= instant(asked["created_from"]),
        ),
        "created_to": Filter(
            lambda item: around("created_to", item), lambda item, asked: instant(item[time]) < instant(asked["created_to"])
        ),
    }


def name_filters(name: str) -> dict[str, Filter]:
    """The filters that every list of things with names has."""
    return {
        "name": Filter(
            lambda item: [{"name": item[name]}, {"name": item[name].swapcase()}],
            lambda item, asked: item[name] == asked["name"],
        ),
        "q": Filter(
            lambda item: [{"q": item[name][1:6].swapcase()}, {"q": f"{item[name][:3]}%"}, {"q": "_"}],
            lambda item, asked: asked["q"].lower() in item[name].lower(),
        ),
    }


def standing_filters(operation: Operation) -> dict[str, Filter]:
    """The filters that a list has because every list has them."""
    query: Any = operation.input
    named = name_filters(query.name_column()) if issubclass(query, NamedListQuery) else {}
    return time_filters(query.summary.time) | named


def filters_of(operation: Operation) -> dict[str, Filter]:
    """All filters of a list."""
    return standing_filters(operation) | MEANT[operation.name]
