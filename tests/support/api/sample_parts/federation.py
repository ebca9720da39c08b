"""A site, a credential of it, a permit in force to send it calibrations, its seal, and what was exchanged with it."""

import json
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from baton.application.caller import Caller
from baton.application.commands import system_batch
from baton.domain.federation.publication import CalibrationPublication, PublicationStatus
from baton.domain.federation.received_artifact import ArtifactReference, RecordReception, artifact_id_of
from baton.domain.shared.writes import Put
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.domain.artifacts import KEY, addressee, forged_artifact, public_material
from tests.support.domain.peers import INBOUND, grant
from tests.support.service import Api


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    site = {"code": f"site-{mark}", "display_name": "Lumen Light Source", "kind": "Site"}
    ids["facility_id"] = await api.create("/federation/facilities", site)
    audience = f"registry-{mark}.example"
    signing = {"audience": audience, "purpose": "Signing", "secret_ref": "file://calibration"}
    ids["credential_id"] = await api.create("/federation/credentials", {"facility_id": ids["facility_id"], **signing})
    asked = grant(ids["facility_id"], ids["credential_id"], audience=audience)
    ids["permit_id"] = await api.create("/federation/permits", asked)
    await api.execute(f"/federation/permits/{ids['permit_id']}/activate")
    online = await create_anchor(api, ids["facility_id"], "SealOnlineSigning", audience)
    root = await create_anchor(api, ids["facility_id"], "SealOfflineRoot", audience)
    pair = {"online_credential_id": online, "offline_credential_id": root}
    await api.create("/federation/seals", {"facility_id": ids["facility_id"], **pair})


async def create_exchange_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    await open_inbound_permit(api, ids["facility_id"], f"inbound-{mark}.example")
    ids["received_artifact_id"] = await receive_artifact(api, ids["facility_id"])
    ids["receipt_id"] = await publish_artifact(api, ids["facility_id"], ids["permit_id"])


async def open_inbound_permit(api: Api, facility_id: str, audience: str, material: str = public_material()) -> None:
    """Let calibrations of a site come in that are signed with its key."""
    key = {"audience": audience, "purpose": "Verification", "secret_ref": "none", "public_material_ref": material}
    credential_id = await api.create("/federation/credentials", {"facility_id": facility_id, **key})
    asked = grant(facility_id, credential_id, audience=f"in-{audience}", direction="Inbound", terms=INBOUND)
    await api.execute(f"/federation/permits/{await api.create('/federation/permits', asked)}/activate")


async def receive_artifact(api: Api, facility_id: str, key: Ed25519PrivateKey = KEY) -> str:
    """Record what a site published, as the worker does; signed with another key than the site's, it is rejected."""
    code = (await api.get(f"/federation/facilities/{facility_id}")).json()["code"]
    api.runtime.deployment.own_ids_at_peers[code] = addressee()  # as FEDERATION_PEERS would have it
    source = {"facility_id": facility_id, "code": code}
    document = forged_artifact(key, terms={"receipt_id": str(new_id()), "source_facility": source})
    artifact = json.loads(document)
    named = {name: artifact[name] for name in ("receipt_id", "content_hash")}
    reference = ArtifactReference(source_facility_id=UUID(facility_id), **named)
    id = artifact_id_of(reference.source_facility_id, reference.receipt_id)
    command = RecordReception(reference=reference, document=document.decode(), work_id=new_id())
    await api.runtime.commands.execute(command, Caller.system(new_id()), new_id=id)
    return str(id)


async def publish_artifact(api: Api, facility_id: str, permit_id: str) -> str:
    """Record that something was published to a site, as the worker does."""
    row = CalibrationPublication(
        *(new_id(), new_id(), new_id(), UUID(facility_id), UUID(permit_id), new_id(), new_id(), new_id()),
        status=PublicationStatus.PUBLISHED,
        accepted_at=clock(),
    )
    async with api.runtime.store.session() as session:
        await session.append(system_batch("PublishCalibrationRevision", clock, new_id, Put(row)))
    return str(row.receipt_id)


async def create_anchor(api: Api, facility_id: str, purpose: str, audience: str) -> str:
    """A credential that the seal of its site may rest on."""
    pointer = {"audience": audience, "purpose": purpose, "secret_ref": f"kms://{purpose}/{audience}"}
    credential_id = await api.create("/federation/credentials", {"facility_id": facility_id, **pointer})
    await api.execute(f"/federation/facilities/{facility_id}/trust-anchors/add", {"credential_id": credential_id})
    return credential_id
