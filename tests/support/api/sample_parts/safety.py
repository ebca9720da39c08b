"""A clearance in force with everything a form can say, and the template it is registered under."""

from uuid import uuid4

from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    form = {"code": f"ESAF-{mark}", "title": "Experiment safety assessment form", "external_ref": "EDMS 4711"}
    ids["template_id"] = await api.create("/clearance-templates", {**form, "facility_code": "facility"})
    await api.execute(f"/clearance-templates/{ids['template_id']}/activate")
    cell = {"kind": "Subject", "id": str(uuid4())}
    bindings = [
        cell,
        {"kind": "Asset", "id": ids["asset_id"]},
        {"kind": "Run", "id": str(uuid4())},
        {"kind": "Procedure", "id": str(uuid4())},
        {"kind": "External", "scheme": "proposal", "value": f"P-{mark}"},
    ]
    hazards = {
        "target": cell,
        "classifications": [{"kind": "NFPA704", "health": 2, "flammability": 3, "instability": 1}],
        "mitigations": ["PPE:gloves"],
        "notes": "Charged to half.",
    }
    registered = {
        "template_id": ids["template_id"],
        "facility_code": "facility",
        "title": "In-situ tomography of a battery cell",
        "bindings": bindings,
        "declarations": [hazards],
        "risk_band": "Yellow",
        "external_id": mark,
    }
    clearance = ids["clearance_id"] = await api.create("/clearances", registered)
    await api.execute(f"/clearances/{clearance}/submit")
    await api.execute(f"/clearances/{clearance}/start-review", {"first_reviewer_role": "BeamlineScientist"})
    approved = {"role": "BeamlineScientist", "decision": "Approved"}
    await api.execute(f"/clearances/{clearance}/append-review-step", {"step_index": 0, **approved})
    await api.execute(f"/clearances/{clearance}/approve", {})
    await api.execute(f"/clearances/{clearance}/activate")
