"""Every block of every document is played, parsed, or declared to be shown only."""

from pathlib import Path

import pytest

from tests.support.documents.block_kinds import EXECUTED_ELSEWHERE, SHOWN_ONLY, is_played, objections
from tests.support.documents.fenced_blocks import Block, blocks_of, documents, exchanges

BLOCKS = [block for page in documents() for block in blocks_of(page)]
PAGE = Path("page.md")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_block_is_accounted_for(block: Block) -> None:
    assert not objections(block)
    parsed = block.kind in ("json", "toml")
    assert is_played(block) or parsed or block.kind in SHOWN_ONLY or block.page in EXECUTED_ELSEWHERE


def test_a_block_that_does_not_say_what_it_is_is_objected_to() -> None:
    [unmarked, unknown, broken, unset, wrong] = blocks_of(
        PAGE,
        "```\nmake up\n```\n```klingon\nqapla\n```\n```json\n{\n```\n"
        '```json SIMULATED_DEVICES\n[{"kind": "abacus"}]\n```\n```sh\nmake believe\n```\n',
    )
    assert objections(unmarked) == ["say of what kind it is, behind the opening fence"]
    assert objections(unknown) == ["nobody knows what to do with a block of kind klingon"]
    assert "JSONDecodeError" in objections(broken)[0]
    assert "abacus" in objections(unset)[0]
    assert objections(wrong) == ["there is no `make believe`"]


def test_a_command_goes_on_while_a_quotation_is_open() -> None:
    [block] = blocks_of(PAGE, "```console\n$ curl -d '{\n  }'\n{}\n\n...\n$ a=1\n$ ls \\\n  -l\n```\n")
    assert [(one.command, one.answer) for one in exchanges(block)] == [
        ("curl -d '{\n  }'", "{}\n\n..."),
        ("a=1", ""),
        ("ls \\\n  -l", ""),
    ]
