"""A facility that publishes editions: the service over REST, a registry of DOIs on loopback, and workers of their own."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.forked_commands import forked_command
from tests.support.infrastructure.doi_registry_server import ACCOUNT, PASSWORD, PREFIX, Registry, running_registry
from tests.support.service import Api, running_api
from tests.support.stack import clean_environment

BASE_URL = "https://data.lumen.example"


@dataclass(frozen=True)
class PublishingFacility:
    """The service, its registry, and what data products are made of."""

    api: Api
    registry: Registry
    environment: dict[str, str]
    directory: Path
    supplies: list[str] = field(default_factory=list)

    def worker(self, name: str) -> AbstractContextManager[ForkServerProcess]:
        """A worker until the end of the block, where it is killed."""
        files = (self.directory / f"{name}.out", self.directory / f"{name}.err")
        return forked_command(("worker",), self.environment, *files)

    async def disk(self) -> str:
        if not self.supplies:
            named = {"kind": "Storage", "name": "Analysis disk", "facility_code": "facility"}
            self.supplies.append(await self.api.create("/supplies", named))
        return self.supplies[0]

    async def product(self, name: str, **fields: Any) -> str:
        """Register a dataset with a copy, and promote it."""
        content = {
            "uri": f"file:///data/{name}-{uuid4()}",
            "checksum": {"algorithm": "sha256", "value": sha256(name.encode()).hexdigest()},
            "byte_size": 4096,
            "encoding": {"media_type": "application/x-hdf5", "conforms_to": ["https://doi.org/10.1107/S160057751401604X"]},
        }
        dataset_id = await self.api.create("/datasets", {"name": name, **content, "allow_duplicate": True, **fields})
        place = {"dataset_id": dataset_id, "supply_id": await self.disk(), "access_protocol": "POSIX"}
        await self.api.create("/distributions", {**content, **place})
        await self.api.execute(f"/datasets/{dataset_id}/promote", {"reason": "frame count and flats checked"})
        return dataset_id

    async def edition(self, *dataset_ids: str, **fields: Any) -> str:
        """Register an edition of these datasets, by one creator."""
        mira = await self.api.create("/actors", {"name": "Mira Okafor"})
        given = {"kind": "ROCrate", "title": "Pellet B-12", "creator_ids": [mira], "publisher_facility_code": "facility"}
        return await self.api.create("/editions", {**given, "dataset_ids": list(dataset_ids), **fields})

    async def sealed_edition(self, **fields: Any) -> str:
        edition_id = await self.edition(await self.product("scan_001.h5"), **fields)
        await self.api.execute(f"/editions/{edition_id}/seal")
        return edition_id

    async def read(self, path: str, **parameters: Any) -> dict[str, Any]:
        answer = await self.api.get(path, **parameters)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def event_types(self, edition_id: str) -> list[str]:
        items = (await self.read(f"/editions/{edition_id}/history"))["items"]
        return [one["event_type"] for one in items]


@asynccontextmanager
async def open_publishing_facility(
    database_url: str, temporal_address: str, directory: Path
) -> AsyncIterator[PublishingFacility]:
    """A facility until the end of the block, without a worker."""
    with running_registry() as registry:
        minting = {
            "pid_minter": "datacite",
            "datacite_address": registry.url,
            "datacite_prefix": PREFIX,
            "datacite_repository_id": ACCOUNT,
            "datacite_password": PASSWORD,
            "public_base_url": BASE_URL,
        }
        async with running_api(database_url, temporal_address=temporal_address, **minting) as api:
            stack = {"database_url": database_url, "temporal_address": temporal_address, "app_env": "test"}
            environment = {name.upper(): value for name, value in {**minting, **stack}.items()}
            yield PublishingFacility(api, registry, clean_environment(**environment), directory)
