"""A language model in the catalog, which had a part in a decision."""

from tests.domain.agent.models import entry
from tests.running import Api


async def furnished(api: Api, ids: dict[str, str], mark: str) -> None:
    ids["language_model_id"] = await api.create(
        "/language-models", entry(model="m-1", snapshot_pin=f"m-1-{mark}", endpoint_note="Through the site gateway")
    )
