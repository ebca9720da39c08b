"""What an executor lists of its plans and devices, asked once over the network; no code of it is run here."""

import os

from baton.application.conduct.plan_executors import ExecutorCatalogue
from baton.application.plan_settings import PlanExecutorKind


async def list_executor(
    kind: PlanExecutorKind, address: str, credentials_env: str | None
) -> tuple[ExecutorCatalogue, dict[str, tuple[str, ...]]]:
    """Return the catalogue of an executor and the protocols of its devices; raise PlanExecutorError."""
    credentials = os.environ.get(credentials_env) if credentials_env else None
    if kind is PlanExecutorKind.BLUEAPI:
        from baton.infrastructure.plans.blueapi import Blueapi

        blueapi = Blueapi(address, token=credentials)
        try:
            return await blueapi.catalogue(), await blueapi.describe_devices()
        finally:
            await blueapi.close()
    from baton.infrastructure.plans.queueserver import Queueserver

    queueserver = Queueserver(address, public_key=credentials)
    try:
        return await queueserver.catalogue(), await queueserver.describe_devices()
    finally:
        await queueserver.close()
