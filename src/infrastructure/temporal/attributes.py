"""The search attributes that people find workflows by, and how a server comes to have them.

They are a convenience: a server without them conducts all the same.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporalio.client import Client

NAMES = ("BatonFacility", "BatonAsset", "BatonRun", "BatonCommand", "BatonPrincipal", "BatonState")
KIND = "Keyword"
PATIENCE = timedelta(seconds=5)


async def missing(client: "Client") -> list[str]:
    """The attributes that the client's namespace lacks, or has of another type."""
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest

    request = ListSearchAttributesRequest(namespace=client.namespace)
    listed = await client.operator_service.list_search_attributes(request, timeout=PATIENCE)
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    return [name for name in NAMES if listed.custom_attributes.get(name) != keyword]


async def add_missing(client: "Client") -> str | None:
    """Give the namespace what it lacks; answers what an operator would type where we may not, or cannot."""
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
    from temporalio.service import RPCError

    names = list(NAMES)
    with suppress(RPCError):
        if names := await missing(client):
            wanted = dict.fromkeys(names, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
            request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=wanted)
            await client.operator_service.add_search_attributes(request, timeout=PATIENCE)
            names = await missing(client)  # what is there with another type is left alone without a word
    return command_for(client.namespace, names) if names else None


def command_for(namespace: str, names: Iterable[str]) -> str:
    """What an operator types to add attributes."""
    wanted = " ".join(f"--name {name} --type {KIND}" for name in names)
    return f"temporal operator search-attribute create --namespace {namespace} {wanted}"
