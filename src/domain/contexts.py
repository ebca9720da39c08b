"""Every context of the service: importing this module fills the registry."""

from importlib import import_module

from baton.domain.registry import REGISTRY

CONTEXTS = {
    "access": ("access.actor", "trust.subject_binding", "access.group", "trust.group_members"),
    "trust": (
        *("trust.zone", "trust.conduit", "trust.surface", "trust.policy", "trust.authorization", "trust.proposal"),
        "trust.visit",
    ),
    "equipment": (
        *("equipment.asset", "equipment.asset_tree", "equipment.asset_parts", "equipment.signals"),
        *(
            "equipment.asset_external_id",
            "equipment.asset_views",
            "views.asset_integration",
            "equipment.asset_reading",
            "equipment.overview",
            "equipment.family",
        ),
        *("equipment.role", "equipment.model", "equipment.frame", "equipment.mount", "equipment.assembly"),
        "equipment.fixture",
    ),
    "supply": ("supply.supply",),
    "enclosure": ("enclosure.enclosure",),
    "safety": ("safety.clearance", "safety.clearance_views", "safety.clearance_template"),
    "caution": ("caution.caution",),
    "subject": ("subject.subject",),
    "recipe": (
        *("recipe.capability", "recipe.method", "recipe.practice", "recipe.plan", "recipe.plan_parts", "recipe.plan_data"),
        *("recipe.plan_inspection", "recipe.recipe", "recipe.step_actions", "recipe.plan_setup", "conduct.step_drafts"),
    ),
    "run": (
        *("run.run", "run.run_views", "start.run_start", "views.run_preflight", "conduct.run_conduct", "run.logbooks"),
        *("start.run_witness", "run.witnessing", "views.beamline_now", "views.waiting", "views.hold_everything"),
        "views.run_report",
        "views.run_comparison",
    ),
    "operation": (
        *("procedure.procedure", "conduct.procedure_views", "start.registration", "start.procedure_start"),
        *("conduct.endings", "conduct.conduct", "conduct.steered_conduct", "conduct.iterations"),
        *("procedure.activity_logbook", "conduct.preflight", "conduct.verdicts", "conduct.step_list", "conduct.views"),
        "conduct.point_list",
        *("step.plan_steps",),
        *("conduct.control_signals", "conduct.work_items", "launch.launch", "target.start_launch", "schedule.schedule"),
        *(
            "schedule.views",
            "queue.queue",
            "queue.item_records",
            "queue.views",
            "views.conduct_rehearsal",
            "views.beam_time",
            "views.step_reliability",
        ),
    ),
    "campaign": ("campaign.campaign",),
    "calibration": ("calibration.calibration", "federation.publication", "views.at_risk_results"),
    "data": (
        *("data.dataset", "data.distribution", "data.acquisition", "data.scan", "data.attestation"),
        *("data.procedure_files", "data.run_files", "data.run_documents"),
        *("data.edition", "data.crate", "data.exports", "data.catalogue", "data.provenance", "data.preview"),
    ),
    "decision": ("decision.decision",),
    "agent": (
        *("agent.agent", "agent.language_model", "agent.conclusions", "agent.debrief", "agent.caution_proposal"),
        *("agent.rule_agents", "agent.reactions"),
    ),
    "federation": (
        *("facility.facility", "federation.credential", "federation.permit", "federation.published_artifact"),
        *("federation.received_artifact", "federation.seal"),
    ),
    "edge": ("views.event_log", "views.my_access", "views.rehearsal"),
}  # By the context that surfaces name, the modules that declare something, in the order a reader meets them.
MODULES = [f"baton.domain.{module}" for modules in CONTEXTS.values() for module in modules]

for name in MODULES:
    import_module(name)

# Listings follow this order, whichever module was imported first; the operations of the edge, declared elsewhere, come last.
_places = {module: place for place, module in enumerate(MODULES)}
_ordered = sorted(REGISTRY, key=lambda operation: _places.get(operation.input.__module__, len(_places)))
REGISTRY.operations.clear()
REGISTRY.operations.update({operation.name: operation for operation in _ordered})

__all__ = ["MODULES", "REGISTRY"]
