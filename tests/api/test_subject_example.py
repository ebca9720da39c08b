"""A pellet from its arrival to its return over REST, measured by a run in between."""

from tests.support.api.example_reads import payloads, refusal
from tests.support.api.rest_beamline import beamline
from tests.support.service import Api


async def test_a_pellet_is_measured_moved_and_returned(api: Api) -> None:
    line = await beamline(api)
    s1 = await api.create("/subjects", {"name": "Catalyst pellet B-12"})
    subject = f"/subjects/{s1}"

    async def status() -> str:
        return str((await api.get(subject)).json()["status"])

    assert await status() == "Received"
    assert refusal(await line.start(subject_id=s1)) == (409, "RunSubjectNotMountableError")

    loading = {"asset_id": line.rotary_id, "reason": "loaded for overview scan"}
    await api.execute(f"/assets/{line.rotary_id}/enter-maintenance")
    assert refusal(await api.post(f"{subject}/mount", loading)) == (409, "SubjectMountTargetUnavailableError")
    await api.execute(f"/assets/{line.rotary_id}/exit-maintenance")
    await api.execute(f"{subject}/mount", loading)
    assert await status() == "Mounted"

    run = await line.start_run(subject_id=s1, name="Overview scan")
    await api.execute(f"/runs/{run}/complete")
    assert await status() == "Mounted"
    await api.execute(f"{subject}/measure")
    assert await status() == "Measured"
    assert refusal(await api.post(f"{subject}/measure")) == (409, "SubjectCannotMeasureError")
    assert (await line.start(subject_id=s1, name="Once more")).status_code == 201

    furnace = await api.create("/assets", {"name": "Furnace cell", "tier": "Device", "parent_id": line.unit_id})
    await api.execute(f"/assets/{furnace}/activate")
    await api.execute(f"{subject}/dismount", {"reason": "moved to furnace cell"})
    assert await status() == "Received"
    await api.execute(f"{subject}/mount", {"asset_id": furnace, "reason": "annealing"})
    await api.execute(f"{subject}/remove")
    assert await status() == "Removed"
    await api.execute(f"{subject}/return")
    assert await status() == "Returned"
    assert refusal(await api.post(f"{subject}/mount", loading)) == (409, "SubjectCannotMountError")
    await api.execute(f"{subject}/assign-external-id", {"external_id": "10.0000/igsn-b12"})
    assert [event for event, _ in await payloads(api, subject)] == [
        "SubjectRegistered",
        "SubjectMounted",
        "SubjectMeasured",
        "SubjectDismounted",
        "SubjectMounted",
        "SubjectRemoved",
        "SubjectReturned",
        "SubjectExternalIdAssigned",
    ]
