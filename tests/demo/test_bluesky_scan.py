"""The scan of the demonstration is a program as Bluesky's users have it, in which one line is new."""

import ast

import pytest

from baton.demo.bluesky_scan import GATE, WITNESS, program_text


@pytest.mark.parametrize("line", [WITNESS, GATE])
def test_one_line_is_new_and_the_rest_knows_nothing_of_us(line: str) -> None:
    own = line.format(url="https://baton.example", plan="Alloy bars")
    with_it, without = (program_text("Alloy bar 8", *lines).splitlines() for lines in ((own,), ()))
    assert [one for one in with_it if one not in without] == [own]
    assert "baton" not in "\n".join(without).lower()
    for program in (with_it, without):
        ast.parse("\n".join(program))
