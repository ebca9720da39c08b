"""Workers replace one another in place, unless they are told to be a build of a named deployment."""

from temporalio.client import Client
from temporalio.common import VersioningBehavior
from temporalio.worker import Worker

from baton.application.boot_guards import boot_objections
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import build_worker, open_conduct_engine
from baton.infrastructure.control.simulator import simulated_plant
from baton.infrastructure.temporal.engine import connect, worker_deployment
from tests.support.tables import for_each


async def make_worker(settings: Settings) -> Worker:
    """A worker of these settings."""
    runtime = Runtime(settings)
    client: Client = await connect(settings)
    async with open_conduct_engine(runtime, simulated_plant(settings)) as wired:
        return build_worker(client, runtime, wired)


async def test_a_worker_is_of_no_deployment_by_default(database_url: str, temporal: EmbeddedTemporal) -> None:
    ours = await make_worker(Settings(database_url=database_url, temporal_address=temporal.address))
    assert ours.config()["deployment_config"] is None


async def test_a_named_worker_pins_what_it_begins(database_url: str, temporal: EmbeddedTemporal) -> None:
    named = {"worker_deployment_name": "beamline-7", "worker_build_id": "2.4.0"}
    ours = await make_worker(Settings(database_url=database_url, temporal_address=temporal.address, **named))
    config = ours.config()["deployment_config"]
    assert config is not None
    assert config.version.to_canonical_string() == "beamline-7.2.4.0"
    assert (config.use_worker_versioning, config.default_versioning_behavior) == (True, VersioningBehavior.PINNED)


@for_each("alone", ["worker_deployment_name", "worker_build_id"])
def test_half_a_name_is_refused(alone: str) -> None:
    settings = Settings(**{alone: "one"})
    assert worker_deployment(settings) is None
    assert boot_objections(settings) == [
        "WORKER_DEPLOYMENT_NAME and WORKER_BUILD_ID name a worker together; set both, or none."
    ]
