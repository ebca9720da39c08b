"""A site, a credential of it, and a permit in force to send it calibrations."""

from tests.running import Api


async def furnished(api: Api, ids: dict[str, str], mark: str) -> None:
    site = {"code": f"site-{mark}", "display_name": "Lumen Light Source", "kind": "Site"}
    ids["facility_id"] = await api.create("/federation/facilities", site)
    audience = f"registry-{mark}.example"
    signing = {"audience": audience, "purpose": "Signing", "secret_ref": "file://calibration"}
    ids["credential_id"] = await api.create("/federation/credentials", {"facility_id": ids["facility_id"], **signing})
    grant = {
        "peer_facility_id": ids["facility_id"],
        "audience": audience,
        "purpose": "calibration-exchange",
        "direction": "Outbound",
        "allowed_credential_ids": [ids["credential_id"]],
        "allowed_payload_types": ["application/json"],
        "allowed_artifact_kinds": ["CalibrationRevision"],
        "abi_tier_floor": "Stable",
        "expires_at": "2127-01-01T00:00:00Z",
        "terms": {
            "kind": "Outbound",
            "scopes": [{"kind": "beamline", "name": "imaging-1", "qualifier": None}],
            "read_scope": "ReadAllArtifacts",
            "onward_action_scope": "MayCacheLocally",
        },
    }
    ids["permit_id"] = await api.create("/federation/permits", grant)
    await api.done(f"/federation/permits/{ids['permit_id']}/activate")
