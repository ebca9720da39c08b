"""Every context of the service: importing this module fills the registry."""

from importlib import import_module

from baton.domain.registry import REGISTRY

CONTEXTS = {
    "access": ("actor", "subject_binding", "group", "group_members"),
    "trust": ("zone", "conduit", "surface", "policy", "authorization", "proposal", "visit"),
    "equipment": (
        *("asset", "asset_tree", "asset_parts", "signals", "asset_external_id", "asset_views", "asset_reading"),
        *("family", "role", "model", "frame", "mount", "assembly", "fixture"),
    ),
    "supply": ("supply",),
    "enclosure": ("enclosure",),
    "safety": ("clearance", "clearance_views", "clearance_template"),
    "caution": ("caution",),
    "subject": ("subject",),
    "recipe": ("capability", "method", "practice", "plan", "plan_parts", "plan_data", "plan_inspection", "recipe"),
    "run": ("run", "run_views", "start", "conduct", "logbooks", "beamline_now", "waiting", "hold_everything"),
    "operation": (
        *(
            "procedure.procedure",
            "procedure.procedure_views",
            "procedure.registration",
            "procedure.start",
            "procedure.endings",
            "conduct.conduct",
        ),
        *("steering.steered_conduct", "procedure.iterations", "procedure.activity_logbook", "procedure.preflight"),
        *("conduct.verdicts", "conduct.step_list"),
        *("conduct.views", "conduct.control_signals", "conduct.work_items", "schedule.schedule", "schedule.views"),
        *("queue.queue", "queue.item_records", "queue.views"),
    ),
    "campaign": ("campaign",),
    "calibration": ("calibration", "publication", "at_risk_results"),
    "data": (
        *("dataset", "distribution", "acquisition", "scan", "attestation", "procedure_files", "edition", "exports"),
        *("catalogue", "provenance", "preview"),
    ),
    "decision": ("decision",),
    "agent": (*("agent", "language_model", "conclusions", "debrief", "caution_proposal", "rule_agents", "reactions"),),
    "federation": ("facility", "credential", "permit", "published_artifact", "received_artifact", "seal"),
}  # The modules of each context that declare something, in the order a reader meets them.
MODULES = [f"baton.domain.{context}.{module}" for context, modules in CONTEXTS.items() for module in modules]

for name in MODULES:
    import_module(name)

# Listings follow this order, whichever module was imported first; the operations of the edge, declared elsewhere, come last.
_places = {module: place for place, module in enumerate(MODULES)}
_ordered = sorted(REGISTRY, key=lambda operation: _places.get(operation.input.__module__, len(_places)))
REGISTRY.operations.clear()
REGISTRY.operations.update({operation.name: operation for operation in _ordered})

__all__ = ["MODULES", "REGISTRY"]
