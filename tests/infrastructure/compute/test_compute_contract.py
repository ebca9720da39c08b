"""What every compute adapter promises: a key is run once, ends are told as they were, and results are fetched by arm."""

import asyncio
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.application.conduct.compute import (
    ArtifactNotFoundError,
    Compute,
    ComputeJobFailedError,
    ComputeOutcomeUnknown,
    JobSpec,
    JobStatus,
    provide_result,
    submission_key,
)
from baton.domain.step.results import ActuationKind, Measured
from baton.infrastructure.compute.in_memory import SimulatedCompute, SimulatedOutcome
from baton.infrastructure.compute.local_process import LocalProcesses
from tests.support.waiting import until

OFFSET = Measured(name="offset", value=3.2, kind="Scalar", units="px", quality="Good")


class Bench(ABC):
    """An adapter, jobs of every kind for it, and how often it ran them."""

    compute: Compute

    @abstractmethod
    def measuring_job(self, *measured: Measured) -> JobSpec: ...
    @abstractmethod
    def writing_job(self, uri: str) -> JobSpec: ...
    @abstractmethod
    def job_without_output(self, uri: str) -> JobSpec: ...
    @abstractmethod
    def failing_job(self, words: str) -> JobSpec: ...
    @abstractmethod
    def waiting_job(self) -> JobSpec: ...
    @abstractmethod
    def release(self) -> None: ...
    @abstractmethod
    def runs(self) -> int: ...


class SimulatedBench(Bench):
    kind = ActuationKind.SIMULATED

    def __init__(self, directory: Path) -> None:
        self.compute = self.simulated = SimulatedCompute()
        self.gate = asyncio.Event()

    def job(self, simulated: SimulatedOutcome, **fields: Any) -> JobSpec:
        key = uuid4()
        self.simulated.seed((str(key),), simulated)
        return JobSpec(submission_key=key, command=(str(key),), **fields)

    def measuring_job(self, *measured: Measured) -> JobSpec:
        return self.job(SimulatedOutcome(measurements=measured))

    def writing_job(self, uri: str) -> JobSpec:
        return self.job(SimulatedOutcome(), output_uri=uri)

    def job_without_output(self, uri: str) -> JobSpec:
        return self.job(SimulatedOutcome(writes_nothing=True), output_uri=uri)

    def failing_job(self, words: str) -> JobSpec:
        return self.job(SimulatedOutcome(status=JobStatus.FAILED, last_words=words))

    def waiting_job(self) -> JobSpec:
        return self.job(SimulatedOutcome(measurements=(OFFSET,), until=self.gate))

    def release(self) -> None:
        self.gate.set()

    def runs(self) -> int:
        return len(self.simulated.submissions)


class ProcessBench(Bench):
    """Real processes; each first leaves a mark, so that runs can be counted."""

    kind = ActuationKind.PHYSICAL

    def __init__(self, directory: Path) -> None:
        self.compute = LocalProcesses(directory / "jobs", programs=[sys.executable], grace=5)
        self.marks = directory / "marks"
        self.marks.mkdir()
        self.gate = directory / "gate"
        os.mkfifo(self.gate)

    def job(self, program: str, *arguments: str, **fields: Any) -> JobSpec:
        mark = f"import json, os, sys; open({str(self.marks)!r} + '/' + str(os.getpid()), 'w').close()\n"
        return JobSpec(submission_key=uuid4(), command=(sys.executable, "-c", mark + program, *arguments), **fields)

    def measuring_job(self, *measured: Measured) -> JobSpec:
        line = json.dumps({"measurements": [item.model_dump() for item in measured]})
        return self.job("print('some words first'); print(sys.argv[1])", line)

    def writing_job(self, uri: str) -> JobSpec:
        return self.job("open(os.environ['CONDUCT_OUTPUT_URI'].removeprefix('file://'), 'w').write('x')", output_uri=uri)

    def job_without_output(self, uri: str) -> JobSpec:
        return self.job("pass", output_uri=uri)

    def failing_job(self, words: str) -> JobSpec:
        return self.job("sys.exit(sys.argv[1])", words)

    def waiting_job(self) -> JobSpec:
        line = json.dumps({"measurements": [OFFSET.model_dump()]})
        return self.job(f"open({str(self.gate)!r}).read(); print(sys.argv[1])", line)

    def release(self) -> None:
        self.gate.write_text("go on")

    def runs(self) -> int:
        return len(list(self.marks.iterdir()))


@pytest.fixture(params=[SimulatedBench, ProcessBench])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    return request.param(tmp_path)


async def run_job(compute: Compute, job: JobSpec) -> Any:
    job_id = await compute.submit(job)
    return await provide_result(compute, job_id, writes_artifact=job.output_uri is not None)


