"""What is known of a person is in two tables until they are forgotten, and then nowhere: not in events, logs or answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.support.api.mcp_clients import MCP, agent, refusal
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, MCP_AUDIENCE, Issuer
from tests.support.service import Api, running_api

RUN = uuid4().hex
CLIENTS = ("httpx", "httpcore", "mcp.client")
"""The loggers of the callers, who live in this process too and may say what they like."""
CONTACTS = ("name", "email", "phone", "affiliation", "external_id", "external_id_scheme")


def marks(occasion: str) -> dict[str, str]:
    """Unmistakable contact data."""
    return {field: f"{occasion}-{field}-{RUN}"[:50] for field in CONTACTS}


def has_marks(text: str) -> bool:
    return RUN[:8] in text


@dataclass(frozen=True)
class EnforcingService:
    """A service that enforces policies, its identity provider, and an administrator on both surfaces."""

    api: Api
    issuer: Issuer
    admin: Api

    def as_subject(self, subject: str, audience: str = HTTP_AUDIENCE) -> Api:
        return self.api.with_token(self.issuer.token(subject, audience=audience))

    async def tables_with_marks(self) -> set[str]:
        """Every table that holds a mark in any column."""
        async with await psycopg.AsyncConnection.connect(self.api.database_url, autocommit=True) as connection:
            listed = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            tables = [name for (name,) in await listed.fetchall()]
            assert {"events", "idempotency", "access_actor_profile", "entries_conduit_verdicts"} <= set(tables)
            found = set()
            for table in tables:
                rows = await connection.execute(f'SELECT row_to_json(t)::text FROM "{table}" AS t')
                found |= {table for (text,) in await rows.fetchall() if has_marks(text)}
        return found


@pytest.fixture
async def enforcing_service(database_url: str) -> AsyncIterator[EnforcingService]:
    administrator = str(uuid4())
    with Issuer.running_server() as issuer:
        provider = issuer.provider(subject_bindings=[{"subject": "admin", "actor_id": administrator}])
        settings = {"authorization_mode": "policy", "identity_providers": [provider]}
        async with running_api(database_url, bootstrap_principal_id=administrator, **settings) as api:
            house = EnforcingService(api, issuer, api)
            admin = house.as_subject("admin")
            for surface_id in (SYSTEM_HTTP, MCP):
                grant = {"name": "Everything", "conduit_id": SYSTEM_CONDUIT, "surface_id": surface_id}
                holder = {"permitted_principal_ids": [administrator], "permitted_commands": []}
                await admin.create("/policies", {**grant, **holder, "permitted_command_sets": ["all"]})
            yield EnforcingService(api, issuer, admin)


class Logs:
    """Everything the service wrote: structured lines on its outputs, and records of the libraries it uses."""

    def __init__(self, outputs: pytest.CaptureFixture[str], records: pytest.LogCaptureFixture) -> None:
        self._outputs = outputs
        self._records = records

    def text(self) -> str:
        out, err = self._outputs.readouterr()
        ours = [record.getMessage() for record in self._records.records if not record.name.startswith(CLIENTS)]
        return "\n".join([out, err, *ours])


@pytest.fixture
def logs(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Logs:
    caplog.set_level(logging.DEBUG)
    return Logs(capfd, caplog)


async def test_a_forgotten_person_is_nowhere_any_more(enforcing_service: EnforcingService, logs: Logs) -> None:
    admin, answers = enforcing_service.admin, []

    async def do(method: str, path: str, body: Any, key: str) -> httpx.Response:
        response = await admin.request(method, path, json=body, headers={"Idempotency-Key": key})
        assert response.is_success, response.text
        answers.append(response.text)
        return response

    actor = (await do("POST", "/actors", marks("registered"), "register")).json()["actor_id"]
    await do("PATCH", f"/actors/{actor}/profile", marks("updated"), "update")
    kept, dropped = ({"issuer": enforcing_service.issuer.url, "subject": f"{word}-{RUN}"} for word in ("kept", "dropped"))
    for binding in (kept, dropped):
        await do("POST", f"/actors/{actor}/subject-bindings/add", binding, binding["subject"][:4])
    await do("POST", f"/actors/{actor}/subject-bindings/remove", dropped, "remove")
    me = (await enforcing_service.as_subject(kept["subject"]).get("/me")).json()
    assert (me["principal_id"], me["name"]) == (actor, marks("updated")["name"])
    profile = (await admin.get(f"/actors/{actor}/profile")).json()
    assert profile.items() >= marks("updated").items()
    assert profile["subject_bindings"] == [kept]
    listed = (await admin.get("/actors", actor_id=actor)).json()["items"]
    assert [item["name"] for item in listed] in ([], [marks("updated")["name"]])

    assert await enforcing_service.tables_with_marks() == {"access_actor_profile", "access_subject_binding"}
    history = await admin.get(f"/actors/{actor}/history")
    feed = await admin.get("/events", stream_type="Actor")
    assert not has_marks(history.text + feed.text + "".join(answers))

    await do("DELETE", f"/actors/{actor}/profile", {}, "forget")
    assert await enforcing_service.tables_with_marks() == set()
    for method, path, body, key in (
        ("POST", "/actors", marks("registered"), "register"),
        ("PATCH", f"/actors/{actor}/profile", marks("updated"), "update"),
        ("DELETE", f"/actors/{actor}/profile", {}, "forget"),
    ):
        again = await do(method, path, body, key)
        assert again.headers["Idempotency-Replayed"] == "true"
    assert await enforcing_service.tables_with_marks() == set()
    for path in (f"/actors/{actor}", f"/actors/{actor}/profile", f"/actors/{actor}/history", "/actors", "/events"):
        assert not has_marks((await admin.get(path)).text)
    assert (await admin.get(f"/actors/{actor}")).json()["name"] == "<deleted user>"
    gone = await enforcing_service.as_subject(kept["subject"]).get("/me")
    assert (gone.status_code, gone.json()["reason"], has_marks(gone.text)) == (401, "unknown_subject", False)
    assert not has_marks("".join(answers))
    assert not has_marks(logs.text())


async def test_a_refused_request_leaves_no_trace_of_what_it_said(enforcing_service: EnforcingService, logs: Logs) -> None:
    admin = enforcing_service.admin
    actor = await admin.create("/actors", {"name": "Somebody"})
    forgotten = await admin.create("/actors", {"name": "Somebody else"})
    await admin.request("DELETE", f"/actors/{forgotten}/profile")
    said, stranger = marks("refused"), {"issuer": f"https://{RUN}.example.org", "subject": f"stranger-{RUN}"}
    own = {"issuer": enforcing_service.issuer.url, "subject": f"unbound-{RUN}"}
    refused = [
        ("POST", "/actors", {**said, "kind": "agent"}, 400),
        ("POST", "/actors", {**said, "email": said["email"] * 20}, 400),
        ("POST", "/actors", {**said, "external_id_scheme": None}, 400),
        ("POST", "/actors", {**said, "name": said["name"] * 20}, 422),
        ("POST", "/actors", {**said, "kind": said["name"]}, 422),
        ("POST", "/actors", {**said, "email": [said["email"]]}, 422),
        ("POST", "/actors", {**said, "nickname": said["name"]}, 422),
        ("PATCH", f"/actors/{actor}/profile", {"phone": said["phone"] * 20}, 400),
        ("PATCH", f"/actors/{actor}/profile", {"external_id": said["external_id"]}, 400),
        ("PATCH", f"/actors/{forgotten}/profile", said, 409),
        ("PATCH", f"/actors/{uuid4()}/profile", said, 404),
        ("PATCH", f"/actors/{said['name']}/profile", {}, 422),
        ("POST", f"/actors/{actor}/subject-bindings/add", stranger, 400),
        ("POST", f"/actors/{forgotten}/subject-bindings/add", own, 409),
        ("POST", f"/actors/{actor}/subject-bindings/remove", own, 409),
        ("POST", f"/actors/{actor}/subject-bindings/add", {**own, "subject": own["subject"] * 20}, 422),
        ("GET", f"/actors?actor_id={said['name']}", None, 422),
    ]
    for method, path, body, status in refused:
        response = await admin.request(method, path, json=body, headers={"Idempotency-Key": uuid4().hex})
        assert (response.status_code, has_marks(response.text)) == (status, False), response.text
    denied = await enforcing_service.as_subject("admin", MCP_AUDIENCE).post("/actors", said)
    assert (denied.status_code, has_marks(denied.text)) == (401, False)
    assert await enforcing_service.tables_with_marks() == set()
    assert not has_marks(logs.text())


async def test_a_tool_refuses_without_repeating_what_it_was_told(enforcing_service: EnforcingService, logs: Logs) -> None:
    said = marks("told")
    async with agent(enforcing_service.as_subject("admin", MCP_AUDIENCE)) as client:
        for arguments in ({**said, "kind": "agent"}, {**said, "kind": said["name"]}, {**said, "phone": [said["phone"]]}):
            body = await refusal(client, "register_actor", **arguments)
            assert not has_marks(str(body))
    assert await enforcing_service.tables_with_marks() == set()
    assert not has_marks(logs.text())


async def test_a_pair_bound_by_two_at_once_is_not_named_to_the_loser(
    enforcing_service: EnforcingService, logs: Logs
) -> None:
    actors = [await enforcing_service.admin.create("/actors", {"name": f"Actor {number}"}) for number in range(4)]
    pair = {"issuer": enforcing_service.issuer.url, "subject": f"wanted-{RUN}"}
    answers = await asyncio.gather(
        *(enforcing_service.admin.post(f"/actors/{actor}/subject-bindings/add", pair) for actor in actors)
    )
    assert sorted(answer.status_code for answer in answers) == [204, 409, 409, 409]
    assert {answer.json()["reason"] for answer in answers if answer.status_code == 409} == {"already_bound"}
    assert not any(has_marks(answer.text) for answer in answers)
    assert await enforcing_service.tables_with_marks() == {"access_subject_binding"}
    assert not has_marks(logs.text())


@asynccontextmanager
async def without_profiles(api: Api) -> AsyncIterator[None]:
    async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
        await connection.execute("ALTER TABLE access_actor_profile RENAME COLUMN phone TO telephone")
        try:
            yield
        finally:
            await connection.execute("ALTER TABLE access_actor_profile RENAME COLUMN telephone TO phone")


async def test_an_unforeseen_failure_is_logged_without_what_was_sent(
    enforcing_service: EnforcingService, logs: Logs
) -> None:
    async with without_profiles(enforcing_service.api):
        failed = await enforcing_service.admin.post("/actors", marks("failed"))
    assert (failed.status_code, has_marks(failed.text)) == (500, False)
    written = logs.text()
    assert failed.json()["correlation_id"] in written, "the failure is not in the log"
    assert not has_marks(written)
    assert await enforcing_service.tables_with_marks() == set()


async def test_an_unknown_subject_is_neither_answered_nor_logged(enforcing_service: EnforcingService, logs: Logs) -> None:
    unknown = await enforcing_service.as_subject(f"unknown-{RUN}").get("/me")
    assert (unknown.status_code, unknown.json()["reason"]) == (401, "unknown_subject")
    assert not has_marks(unknown.text + str(unknown.headers))
    assert not has_marks(logs.text())
