"""A site, a credential of it, and a permit in force to send it calibrations."""

from tests.support.domain.peers import grant
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
