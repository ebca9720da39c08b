"""Two facilities on one machine: alpha publishes a calibration to beta, which fetches it with the token that alpha gave it,
checks it by alpha's key, adopts it and pins it in a run; and no further one comes in once either side ends its permit."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from baton.application.settings import FederationPeer
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.contexts import REGISTRY
from tests.support.api.rest_beamline import beamline
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.databases import fresh_database
from tests.support.domain.peers import INBOUND, grant
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.infrastructure.temporal_namespaces import new_namespace
from tests.support.service import Api
from tests.support.workflows.agent_stack import AgentStack, agent_stack

ALPHA, BETA = "alpha-source", "facility"
PLACE = {"energy": 25, "optics_config": "5x"}
ADMINISTRATOR, EXCHANGE, OTHER_EXCHANGE = (str(uuid4()) for _ in range(3))


@dataclass
class Exchange:
    """Both facilities as a person of each calls them, and what they know of each other."""

    alpha: Api
    beta: Api
    reader: Api
    """Alpha, as beta's account there calls it."""
    other: Api
    """Alpha, as the account of a third facility calls it."""
    outbox: Path
    beta_at_alpha: str
    alpha_at_beta: str
    outbound: str
    inbound: str

    async def publish(self, center: float) -> str:
        """Have alpha publish a value, and return its receipt."""
        target = {"target_id": str(uuid4()), "quantity": "rotation_center", "operating_point": PLACE}
        calibration = await self.alpha.create("/calibrations", target)
        source = {"kind": "Asserted", "asserted_by": ADMINISTRATOR}
        value = {"value": {"center": center, "uncertainty": 0.08}, "status": "Verified", "source": source}
        revision = await self.alpha.create(f"/calibrations/{calibration}/revisions", value)
        asked = {"peer_facility_id": self.beta_at_alpha}
        answer = await self.alpha.post(f"/calibrations/{calibration}/revisions/{revision}/publish", asked)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["receipt_id"])

    async def reference(self, receipt_id: str) -> dict[str, Any]:
        """What names an artifact at beta, by what alpha's list tells it."""
        listed = await self.reader.get(f"/federation/facilities/{self.beta_at_alpha}/artifacts", order="desc")
        assert listed.status_code == 200, listed.text
        found = next(one for one in listed.json()["items"] if one["receipt_id"] == receipt_id)
        hash = {"content_hash": found["content_hash"]}
        return {"source_facility_id": self.alpha_at_beta, "receipt_id": receipt_id, **hash}


async def facility(
    stack: AsyncExitStack, postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, **settings: Any
) -> AgentStack:
    """A service of its own: a database, a namespace of the engine, an API and a worker."""
    url = stack.enter_context(fresh_database(postgres, template))
    namespace = (await new_namespace(temporal.address)).namespace
    return await stack.enter_async_context(agent_stack(url, temporal.address, temporal_namespace=namespace, **settings))


@pytest.fixture
async def exchange(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> AsyncIterator[Exchange]:
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "calibration.pem").write_bytes(pem)
    async with AsyncExitStack() as stack:
        issuer = stack.enter_context(Issuer.running_server())
        accounts = {"beta-exchange": EXCHANGE, "gamma-exchange": OTHER_EXCHANGE}
        bindings = [{"subject": "mira-77", "actor_id": ADMINISTRATOR}]
        bindings += [{"subject": name, "actor_id": id, "kind": "service_account"} for name, id in accounts.items()]
        reading = {BETA: FederationPeer(accounts=[EXCHANGE]), "gamma": FederationPeer(accounts=[OTHER_EXCHANGE])}
        alpha_stack = await facility(
            *(stack, postgres, template, temporal),
            self_facility_code=ALPHA,
            signing_key_directory=tmp_path,
            publication_outbox=tmp_path / "outbox",
            federation_peers=reading,
            identity_providers=[issuer.provider(subject_bindings=bindings)],
            require_authenticated_principal=True,
            authorization_mode="policy",
            bootstrap_principal_id=ADMINISTRATOR,
        )
        alpha = as_subject(alpha_stack.api, issuer, "mira-77")
        await permit(alpha, "Administration", ADMINISTRATOR, *REGISTRY.command_names())
        for account in (EXCHANGE, OTHER_EXCHANGE):
            await permit(alpha, f"Exchange {account}", account, "GetPublishedArtifact", "ListPublishedArtifacts")

        beta_at_alpha = await register_site(alpha, BETA)
        token = issuer.token("beta-exchange")
        peers = {ALPHA: FederationPeer(address=alpha.base_url, token=token, facility_id=UUID(beta_at_alpha))}
        beta = (await facility(stack, postgres, template, temporal, federation_peers=peers)).api
        beta = beta.acting_as(await beta.create("/actors", {"name": "Jonas Brandt"}))

        own = (await alpha.get("/federation/facilities", code=ALPHA)).json()["items"][0]["facility_id"]
        signing = await register_key(alpha, own, "Signing", secret_ref="file://calibration")
        outbound = await open_permit(alpha, grant(beta_at_alpha, signing))
        alpha_at_beta = await register_site(beta, ALPHA)
        material = f"ed25519:{key.public_key().public_bytes_raw().hex()}"
        known = await register_key(beta, alpha_at_beta, "Verification", secret_ref="none", public_material_ref=material)
        inbound = await open_permit(beta, grant(alpha_at_beta, known, direction="Inbound", terms=INBOUND))
        reader = as_subject(alpha_stack.api, issuer, "beta-exchange")
        ids = (beta_at_alpha, alpha_at_beta, outbound, inbound)
        other = as_subject(alpha_stack.api, issuer, "gamma-exchange")
        yield Exchange(alpha, beta, reader, other, tmp_path / "outbox", *ids)


