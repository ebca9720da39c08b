"""What the documents show was done: every command and program is played on a running service, and answers what is shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import blocks_of, documents
from tests.documents.kinds import is_played
from tests.documents.playing import Play, Premises, opened_premises, played


@pytest.fixture(scope="module")
def premises(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Premises]:
    with opened_premises(tmp_path_factory.mktemp("documents")) as premises:
        yield premises


@pytest.mark.parametrize("page", [page for page in documents() if any(map(is_played, blocks_of(page)))], ids=str)
def test_a_document_is_as_it_was_played(premises: Premises, page: Path) -> None:
    with Play(premises) as play:
        for told in played(play, list(blocks_of(page))):
            assert not told.differences, "\n".join([told.place, told.asked, *told.differences])
