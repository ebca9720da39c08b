"""Jobs as real processes: what they are given, how they are stopped, and what is left when their workers are killed."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.application.conduct.compute import (
    ComputeJobFailedError,
    ComputeNotAvailableError,
    ComputeOutcomeUnknown,
    ComputeSubmitRejectedError,
    ComputeTimeoutError,
    JobSpec,
    JobStatus,
    MeasurementNotFoundError,
    provide_result,
)
from baton.infrastructure.compute.local_process import AccountUnusableError, LocalProcesses, find_user
from tests.support.infrastructure.job_workers import FORKER, JobWorkers
from tests.support.tables import for_each
from tests.support.waiting import until

pytestmark = pytest.mark.server
PROGRAMS = (sys.executable, "/bin/sh", "/etc/passwd", "no-such-program", "true")
REPORT = "import json, sys; print(json.dumps({'measurements': [{'name': 'found', 'value': %s}]}))"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def compute(jobs: Path) -> LocalProcesses:
    return LocalProcesses(jobs, programs=PROGRAMS)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A pipe that a job reads until the test writes to it."""
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


@pytest.fixture(scope="module")
def workers() -> Iterator[JobWorkers]:
    with subprocess.Popen(FORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forker:
        yield JobWorkers(forker)
        assert forker.stdin is not None
        forker.stdin.close()


def python(program: str, *arguments: str, **fields: Any) -> JobSpec:
    return JobSpec(submission_key=uuid4(), command=(sys.executable, "-c", program, *arguments), **fields)


async def run_and_measure(compute: LocalProcesses, job: JobSpec) -> Any:
    result = await provide_result(compute, await compute.submit(job), writes_artifact=False)
    return {item.name: item.value for item in result.measurements}


def directory_names(jobs: Path) -> list[str]:
    return os.listdir(jobs) if jobs.exists() else []


def is_alive(pid: int) -> bool:
    """Return whether a process still does anything; a dead one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_path(path: Path) -> None:
    """Return in the very moment in which a file or directory is there."""
    while not path.exists():
        pass


async def kill_worker(pid: int) -> None:
    """Kill a worker and wait until it is reaped: until its last thread is gone, it holds the locks that it had."""
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not Path(f"/proc/{pid}").exists())


class TestWhatAJobIsGiven:
    async def test_parameters_inputs_and_output_are_in_its_environment(self, compute: LocalProcesses) -> None:
        job = python(
            REPORT % "{n: json.loads(v) for n, v in __import__('os').environ.items() if n.startswith('CONDUCT_') and v}",
            parameters={"angle": 12.5, "mode": "fine"},
            input_uris=("file:///data/a.h5", "s3://bucket/b"),
        )
        assert (await run_and_measure(compute, job))["found"] == {
            "CONDUCT_PARAMETERS": {"angle": 12.5, "mode": "fine"},
            "CONDUCT_INPUT_URIS": ["file:///data/a.h5", "s3://bucket/b"],
        }

    async def test_the_workers_secrets_are_not_in_its_environment(self, jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", "postgresql://baton:secret@db/baton")
        compute = LocalProcesses(jobs, programs=PROGRAMS, environment={"OMP_NUM_THREADS": "2"})
        job = python(REPORT % "dict(__import__('os').environ)", env={"SAMPLE": "A7"})
        environment = (await run_and_measure(compute, job))["found"]
        assert "DATABASE_URL" not in environment
        assert (environment["OMP_NUM_THREADS"], environment["SAMPLE"]) == ("2", "A7")
        assert environment["PATH"] == os.environ["PATH"]

    async def test_it_runs_where_it_is_told_to_and_else_in_a_place_of_its_own(
        self, compute: LocalProcesses, jobs: Path, tmp_path: Path
    ) -> None:
        where = REPORT % "__import__('os').getcwd()"
        assert (await run_and_measure(compute, python(where, working_dir=tmp_path)))["found"] == str(tmp_path)
        job = python(where)
        assert (await run_and_measure(compute, job))["found"] == str(jobs / str(job.submission_key) / "work")

    async def test_it_is_in_a_session_of_its_own(self, compute: LocalProcesses) -> None:
        job = python(REPORT % "[__import__('os').getsid(0), __import__('os').getpid()]")
        session, pid = (await run_and_measure(compute, job))["found"]
        assert session == pid != os.getsid(0)

    async def test_others_cannot_look_into_the_jobs(self, compute: LocalProcesses, jobs: Path) -> None:
        job = python("pass", parameters={"token": "x"})
        await compute.submit(job)
        for directory in (jobs, jobs / str(job.submission_key)):
            assert directory.stat().st_mode & 0o077 == 0


class TestWhichProgramsRun:
    @for_each("program", ["/bin/false", "sh", "/bin/../bin/sh", "//bin/sh", "/bin/sh ", "/BIN/SH"])
    async def test_a_program_that_is_not_listed_letter_by_letter_is_not_begun(
        self, compute: LocalProcesses, jobs: Path, program: str
    ) -> None:
        job = JobSpec(submission_key=uuid4(), command=(program, "-c", "true"))
        with pytest.raises(ComputeSubmitRejectedError, match="not among COMPUTE_PROGRAMS"):
            await compute.submit(job)
        assert await compute.find(job.submission_key) is None
        assert directory_names(jobs) == []

    async def test_nothing_is_read_into_its_arguments(self, compute: LocalProcesses) -> None:
        words = "$HOME; `id` > /tmp/x *"
        job = python(REPORT % "sys.argv[1]", words)
        assert (await run_and_measure(compute, job))["found"] == words

    async def test_a_program_runs_as_another_user_who_sees_nothing_of_the_worker(
        self, jobs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only root can have it so, and anybody else is told."""
        if os.geteuid() != 0:
            with pytest.raises(AccountUnusableError, match="takes a worker run by root"):
                find_user("nobody")
            return
        monkeypatch.setenv("HOME", "/root")
        user = find_user("nobody")
        compute = LocalProcesses(jobs, programs=PROGRAMS, user=user)
        looks = (
            'n=0; for f in "$1/job.json" "$1/lock" /proc/$2/environ; do cat "$f" > /dev/null 2>&1 && n=$((n+1)); done; '
            "echo kept > mine; "
            'echo "{\\"measurements\\": [{\\"name\\": \\"uid\\", \\"value\\": $(id -u)}, '
            '{\\"name\\": \\"seen\\", \\"value\\": $n}, {\\"name\\": \\"home\\", \\"value\\": \\"$HOME\\"}]}"'
        )
        key = uuid4()
        job = JobSpec(submission_key=key, command=("/bin/sh", "-c", looks, "sh", str(jobs / str(key)), str(os.getpid())))
        assert await run_and_measure(compute, job) == {"uid": user.pw_uid, "seen": 0, "home": user.pw_dir}
        assert (jobs / str(key) / "work" / "mine").stat().st_uid == user.pw_uid

    @pytest.mark.parametrize(("name", "words"), [("no-such-user", "does not know"), ("root", "root")])
    def test_a_user_that_programs_cannot_run_as_is_refused(self, name: str, words: str) -> None:
        with pytest.raises(AccountUnusableError, match=words):
            find_user(name)


class TestWhatAJobPrints:
    async def test_only_the_last_line_counts(self, compute: LocalProcesses) -> None:
        program = "print('working'); print('{\"measurements\": 1}'); " + (REPORT % 4) + "; print(); print('   ')"
        assert await run_and_measure(compute, python(program)) == {"found": 4}

    async def test_a_flood_of_output_neither_blocks_the_job_nor_hides_the_result(self, compute: LocalProcesses) -> None:
        flood = (
            "import sys; [stream.write('x' * 99 + '\\n') for _ in range(20_000) for stream in (sys.stdout, sys.stderr)]; "
        )
        assert await run_and_measure(compute, python(flood + (REPORT % 5))) == {"found": 5}

    @for_each(
        ("printed", "fault"),
        [
            ("", "it printed nothing"),
            ("offset 3.2", "Expecting value"),
            ("[1, 2]", "valid dictionary"),
            ('{"values": []}', "Field required"),
            ('{"measurements": [{"value": 1}]}', "Field required"),
            ('{"measurements": [{"name": "", "value": 1}]}', "at least 1 character"),
            ('{"measurements": [{"name": "x", "value": 1, "colour": "red"}]}', "not permitted"),
            ('{"measurements": [{"name": "x", "value": 1, "quality": "Fine"}]}', "'Good'"),
            ('{"measurements": [{"name": "x", "value": NaN}]}', "NaN is no number"),
            ('{"measurements": [{"name": "x", "value": -Infinity}]}', "-Infinity is no number"),
            ('{"measurements": [{"name": "x", "value": [1, 1e999]}]}', "1e999 is no number"),
            ("[" * 100_000, "recursion"),
        ],
    )
    async def test_a_last_line_that_is_no_measurements_is_said_to_be_none(
        self, compute: LocalProcesses, printed: str, fault: str
    ) -> None:
        job = JobSpec(submission_key=uuid4(), command=("/bin/sh", "-c", 'printf "%s\\n" "$1"', "sh", printed))
        with pytest.raises(MeasurementNotFoundError, match=f"(?s)as its last line.*{fault}"):
            await run_and_measure(compute, job)

    async def test_a_last_line_beyond_reason_is_refused(self, compute: LocalProcesses) -> None:
        with pytest.raises(MeasurementNotFoundError, match="longer than 1048576 bytes"):
            await run_and_measure(compute, python("print('[' + '1,' * 600_000 + '1]')"))


class TestWhatIsKeptOfTheOutput:
    LIMIT = 100_000

    @pytest.fixture
    def compute(self, jobs: Path) -> LocalProcesses:
        return LocalProcesses(jobs, programs=PROGRAMS, output_limit=self.LIMIT)

    def read_output(self, jobs: Path, job: JobSpec, name: str = "stdout") -> bytes:
        return (jobs / str(job.submission_key) / name).read_bytes()

    async def test_of_much_output_the_beginning_and_the_end_are_kept(self, compute: LocalProcesses, jobs: Path) -> None:
        job = python("print('first'); [print('x' * 79) for _ in range(50_000)]; " + (REPORT % 6))
        assert await run_and_measure(compute, job) == {"found": 6}
        kept = self.read_output(jobs, job)
        assert self.LIMIT < len(kept) < self.LIMIT + 100
        assert kept.startswith(b"first\n")
        dropped = re.search(rb"\n\[(\d+) bytes were left out here\]\n", kept)
        assert dropped is not None
        assert int(dropped[1]) + self.LIMIT == len(b"first\n") + 50_000 * 80 + len(kept.splitlines()[-1]) + 1

    @for_each("size", [0, 1, 49_999, 50_000, 50_001, 99_999, 100_000])
    async def test_up_to_the_limit_everything_is_kept(self, compute: LocalProcesses, jobs: Path, size: int) -> None:
        job = python("import sys; sys.stdout.write(('ab' * 50_000)[:int(sys.argv[1])])", str(size))
        await compute.await_terminal_state(await compute.submit(job))
        assert self.read_output(jobs, job) == (b"ab" * 50_000)[:size]

    async def test_endless_output_neither_fills_the_disk_nor_blocks(self, jobs: Path) -> None:
        compute = LocalProcesses(jobs, programs=PROGRAMS, output_limit=self.LIMIT, timeout=1, grace=0.2)
        job = JobSpec(submission_key=uuid4(), command=("/bin/sh", "-c", "yes & yes >&2"))
        assert await compute.await_terminal_state(await compute.submit(job)) is JobStatus.TIMED_OUT
        for name in ("stdout", "stderr"):
            kept = self.read_output(jobs, job, name)
            assert self.LIMIT < len(kept) < self.LIMIT + 100
            assert int(re.search(rb"\[(\d+) bytes", kept)[1]) > 10 * self.LIMIT  # type: ignore[index]

    async def test_the_last_words_of_a_flood_of_errors_are_kept(self, compute: LocalProcesses) -> None:
        flood = "import sys; [sys.stderr.write('x' * 99 + '\\n') for _ in range(5_000)]; sys.exit('no flats')"
        with pytest.raises(ComputeJobFailedError, match="no flats"):
            await run_and_measure(compute, python(flood))


class TestHowAJobFails:
    async def test_the_last_300_characters_of_its_errors_are_kept(self, compute: LocalProcesses) -> None:
        job = python("import sys; sys.stderr.write('early ' + 'ä' * 1000 + ' the end'); sys.exit(3)")
        with pytest.raises(ComputeJobFailedError, match=r"exit status 3: ä+ the end$") as failed:
            await run_and_measure(compute, job)
        assert len(str(failed.value).partition("exit status 3: ")[2]) == 300

    async def test_a_job_that_is_killed_names_the_signal(self, compute: LocalProcesses) -> None:
        with pytest.raises(ComputeJobFailedError, match="killed by signal 9"):
            await run_and_measure(compute, python("import os; os.kill(os.getpid(), 9)"))

    @for_each(
        ("job", "fault"),
        [
            (JobSpec(submission_key=uuid4(), command=("no-such-program",)), "no-such-program: No such file"),
            (JobSpec(submission_key=uuid4(), command=("/etc/passwd",)), "Permission denied"),
            (JobSpec(submission_key=uuid4(), command=("true", "\0")), "null byte"),
            (python("pass", working_dir=Path("/no/such/place")), "/no/such/place: No such file"),
            (python("pass", parameters={"much": "x" * 200_000}), "Argument list too long"),
            (python("pass", output_uri="s3://bucket/key"), "give a file:// address"),
            (python("pass", output_uri="file://elsewhere/data/x"), "give a file:// address"),
            (python("pass", output_uri="data/x"), "absolute path"),
        ],
    )
    async def test_what_cannot_be_run_is_refused_every_time(self, compute: LocalProcesses, job: JobSpec, fault: str) -> None:
        for _ in range(2):
            with pytest.raises(ComputeSubmitRejectedError, match=fault):
                await compute.submit(job)

    async def test_a_job_that_could_not_be_begun_is_known_to_have_failed(self, compute: LocalProcesses) -> None:
        job = JobSpec(submission_key=uuid4(), command=("no-such-program",))
        with suppress(ComputeSubmitRejectedError):
            await compute.submit(job)
        job_id = await compute.find(job.submission_key)
        assert job_id is not None
        assert await compute.await_terminal_state(job_id) is JobStatus.FAILED
        with pytest.raises(ComputeJobFailedError, match="could not be run"):
            await compute.fetch_measurements(job_id)

    async def test_a_directory_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(ComputeNotAvailableError, match="COMPUTE_JOB_DIRECTORY"):
            await LocalProcesses(tmp_path / "file", programs=PROGRAMS).submit(python("pass"))


class TestStopping:
    PARENT = (
        "import os, signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', sys.argv[2]], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}')\n"
        "child.wait()"
    )
    PATIENT = "import signal; print(flush=True); signal.pause()"
    STUBBORN = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.sigwait([signal.SIGUSR1])"
    )

    async def start_family(self, compute: LocalProcesses, pid_file: Path, child: str) -> tuple[str, list[int]]:
        """Start a job with a child of its own; return its id and the pids of both."""
        job_id = await compute.submit(python(self.PARENT, str(pid_file), child))
        numbers = await until(lambda: pid_file.exists() and pid_file.read_text().split())
        return job_id, [int(number) for number in numbers]  # type: ignore[attr-defined]

    async def test_after_its_time_a_job_is_stopped_with_all_it_started(self, jobs: Path, tmp_path: Path) -> None:
        compute = LocalProcesses(jobs, programs=PROGRAMS, timeout=5, grace=0.2)
        job_id, family = await self.start_family(compute, tmp_path / "pids", self.STUBBORN)
        assert await compute.await_terminal_state(job_id) is JobStatus.TIMED_OUT
        await until(lambda: not any(is_alive(pid) for pid in family))
        with pytest.raises(ComputeJobFailedError, match="stopped after 5 s"):
            await compute.fetch_measurements(job_id)

    async def test_a_cancelled_job_may_put_things_in_order_first(self, compute: LocalProcesses, tmp_path: Path) -> None:
        orderly = (
            "import signal, sys\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(open(sys.argv[1], 'w').write('parked') and 0))\n"
            "open(sys.argv[2], 'w').close(); signal.pause()"
        )
        job_id = await compute.submit(python(orderly, str(tmp_path / "parked"), str(tmp_path / "ready")))
        await until((tmp_path / "ready").exists)
        await compute.cancel(job_id)
        assert await compute.await_terminal_state(job_id) is JobStatus.CANCELLED
        assert (tmp_path / "parked").read_text() == "parked"

    async def test_a_cancelled_job_that_does_not_end_is_killed_with_all_it_started(self, jobs: Path, tmp_path: Path) -> None:
        compute = LocalProcesses(jobs, programs=PROGRAMS, grace=0.2)
        job_id, family = await self.start_family(compute, tmp_path / "pids", self.STUBBORN)
        await compute.cancel(job_id)
        assert await compute.await_terminal_state(job_id) is JobStatus.CANCELLED
        await until(lambda: not any(is_alive(pid) for pid in family))

    AWAY = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if sys.argv[2] == 'twice' and os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if sys.argv[2] == 'twice' and os.fork(): os._exit(0)\n"
        "open(sys.argv[1] + '.new', 'w').write(str(os.getpid()))\n"
        "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
        "while True: time.sleep(60)"
    )
    """Leaves for a session of its own, with `twice` without its parent too, and does not listen."""

    @pytest.mark.parametrize(
        ("end", "how"),
        [*product(["cancelled", "left"], ["once", "twice"]), ("timed out", "twice"), ("runner killed", "once")],
    )
    async def test_what_left_for_a_session_of_its_own_ends_with_the_job(
        self, jobs: Path, tmp_path: Path, end: str, how: str
    ) -> None:
        compute = LocalProcesses(jobs, programs=PROGRAMS, timeout=5 if end == "timed out" else 60, grace=0.2)
        pid_file = tmp_path / "pids"
        parent = (
            "import os, subprocess, sys, time\n"
            "subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1], sys.argv[3]])\n"
            "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
            "time.sleep(0 if sys.argv[4] == 'left' else 60)"
        )
        job_id = await compute.submit(python(parent, str(pid_file), self.AWAY, how, end))
        away = int(await until(lambda: pid_file.exists() and pid_file.read_text()))  # type: ignore[arg-type]
        if end == "cancelled":
            await compute.cancel(job_id)
        elif end == "runner killed":
            os.kill(int((jobs / job_id / "lock").read_text()), signal.SIGKILL)
        with suppress(ComputeOutcomeUnknown):
            await compute.await_terminal_state(job_id)
        if end == "runner killed":
            await until(lambda: not is_alive(away))
        assert not is_alive(away)

    async def test_a_job_has_ended_only_when_nothing_of_it_is_left(self, jobs: Path, tmp_path: Path) -> None:
        compute = LocalProcesses(jobs, programs=PROGRAMS, grace=0.5)
        job_id, family = await self.start_family(compute, tmp_path / "pids", self.STUBBORN)
        await compute.cancel(job_id)
        await compute.await_terminal_state(job_id)
        assert not any(is_alive(pid) for pid in family)

    async def test_a_job_that_has_ended_leaves_nothing_running(self, compute: LocalProcesses, tmp_path: Path) -> None:
        leaving = self.PARENT.replace("child.wait()", "sys.exit(0)")
        pid_file = tmp_path / "pids"
        job_id = await compute.submit(python(leaving, str(pid_file), self.PATIENT))
        assert await compute.await_terminal_state(job_id) is JobStatus.SUCCEEDED
        await until(lambda: not any(is_alive(int(pid)) for pid in pid_file.read_text().split()))


