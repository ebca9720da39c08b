"""The effects of a mint sweep."""

from uuid import UUID

from temporalio import activity

from baton.application.mint_sweeps import MintSweeps


class MintSweepActivities:
    """Each activity may run again: what is noted already is not done twice."""

    def __init__(self, sweeps: MintSweeps) -> None:
        self._sweeps = sweeps

    @activity.defn(name="mint_sweep_candidates")
    async def candidates(self, sweep_id: str) -> list[str]:
        return [str(id) for id in await self._sweeps.candidates(UUID(sweep_id))]

    @activity.defn(name="mint_sweep_asset")
    async def mint(self, sweep_id: str, asset_id: str) -> None:
        await self._sweeps.mint(UUID(sweep_id), UUID(asset_id))

    @activity.defn(name="mint_sweep_finish")
    async def finish(self, sweep_id: str) -> None:
        await self._sweeps.finish(UUID(sweep_id))