def as_subject(api: Api, issuer: Issuer, subject: str) -> Api:
    return api.with_token(issuer.token(subject))


async def permit(api: Api, name: str, actor_id: str, *commands: str) -> None:
    ids = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [actor_id]}
    await api.create("/policies", {"name": name, **ids, "permitted_commands": sorted(commands)})


async def register_site(api: Api, code: str) -> str:
    return await api.create("/federation/facilities", {"code": code, "display_name": code, "kind": "Site"})


async def register_key(api: Api, facility_id: str, purpose: str, **references: str) -> str:
    fields = {"facility_id": facility_id, "audience": "registry.example", "purpose": purpose, **references}
    return await api.create("/federation/credentials", fields)


async def open_permit(api: Api, asked: dict[str, Any]) -> str:
    permit_id = await api.create("/federation/permits", json.loads(json.dumps(asked)))
    await api.execute(f"/federation/permits/{permit_id}/activate")
    return permit_id


async def test_a_calibration_of_one_facility_is_used_at_another(exchange: Exchange) -> None:
    alpha, beta = exchange.alpha, exchange.beta
    receipt_id = await exchange.publish(1024.72)
    reference = await exchange.reference(receipt_id)
    assert (await exchange.reader.get("/calibrations")).status_code == 403, "the token is for what was published only"
    read = await exchange.reader.get(f"/federation/artifacts/{receipt_id}")
    assert (read.status_code, read.headers["Content-Type"]) == (200, "application/json")
    assert read.content == (exchange.outbox / f"{receipt_id}.json").read_bytes()
    missing = await exchange.reader.get(f"/federation/artifacts/{uuid4()}")
    assert (missing.status_code, missing.json()["code"]) == (404, "PublishedArtifactNotFoundError")
    foreign = await exchange.other.get(f"/federation/artifacts/{receipt_id}")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "PublishedArtifactNotFoundError")
    listed = await exchange.other.get(f"/federation/facilities/{exchange.beta_at_alpha}/artifacts")
    assert (listed.status_code, listed.json()["reason"]) == (403, "other_facility")

    received = await beta.post("/federation/received-artifacts", reference)
    assert received.status_code == 201, received.text
    assert (received.json()["status"], received.json()["stage"]) == ("Verified", None)
    address = f"/federation/received-artifacts/{received.json()['received_artifact_id']}"
    shown = (await beta.get(address)).json()
    assert (shown["status"], shown["permit_id"]) == ("Verified", exchange.inbound)
    assert shown["revision"]["value"] == {"center": 1024.72, "uncertainty": 0.08}
    assert (await beta.get(f"{address}/document")).content == read.content
    again = await beta.post("/federation/received-artifacts", reference)
    assert (again.status_code, again.json()["code"]) == (409, "ArtifactAlreadyReceivedError")

    line = await beamline(beta)
    target = {"target_id": line.camera_id, "quantity": "rotation_center", "operating_point": PLACE}
    calibration = await beta.create("/calibrations", target)
    assert (await beta.get(f"/calibrations/{calibration}")).json()["revisions"] == [], "nothing is adopted by itself"
    adopted = await beta.post(f"{address}/adopt", {"calibration_id": calibration})
    assert adopted.status_code == 201, adopted.text
    revision_id = adopted.json()["revision_id"]
    run_id = await line.start_run(subject_id=line.subject_id, pinned_calibration_ids=[revision_id])
    assert (await beta.get(f"/runs/{run_id}")).json()["pinned_calibration_ids"] == [revision_id]

    second = await exchange.reference(await exchange.publish(1024.8))
    tampered = exchange.outbox / f"{second['receipt_id']}.json"
    artifact = json.loads(tampered.read_bytes())
    tampered.write_text(json.dumps({**artifact, "expires_at": "2199-01-01T00:00:00Z"}))
    kept_out = await beta.post("/federation/received-artifacts", second)
    assert (kept_out.status_code, kept_out.json()["status"]) == (201, "Rejected")
    assert (kept_out.json()["stage"], kept_out.json()["reason"]) == ("content_hash", "not_canonical")

    third = await exchange.reference(await exchange.publish(1024.9))
    await alpha.execute(f"/federation/permits/{exchange.outbound}/revoke")
    refused = await beta.post("/federation/received-artifacts", third)
    assert (refused.status_code, refused.json()["code"]) == (502, "ArtifactFetchError"), refused.text
    assert refused.json()["reason"] == "not_permitted"
    closed = await exchange.reader.get(f"/federation/facilities/{exchange.beta_at_alpha}/artifacts")
    assert (closed.status_code, closed.json()["code"]) == (409, "OutboundPermitNotActiveError")

    ended = await beta.execute(f"/federation/permits/{exchange.inbound}/revoke", {"reason": "the exchange is over"})
    refused = await beta.post("/federation/received-artifacts", third)
    assert (refused.status_code, refused.json()["code"]) == (409, "InboundPermitNotActiveError")
    listed = await beta.get("/federation/received-artifacts", status="Verified", min_position=ended)
    assert [one["receipt_id"] for one in listed.json()["items"]] == [receipt_id]
