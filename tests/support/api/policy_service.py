"""A service that enforces policies, with one of everything in it: what tests of who may see what share."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from baton.domain.registry import Operation
from tests.support.api.data_products import register_copy
from tests.support.api.list_samples import CATALOGUES
from tests.support.api.mcp_clients import MCP
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP, create_samples
from tests.support.infrastructure.pictures import write_array
from tests.support.service import Api, running_api

ARGUMENTS: dict[str, dict[str, Any]] = {
    "evaluate_policy": {
        "evaluated_principal_id": "{actor_id}",
        "evaluated_command_name": "GetVisit",
        "evaluated_conduit_id": "{conduit_id}",
        "evaluated_surface_id": "{surface_id}",
    },
    "list_permissions": {
        "evaluated_principal_id": "{actor_id}",
        "evaluated_conduit_id": "{conduit_id}",
        "evaluated_surface_id": "{surface_id}",
    },
    "draft_steps": {"pattern": {"kind": "line", "axes": [{"address": "lum:m102", "start": 0, "stop": 1}], "num": 2}},
    "inspect_plan_binding": {"practice_id": "{practice_id}", "asset_ids": ["{asset_id}"]},
    "read_assets": {"asset_ids": ["{asset_id}"]},
    "rehearse_commands": {"commands": [{"operation": "register_actor", "arguments": {"name": "Mira"}}]},
    "resolve_signals": {"addresses": ["lum:m102"]},
    "read_signals": {"addresses": ["lum:m102"]},
    "rehearse": {"procedure_id": "{procedure_id}"},
    "preflight_run": {"name": "Load step 2", "plan_id": "{plan_id}"},
}
"""What some queries must be asked besides the ids in their path."""
OTHER_MEANINGS = {name: {"asset_id": "root_asset_id"} for name in ("get_beamline_now", "get_beam_time")}
"""What some queries mean by an id that others mean differently."""


@dataclass(frozen=True)
class PolicyService:
    """A service that enforces policies, with one of everything in it."""

    permitted: Api
    stranger: Api
    ids: dict[str, str]
    twin: Api  # somebody else with the same permissions

    def path(self, operation: Operation, ids: dict[str, str] | None = None) -> str:
        return operation.path.format(**self.meant(operation, ids or self.ids))

    def meant(self, operation: Operation, ids: dict[str, str]) -> dict[str, str]:
        """Return the ids as an operation means them."""
        return {**ids, **{name: ids[other] for name, other in OTHER_MEANINGS.get(operation.name, {}).items()}}

    def arguments(self, operation: Operation, ids: dict[str, str] | None = None) -> dict[str, Any]:
        return {name: fill_ids(value, ids or self.ids) for name, value in ARGUMENTS.get(operation.name, {}).items()}

    def tool_arguments(self, operation: Operation) -> dict[str, Any]:
        named = [name for name in (operation.target, *operation.path_fields) if name]
        ids = self.meant(operation, self.ids)
        return {**{name: ids[name] for name in named}, **self.arguments(operation)}


def fill_ids(value: Any, ids: dict[str, str]) -> Any:
    """Return an argument with the ids it names."""
    match value:
        case list():
            return [fill_ids(one, ids) for one in value]
        case dict():
            return {name: fill_ids(one, ids) for name, one in value.items()}
    return value.format(**ids) if isinstance(value, str) else value


@asynccontextmanager
async def open_policy_service(
    database_url: str, outbox: Path, author: Callable[[Api], Api] = lambda api: api
) -> AsyncIterator[PolicyService]:
    """One person holds every permission on both surfaces, and so does a twin; another one is known to the service and holds
    none. The samples are made by the first one, through what `author` makes of their client."""
    admin, enforced = str(uuid4()), {"authorization_mode": "policy", "publication_outbox": outbox, **CATALOGUES}
    enforced["data_roots"] = (outbox,)
    async with running_api(database_url, bootstrap_principal_id=admin, **enforced) as api:
        boss = api.acting_as(admin)
        owner = await boss.create("/actors", {"name": "Owner"})
        twin = await boss.create("/actors", {"name": "Twin"})
        stranger = await boss.create("/actors", {"name": "Stranger"})
        for surface_id in (SYSTEM_HTTP, MCP):
            grant = {"name": "Everything", "conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
            holders = {"permitted_principal_ids": [owner, twin], "permitted_commands": [], "permitted_command_sets": ["all"]}
            await boss.create("/policies", {**grant, **holders})
        permitted = api.acting_as(owner)
        ids = await create_samples(author(permitted))
        (outbox / f"{ids['receipt_id']}.json").write_text("{}")
        scan = write_array(outbox / "scan.h5", [[1, 2], [3, 4]])
        os.truncate(scan, (await permitted.get(f"/datasets/{ids['dataset_id']}")).json()["byte_size"])
        await register_copy(permitted, ids["dataset_id"], uri=scan.as_uri())
        yield PolicyService(permitted, api.acting_as(stranger), ids, api.acting_as(twin))