class TestResults:
    async def test_a_job_without_an_output_brings_home_its_measurements(self, bench: Any) -> None:
        counts = Measured(name="counts", value=[1, 2.5, 3], kind="Array", units=None, quality="Uncertain")
        result = await run_job(bench.compute, bench.measuring_job(OFFSET, counts))
        assert result.status is JobStatus.SUCCEEDED
        assert (result.measurements, result.artifacts) == ((OFFSET, counts), ())
        assert result.actuation_kind is bench.kind

    async def test_a_job_with_an_output_brings_home_its_artifact(self, bench: Bench, tmp_path: Path) -> None:
        uri = f"file://{tmp_path}/recon.h5"
        result = await run_job(bench.compute, bench.writing_job(uri))
        (artifact,) = result.artifacts
        assert result.measurements == ()
        assert (artifact.uri, artifact.checksum_algorithm, artifact.entry_count) == (uri, "sha256", None)
        assert len(artifact.checksum_value) == 64

    async def test_results_can_be_fetched_again(self, bench: Bench, tmp_path: Path) -> None:
        job = bench.writing_job(f"file://{tmp_path}/recon.h5")
        job_id = await bench.compute.submit(job)
        first, second = [await provide_result(bench.compute, job_id, writes_artifact=True) for _ in range(2)]
        assert first == second
        assert bench.runs() == 1

    async def test_an_artifact_that_is_not_there_is_not_found(self, bench: Bench, tmp_path: Path) -> None:
        with pytest.raises(ArtifactNotFoundError, match=r"recon\.h5"):
            await run_job(bench.compute, bench.job_without_output(f"file://{tmp_path}/recon.h5"))

    @pytest.mark.parametrize("writes_artifact", [False, True])
    async def test_a_job_that_failed_brings_home_nothing_but_its_last_words(
        self, bench: Bench, writes_artifact: bool
    ) -> None:
        job_id = await bench.compute.submit(bench.failing_job("no projections in the file"))
        assert await bench.compute.await_terminal_state(job_id) is JobStatus.FAILED
        with pytest.raises(ComputeJobFailedError, match="no projections in the file"):
            await provide_result(bench.compute, job_id, writes_artifact=writes_artifact)


class TestKeys:
    async def test_a_key_is_run_once_however_often_it_is_submitted(self, bench: Bench) -> None:
        job = bench.measuring_job(OFFSET)
        first = await bench.compute.submit(job)
        again = await asyncio.gather(*(bench.compute.submit(job) for _ in range(5)))
        await bench.compute.await_terminal_state(first)
        assert {first, await bench.compute.submit(job), *again} == {first}
        assert bench.runs() == 1

    async def test_of_many_first_submissions_at_once_one_runs(self, bench: Bench) -> None:
        job = bench.measuring_job(OFFSET)
        (job_id,) = set(await asyncio.gather(*(bench.compute.submit(job) for _ in range(8))))
        assert await bench.compute.await_terminal_state(job_id) is JobStatus.SUCCEEDED
        assert bench.runs() == 1

    async def test_other_keys_are_other_jobs(self, bench: Bench) -> None:
        ids = [await bench.compute.submit(bench.measuring_job(OFFSET)) for _ in range(2)]
        for job_id in ids:
            await bench.compute.await_terminal_state(job_id)
        assert len(set(ids)) == bench.runs() == 2

    async def test_a_key_finds_its_job_while_it_runs_and_after(self, bench: Bench) -> None:
        job = bench.waiting_job()
        assert await bench.compute.find(job.submission_key) is None
        job_id = await bench.compute.submit(job)
        assert await bench.compute.find(job.submission_key) == job_id
        await asyncio.to_thread(bench.release)
        await bench.compute.await_terminal_state(job_id)
        assert await bench.compute.find(job.submission_key) == job_id
        assert await bench.compute.find(uuid4()) is None

    async def test_how_an_unknown_job_ended_is_unknown(self, bench: Bench) -> None:
        with pytest.raises(ComputeOutcomeUnknown):
            await bench.compute.await_terminal_state(str(uuid4()))


class TestFences:
    async def test_a_job_whose_fence_is_closed_is_not_begun(self, bench: Bench) -> None:
        def closed_fence() -> None:
            raise LookupError("too late")

        job = bench.measuring_job(OFFSET)
        with pytest.raises(LookupError):
            await bench.compute.submit(job, closed_fence)
        assert (bench.runs(), await bench.compute.find(job.submission_key)) == (0, None)

    async def test_a_fence_is_asked_once_and_not_for_a_job_that_runs(self, bench: Bench) -> None:
        asked: list[None] = []
        job = bench.measuring_job(OFFSET)
        job_id = await bench.compute.submit(job, lambda: asked.append(None))
        assert await bench.compute.submit(job, lambda: asked.append(None)) == job_id
        await bench.compute.await_terminal_state(job_id)
        assert (bench.runs(), len(asked)) == (1, 1)


