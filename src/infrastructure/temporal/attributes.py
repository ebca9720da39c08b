"""Search attributes by which people find workflows, and their creation; a server without them still runs everything."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporalio.client import Client

NAMES = ("BatonFacility", "BatonAsset", "BatonRun", "BatonCommand", "BatonPrincipal", "BatonState")
RPC_TIMEOUT = timedelta(seconds=5)


async def missing_attributes(client: "Client") -> list[str]:
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest

    request = ListSearchAttributesRequest(namespace=client.namespace)
    listed = await client.operator_service.list_search_attributes(request, timeout=RPC_TIMEOUT)
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    return [name for name in NAMES if listed.custom_attributes.get(name) != keyword]


async def add_missing_attributes(client: "Client") -> str | None:
    """Add the attributes that the namespace lacks; return the command for an operator where that fails."""
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
    from temporalio.service import RPCError

    names = list(NAMES)
    with suppress(RPCError):
        if names := await missing_attributes(client):
            wanted = dict.fromkeys(names, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
            request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=wanted)
            await client.operator_service.add_search_attributes(request, timeout=RPC_TIMEOUT)
            names = await missing_attributes(client)  # the server silently keeps those with another type
    return creation_command(client.namespace, names) if names else None


def creation_command(namespace: str, names: Iterable[str]) -> str:
    wanted = " ".join(f"--name {name} --type Keyword" for name in names)
    return f"temporal operator search-attribute create --namespace {namespace} {wanted}"
