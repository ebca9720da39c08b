"""Tests on several processes, forked when everything is imported and collected, which takes each process seconds.

A worker takes one scope after another, such as a module, and so opens the services that its tests share once.
"""

import os
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any
from warnings import WarningMessage

import pytest
from _pytest.config import create_terminal_writer
from _pytest.junitxml import xml_key
from _pytest.terminal import TerminalReporter


@dataclass
class Worker:
    """A forked process, as the process that forked it sees it."""

    pid: int
    scope: range = range(0)
    at: int | None = None
    """The number of the test that it is at."""
    done: bool = False


class ForkedRun:
    """All tests of a session, run by workers that are forked from this process."""

    def __init__(self, session: pytest.Session, scope_of: Callable[[pytest.Item], str]) -> None:
        self.session, self.config = session, session.config
        scopes = groupby(range(len(session.items)), lambda number: scope_of(session.items[number]))
        self.waiting = deque(range((numbers := list(group))[0], numbers[-1] + 1) for _, group in scopes)
        self.workers: dict[Connection, Worker] = {}
        self.stopped = False

    def run(self, count: int) -> None:
        """Run all tests by so many workers; in a worker, return when there is nothing more to do.

        A worker that dies fails the test it is at, and another one is forked for the rest.
        """
        for _ in range(min(count, len(self.waiting))):
            if self.fork_worker():
                return
        while self.workers:
            for line in wait(list(self.workers)):
                assert isinstance(line, Connection)
                try:
                    self.follow(line, *line.recv())
                except (EOFError, ConnectionResetError):  # the latter where it left a message unread
                    if self.replace(self.workers.pop(line)):
                        return
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def fork_worker(self) -> bool:
        """Fork a worker and return False; in the worker, work and return True."""
        here, there = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            there.close()
            self.workers[here] = Worker(pid)
            return False
        for line in (here, *self.workers):
            line.close()
        work(self.session, there)
        return True

    def follow(self, line: Connection, kind: str, value: Any = None) -> None:
        """Answer or take up a worker's message."""
        worker, hook = self.workers[line], self.config.hook
        match kind:
            case "next scope" if not self.stopped:  # else the worker has its answer
                worker.scope = self.waiting.popleft() if self.waiting else range(0)
                line.send(worker.scope)
            case "start":
                worker.at = value
                hook.pytest_runtest_logstart(nodeid=self.item(value).nodeid, location=self.item(value).location)
            case "report":
                report = hook.pytest_report_from_serializable(config=self.config, data=value)
                hook.pytest_runtest_logreport(report=report)
                self.stop_early()
            case "finish":
                hook.pytest_runtest_logfinish(nodeid=self.item(value).nodeid, location=self.item(value).location)
                worker.at = None
            case "warning":
                message, options = value
                hook.pytest_warning_recorded.call_historic(kwargs={"warning_message": WarningMessage(*message), **options})
            case "done":
                worker.done = True

    def item(self, number: int) -> pytest.Item:
        return self.session.items[number]

    def stop_early(self) -> None:
        """Let every worker end after its test, if a failure so far is one too many."""
        if not self.stopped and (self.session.shouldfail or self.session.shouldstop):
            self.stopped = True
            self.waiting.clear()
            for line, worker in self.workers.items():
                if not worker.done:
                    with suppress(BrokenPipeError):  # it has ended, and that is read next
                        line.send(range(0))

    def replace(self, worker: Worker) -> bool:
        """Report the test that a worker died of, and fork another worker; return whether this process is that worker."""
        _, status = os.waitpid(worker.pid, 0)
        if worker.done:
            return False
        ended = f"a worker ended with {os.waitstatus_to_exitcode(status)}"
        if worker.at is None:
            raise pytest.exit.Exception(f"{ended} between two tests", returncode=pytest.ExitCode.INTERNAL_ERROR)
        item = self.item(worker.at)
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", ended, "call")
        self.config.hook.pytest_runtest_logreport(report=report)
        self.config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if rest := worker.scope[worker.at + 1 - worker.scope.start :]:
            self.waiting.appendleft(rest)
        self.stop_early()
        return bool(self.waiting) and self.fork_worker()


class ReportSender:
    """Sends what happens in a worker to the process that it was forked from."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self.config, self.line = config, line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.line.send(("report", data))

    def pytest_warning_recorded(self, warning_message: WarningMessage, when: str, nodeid: str, location: Any) -> None:
        message = (str(warning_message.message), warning_message.category, warning_message.filename, warning_message.lineno)
        self.line.send(("warning", (message, {"when": when, "nodeid": nodeid, "location": location})))


def work(session: pytest.Session, line: Connection) -> None:
    """Run the tests of one scope after another, as long as there are some."""
    config = session.config
    leave_terminal(config)
    random.seed()
    config.pluginmanager.register(ReportSender(config, line))
    numbers = scope_numbers(line)
    number = next(numbers, None)
    while number is not None:
        following = next(numbers, None)  # a fixture that the next test shares is kept
        line.send(("start", number))
        nextitem = None if following is None else session.items[following]
        config.hook.pytest_runtest_protocol(item=session.items[number], nextitem=nextitem)
        line.send(("finish", number))
        number = following
        if number is not None and line.poll():  # the only message that nobody asked for: no more tests
            session._setupstate.teardown_exact(None)
            break
    line.send(("done",))


def scope_numbers(line: Connection) -> Iterator[int]:
    """Yield the numbers of the tests of each scope that this worker is given."""
    while True:
        line.send(("next scope",))
        scope = line.recv()
        if not scope:
            return
        yield from scope


def leave_terminal(config: pytest.Config) -> None:
    """Write nothing where the first process writes, and capture into files of one's own."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(reporter, TerminalReporter)
    reporter._tw = create_terminal_writer(config, open(os.devnull, "w"))  # noqa: SIM115 as long as the process lives
    if (results := config.stash.get(xml_key, None)) is not None:
        config.pluginmanager.unregister(results)
        del config.stash[xml_key]
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
