"""Every context of the service: importing this module fills the registry."""

from domain.access import actor
from domain.federation import facility
from domain.kernel import REGISTRY
from domain.trust import conduit, policy, surface, visit, zone

__all__ = ["REGISTRY", "actor", "conduit", "facility", "policy", "surface", "visit", "zone"]
