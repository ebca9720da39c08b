"""Publishing a calibration revision: sign, send, record; what is sent is recorded, however long that takes."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

SIGN = "sign_calibration_publication"
SEND = "send_calibration_publication"
RECORD = "record_calibration_publication"
ATTEMPT = timedelta(seconds=10)
RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10))


@workflow.defn(name="calibration-publication")
class CalibrationPublicationWorkflow:
    """One step after the other, as long as none refuses; everything it knows is in the record."""

    @workflow.run
    async def run(self, receipt_id: str) -> None:
        for step in (SIGN, SEND):
            if not await workflow.execute_activity(
                step, receipt_id, start_to_close_timeout=ATTEMPT, retry_policy=RETRY, result_type=bool
            ):
                return
        await workflow.execute_activity(RECORD, receipt_id, start_to_close_timeout=ATTEMPT, retry_policy=RETRY)
