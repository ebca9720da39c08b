"""The workflows that publish: a mint sweep, one identifier after the other; a calibration revision: sign, send, record."""

from uuid import UUID

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.domain.equipment.asset_external_id import MintRequest
    from baton.workflows.activity_calls import call_quick_activity
    from baton.workflows.activity_stubs import ActivityStubs as Stubs


@workflow.defn(name="mint-sweep")
class MintSweepWorkflow:
    """Asks for the next assets, mints for each, and finishes the sweep; everything it knows is on the record."""

    @workflow.run
    async def run(self, sweep_id: UUID) -> None:
        while asset_ids := await call_quick_activity(Stubs.mint_sweep_candidates, sweep_id):
            for asset_id in asset_ids:
                request = MintRequest(sweep_id=sweep_id, asset_id=asset_id)
                await call_quick_activity(Stubs.mint_sweep_asset, request, f"mint for asset {asset_id}")
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(sweep_id)
        await call_quick_activity(Stubs.mint_sweep_finish, sweep_id)


@workflow.defn(name="calibration-publication")
class CalibrationPublicationWorkflow:
    """Takes one step after the other as long as none refuses; everything it knows is on the record."""

    @workflow.run
    async def run(self, receipt_id: UUID) -> None:
        for step in (Stubs.sign_calibration_publication, Stubs.send_calibration_publication):
            if not await call_quick_activity(step, receipt_id):
                return
        await call_quick_activity(Stubs.record_calibration_publication, receipt_id)
