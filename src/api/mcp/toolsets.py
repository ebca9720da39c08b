"""Toolsets: the tools that a listing shows, by what a client is for. Every other operation stays callable by its name."""

from collections.abc import Mapping

from baton.application.settings import McpToolset

HALTING = ("hold_everything", "hold_run", "stop_run", "abort_run", "hold_procedure", "abort_procedure")
"""The tools that halt work; every set that can start or resume anything has them, and each has the first."""

TOOLSETS: Mapping[McpToolset, frozenset[str]] = {
    McpToolset.OPERATOR: frozenset(
        (
            *HALTING,
            *("get_my_access", "get_beamline_now", "list_waiting", "list_events", "get_work"),
            *("list_plans", "get_plan", "list_runs", "get_run", "get_run_conduct", "preflight_run"),
            *("launch", "conduct_run", "resume_run", "adjust_run", "append_run_logbook_entries"),
            *("list_recipes", "get_recipe", "list_procedures", "preflight_procedure", "rehearse"),
            *("conduct_procedure", "conduct_from_procedure", "get_procedure_conduct", "resolve_procedure_step"),
            *("list_assets", "read_signals", "list_subjects"),
            *("list_queues", "get_queue", "add_queue_items", "hold_queue"),
        )
    ),
    McpToolset.STEERING: frozenset(
        (
            *HALTING,
            *("get_my_access", "get_beamline_now", "list_events", "get_work"),
            *("list_recipes", "get_recipe", "list_procedures", "get_procedure", "register_procedure_from_recipe"),
            *("preflight_procedure", "conduct_until_advised", "conduct_until_advised_from", "conduct_until_converged"),
            *("get_procedure_steering", "advise_procedure", "list_procedure_iterations", "get_procedure_conduct"),
            *("list_procedure_points", "list_runs", "get_run", "read_signals", "list_assets", "list_cautions", "rehearse"),
        )
    ),
    McpToolset.AUDITOR: frozenset(
        (
            "hold_everything",
            *("get_my_access", "get_beamline_now", "list_waiting", "list_events"),
            *("list_runs", "get_run", "get_run_history", "get_run_conduct"),
            *("list_run_logbook_entries", "list_run_observations"),
            *("list_procedures", "get_procedure", "get_procedure_history", "get_procedure_conduct", "list_procedure_points"),
            *("list_procedure_activities", "list_decisions", "get_decision", "list_inferences", "list_reactions"),
            *("list_policies", "get_policy", "evaluate_policy", "list_permissions", "list_conduit_verdicts"),
            *("list_actors", "get_actor", "list_groups", "list_agents", "get_agent", "list_schedules", "list_queues"),
            *("list_proposals", "get_proposal_history"),
            *("list_clearances", "get_clearance_history", "list_cautions", "get_asset_history"),
            *("list_datasets", "get_dataset_provenance", "list_attestations"),
        )
    ),
    McpToolset.ENGINEER: frozenset(
        (
            *HALTING,
            *("get_my_access", "get_beamline_now", "list_waiting", "list_events", "get_work"),
            *("list_assets", "get_asset", "get_asset_tree", "register_asset", "activate_asset", "relocate_asset"),
            *("enter_asset_maintenance", "exit_asset_maintenance", "fault_asset", "restore_asset"),
            *("update_asset_settings", "set_asset_signal_limits", "add_asset_family", "add_asset_alternate_identifier"),
            *("list_families", "define_family", "list_models", "define_model"),
            *("register_enclosure", "list_enclosures", "register_supply", "list_supplies", "mark_supply_available"),
            *("resolve_signals", "read_signals", "register_caution", "list_cautions"),
            *("list_calibrations", "define_calibration", "append_calibration_revision"),
            *("list_capabilities", "define_capability", "list_methods", "define_method", "define_practice"),
            *("set_up_plan", "list_actions"),
            *("list_plans", "define_plan", "inspect_plan_binding", "list_recipes", "get_recipe", "define_recipe"),
            *("draft_steps", "version_recipe", "register_procedure_from_recipe", "preflight_procedure", "conduct_procedure"),
            "rehearse",
            *("conduct_from_procedure", "get_procedure_conduct", "resolve_procedure_step"),
            *("list_schedules", "define_schedule", "hold_schedule", "resume_schedule"),
        )
    ),
}
"""The operations of each set; `all` has no entry, because it shows every one."""


def shows(toolset: McpToolset, name: str) -> bool:
    """Return whether the listing of a set shows the tool of this name."""
    return toolset not in TOOLSETS or name in TOOLSETS[toolset]
