"""Namespaces that nobody has prepared or used, on a server that others use."""

from datetime import timedelta
from uuid import uuid4

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client


async def new_namespace(address: str) -> Client:
    """A client of a namespace of its own."""
    name = f"bare-{uuid4()}"
    day = Duration()
    day.FromTimedelta(timedelta(days=1))
    client = await Client.connect(address, namespace=name)
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=day)
    )
    return client
