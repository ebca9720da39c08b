"""Every context of the service: importing this module fills the registry."""

from domain.access import actor, subject_binding
from domain.agent import agent, language_model, lease, promotion, reactions, recording, regenerating
from domain.agent import at_risk as model_at_risk
from domain.calibration import at_risk, calibration, publication
from domain.campaign import campaign, membership
from domain.caution import caution
from domain.decision import decision, inferences
from domain.enclosure import enclosure
from domain.equipment import (
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
from domain.federation import credential, facility, permit, trust_anchors
from domain.operation import (
    activities,
    carrying_out,
    conduct_views,
    conducting,
    iterations,
    preflight,
    procedure,
    registering,
    schedule,
    schedule_views,
    steered,
    stopping,
    work_items,
)
from domain.recipe import capability, method, plan, plan_inspection, plan_roles, plan_wires, practice, recipe
from domain.registry import REGISTRY
from domain.run import adjusting, ending, narrative, observations, run, starting
from domain.run import conducting as run_conducting
from domain.safety import clearance, clearance_template, clearance_views
from domain.subject import subject
from domain.supply import supply
from domain.trust import conduit, policy, presence, surface, visit, zone

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
    (run, starting, run_conducting, ending, adjusting, observations, narrative),
    (procedure, registering, carrying_out, stopping, conducting, steered, iterations, activities),
    (preflight, conduct_views, work_items),
    (schedule, schedule_views),
    (campaign, membership),
    (calibration, at_risk, publication),
    (decision, inferences),
    (agent, language_model, model_at_risk, lease, recording, promotion, regenerating, reactions),
    (facility, credential, trust_anchors, permit),
)
"""The modules in the order a reader meets them."""

__all__ = ["CONTEXTS", "REGISTRY"]
