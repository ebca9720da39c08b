"""Every context of the service: importing this module fills the registry."""

from baton.domain.access import actor, subject_binding
from baton.domain.agent import agent, debrief_on_demand, decision_records, language_model, lease, promotion, reactions
from baton.domain.agent import at_risk as model_at_risk
from baton.domain.calibration import at_risk, calibration, publication
from baton.domain.campaign import campaign, membership
from baton.domain.caution import caution
from baton.domain.decision import decision, inferences
from baton.domain.enclosure import enclosure
from baton.domain.equipment import (
    assembly,
    asset,
    asset_external_id,
    asset_parts,
    asset_settings,
    asset_tree,
    asset_views,
    family,
    fixture,
    frame,
    model,
    mount,
    role,
)
from baton.domain.federation import credential, facility, permit, trust_anchors
from baton.domain.operation.conduct import conduct, work_items
from baton.domain.operation.conduct import views as conduct_views
from baton.domain.operation.procedure import activity_logbook, endings, iterations, preflight, procedure, registration, start
from baton.domain.operation.schedule import schedule
from baton.domain.operation.schedule import views as schedule_views
from baton.domain.operation.steering import steered_conduct
from baton.domain.recipe import capability, method, plan, plan_inspection, plan_roles, plan_wires, practice, recipe
from baton.domain.registry import REGISTRY
from baton.domain.run import adjustments, narrative, observations, run
from baton.domain.run import conduct as run_conduct
from baton.domain.run import endings as run_endings
from baton.domain.run import start as run_start
from baton.domain.safety import clearance, clearance_template, clearance_views
from baton.domain.subject import subject
from baton.domain.supply import supply
from baton.domain.trust import conduit, policy, presence, surface, visit, zone

CONTEXTS = (
    (actor, subject_binding),
    (zone, conduit, surface, policy, visit, presence),
    (asset, asset_tree, asset_parts, asset_settings, asset_external_id, asset_views),
    (family, role, model, frame, mount, assembly, fixture),
    (supply,),
    (enclosure,),
    (clearance, clearance_views, clearance_template),
    (caution,),
    (subject,),
    (capability, method, practice, plan, plan_wires, plan_roles, plan_inspection, recipe),
    (run, run_start, run_conduct, run_endings, adjustments, observations, narrative),
    (procedure, registration, start, endings, conduct, steered_conduct, iterations, activity_logbook),
    (preflight, conduct_views, work_items),
    (schedule, schedule_views),
    (campaign, membership),
    (calibration, at_risk, publication),
    (decision, inferences),
    (agent, language_model, model_at_risk, lease, decision_records, promotion, debrief_on_demand, reactions),
    (facility, credential, trust_anchors, permit),
)
"""The modules in the order a reader meets them."""

__all__ = ["CONTEXTS", "REGISTRY"]
