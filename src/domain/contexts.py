"""Every context of the service: importing this module fills the registry."""

from domain.access import actor
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
from domain.federation import facility
from domain.kernel import REGISTRY
from domain.trust import conduit, policy, surface, visit, zone

CONTEXTS = (
    (actor,),
    (zone, conduit, surface, policy, visit),
    (asset, asset_tree, asset_parts, asset_settings, asset_external_id, asset_views),
    (family, role, model, frame, mount, assembly, fixture),
    (facility,),
)
"""The modules in the order a reader meets them."""

__all__ = ["CONTEXTS", "REGISTRY"]
