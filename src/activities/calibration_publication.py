"""The effects of publishing a calibration revision."""

from uuid import UUID

from temporalio import activity

from baton.application.publications import Publications


class CalibrationPublicationActivities:
    """Each activity may run again: what is signed, sent or recorded already is not done twice."""

    def __init__(self, publications: Publications) -> None:
        self._publications = publications

    @activity.defn(name="sign_calibration_publication")
    async def sign(self, receipt_id: str) -> bool:
        return await self._publications.sign(UUID(receipt_id))

    @activity.defn(name="send_calibration_publication")
    async def send(self, receipt_id: str) -> bool:
        return await self._publications.send(UUID(receipt_id))

    @activity.defn(name="record_calibration_publication")
    async def record(self, receipt_id: str) -> None:
        await self._publications.record(UUID(receipt_id))
