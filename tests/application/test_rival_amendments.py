"""Rivals for one clearance, on the real store: one wins with both its streams, of the others nothing is written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest

from baton.application.ports import Batch, Bookmark, CommandResult, EventRow, Session, Store
from baton.application.unit_of_work import UnitOfWork
from baton.domain.facility.facility import RegisterFacility
from baton.domain.kernel import Command
from baton.domain.safety.clearance import (
    ActivateClearance,
    AmendClearance,
    AppendClearanceReviewStep,
    ApproveClearance,
    ClearanceStatus,
    ExpireClearance,
    RegisterClearance,
    StartClearanceReview,
    SubmitClearance,
)
from baton.domain.safety.clearance_template import ActivateClearanceTemplate, DefineClearanceTemplate
from baton.domain.safety.coverage import covering_clearances
from baton.domain.shared.refusals import ConcurrencyError, Refusal
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import START, CommandCaller, new_id
from tests.support.domain.world import expect_refusal

ASSET = new_id()
REVIEW = (
    SubmitClearance(),
    StartClearanceReview(first_reviewer_role="SafetyOfficer"),
    AppendClearanceReviewStep(step_index=0, role="SafetyOfficer", decision="Approved"),
    ApproveClearance(),
    ActivateClearance(),
)


@dataclass
class MeetingStore:
    """A store whose sessions write only when every rival has decided."""

    store: Store
    barrier: asyncio.Barrier

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Any]:
        async with self.store.session(lock) as session:
            yield Rival(session, self.barrier)


@dataclass
class Rival:
    known: Session
    barrier: asyncio.Barrier

    def __getattr__(self, name: str) -> Any:
        return getattr(self.known, name)

    async def append(self, batch: Batch) -> int | None:
        await self.barrier.wait()
        return await self.known.append(batch)


@dataclass
class ClearanceSite:
    """A site with one clearance in force, for one asset."""

    client: CommandCaller
    template_id: UUID
    clearance_id: UUID

    def amendment(self, title: str) -> AmendClearance:
        return AmendClearance(**form(self.template_id, title))

    async def race(self, *commands: Command) -> tuple[list[CommandResult], list[Refusal]]:
        """What becomes of commands on the clearance that are all decided before one of them is written."""
        meeting: Any = MeetingStore(self.client.store, asyncio.Barrier(len(commands)))
        rivals = replace(self.client, store=meeting)
        calls = (rivals.do(command, on=self.clearance_id) for command in commands)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        won = [outcome for outcome in outcomes if isinstance(outcome, CommandResult)]
        lost = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
        assert len(won) + len(lost) == len(commands), outcomes
        return won, lost

    async def log(self) -> list[EventRow]:
        rows = await self.client.store.follow(Bookmark(0, 0), 1000)
        return [row for row in rows if row.stream_type == "Clearance"]

    async def covering_statuses(self) -> dict[UUID, ClearanceStatus]:
        async with self.client.store.session() as session:
            unit = UnitOfWork(session, self.client.caller, self.client.authorizer, self.client.ports)
            return {one.id: one.status for one in await unit.fulfil(covering_clearances(None, None, [ASSET], START))}


def form(template_id: UUID, title: str) -> dict[str, Any]:
    bindings = [{"kind": "Asset", "id": ASSET}]
    return {"template_id": template_id, "facility_code": "lumen", "title": title, "bindings": bindings}


@pytest.fixture
async def clearance_site(database_url: str) -> AsyncIterator[ClearanceSite]:
    async with runtime_pool(database_url, 8) as pool:
        staff = CommandCaller(PostgresStore(pool))
        await staff.do(RegisterFacility(code="lumen", display_name="Lumen", kind="Site"))
        template = await staff.create(DefineClearanceTemplate(code="ESAF", title="Form", facility_code="lumen"))
        await staff.do(ActivateClearanceTemplate(), on=template)
        clearance = await staff.create(RegisterClearance(**form(template, "Furnace")))
        for verb in REVIEW:
            await staff.do(verb, on=clearance)
        yield ClearanceSite(staff, template, clearance)


async def test_of_rival_amendments_one_wins_and_the_others_leave_nothing(clearance_site: ClearanceSite) -> None:
    before = await clearance_site.log()
    won, lost = await clearance_site.race(*(clearance_site.amendment(f"Furnace {number}") for number in range(4)))
    (winner,) = won
    assert {(type(refusal), refusal.status) for refusal in lost} == {(ConcurrencyError, 409)}
    assert winner.status == 201
    assert winner.body is not None
    child = UUID(winner.body["clearance_id"])
    written = (await clearance_site.log())[len(before) :]
    assert [(row.event_type, row.stream_id) for row in written] == [
        ("ClearanceSuperseded", clearance_site.clearance_id),
        ("ClearanceRegistered", child),
    ]
    assert len({row.transaction_id for row in written}) == 1
    assert str(child) in written[0].payload
    replaced = {clearance_site.clearance_id: ClearanceStatus.SUPERSEDED}
    assert await clearance_site.covering_statuses() == {**replaced, child: ClearanceStatus.DEFINED}


async def test_who_lost_and_tries_again_is_told_that_the_form_was_replaced(clearance_site: ClearanceSite) -> None:
    await clearance_site.race(clearance_site.amendment("One"), clearance_site.amendment("Other"))
    with expect_refusal("ClearanceCannotAmendError", "superseded"):
        await clearance_site.client.do(clearance_site.amendment("Again"), on=clearance_site.clearance_id)


async def test_an_amendment_and_an_expiry_do_not_both_happen(clearance_site: ClearanceSite) -> None:
    won, lost = await clearance_site.race(clearance_site.amendment("One"), ExpireClearance(reason="over"))
    assert (len(won), len(lost)) == (1, 1)
    statuses = set((await clearance_site.covering_statuses()).values())
    amended = {ClearanceStatus.SUPERSEDED, ClearanceStatus.DEFINED}
    assert statuses == (amended if won[0].status == 201 else {ClearanceStatus.EXPIRED})
