"""Every command and program of the documents is played on a running service, and answers what is shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents.block_kinds import is_played
from tests.support.documents.document_player import DocumentRun, ReaderDirectory, compared_answers, running_reader_directory
from tests.support.documents.fenced_blocks import blocks_of, documents

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def reader_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReaderDirectory]:
    with running_reader_directory(tmp_path_factory.mktemp("documents")) as reader_directory:
        yield reader_directory


@pytest.mark.parametrize("page", [page for page in documents() if any(map(is_played, blocks_of(page)))], ids=str)
def test_a_document_is_as_it_was_played(reader_directory: ReaderDirectory, page: Path) -> None:
    with DocumentRun(reader_directory) as document_run:
        for answer in compared_answers(document_run, list(blocks_of(page))):
            assert not answer.differences, "\n".join([answer.place, answer.command, *answer.differences])
