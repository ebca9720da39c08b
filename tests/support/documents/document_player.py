"""Playing a document from top to bottom: its commands in a shell, its programs in one interpreter, on a running service.

A shell runs what the reader would type. Its `baton` is a process forked from one that has the modules loaded; where the
machine has no curl, `tests/support/documents/curl.py` is used. Ids, times and positions in a command are those of the
document, and are exchanged for those that this run had in their place.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import ndiff
from pathlib import Path

from baton.demo.identity_provider import DemoIdentityProvider
from tests.support.documents.fenced_blocks import ROOT, Block, CallScript, exchanges
from tests.support.documents.printed_answers import MisfitError, Part, fit_answer, one_line, page_lines, parts_of
from tests.support.documents.transcript_comparison import TranscriptMatch, are_alike
from tests.support.forked_commands import forking_program
from tests.support.stack import clean_environment, running_stack

PLANT = ROOT / "docs" / "plant.json"
SOURCES = str(ROOT)
FIRST_START = Path("docs/operating/first-start.md")
"""The page that is played by the first administrator of a service with policies."""
ADMINISTRATOR, ADMINISTRATOR_ID = "mira", "0197a100-0000-7000-8000-00000000000a"
DOCUMENTED_ISSUER = "https://id.example.org"
DOCUMENTED_ADDRESS = re.compile(r"\b(localhost|127\.0\.0\.1):8000\b")
ASSIGNMENT = re.compile(r"^([a-z_]+)=([\w:.-]*)$")
CHANGING_COMMAND = re.compile(r"\s(-d|--data\S*|-X|-sX)\s")
COMMAND_SECONDS = 60
ANSWER_SECONDS = 30.0
"""How long a request that only reads is repeated until its answer is the one that is shown."""


@dataclass(frozen=True)
class ReaderDirectory:
    """A directory as a reader's: the command line and the data of the service are where `make up` leaves them. The issuer is
    that of the reader's token, where the service enforces policies."""

    directory: Path
    authority: str
    issuer: str | None = None
    token: str | None = None

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.directory / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
        known = {} if self.token is None else {"BATON_TOKEN": self.token, "BATON_URL": f"http://{self.authority}"}
        return clean_environment(PATH=path, PYTHONPATH=SOURCES, XDG_CONFIG_HOME=str(self.directory / "config"), **known)

    def with_local_address(self, text: str) -> str:
        """Return a text of a document with the address that the service has here."""
        return DOCUMENTED_ADDRESS.sub(self.authority, text).replace(DOCUMENTED_ISSUER, self.issuer or DOCUMENTED_ISSUER)

    def with_documented_address(self, text: str) -> str:
        """Return an answer with the address and the directory that documents name."""
        text = text.replace(self.issuer, DOCUMENTED_ISSUER) if self.issuer else text
        return text.replace(self.authority, "127.0.0.1:8000").replace(str(self.directory), "/...")


@contextmanager
def running_reader_directory(directory: Path, page: Path) -> Iterator[ReaderDirectory]:
    """The whole service on the simulated plant of the tours, as the page has it, until the block ends."""
    with ExitStack() as stack_of_parts:
        settings, provider = {"SIMULATED_DEVICES": PLANT.read_text()}, None
        if page == FIRST_START:
            provider = DemoIdentityProvider()
            stack_of_parts.callback(provider.close)
            providers = json.dumps([provider.as_setting(**{ADMINISTRATOR: ADMINISTRATOR_ID})])
            settings |= {"AUTHORIZATION_MODE": "policy", "REQUIRE_AUTHENTICATED_PRINCIPAL": "true"}
            settings |= {"BOOTSTRAP_PRINCIPAL_ID": ADMINISTRATOR_ID, "IDENTITY_PROVIDERS": providers}
        stack = stack_of_parts.enter_context(running_stack(directory / ".baton", **settings))
        reader_directory = ReaderDirectory(
            directory,
            stack.address("url").removeprefix("http://"),
            None if provider is None else provider.issuer,
            None if provider is None else provider.token(ADMINISTRATOR),
        )
        programs = directory / ".venv" / "bin"
        programs.mkdir(parents=True)
        (directory / "docs").mkdir()
        for file in ("first-beamline.yaml", "roles.yaml"):
            shutil.copy(ROOT / "docs" / file, directory / "docs")
        if shutil.which("curl") is None:
            install(programs / "curl", "tests.support.documents.curl")
        with forking_program(programs / "baton"):
            yield reader_directory


def install(program: Path, module: str) -> None:
    """Write a program that runs one of our modules in any environment."""
    command = f"PYTHONPATH={shlex.quote(SOURCES)} exec {shlex.quote(sys.executable)} -m {module}"
    program.write_text(f'#!/bin/sh\n{command} "$@"\n')
    program.chmod(0o755)


