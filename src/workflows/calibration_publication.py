"""The workflow that publishes a calibration revision: sign, send, record."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.workflows.activity_calls import call_quick_activity
    from baton.workflows.activity_stubs import CalibrationPublicationActivityStubs as Stubs


@workflow.defn(name="calibration-publication")
class CalibrationPublicationWorkflow:
    """Takes one step after the other as long as none refuses; everything it knows is on the record."""

    @workflow.run
    async def run(self, receipt_id: str) -> None:
        for step in (Stubs.sign_calibration_publication, Stubs.send_calibration_publication):
            if not await call_quick_activity(step, receipt_id):
                return
        await call_quick_activity(Stubs.record_calibration_publication, receipt_id)
