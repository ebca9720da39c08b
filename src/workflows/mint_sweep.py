"""The workflow of a mint sweep: one identifier after the other, until no asset lacks one or the limit is reached."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.workflows.activity_calls import call_quick_activity
    from baton.workflows.activity_stubs import MintRequest
    from baton.workflows.activity_stubs import MintSweepActivityStubs as Stubs


@workflow.defn(name="mint-sweep")
class MintSweepWorkflow:
    """Asks for the next assets, mints for each, and finishes the sweep; everything it knows is on the record."""

    @workflow.run
    async def run(self, sweep_id: str) -> None:
        while asset_ids := await call_quick_activity(Stubs.mint_sweep_candidates, sweep_id):
            for asset_id in asset_ids:
                request = MintRequest(sweep_id=sweep_id, asset_id=asset_id)
                await call_quick_activity(Stubs.mint_sweep_asset, request, f"mint for asset {asset_id}")
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(sweep_id)
        await call_quick_activity(Stubs.mint_sweep_finish, sweep_id)
