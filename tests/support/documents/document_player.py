"""Playing a document from top to bottom: its commands in a shell, its programs in one interpreter, on a running service.

A shell runs what the reader would type; where the machine has no curl, `tests/documents/curl.py` takes its place. Ids, times
and positions in a command are those of the document, and are exchanged for those that this run had in their place.
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
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import ndiff
from pathlib import Path

from tests.support.documents.fenced_blocks import ROOT, Block, Exchange, exchanges
from tests.support.documents.printed_answers import MisfitError, Part, fitted, parts_of, plain, shown
from tests.support.documents.transcript_comparison import TranscriptMatch, alike
from tests.support.stack import clean_environment, running_stack

PLANT = ROOT / "docs" / "plant.json"
SOURCES = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
DOCUMENTED = re.compile(r"\b(localhost|127\.0\.0\.1):8000\b")
ASSIGNMENT = re.compile(r"^([a-z_]+)=([\w:.-]*)$")
CHANGING = re.compile(r"\s(-d|--data\S*|-X|-sX)\s")
LONGEST = 60
PATIENCE = 10.0
"""Seconds for which a question is asked again, as a reader would, until its answer is the one that is shown."""


@dataclass(frozen=True)
class ReaderDirectory:
    """A directory as a reader's: the command line and the data of the service are where `make up` leaves them."""

    directory: Path
    authority: str

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.directory / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
        return clean_environment(PATH=path, PYTHONPATH=SOURCES)

    def localized(self, text: str) -> str:
        """What a document says, with the address that the service has here."""
        return DOCUMENTED.sub(self.authority, text)

    def documented(self, text: str) -> str:
        """What was said here, with the address and the directory that documents name."""
        return text.replace(self.authority, "127.0.0.1:8000").replace(str(self.directory), "/...")


@contextmanager
def opened_premises(directory: Path) -> Iterator[ReaderDirectory]:
    """The whole service on the simulated plant of the tours, until the block ends."""
    with running_stack(directory / ".baton", SIMULATED_DEVICES=PLANT.read_text()) as stack:
        reader_directory = ReaderDirectory(directory, stack.place("url").removeprefix("http://"))
        programs = directory / ".venv" / "bin"
        programs.mkdir(parents=True)
        install(programs / "baton", "cli")
        if shutil.which("curl") is None:
            install(programs / "curl", "tests.support.documents.curl")
        yield reader_directory


def install(program: Path, module: str) -> None:
    """A program that runs one of our modules, whatever environment it is started in."""
    command = f"PYTHONPATH={shlex.quote(SOURCES)} exec {shlex.quote(sys.executable)} -m {module}"
    program.write_text(f'#!/bin/sh\n{command} "$@"\n')
    program.chmod(0o755)


@dataclass
class DocumentRun:
    """One document being played: what was named in its shell, its interpreter, and which of its ids is which."""

    reader_directory: ReaderDirectory
    likeness: TranscriptMatch = field(default_factory=TranscriptMatch)
    named: dict[str, str] = field(default_factory=dict)
    interpreter: "subprocess.Popen[str] | None" = None

    def __enter__(self) -> "DocumentRun":
        return self

    def __exit__(self, *error: object) -> None:
        if self.interpreter is not None:
            self.interpreter.kill()
            self.interpreter.communicate()

    def heard(self, exchange: Exchange) -> str:
        """What a command answers; a question that is not answered as shown yet is asked again for a while."""
        if not exchange.answer or is_changing(exchange.command):
            return self.answer_to(exchange.command)
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.answer_to(exchange.command)
            if time.monotonic() > deadline or not self.misfits(exchange.answer, answer):
                return answer
            time.sleep(0.1)

    def answer_to(self, command: str) -> str:
        """What a command prints; one that only names a value is remembered for those that follow."""
        command = self.reader_directory.localized(self.likeness.in_run(command))
        if assignment := ASSIGNMENT.match(command):
            self.named[assignment[1]] = assignment[2]
            return ""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.reader_directory.directory,
            env={**self.reader_directory.environment, **self.named},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        return self.reader_directory.documented(done.stdout).rstrip("\n")

    def printed(self, block: Block) -> str:
        """What a program prints; all programs of a document are one session."""
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
        program = {"place": block.place, "code": self.reader_directory.localized(self.likeness.in_run(block.text))}
        print(json.dumps(program), file=self.interpreter.stdin, flush=True)
        answer = self.interpreter.stdout.readline()
        assert answer, f"{block.place}: the interpreter has ended"
        done = json.loads(answer)
        assert done["raised"] is None, f"{block.place}: {done['raised']}"
        return self.reader_directory.documented(done["printed"]).rstrip("\n")

    def misfits(self, document: str, answer: str) -> bool:
        """Whether an answer is not the one that is shown, whatever varies apart."""
        try:
            found = fitted(document, answer, alike)
        except MisfitError:
            return True
        return not all(alike(plain(here), plain(there)) for here, there in zip(parts_of(document), found, strict=True))

    def differences(self, document: str, answer: str) -> list[str]:
        """What an answer has that the document does not say, and the other way round."""
        try:
            found = fitted(document, answer, alike)
        except MisfitError as misfit:
            return [str(misfit), *self._compared(document, parts_of(answer))]
        if self.misfits(document, answer):
            return self._compared(document, found)
        pairs = zip(parts_of(document), found, strict=True)
        return [said for here, there in pairs for said in self.likeness.differences(plain(here), plain(there))]

    def _compared(self, document: str, parts: list[Part]) -> list[str]:
        """Line by line what is shown (-) and what was answered (+)."""
        answered = self.likeness.in_document("\n".join(shown(parts)))
        return list(ndiff(shown(parts_of(document)), answered.splitlines()))


def is_changing(command: str) -> bool:
    """Whether a command may not be repeated: everything but a request that only reads."""
    return not command.startswith("curl ") or CHANGING.search(command) is not None


@dataclass(frozen=True)
class ComparedAnswer:
    """A command or a program of a document, and how its answer differs from the one that is shown."""

    place: str
    asked: str
    differences: list[str]


def played(document_run: DocumentRun, blocks: list[Block]) -> Iterator[ComparedAnswer]:
    """Every command and program of a document in turn."""
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        match block.kind:
            case "console":
                for exchange in exchanges(block):
                    answer = document_run.heard(exchange)
                    yield ComparedAnswer(block.place, exchange.command, document_run.differences(exchange.answer, answer))
            case "python":
                document = following.text if following is not None and following.kind == "output" else ""
                yield ComparedAnswer(
                    block.place, block.text, document_run.differences(document, document_run.printed(block))
                )
