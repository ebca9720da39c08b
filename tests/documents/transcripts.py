"""Rewrites the answers that documents show, from a service that is started for it.

python -m tests.documents.transcripts [docs/tour-rest.md ...]    all that are played, where none is named

What a document leaves out of an answer (`...`) stays left out as long as the rest still fits. A command with nothing below
it gets its whole answer. Behind `$ name=` stands what the document had there, in this run's terms, or else the first id of
the answer above it (for `position` its place in the log).
"""

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.support.documents.block_kinds import is_played
from tests.support.documents.document_player import ASSIGNMENT, DocumentRun, ReaderDirectory, running_reader_directory
from tests.support.documents.fenced_blocks import PROMPT, ROOT, Block, blocks_of, documents, exchanges
from tests.support.documents.printed_answers import MisfitError, fit_answer, page_lines, parts_of
from tests.support.documents.transcript_comparison import are_alike, varying_texts

ID = re.compile(r'"(?!correlation_id)\w+_id":"([0-9a-f-]{36})"')
PLACE = re.compile(r"x-baton-position: (\d+)")


def main(names: Sequence[str]) -> None:
    pages = [Path(page) for page in names] or [page for page in documents() if any(map(is_played, blocks_of(page)))]
    for page in pages:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
            running_reader_directory(Path(directory), page) as reader_directory,
        ):
            rewrite_page(reader_directory, page)
            print(page)


def rewrite_page(reader_directory: ReaderDirectory, page: Path) -> None:
    """Play a page, and replace the answers that it shows."""
    path = ROOT / page
    lines = path.read_text().splitlines()
    with DocumentRun(reader_directory) as document_run:
        renewed = list(renewed_blocks(document_run, list(blocks_of(page))))
    for block, inside in reversed(renewed):
        lines[block.first : block.first + len(block.lines)] = inside
    path.write_text("\n".join(lines) + "\n")


def renewed_blocks(document_run: DocumentRun, blocks: list[Block]) -> Iterator[tuple[Block, list[str]]]:
    printed = ""
    for block in blocks:
        match block.kind:
            case "console":
                yield block, list(console_lines(document_run, block))
            case "python":
                program = document_run.transcript_match.in_run(block.text)
                printed = document_run.run_program(block)
                yield block, program.splitlines()
            case "output":
                yield block, renewed_lines(document_run, block.text, printed)


def console_lines(document_run: DocumentRun, block: Block) -> Iterator[str]:
    above = ""
    for exchange in exchanges(block):
        exchange = replace(exchange, command=fill_assignment(document_run, exchange.command, above))
        command = document_run.transcript_match.in_run(exchange.command)
        answer = document_run.wait_for_answer(exchange)
        yield from f"{PROMPT}{command}".splitlines()
        yield from renewed_lines(document_run, exchange.answer, answer)
        above = answer or above


def fill_assignment(document_run: DocumentRun, command: str, above: str) -> str:
    """A command that names a value, with the value that it has in this run."""
    assignment = ASSIGNMENT.match(command)
    if assignment is None or document_run.transcript_match.in_run(command) != command:
        return command
    if assignment[2] and not list(varying_texts(command)):
        return command
    found = re.search(PLACE if assignment[1] == "position" else ID, above)
    return command if found is None else f"{assignment[1]}={found[1]}"


def renewed_lines(document_run: DocumentRun, before: str, answer: str) -> list[str]:
    """The lines of an answer, with no more of it than the document showed before, if that still fits."""
    if before:
        try:
            found = fit_answer(before, answer, are_alike)
        except MisfitError as misfit:
            print(f"shown in full: {misfit}", file=sys.stderr)
        else:
            document_run.differences(before, answer)
            return page_lines(found)
    return page_lines(parts_of(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