@dataclass
class DocumentRun:
    """One document being played: the variables of its shell, its interpreter, and which of its ids is which."""

    reader_directory: ReaderDirectory
    transcript_match: TranscriptMatch = field(default_factory=TranscriptMatch)
    variables: dict[str, str] = field(default_factory=dict)
    interpreter: "subprocess.Popen[str] | None" = None

    def __enter__(self) -> "DocumentRun":
        return self

    def __exit__(self, *error: object) -> None:
        if self.interpreter is not None:
            self.interpreter.kill()
            self.interpreter.communicate()

    def wait_for_answer(self, exchange: CallScript) -> str:
        """Return what a command prints; a request that only reads is repeated until its answer is the one that is shown."""
        if not exchange.answer or is_changing(exchange.command):
            return self.answer_to(exchange.command)
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = self.answer_to(exchange.command)
            if time.monotonic() > deadline or not self.is_misfit(exchange.answer, answer):
                return answer
            time.sleep(0.1)

    def answer_to(self, command: str) -> str:
        """Return what a command prints; an assignment is remembered for the commands that follow."""
        command = self.reader_directory.with_local_address(self.transcript_match.in_run(command))
        if assignment := ASSIGNMENT.match(command):
            self.variables[assignment[1]] = assignment[2]
            return ""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.reader_directory.directory,
            env={**self.reader_directory.environment, **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return self.reader_directory.with_documented_address(done.stdout).rstrip("\n")

    def run_program(self, block: Block) -> str:
        """Return what a program prints; all programs of a document are one session."""
        if self.interpreter is None:
            self.interpreter = subprocess.Popen(
                [sys.executable, "-m", "tests.support.documents.interpreter"],
                cwd=self.reader_directory.directory,
                env=self.reader_directory.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.interpreter.stdin is not None
        assert self.interpreter.stdout is not None
        program = {
            "place": block.place,
            "code": self.reader_directory.with_local_address(self.transcript_match.in_run(block.text)),
        }
        print(json.dumps(program), file=self.interpreter.stdin, flush=True)
        answer = self.interpreter.stdout.readline()
        assert answer, f"{block.place}: the interpreter has ended"
        done = json.loads(answer)
        assert done["raised"] is None, f"{block.place}: {done['raised']}"
        return self.reader_directory.with_documented_address(done["printed"]).rstrip("\n")

    def is_misfit(self, document: str, answer: str) -> bool:
        """Return whether an answer is not the one that is shown, apart from what varies."""
        try:
            found = fit_answer(document, answer, are_alike)
        except MisfitError:
            return True
        return not all(
            are_alike(one_line(here), one_line(there)) for here, there in zip(parts_of(document), found, strict=True)
        )

    def differences(self, document: str, answer: str) -> list[str]:
        """Return what an answer has and the document has not, and the other way round."""
        try:
            found = fit_answer(document, answer, are_alike)
        except MisfitError as misfit:
            return [str(misfit), *self._answer_diff(document, parts_of(answer))]
        if self.is_misfit(document, answer):
            return self._answer_diff(document, found)
        pairs = zip(parts_of(document), found, strict=True)
        return [
            difference
            for here, there in pairs
            for difference in self.transcript_match.differences(one_line(here), one_line(there))
        ]

    def _answer_diff(self, document: str, parts: list[Part]) -> list[str]:
        """Return line by line what is shown (-) and what was answered (+)."""
        answered = self.transcript_match.in_document("\n".join(page_lines(parts)))
        return list(ndiff(page_lines(parts_of(document)), answered.splitlines()))


def is_changing(command: str) -> bool:
    """Return whether a command must not be repeated: everything but a request that only reads."""
    return not command.startswith("curl ") or CHANGING_COMMAND.search(command) is not None


@dataclass(frozen=True)
class ComparedAnswer:
    """A command or a program of a document, and how its answer differs from the one that is shown."""

    place: str
    command: str
    differences: list[str]


def compared_answers(document_run: DocumentRun, blocks: list[Block]) -> Iterator[ComparedAnswer]:
    """Play every command and program of a document in turn, and yield how its answer compares."""
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        match block.kind:
            case "console":
                for exchange in exchanges(block):
                    answer = document_run.wait_for_answer(exchange)
                    yield ComparedAnswer(block.place, exchange.command, document_run.differences(exchange.answer, answer))
            case "python":
                document = following.text if following is not None and following.kind == "output" else ""
                yield ComparedAnswer(
                    block.place, block.text, document_run.differences(document, document_run.run_program(block))
                )
