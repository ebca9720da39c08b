"""A capability, a method that realises it and a practice that adopts the method, made over REST."""

from baton.domain.shared.schema import DIALECT
from tests.support.service import Api

DWELL = {"type": "number", "minimum": 0.0001, "maximum": 10, "unit": {"system": "udunits", "code": "s"}}
PARAMETERS = {"$schema": DIALECT, "type": "object", "properties": {"dwell": DWELL}}


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    ids["capability_id"] = await api.create(
        "/capabilities",
        {
            "code": f"baton.capability.acquisition_{mark}",
            "name": "Acquisition",
            "required_affordances": ["Rotatable"],
            "executor_shapes": ["METHOD", "PROCEDURE"],
            "parameters_schema": PARAMETERS,
        },
    )
    ids["method_id"] = await api.create(
        "/methods",
        {
            "name": "flat_field",
            "capability_id": ids["capability_id"],
            "needed_family_ids": [ids["family_id"]],
            "needed_supplies": ["photon_beam"],
            "parameters_schema": PARAMETERS,
        },
    )
    stage = {"role_name": "stage", "family_id": ids["family_id"]}
    await api.execute(f"/methods/{ids['method_id']}/add-required-role", {"requirement": stage})
    adopted = {"method_id": ids["method_id"], "site_id": ids["facility_id"], "family_ids": [ids["family_id"]]}
    ids["practice_id"] = await api.create("/practices", {"name": "Flat field, imaging hutch", **adopted})