class TestKilledWorkers:
    """Workers die by `kill -9`; so may what runs the job, and the job itself."""

    async def start_by_dying_worker(self, workers: JobWorkers, jobs: Path, job: JobSpec, submitted: Path) -> str:
        """Have a job submitted by a worker that is killed then; return the job's id."""
        pid = await workers.start(jobs, job.submission_key, job.command, submitted)
        job_id = await until(lambda: submitted.exists() and submitted.read_text())
        await kill_worker(pid)
        return str(job_id)

    async def test_a_job_outlives_its_worker_and_is_found_by_its_key(
        self, workers: JobWorkers, compute: LocalProcesses, jobs: Path, fifo: Path, tmp_path: Path
    ) -> None:
        program = f"open({str(tmp_path / 'ran')!r}, 'a').write('once'); open({str(fifo)!r}).read(); " + (REPORT % 7)
        job = python(program)
        job_id = await self.start_by_dying_worker(workers, jobs, job, tmp_path / "submitted")
        assert await compute.find(job.submission_key) == job_id
        assert await compute.submit(job) == job_id
        waiting = asyncio.ensure_future(run_and_measure(compute, job))
        await asyncio.to_thread(fifo.write_text, "go on")
        assert await waiting == {"found": 7}
        assert (tmp_path / "ran").read_text() == "once"

    @pytest.mark.parametrize("seen", ["", "job.json", "stderr", "started.json", "outcome.json"])
    async def test_whenever_a_worker_dies_while_it_submits_the_job_runs_exactly_once(
        self, workers: JobWorkers, compute: LocalProcesses, jobs: Path, tmp_path: Path, seen: str
    ) -> None:
        job = python(f"open({str(tmp_path / 'ran')!r}, 'a').write('once')")
        pid = await workers.start(jobs, job.submission_key, job.command, tmp_path / "submitted")
        await asyncio.to_thread(wait_for_path, jobs / str(job.submission_key) / seen)
        await kill_worker(pid)
        job_id = await compute.submit(job)
        assert await compute.await_terminal_state(job_id) is JobStatus.SUCCEEDED
        assert (tmp_path / "ran").read_text() == "once"

    async def test_a_job_that_ended_while_nobody_looked_is_found_ended(
        self, workers: JobWorkers, compute: LocalProcesses, jobs: Path, fifo: Path, tmp_path: Path
    ) -> None:
        job = python(f"open({str(fifo)!r}).read(); raise SystemExit('beam lost')")
        job_id = await self.start_by_dying_worker(workers, jobs, job, tmp_path / "submitted")
        await asyncio.to_thread(fifo.write_text, "go on")
        await until((jobs / job_id / "outcome.json").exists)
        assert await LocalProcesses(jobs, programs=PROGRAMS).find(job.submission_key) == job_id
        assert await compute.await_terminal_state(job_id) is JobStatus.FAILED
        with pytest.raises(ComputeJobFailedError, match="beam lost"):
            await compute.fetch_measurements(job_id)

    async def test_a_job_of_a_dead_worker_can_be_cancelled(
        self, workers: JobWorkers, compute: LocalProcesses, jobs: Path, fifo: Path, tmp_path: Path
    ) -> None:
        job = python(f"open({str(fifo)!r}).read()")
        job_id = await self.start_by_dying_worker(workers, jobs, job, tmp_path / "submitted")
        await compute.cancel(job_id)
        assert await compute.await_terminal_state(job_id) is JobStatus.CANCELLED

    async def test_a_job_whose_runner_was_killed_has_no_known_outcome_and_does_not_go_on(
        self, compute: LocalProcesses, jobs: Path, fifo: Path
    ) -> None:
        job = python(f"open({str(fifo)!r}).read()")
        job_id = await compute.submit(job)
        pid = json.loads((jobs / job_id / "started.json").read_text())["pid"]
        os.kill(int((jobs / job_id / "lock").read_text()), signal.SIGKILL)
        with pytest.raises(ComputeOutcomeUnknown, match=job_id):
            await compute.await_terminal_state(job_id)
        await until(lambda: not is_alive(pid))
        assert await compute.submit(job) == job_id, "what may have run is not run again"
        with pytest.raises(ComputeOutcomeUnknown):
            await compute.fetch_measurements(job_id)

    async def test_a_number_that_another_process_was_given_is_left_alone(
        self, compute: LocalProcesses, jobs: Path, fifo: Path
    ) -> None:
        job_id = await compute.submit(python(f"open({str(fifo)!r}).read()"))
        started = json.loads((jobs / job_id / "started.json").read_text())
        os.kill(int((jobs / job_id / "lock").read_text()), signal.SIGKILL)
        (jobs / job_id / "started.json").write_text(json.dumps({**started, "birth": "another boot:1"}))
        try:
            with pytest.raises(ComputeOutcomeUnknown):
                await compute.await_terminal_state(job_id)
            assert is_alive(started["pid"])
        finally:
            os.killpg(started["pid"], signal.SIGKILL)

    async def test_a_claim_that_was_never_begun_is_no_job_and_may_be_run(self, compute: LocalProcesses, jobs: Path) -> None:
        job = python(REPORT % 1)
        with pytest.raises(ComputeNotAvailableError):
            await LocalProcesses(jobs, programs=PROGRAMS, interpreter="/bin/false").submit(job)
        assert await compute.find(job.submission_key) is None
        with pytest.raises(ComputeOutcomeUnknown):
            await compute.await_terminal_state(str(job.submission_key))
        assert await run_and_measure(compute, job) == {"found": 1}

    async def test_a_job_that_does_not_end_in_its_time_is_not_waited_for_for_ever(self, jobs: Path, fifo: Path) -> None:
        compute = LocalProcesses(jobs, programs=PROGRAMS, timeout=5, grace=0.1, allowance=0.1)
        job_id = await compute.submit(python(f"open({str(fifo)!r}).read()"))
        runner = int((jobs / job_id / "lock").read_text())
        os.kill(runner, signal.SIGSTOP)
        try:
            with pytest.raises(ComputeTimeoutError, match="past its time"):
                await compute.await_terminal_state(job_id)
        finally:
            os.kill(runner, signal.SIGCONT)
        await until((jobs / job_id / "outcome.json").exists)
        assert await compute.await_terminal_state(job_id) is JobStatus.TIMED_OUT

    async def test_no_dead_process_is_left_to_be_reaped(self, compute: LocalProcesses, jobs: Path) -> None:
        job_id = await compute.submit(python("pass"))
        await compute.await_terminal_state(job_id)
        runner = int((jobs / job_id / "lock").read_text())
        await until(lambda: not Path(f"/proc/{runner}").exists())


async def test_two_workers_that_share_the_directory_run_a_key_once(jobs: Path, tmp_path: Path) -> None:
    job = python("import os, sys; open(sys.argv[1], 'a').write('x')", str(tmp_path / "ran"))
    workers = [LocalProcesses(jobs, programs=PROGRAMS) for _ in range(4)]
    found = await asyncio.gather(*(worker.submit(job) for worker in workers for _ in range(3)))
    assert {UUID(job_id) for job_id in found} == {job.submission_key}
    assert await workers[0].await_terminal_state(found[0]) is JobStatus.SUCCEEDED
    assert (tmp_path / "ran").read_text() == "x"
    assert os.listdir(jobs) == [str(job.submission_key)]