class TestWaiting:
    async def test_the_end_is_told_when_it_comes(self, bench: Bench) -> None:
        job_id = await bench.compute.submit(bench.waiting_job())
        waiting = asyncio.ensure_future(provide_result(bench.compute, job_id, writes_artifact=False))
        await until(lambda: bench.runs() == 1)
        assert not waiting.done()
        await asyncio.to_thread(bench.release)
        assert (await waiting).measurements == (OFFSET,)

    async def test_giving_up_the_wait_does_not_end_the_job(self, bench: Bench) -> None:
        job_id = await bench.compute.submit(bench.waiting_job())
        waiting = asyncio.ensure_future(bench.compute.await_terminal_state(job_id))
        await until(lambda: bench.runs() == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.to_thread(bench.release)
        assert await bench.compute.await_terminal_state(job_id) is JobStatus.SUCCEEDED

    async def test_a_cancelled_job_ends_cancelled(self, bench: Bench) -> None:
        job_id = await bench.compute.submit(bench.waiting_job())
        await bench.compute.cancel(job_id)
        assert await bench.compute.await_terminal_state(job_id) is JobStatus.CANCELLED
        with pytest.raises(ComputeJobFailedError, match=r"[Cc]ancelled"):
            await bench.compute.fetch_measurements(job_id)

    async def test_a_job_that_has_ended_cannot_be_cancelled_any_more(self, bench: Bench) -> None:
        job_id = await bench.compute.submit(bench.measuring_job(OFFSET))
        await bench.compute.await_terminal_state(job_id)
        await bench.compute.cancel(job_id)
        assert await bench.compute.fetch_measurements(job_id) == (OFFSET,)

    async def test_a_job_that_nobody_knows_is_cancelled_without_effect(self, bench: Bench) -> None:
        await bench.compute.cancel(str(uuid4()))

    async def test_closing_leaves_jobs_running_and_may_be_repeated(self, bench: Bench) -> None:
        job_id = await bench.compute.submit(bench.waiting_job())
        await bench.compute.close()
        await bench.compute.close()
        await asyncio.to_thread(bench.release)
        assert await bench.compute.await_terminal_state(job_id) is JobStatus.SUCCEEDED


class TestSubmissionKeys:
    CONDUCT = UUID("0197a100-0000-7000-8000-0000000000c0")

    def test_every_place_of_a_conduct_has_its_own_key_and_every_attempt_the_same(self) -> None:
        places = [
            (conduct, iteration, closing, index)
            for conduct in (self.CONDUCT, uuid4())
            for iteration in (None, 1, 2, 11)
            for closing in (False, True)
            for index in (0, 1, 11)
        ]
        assert len({submission_key(*place) for place in places}) == len(places)
        assert [submission_key(*place) for place in places] == [submission_key(*place) for place in places]


class TestSeeding:
    async def test_a_command_nobody_seeded_succeeds_and_measures_nothing(self) -> None:
        result = await run_job(SimulatedCompute(), JobSpec(submission_key=uuid4(), command=("align",)))
        assert (result.status, result.measurements) == (JobStatus.SUCCEEDED, ())

    async def test_answers_come_in_order_and_the_last_one_stays(self) -> None:
        compute = SimulatedCompute()
        offsets = [OFFSET.model_copy(update={"value": value}) for value in (3.2, 0.9)]
        compute.seed(("find-offset",), *(SimulatedOutcome(measurements=(offset,)) for offset in offsets))
        jobs = [JobSpec(submission_key=uuid4(), command=("find-offset",)) for _ in range(3)]
        assert [(await run_job(compute, job)).measurements[0].value for job in jobs] == [3.2, 0.9, 0.9]

    async def test_an_answer_may_depend_on_the_job(self) -> None:
        compute = SimulatedCompute()
        compute.seed(
            ("blur",),
            lambda job: SimulatedOutcome(measurements=(OFFSET.model_copy(update={"value": job.parameters["focus"] ** 2}),)),
        )
        job = JobSpec(submission_key=uuid4(), command=("blur",), parameters={"focus": -3})
        assert (await run_job(compute, job)).measurements[0].value == 9

    async def test_simulated_artifacts_differ_with_their_inputs(self) -> None:
        compute = SimulatedCompute()
        sums = {
            (await run_job(compute, JobSpec(submission_key=uuid4(), command=("recon",), output_uri="x:1", parameters=given)))
            .artifacts[0]
            .checksum_value
            for given in ({"angle": 1}, {"angle": 2}, {"angle": 1})
        }
        assert len(sums) == 2
