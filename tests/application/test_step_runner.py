"""A step of a conduct by its kind: the row before its effect, the effect, and the row after it."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from baton.application.conduct.actions import ActionRefusedError, InvalidActionParametersError
from baton.application.conduct.compute import ComputeNotAvailableError, ComputeSubmitRejectedError, JobSpec, JobStatus
from baton.application.control import Control, Fence, Reading, Timekeeper, always_open
from baton.domain.conduct.messages import UNEXPECTED_FAILURE, ConductVerdict, JobRequest, Mark, NextStep, StepRequest
from baton.domain.step.results import Measured
from baton.infrastructure.compute.in_memory import SimulatedCompute, SimulatedOutcome
from baton.infrastructure.control.simulator import SimulatedFault
from tests.support.application.loop_cases import open_loop
from tests.support.application.memory_conduct import (
    HERE,
    MemoryConduct,
    WorkAttempt,
    endless_body,
    failing_body,
    measurement,
    memory_conduct,
)
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import action, capture, captured_value, check, compute, setpoint, steered_value

FIT = {"output_uri": "file:///fit.h5", "output_ref_name": "fitted"}
"""The one output that stays unread."""


class TestSetpoints:
    async def test_a_value_is_written_between_two_rows(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        report = await memory.step(conduct)
        assert (report.verdict, report.failure, report.next_step) == (ConductVerdict.DONE, None, None)
        assert await memory.value("bl7:a") == 3
        says = {"address": "bl7:a", "value": 3, "verify": False}
        of = {"step_index": 0, "conduct_id": str(conduct.conduct_id), "attempt": 1}
        assert memory.rows() == [
            {**says, **of, "result": "in_flight", "worker": HERE},
            {**says, **of, "result": "ok", "actuation_kind": "Physical", "target": "bl7:a", "seconds": 0},
        ]

    async def test_the_rows_say_whose_work_it_was_and_stand_at_their_place(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await memory.step(conduct)
        begun, done = memory.activities()
        place, plan = conduct.at(0), conduct.plan
        assert (begun.event_id, done.event_id) == (place.row_id(Mark.IN_FLIGHT, 1), place.row_id(Mark.OUTCOME, 1))
        for row in (begun, done):
            assert (row.actor_id, row.command_name, row.logbook_id) == (
                memory.caller.principal_id,
                "ConductProcedure",
                memory.procedure(conduct).activity_logbook_id,
            )
            assert (row.correlation_id, row.causation_id) == (plan.caller.correlation_id, conduct.conduct_id)
            assert (row.sampled_at, row.occurred_at) == (memory.time.now(), memory.time.now())

    async def test_it_takes_until_the_write_is_confirmed(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 20)])
        attempt = WorkAttempt()
        await memory.step(conduct, attempt=attempt)
        assert memory.time.elapsed_seconds == pytest.approx(20, abs=0.1)
        assert attempt.signs == pytest.approx(40, abs=1), "two each second"
        begun, done = memory.activities()
        assert (done.occurred_at - begun.occurred_at).total_seconds() == pytest.approx(20, abs=0.1)
        assert done.payload["seconds"] == pytest.approx(20, abs=0.1)
        assert "seconds" not in begun.payload

    async def test_a_captured_number_is_written_where_it_is_referred_to(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([capture("bl7:b", "n"), setpoint("bl7:a", captured_value("n"))])
        await memory.step(conduct, 0)
        await memory.step(conduct, 1)
        assert await memory.value("bl7:a") == 1.5
        for row in memory.rows()[1:]:
            assert (row["value"], row["capture_ref"]) == (1.5, "n")

    async def test_a_coordinate_is_written_where_it_is_referred_to(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", steered_value("focus"))])
        await memory.step(conduct, point={"focus": -2.0})
        assert await memory.value("bl7:a") == -2.0
        assert [(row["value"], row["steering_ref"]) for row in memory.rows()] == [(-2.0, "focus")] * 2

    @pytest.mark.parametrize("operand", [captured_value("n"), steered_value("focus")])
    async def test_what_refers_to_nothing_fails_before_anything_is_touched(
        self, memory: MemoryConduct, operand: Any
    ) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", operand)])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.FAILED, "UnresolvedCaptureRef")
        assert memory.marks() == [("setpoint", "outcome", "failed")], "nothing was to happen, so nothing was marked"
        assert not memory.plant.writes

    @pytest.mark.parametrize(
        ("address", "fault", "written", "error_class"),
        [
            ("bl7:a", SimulatedFault.REJECTING, 3, "ControlWriteRejectedError"),
            ("bl7:a", SimulatedFault.DENYING, 3, "ControlAccessDeniedError"),
            ("bl7:a", SimulatedFault.SILENT, 3, "ControlTimeoutError"),
            ("bl7:absent", None, 3, "ControlNotConnectedError"),
            ("bl7:x", None, "out", "ControlValueCoercionError"),
            ("ro:a", None, 3, "ControlWritesDisabledError"),
            ("elsewhere:a", None, 3, "NoAdapterForAddressError"),
        ],
    )
    async def test_what_the_control_system_says_is_what_failed(
        self, memory: MemoryConduct, address: str, fault: SimulatedFault | None, written: Any, error_class: str
    ) -> None:
        if fault is not None:
            memory.plant.simulate_fault(address, fault)
        conduct = await memory.open_conduct([setpoint(address, written)])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert (report.failure.step_index, report.failure.source_kind, report.failure.target) == (0, "setpoint", address)
        assert report.failure.error_class == error_class
        assert address in report.failure.message, "the port's own sentence"
        assert memory.marks() == [("setpoint", "in_flight", "in_flight"), ("setpoint", "outcome", "failed")]
        assert memory.time.elapsed_seconds == pytest.approx(30 if fault is SimulatedFault.SILENT else 0)

    async def test_reading_back_is_evidence(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3, verify=True)])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert memory.rows()[-1]["post_reading"] == {
            "value": 3,
            "kind": "Scalar",
            "quality": "Good",
            "quality_detail": None,
            "sampled_at": memory.time.now().isoformat(),
        }
        assert "post_reading" not in memory.rows()[0]

    @pytest.mark.parametrize(
        ("addresses", "kind"),
        [(["bl7:a"], "Physical"), (["sim:a"], "Simulated"), (["bl7:a", "sim:a"], "Hybrid"), (["bl7:absent"], "Physical")],
    )
    async def test_what_was_touched_is_told_by_the_routes(
        self, memory: MemoryConduct, addresses: list[str], kind: str
    ) -> None:
        async def touch(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            for address in addresses:
                await control.write(address, 1)
            return {}

        memory.actions["touch"] = touch
        conduct = await memory.open_conduct([action("touch")])
        await memory.step(conduct)
        begun, done = memory.rows()
        assert (begun.get("actuation_kind"), done["actuation_kind"]) == (None, kind)

    async def test_without_routes_nothing_is_said_of_that(self, memory: MemoryConduct, time: LoopTime) -> None:
        plain = MemoryConduct(time, memory.plant, memory.plant)
        conduct = await plain.open_conduct([setpoint("bl7:a", 3)])
        await plain.step(conduct)
        assert "actuation_kind" not in plain.rows()[-1]


class TestActions:
    async def test_what_a_body_returns_is_kept_with_what_it_wrote(self, memory: MemoryConduct) -> None:
        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            await control.write("bl7:a", 1)
            await time.sleep(5)
            await control.write("bl7:a", params["frames"])
            return {"frames": params["frames"], "dropped": True}

        memory.actions["collect"] = collect
        conduct = await memory.open_conduct([action("collect", frames=2)])
        report = await memory.step(conduct)
        assert report.verdict is ConductVerdict.DONE, "a soft failure is told inside"
        begun, done = memory.rows()
        assert (begun["name"], begun["params"], begun["result"]) == ("collect", {"frames": 2}, "in_flight")
        assert done["result_data"] == {"frames": 2, "dropped": True}
        assert (done["writes"], done["actuation_kind"]) == ([["bl7:a", 2]], "Physical")

    async def test_one_that_nobody_knows_fails(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([action("bake")])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert (report.failure.error_class, report.failure.target) == ("UnknownActionError", "bake")
        assert memory.marks() == [("action", "in_flight", "in_flight"), ("action", "outcome", "failed")]

    @pytest.mark.parametrize("refusal", [ActionRefusedError("Not now."), InvalidActionParametersError("No dwell.")])
    async def test_a_body_may_refuse(self, memory: MemoryConduct, refusal: Exception) -> None:
        memory.actions["collect"] = failing_body(refusal)
        conduct = await memory.open_conduct([action("collect")])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert (report.failure.error_class, report.failure.message) == (type(refusal).__name__, str(refusal))

    async def test_an_error_of_the_control_system_is_its_own(self, memory: MemoryConduct) -> None:
        async def touch(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            await control.write("bl7:absent", 1)
            return {}

        memory.actions["touch"] = touch
        report = await memory.step(await memory.open_conduct([action("touch")]))
        assert report.failure is not None
        assert report.failure.error_class == "ControlNotConnectedError"

    @pytest.mark.slow
    async def test_one_that_takes_too_long_is_stopped(self, memory: MemoryConduct) -> None:
        stopped: list[float] = []
        memory.actions["collect"] = endless_body(memory.time, stopped)
        report = await memory.step(await memory.open_conduct([action("collect")]))
        assert report.failure is not None
        assert (report.failure.error_class, stopped) == ("ActionTimeoutError", [3600.0])

    @pytest.mark.parametrize(
        "error", [RuntimeError("token=s3cret"), KeyError("s3cret"), TimeoutError("s3cret"), ValueError("s3cret \0")]
    )
    async def test_what_nobody_foresaw_is_told_by_its_class_alone(self, memory: MemoryConduct, error: Exception) -> None:
        memory.actions["collect"] = failing_body(error)
        report = await memory.step(await memory.open_conduct([action("collect")]))
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.FAILED, type(error).__name__)
        assert (report.failure.message, "s3cret" in str(memory.rows())) == (UNEXPECTED_FAILURE, False)

    async def test_a_result_that_is_no_object_is_a_fault_of_the_action(self, memory: MemoryConduct) -> None:
        async def careless(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> Any:
            return {"frames": {1, 2}}

        memory.actions["collect"] = careless
        report = await memory.step(await memory.open_conduct([action("collect")]))
        assert report.failure is not None
        assert report.failure.error_class == "ActionResultError"


class TestReadingSteps:
    async def test_a_check_leaves_one_row(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([check("bl7:b", 1.5, 0.1)])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        (row,) = memory.rows()
        assert row == {
            "address": "bl7:b",
            "criterion": {"kind": "within_tolerance", "expected": 1.5, "tolerance": 0.1},
            "reading": {"value": 1.5, "kind": "Scalar", "quality": "Good", "quality_detail": None, "sampled_at": None},
            "waited": 0.0,
            "target": "bl7:b",
            "seconds": 0,
            "result": "ok",
            "actuation_kind": "Physical",
            "step_index": 0,
            "conduct_id": str(conduct.conduct_id),
            "attempt": 1,
        }

    async def test_a_check_that_fails_tells_what_it_read(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([check("bl7:b", 7)])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "CheckFailedError"
        (row,) = memory.rows()
        assert (row["result"], row["error_class"], row["target"]) == ("failed", "CheckFailedError", "bl7:b")
        assert (row["reading"]["value"], row["message"]) == (1.5, report.failure.message)

    async def test_a_check_may_expect_what_was_captured_or_advised(self, memory: MemoryConduct) -> None:
        steps = [capture("bl7:b", "n"), check("bl7:b", captured_value("n")), check("bl7:b", steered_value("focus"))]
        conduct = await memory.open_conduct(steps)
        for index in range(3):
            assert (await memory.step(conduct, index, point={"focus": 1.5})).verdict is ConductVerdict.DONE
        _, first, second = memory.rows()
        assert (first["criterion"], first["capture_ref"]) == ({"kind": "equals", "expected": 1.5}, "n")
        assert second["steering_ref"] == "focus"

    async def test_a_check_that_expects_nothing_known_reads_nothing(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([check("bl7:absent", captured_value("n"))])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "UnresolvedCaptureRef", "not that it is not connected"

    async def test_a_check_waits_until_its_deadline_however_often_it_is_begun(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([check("bl7:b", 7, timeout=60.0)])
        deadline = memory.time.now() + timedelta(seconds=60)
        cut = asyncio.create_task(memory.step(conduct, deadline=deadline))
        await memory.time.sleep(40)
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        assert memory.rows() == [], "it had no effect, so nothing is known of it"
        await memory.step(conduct, deadline=deadline, by=memory.worker())
        assert memory.time.elapsed_seconds == 60
        assert memory.rows()[0]["waited"] == 20

    async def test_a_capture_fills_its_slot(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([capture("bl7:b", "n")])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        (activity,) = memory.activities()
        assert (activity.slot, activity.payload["captured_value"], activity.payload["capture_name"]) == ("n", 1.5, "n")
        assert activity.payload["reading"]["value"] == 1.5

    async def test_a_capture_that_fails_fills_none_and_tells_what_it_read(self, memory: MemoryConduct) -> None:
        memory.plant.set_reading("bl7:b", Reading(value=True))
        conduct = await memory.open_conduct([capture("bl7:b", "n")])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ControlValueCoercionError"
        (activity,) = memory.activities()
        assert (activity.slot, activity.payload["reading"]["value"]) == (None, True)

    async def test_a_slot_is_filled_once(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([capture("bl7:b", "n"), capture("bl7:absent", "m"), setpoint("bl7:a", 1)])
        await memory.step(conduct, 0)
        await memory.ledger.settle(
            memory.activities()[0].model_copy(
                update={"event_id": conduct.at(2).row_id(Mark.OUTCOME, 1), "step_index": 2, "slot": "m"}
            )
        )
        report = await memory.step(conduct, 1)
        assert report.failure is not None
        assert report.failure.error_class == "DuplicateCapture", "it is refused before anything is read"


class TestPlaces:
    async def test_a_pass_and_closing_are_named_in_the_rows(self, memory: MemoryConduct) -> None:
        steps = [setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)]
        conduct, loop = await memory.open_conduct(*steps), await open_loop(memory, closing_steps=steps[1])
        await memory.step(conduct)
        await memory.step(loop, iteration_index=2)
        await memory.step(loop, closing=True)
        told = [(row.get("iteration_index"), row.get("closing"), row["step_index"]) for row in memory.rows()]
        assert told == [(None, None, 0)] * 2 + [(2, None, 0)] + [(None, True, 0)] * 2

    async def test_a_report_tells_what_comes_next_in_the_same_list(self, memory: MemoryConduct) -> None:
        steps = [setpoint("bl7:a", 3), check("bl7:b", 1.5, timeout=60.0), setpoint("bl7:absent", 1), capture("bl7:b", "n")]
        conduct = await memory.open_conduct(steps, [setpoint("bl7:shutter", 0), action("park")])
        ahead = [(await memory.step(conduct, index)).next_step for index in range(4)]
        assert ahead == [
            NextStep(label="check bl7:b", timeout_seconds=65.0, wait_seconds=60.0),
            NextStep(label="set bl7:absent", timeout_seconds=70.0, stretch_count=2),
            NextStep(label="capture n from bl7:b", timeout_seconds=5.0),
            None,
        ]
        assert (await memory.step(conduct, 0, closing=True)).next_step == NextStep(label="do park", timeout_seconds=3600.0)

    async def test_what_was_done_is_told_again_with_what_comes_next(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:absent", 3), setpoint("bl7:a", 3)])
        first = await memory.step(conduct)
        again = await memory.step(conduct, by=memory.worker())
        assert first == again
        assert len(memory.rows()) == 2


class TestPrograms:
    async def test_a_program_is_submitted_and_then_collected(self, memory: MemoryConduct) -> None:
        program = memory.compute
        program.seed(("find", "offset"), SimulatedOutcome(measurements=(measurement("offset", 3.2, units="px"),)))
        conduct = await memory.open_conduct([compute("find", "offset", parameters={"dwell": 0.1})])
        place, attempt = conduct.at(0), WorkAttempt()
        submitted = await memory.steps.do(StepRequest(place=place), attempt)
        assert (submitted.verdict, submitted.next_step) == (ConductVerdict.DONE, None)
        assert submitted.job_id is not None
        assert memory.marks() == [("compute", "in_flight", "in_flight")]
        report = await memory.steps.collect(JobRequest(place=place, job_id=submitted.job_id), attempt)
        assert report.verdict is ConductVerdict.DONE
        says = {"command": ["find", "offset"], "input_uris": [], "output_uri": None, "parameters": {"dwell": 0.1}}
        of = {"step_index": 0, "conduct_id": str(conduct.conduct_id), "attempt": 1}
        found = {"name": "offset", "value": 3.2, "kind": "Scalar", "units": "px", "quality": "Good"}
        begun, done = memory.rows()
        assert begun == {**says, **of, "result": "in_flight", "worker": HERE}
        assert done == {
            **says,
            **of,
            "job_id": submitted.job_id,
            "status": "Succeeded",
            "target": "find offset",
            "seconds": 0,
            "measurements": [found],
            "artifacts": [],
            "actuation_kind": "Simulated",
            "result": "ok",
        }

    async def test_what_it_measured_is_deposited_for_later_steps(self, memory: MemoryConduct) -> None:
        program = memory.compute
        program.seed(("find",), SimulatedOutcome(measurements=(measurement("angle", 7), measurement("offset", 3.2))))
        conduct = await memory.open_conduct(
            [compute("find", capture_name="offset"), setpoint("bl7:a", captured_value("offset"))]
        )
        await memory.step(conduct, 0)
        await memory.step(conduct, 1)
        assert await memory.value("bl7:a") == 3.2
        deposit = memory.activities()[2]
        assert (deposit.mark, deposit.slot, deposit.payload["captured_value"]) == ("deposit", "offset", 3.2)
        assert deposit.payload["result"] == "ok"

    async def test_what_it_wrote_is_published_for_later_programs(self, memory: MemoryConduct) -> None:
        program = memory.compute
        steps = [
            capture("bl7:b", "n"),
            compute("reduce", output_uri="file:///a.h5", output_ref_name="reduced"),
            compute(
                "fit",
                input_uris=["file:///raw.h5", {"__output__": "reduced"}],
                parameters={"n": captured_value("n"), "at": steered_value("focus"), "k": 1},
                **FIT,
            ),
        ]
        conduct = await memory.open_conduct(steps)
        for index in range(3):
            assert (await memory.step(conduct, index, point={"focus": -2.0})).verdict is ConductVerdict.DONE
        job = program.submissions[-1]
        assert (job.input_uris, job.parameters) == (("file:///raw.h5", "file:///a.h5"), {"n": 1.5, "at": -2.0, "k": 1})
        deposit, begun = memory.rows()[3], memory.rows()[4]
        assert (deposit["output_ref_name"], deposit["artifact"]["uri"]) == ("reduced", "file:///a.h5")
        assert begun["input_refs"] == {"1": "reduced"}
        assert begun["parameter_refs"] == {"n": {"capture_ref": "n"}, "at": {"steering_ref": "focus"}}

    @pytest.mark.parametrize(
        ("step", "error_class"),
        [
            (compute("fit", parameters={"n": captured_value("n")}), "UnresolvedCaptureRef"),
            (compute("fit", parameters={"n": steered_value("focus")}), "UnresolvedCaptureRef"),
            (compute("fit", input_uris=[{"__output__": "reduced"}], **FIT), "UnresolvedOutputRef"),
            (
                compute("fit", input_uris=[{"__output__": "reduced"}], parameters={"n": captured_value("n")}, **FIT),
                "UnresolvedOutputRef",
            ),
        ],
    )
    async def test_what_refers_to_nothing_is_not_submitted(self, memory: MemoryConduct, step: Any, error_class: str) -> None:
        filling = [capture("bl7:b", "n"), compute("reduce", output_uri="file:///a.h5", output_ref_name="reduced")]
        conduct = await memory.open_conduct([*filling, step])
        report = await memory.step(conduct, 2)
        assert report.failure is not None
        assert (report.failure.error_class, report.failure.target) == (error_class, "fit")
        assert memory.marks() == [("compute", "outcome", "failed")]
        assert memory.compute.submissions == []

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (ComputeSubmitRejectedError("There is no such program."), "There is no such program."),
            (ComputeNotAvailableError("The cluster is down."), "The cluster is down."),
            (RuntimeError("s3cret"), UNEXPECTED_FAILURE),
        ],
    )
    async def test_a_submission_that_is_refused_fails(
        self, memory: MemoryConduct, time: LoopTime, error: Exception, message: str
    ) -> None:
        class RefusingCompute(SimulatedCompute):
            async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
                raise error

        refusing = memory_conduct(time, compute=RefusingCompute())
        report = await refusing.step(await refusing.open_conduct([compute("fit")]))
        assert report.failure is not None
        assert (report.failure.error_class, report.failure.message) == (type(error).__name__, message)
        assert refusing.marks() == [("compute", "in_flight", "in_flight"), ("compute", "outcome", "failed")]

    @pytest.mark.parametrize(
        ("end", "step", "error_class"),
        [
            (SimulatedOutcome(status=JobStatus.FAILED, last_words="Killed"), compute("fit"), "ComputeJobFailedError"),
            (SimulatedOutcome(status=JobStatus.TIMED_OUT), compute("fit"), "ComputeJobFailedError"),
            (SimulatedOutcome(writes_nothing=True), compute("fit", output_uri="file:///a.h5"), "ArtifactNotFoundError"),
        ],
    )
    async def test_a_program_that_brings_nothing_home_fails(
        self, memory: MemoryConduct, end: SimulatedOutcome, step: Any, error_class: str
    ) -> None:
        memory.compute.seed(("fit",), end)
        report = await memory.step(await memory.open_conduct([step]))
        assert report.failure is not None
        assert report.failure.error_class == error_class
        assert memory.rows()[-1]["job_id"]

    @pytest.mark.parametrize(
        ("found", "error_class"),
        [
            ((), "ComputeMeasurementNotFound"),
            ((measurement("angle", 1),), "ComputeMeasurementNotFound"),
            ((measurement("offset", 1), measurement("offset", 1)), "ComputeMeasurementAmbiguous"),
            ((measurement("offset", 1, quality="Uncertain"),), "CheckFailedError"),
            ((measurement("offset", "3"),), "ControlValueCoercionError"),
            ((measurement("offset", True),), "ControlValueCoercionError"),
            ((measurement("offset", float("nan")),), "ControlValueCoercionError"),
            ((measurement("offset", float("inf")),), "ControlValueCoercionError"),
            ((measurement("offset", [1.0]),), "ControlValueCoercionError"),
        ],
    )
    async def test_a_deposit_that_fails_is_a_row_after_the_outcome(
        self, memory: MemoryConduct, found: tuple[Measured, ...], error_class: str
    ) -> None:
        memory.compute.seed(("find",), SimulatedOutcome(measurements=found))
        conduct = await memory.open_conduct([compute("find", capture_name="offset")])
        report = await memory.step(conduct)
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.FAILED, error_class)
        assert [(mark, result) for _, mark, result in memory.marks()] == [
            ("in_flight", "in_flight"),
            ("outcome", "ok"),
            ("deposit", "failed"),
        ]
        assert memory.activities()[-1].slot is None
        assert await memory.step(conduct) == report, "a repetition finds the failed deposit before the outcome"

    @pytest.mark.parametrize(
        ("step", "error_class"),
        [
            (compute("find", capture_name="offset"), "DuplicateCapture"),
            (compute("find", output_uri="file:///a.h5", output_ref_name="offset"), "DuplicateOutput"),
        ],
    )
    async def test_a_slot_that_is_filled_takes_no_deposit(self, memory: MemoryConduct, step: Any, error_class: str) -> None:
        memory.compute.seed(("find",), SimulatedOutcome(measurements=(measurement("offset", 1.0),)))
        conduct = await memory.open_conduct([step, setpoint("bl7:a", 1)])
        await memory.step(conduct)
        deposit = memory.activities()[-1]
        elsewhere = {"event_id": conduct.at(1).row_id(Mark.DEPOSIT, 1), "step_index": 1}
        rows: Any = memory.store.entries[deposit.relation]
        rows[1:] = [deposit.model_copy(update=elsewhere)]
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == error_class

    async def test_a_job_gives_signs_of_life_while_it_is_waited_for(self, memory: MemoryConduct) -> None:
        ready = asyncio.Event()
        memory.compute.seed(("fit",), SimulatedOutcome(until=ready))
        conduct = await memory.open_conduct([compute("fit")])
        attempt = WorkAttempt()
        waiting = asyncio.create_task(memory.step(conduct, attempt=attempt))
        await memory.time.sleep(100.5)
        assert attempt.signs == 200
        ready.set()
        assert (await waiting).verdict is ConductVerdict.DONE
