"""Mint sweeps: what the workflow's activities do, and where its answer is read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.long_work import Pace, RowWork, carries_out
from baton.application.ports import WorkProgress
from baton.application.unit_of_work import load_event_rows
from baton.domain.equipment import asset_external_id as rules
from baton.domain.equipment.asset import AssetExternalIdAssigned
from baton.domain.equipment.asset_external_id import MintSweep, MintSweepStatus
from baton.domain.equipment.asset_views import AssetSummary, ListAssets
from baton.domain.equipment.values import AssignedExternalId
from baton.domain.shared.listing import Where
from baton.domain.shared.refusals import ConcurrencyError, Refusal, Unavailable

PAGE = 100


@dataclass
class MintSweeps(RowWork[MintSweep]):
    """Long work: an external identifier for every asset that lacks one."""

    workflow = "mint-sweep"
    row_type = MintSweep
    command_name = rules.MintMissingAssetExternalIds.__name__
    readable_with = "GetAssetMintSweep"
    running = (MintSweepStatus.RUNNING,)
    commands: Commands

    async def progress(self, work_id: UUID) -> WorkProgress:
        done = len(judged_assets(await self.load(work_id)))
        return WorkProgress(done, None, f"{done} assets looked at")

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        sweep = await self.load(work_id)
        return rules.sweep_view(sweep).model_dump(mode="json") if sweep.status is MintSweepStatus.FINISHED else None

    @carries_out("mint_sweep_candidates", Pace.QUICK)
    async def candidates(self, sweep_id: UUID) -> list[UUID]:
        """Return the next assets to mint for, oldest first; none when the sweep has ended."""
        sweep = await self.load(sweep_id)
        judged = judged_assets(sweep)
        wanted = max(0, min(PAGE, sweep.limit_ - len(judged)))
        found: list[UUID] = []
        cursor: str | None = None
        while sweep.status is not MintSweepStatus.FINISHED and len(found) < wanted:
            async with self.commands.store.session() as session:
                query = ListAssets(limit=PAGE, cursor=cursor)
                page: Any = await session.page(AssetSummary, query, [Where("virtual_axis", "is", False)])
            listed = [row.asset_id for row in page.items if row.external_id is None]
            reads = rules.assets_lacking_external_id(listed, sweep.facility_code)
            eligible = await self.commands.read(reads, Caller.system(sweep.correlation_id))
            found += [asset.id for asset in eligible if asset.id not in judged]
            if (cursor := page.next_cursor) is None:
                break
        return found[:wanted]

    @carries_out("mint_sweep_asset", Pace.QUICK)
    async def mint(self, request: rules.MintRequest) -> None:
        """Assign one identifier as the sweep's own principal, and record the result."""
        sweep_id, asset_id = request.sweep_id, request.asset_id
        sweep = await self.load(sweep_id)
        judged = judged_assets(sweep)
        if sweep.status is MintSweepStatus.FINISHED or asset_id in judged or len(judged) >= sweep.limit_:
            return
        who, groups = (sweep.principal_id, sweep.surface_id, sweep.correlation_id), frozenset(sweep.proven_group_ids)
        caller = Caller(*who, causation_id=sweep.sweep_id, proven_group_ids=groups)
        outcome: AssignedExternalId | Refusal
        try:
            command = rules.AssignAssetExternalId(external_id_scheme=sweep.external_id_scheme)
            result = await self.commands.execute(command, caller, target_id=asset_id)
            outcome = AssignedExternalId.model_validate(result.body)
        except (Unavailable, ConcurrencyError):
            raise
        except Refusal as refusal:
            outcome = await self._assigned_before(sweep, asset_id) or refusal
        await self.change(sweep_id, lambda current: rules.with_outcome(current, asset_id, outcome))

    @carries_out("mint_sweep_finish", Pace.QUICK)
    async def finish(self, sweep_id: UUID) -> None:
        """Close the sweep, once."""
        finished, now = MintSweepStatus.FINISHED, self.commands.clock()
        await self.change(sweep_id, lambda current: replace(current, status=finished, finished_at=now))

    async def _assigned_before(self, sweep: MintSweep, asset_id: UUID) -> AssignedExternalId | None:
        """Return the identifier that this sweep assigned before its worker died without recording so."""
        rows = await load_event_rows(self.commands.store, asset_id, AssetExternalIdAssigned)
        own = [row.payload for row in rows if row.causation_id == sweep.sweep_id]
        return AssignedExternalId.model_validate_json(own[0], extra="ignore") if own else None


def judged_assets(sweep: MintSweep) -> set[UUID]:
    """Return the assets that a sweep has finished with, whatever the result."""
    return {UUID(entry["asset_id"]) for entry in (*sweep.minted, *sweep.skipped, *sweep.failed)}
