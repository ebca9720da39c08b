"""Publishing a calibration revision: sign, send, record; what is sent is recorded, however long that takes."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.workflows.activity_calls import call_quick_activity

SIGN = "sign_calibration_publication"
SEND = "send_calibration_publication"
RECORD = "record_calibration_publication"


@workflow.defn(name="calibration-publication")
class CalibrationPublicationWorkflow:
    """One step after the other, as long as none refuses; everything it knows is in the record."""

    @workflow.run
    async def run(self, receipt_id: str) -> None:
        for step in (SIGN, SEND):
            if not await call_quick_activity(step, receipt_id, result_type=bool):
                return
        await call_quick_activity(RECORD, receipt_id)
