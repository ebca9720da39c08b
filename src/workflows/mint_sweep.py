"""The mint sweep: one identifier after the other, until no asset lacks one or the limit is reached."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.workflows.activity_calls import call_quick_activity

CANDIDATES = "mint_sweep_candidates"
MINT = "mint_sweep_asset"
FINISH = "mint_sweep_finish"


@workflow.defn(name="mint-sweep")
class MintSweepWorkflow:
    """Asks for the next assets, mints for each, and closes the sweep; everything it knows is in the record."""

    @workflow.run
    async def run(self, sweep_id: str) -> None:
        while asset_ids := await call_quick_activity(CANDIDATES, sweep_id, result_type=list[str]):
            for asset_id in asset_ids:
                await call_quick_activity(MINT, sweep_id, asset_id, summary=f"mint for asset {asset_id}")
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(sweep_id)
        await call_quick_activity(FINISH, sweep_id)
