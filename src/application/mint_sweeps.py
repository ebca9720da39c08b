"""Mint sweeps: what the workflow's activities do, and where its answer is read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from baton.application.commands import Commands
from baton.application.ports import Authorizer, Batch, Caller, Clock, IdGenerator, Job, Progress, Store, WorkItem
from baton.application.record_reader import load_row
from baton.application.unit_of_work import UnitOfWork
from baton.domain.equipment.asset import Asset, AssetExternalIdAssigned
from baton.domain.equipment.asset_external_id import (
    AssignAssetExternalId,
    MintMissingAssetExternalIds,
    MintSweep,
    MintSweepStatus,
    finished,
    lacking_external_ids,
    noted,
    shown,
)
from baton.domain.equipment.asset_views import AssetSummary, ListAssets
from baton.domain.equipment.values import AssignedExternalId
from baton.domain.shared.listing import Page, Where
from baton.domain.shared.ports import Ports
from baton.domain.shared.refusals import ConcurrencyError, Refusal, Unavailable
from baton.domain.shared.writes import Put

LOCK = "mint-sweep"
PAGE = 100


class MintSweeps:
    """Long work: an external identifier for every asset that lacks one."""

    workflow = "mint-sweep"

    def __init__(
        self, store: Store, commands: Commands, authorizer: Authorizer, clock: Clock, new_id: IdGenerator, ports: Ports
    ) -> None:
        self._ports = ports
        self._store = store
        self._authorizer = authorizer
        self._commands = commands
        self._clock = clock
        self._new_id = new_id

    async def job(self, work_id: UUID) -> Job:
        return Job(self.workflow, f"{self.workflow}:{work_id}", str(work_id))

    async def item(self, work_id: UUID) -> WorkItem | None:
        sweep = await load_row(self._store, MintSweep, sweep_id=work_id)
        if sweep is None:
            return None
        ids = {"sweep_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(sweep.principal_id, "GetAssetMintSweep", ids, sweep.correlation_id)

    async def progress(self, work_id: UUID) -> Progress:
        sweep = await self._sweep(work_id)
        done = len(_seen(sweep))
        return Progress(done, None, f"{done} assets looked at")

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        sweep = await self._sweep(work_id)
        return shown(sweep).model_dump(mode="json") if sweep.status is MintSweepStatus.FINISHED else None

    async def unfinished(self) -> Sequence[UUID]:
        """The sweeps that have not come to their end."""
        async with self._store.session() as session:
            rows = await session.records(MintSweep, {"status": MintSweepStatus.RUNNING.value})
        return [row.sweep_id for row in rows]

    async def candidates(self, sweep_id: UUID) -> list[UUID]:
        """The next assets to mint for, oldest first; none when the sweep has come to its end."""
        sweep = await self._sweep(sweep_id)
        if sweep.status is MintSweepStatus.FINISHED:
            return []
        seen = _seen(sweep)
        found: list[UUID] = []
        cursor: str | None = None
        while len(found) < min(PAGE, sweep.limit_ - len(seen)):
            page = await self._page(cursor)
            found += [asset.id for asset in await self._eligible(page, sweep) if asset.id not in seen]
            if (cursor := page.next_cursor) is None:
                break
        return found[: max(0, min(PAGE, sweep.limit_ - len(seen)))]

    async def mint(self, sweep_id: UUID, asset_id: UUID) -> None:
        """Assign one identifier as the sweep's own principal, and note what became of it."""
        sweep = await self._sweep(sweep_id)
        if sweep.status is MintSweepStatus.FINISHED or asset_id in _seen(sweep) or len(_seen(sweep)) >= sweep.limit_:
            return
        caller = Caller(sweep.principal_id, sweep.surface_id, sweep.correlation_id, causation_id=sweep.sweep_id)
        outcome: AssignedExternalId | Refusal
        try:
            command = AssignAssetExternalId(external_id_scheme=sweep.external_id_scheme)
            executed = await self._commands.execute(command, caller, target_id=asset_id)
            outcome = AssignedExternalId.model_validate(executed.body)
        except (Unavailable, ConcurrencyError):
            raise
        except Refusal as refusal:
            outcome = await self._minted_before(sweep, asset_id) or refusal
        await self._change(sweep_id, lambda kept: noted(kept, asset_id, outcome))

    async def finish(self, sweep_id: UUID) -> None:
        """Close the sweep, once."""
        await self._change(sweep_id, lambda kept: finished(kept, self._clock()))

    async def _minted_before(self, sweep: MintSweep, asset_id: UUID) -> AssignedExternalId | None:
        """What this sweep assigned itself when the worker died before it could note so."""
        async with self._store.session() as session:
            rows = await session.load_of(Asset.__name__, asset_id, [AssetExternalIdAssigned.__name__])
        own = [row.payload for row in rows if row.causation_id == sweep.sweep_id]
        return AssignedExternalId.model_validate_json(own[0], extra="ignore") if own else None

    async def _sweep(self, sweep_id: UUID) -> MintSweep:
        sweep = await load_row(self._store, MintSweep, sweep_id=sweep_id)
        assert sweep is not None, "what is worked on was asked for"
        return sweep

    async def _page(self, cursor: str | None) -> Page[Any]:
        async with self._store.session() as session:
            query = ListAssets(limit=PAGE, cursor=cursor)
            return await session.page(AssetSummary, query, [Where("virtual_axis", "is", False)])

    async def _eligible(self, page: Page[Any], sweep: MintSweep) -> list[Asset]:
        """The assets of a page that a sweep is for, judged on their folded streams."""
        ids = [row.asset_id for row in page.items if row.external_id is None]
        async with self._store.session() as session:
            unit = UnitOfWork(session, Caller.system(sweep.correlation_id), self._authorizer, self._ports)
            return await unit.fulfil(lacking_external_ids(ids, sweep.facility_code))

    async def _change(self, sweep_id: UUID, change: Callable[[MintSweep], MintSweep]) -> None:
        """Change a sweep that goes on; an attempt that was given up and comes late takes nothing back."""
        async with self._store.session(LOCK) as session:
            (sweep,) = await session.records(MintSweep, {"sweep_id": sweep_id})
            if sweep.status is MintSweepStatus.FINISHED or (changed := change(sweep)) == sweep:
                return
            call = Caller.system(changed.correlation_id).call(self._clock(), self._new_id())
            await session.append(Batch(call, MintMissingAssetExternalIds.__name__, puts=[Put(changed)]))


def _seen(sweep: MintSweep) -> set[UUID]:
    return {UUID(entry["asset_id"]) for entry in (*sweep.minted, *sweep.skipped, *sweep.failed)}
