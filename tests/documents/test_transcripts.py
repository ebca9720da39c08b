"""Every command and program of the documents is played on a running service, each page on one that begins empty, and answers
what is shown."""

from pathlib import Path

import pytest

from tests.support.documents.block_kinds import is_played
from tests.support.documents.document_player import DocumentRun, compared_answers, running_reader_directory
from tests.support.documents.fenced_blocks import blocks_of, documents

pytestmark = pytest.mark.server


@pytest.mark.parametrize("page", [page for page in documents() if any(map(is_played, blocks_of(page)))], ids=str)
def test_a_document_is_as_it_was_played(page: Path, tmp_path: Path) -> None:
    with running_reader_directory(tmp_path, page) as reader_directory, DocumentRun(reader_directory) as document_run:
        for answer in compared_answers(document_run, list(blocks_of(page))):
            assert not answer.differences, "\n".join([answer.place, answer.command, *answer.differences])
