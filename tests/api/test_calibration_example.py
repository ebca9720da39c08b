"""The worked examples of calibrations, credentials and permits over REST, payload for payload."""

from uuid import uuid4

from tests.support.domain.peers import grant
from tests.support.service import Api


async def own_site(api: Api) -> str:
    position = await api.execute("/actors", {"name": "Anybody"})
    sites = await api.get("/federation/facilities", code="facility", min_position=position)
    return str(sites.json()["items"][0]["facility_id"])


async def test_a_rotation_center_is_refined_and_its_old_value_superseded(api: Api) -> None:
    stage, alignment, raw = str(uuid4()), str(uuid4()), str(uuid4())
    centre = {"target_id": stage, "quantity": "rotation_center", "operating_point": {"energy": 25, "optics_config": "5x"}}
    c1 = await api.create("/calibrations", centre)
    again = await api.post("/calibrations", {**centre, "operating_point": {"optics_config": "5x", "energy": 25.0}})
    assert (again.status_code, again.json()["code"]) == (409, "CalibrationIdentityAlreadyExistsError")
    r1 = await api.create(
        f"/calibrations/{c1}/revisions",
        {
            "value": {"center": 1024.5, "uncertainty": 0.3},
            "status": "Provisional",
            "source": {"kind": "Measured", "procedure_id": alignment},
            "valid_until": "2126-10-08T18:00:00Z",
        },
    )
    better = await api.post(
        f"/calibrations/{c1}/revisions",
        {
            "value": {"center": 1024.72, "uncertainty": 0.08},
            "status": "Verified",
            "source": {"kind": "Computed", "dataset_id": raw},
            "supersedes_revision_id": r1,
        },
    )
    assert better.status_code == 201
    r2 = better.json()["revision_id"]
    shown = (await api.get(f"/calibrations/{c1}")).json()
    assert [revision["revision_id"] for revision in shown["revisions"]] == [r1, r2]
    assert [revision["superseded_by_revision_id"] for revision in shown["revisions"]] == [r2, None]
    assert [revision["valid_until"] for revision in shown["revisions"]] == ["2126-10-08T18:00:00Z", None]
    assert shown["revisions"][1]["source"] == {"kind": "Computed", "dataset_id": raw}
    assert shown["last_revised_at"] == shown["revisions"][1]["established_at"]
    risk = await api.get(f"/calibrations/{c1}/at-risk-results")
    assert (risk.status_code, risk.json()) == (200, {"items": [], "next_cursor": None})
    unknown = await api.get(f"/calibrations/{c1}/at-risk-results", revision_id=str(uuid4()))
    assert (unknown.status_code, unknown.json()["code"]) == (404, "CalibrationRevisionNotFoundError")
    position = better.headers["X-Baton-Position"]
    listed = await api.get("/calibrations", target_id=stage, latest_revision_status="Verified", min_position=position)
    [row] = listed.json()["items"]
    assert (row["latest_revision_id"], row["revision_count"], row["operating_point"]["energy"]) == (r2, 2, 25)


async def test_publishing_asks_for_a_permit_then_for_a_key(api: Api) -> None:
    mira = await api.create("/actors", {"name": "Mira Okafor"})
    person = api.acting_as(mira)
    peer = await api.create("/federation/facilities", {"code": "beta-source", "display_name": "Beta", "kind": "Site"})
    point = {"energy": 25, "optics_config": "5x"}
    c1 = await api.create(
        "/calibrations", {"target_id": str(uuid4()), "quantity": "rotation_center", "operating_point": point}
    )
    source = {"kind": "Asserted", "asserted_by": mira}
    r2 = await api.create(
        f"/calibrations/{c1}/revisions", {"value": {"center": 1024.72}, "status": "Verified", "source": source}
    )
    publish, asked = f"/calibrations/{c1}/revisions/{r2}/publish", {"peer_facility_id": peer, "wait": 0}
    unpermitted = await person.post(publish, asked)
    assert (unpermitted.status_code, unpermitted.json()["code"]) == (409, "OutboundPermitNotActiveError")
    p1 = await api.create("/federation/permits", grant(peer, str(uuid4())))
    await api.execute(f"/federation/permits/{p1}/activate")
    keyless = await person.post(publish, asked)
    assert (keyless.status_code, keyless.json()["reason"]) == (409, "no_signing_credential")
    await api.execute(f"/federation/permits/{p1}/revoke")
    signing = {"facility_id": await own_site(api), "audience": "registry.example", "purpose": "Signing"}
    c3 = await api.create("/federation/credentials", {**signing, "secret_ref": "file://calibration"})
    p2 = await api.create("/federation/permits", grant(peer, c3))
    await api.execute(f"/federation/permits/{p2}/activate")
    accepted = await person.post(publish, asked)
    assert accepted.status_code == 202
    assert accepted.json()["work_id"] == accepted.json()["receipt_id"]
    assert (await person.post(publish, asked)).json() == accepted.json()


async def test_two_light_sources_come_to_trust_each_other(api: Api) -> None:
    f1 = await own_site(api)
    peer = {"code": "peer-lightsource", "display_name": "Peer Light Source", "kind": "Site", "parent_id": None}
    f2 = await api.create("/federation/facilities", peer)
    online = {"facility_id": f1, "audience": "registry.example", "purpose": "SealOnlineSigning", "secret_ref": "kms://k1"}
    c1 = await api.create("/federation/credentials", online)
    c2 = await api.create("/federation/credentials", {**online, "purpose": "SealOfflineRoot", "secret_ref": "vault://root"})
    for credential in (c1, c2):
        assert (
            await api.post(f"/federation/facilities/{f1}/trust-anchors/add", {"credential_id": credential})
        ).status_code == 204
    unknown = await api.post(f"/federation/facilities/{f1}/trust-anchors/add", {"credential_id": str(uuid4())})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "CredentialNotFoundError")
    p1 = await api.create("/federation/permits", grant(f2, str(uuid4())))
    steps = [("activate", None), ("suspend", {"reason": "audit"}), ("resume", None), ("revoke", None)]
    for verb, body in steps:
        assert (await api.post(f"/federation/permits/{p1}/{verb}", body)).status_code == 204
    assert (await api.post(f"/federation/permits/{p1}/activate")).status_code == 409
    rotation = f"/federation/credentials/{c1}/rotation"
    following = {"new_secret_ref": "kms://k2", "new_public_material_ref": None}
    assert (await api.post(f"{rotation}/start", following)).status_code == 204
    assert (await api.post(f"{rotation}/complete")).status_code == 204
    assert (await api.get(f"/federation/credentials/{c1}")).json()["secret_ref"] == "kms://k2"
    position = await api.execute(f"/federation/credentials/{c2}/revoke", {"reason": "key ceremony"})
    for context, choice in (("CredentialRegistered", c1), ("CredentialRevoked", c2), ("PermitDefined", p1)):
        decided = await api.get("/decisions", context=context, choice=choice, min_position=position)
        assert len(decided.json()["items"]) == 1, context
