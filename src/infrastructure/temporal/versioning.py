"""What becomes of running workflows when workers are replaced.

By default the new worker goes on with them: their histories are replayed by its code, which must still be able to. A named
deployment pins each to the build that began it, and keeps that build's workers until they are done.
"""

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from baton.application.settings import Settings


def deployment_of(settings: Settings) -> WorkerDeploymentConfig | None:
    """The deployment that a worker of these settings belongs to; none where it is simply the worker."""
    if settings.worker_deployment_name is None or settings.worker_build_id is None:
        return None
    return WorkerDeploymentConfig(
        WorkerDeploymentVersion(settings.worker_deployment_name, settings.worker_build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )
