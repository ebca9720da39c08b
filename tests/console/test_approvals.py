"""Approvals: what a person may decide, what they proposed and what else is open, each in words with its verbs; whoever holds a
command only with approval is led to the proposal that it becomes."""

import re
from collections.abc import AsyncIterator

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.support.api.approval_service import ApprovalService, open_approval_service
from tests.support.databases import fresh_database
from tests.support.service import Api


@pytest.fixture(scope="module")
async def service(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[ApprovalService]:
    with fresh_database(postgres, template) as url:
        async with open_approval_service(url) as service:
            yield service


async def see(api: Api, path: str, **query: str) -> str:
    """Return the source of a page on one line, whose lists show everything on record."""
    mark = await api.get("/me")
    answer = await api.get(path, **query, position=mark.headers.get("X-Baton-Position", "0"))
    assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[-1500:]}"
    return " ".join(answer.text.split())


async def test_smoke(service: ApprovalService) -> None:
    proposed = await service.propose()
    for api in (service.approver, service.proposer, service.bystander, service.powerless):
        for path in ("/console/approvals", f"/console/proposals/{proposed['proposal_id']}", "/console/waiting"):
            page = await see(api, path)
            print(path, re.sub(r"<[^>]+>", " ", page[page.index("<main") :]))
    assert 0
