"""The mint sweep: one identifier after the other, until no asset lacks one or the limit is reached."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

CANDIDATES = "mint_sweep_candidates"
MINT = "mint_sweep_asset"
FINISH = "mint_sweep_finish"
ATTEMPT = timedelta(seconds=10)
RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10))


@workflow.defn(name="mint-sweep")
class MintSweepWorkflow:
    """Asks for the next assets, mints for each, and closes the sweep; everything it knows is in the record."""

    @workflow.run
    async def run(self, sweep_id: str) -> None:
        while asset_ids := await workflow.execute_activity(
            CANDIDATES, sweep_id, start_to_close_timeout=ATTEMPT, retry_policy=RETRY, result_type=list[str]
        ):
            for asset_id in asset_ids:
                await workflow.execute_activity(
                    MINT,
                    args=[sweep_id, asset_id],
                    start_to_close_timeout=ATTEMPT,
                    retry_policy=RETRY,
                    summary=f"mint for asset {asset_id}",
                )
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(sweep_id)
        await workflow.execute_activity(FINISH, sweep_id, start_to_close_timeout=ATTEMPT, retry_policy=RETRY)
