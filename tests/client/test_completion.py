"""Objects of the client say what they take, to whatever asks them while they run: a notebook, `dir`, `help`."""

import sys
from dataclasses import replace
from inspect import getdoc, signature
from uuid import uuid4

import pytest

from baton.client import Baton
from baton.client.answers import read_value
from baton.client.refusals import ClientError

ROW = {"name": "<Night>", "run_id": str(uuid4()), "status": "Held"}


@pytest.fixture
def client() -> Baton:
    return Baton("http://127.0.0.1:1")


def test_operations_kinds_and_verbs_are_listed(client: Baton) -> None:
    assert {"register_asset", "start_run", "plans", "runs", "call"} <= set(dir(client))
    assert "stream_events" not in dir(client)
    assert {"define", "list", "to_pandas"} <= set(dir(client.plans))
    assert {"start", "get_history", "version", "preflight"} <= set(dir(client.plans["x"]))


def test_an_operation_has_its_signature_and_its_summary(client: Baton) -> None:
    said = signature(client.start_run)
    assert [one.default for name, one in said.parameters.items() if name in ("name", "raid")] == [said.empty, None]
    assert next(iter(signature(client.hold_run).parameters)) == "run_id"
    assert "run_id" not in signature(client.runs["x"].hold).parameters
    assert str(getdoc(client.hold_run)).endswith("POST /runs/{run_id}/hold, with the permission HoldRun.")
    assert repr(client.hold_run).startswith("<hold_run(run_id, *, ")


def test_a_thing_is_printed_by_its_kind_and_its_name(client: Baton) -> None:
    assert repr(client.runs["x"]) == "<run x>"
    [item] = read_value("Page[RunItem]", {"items": [ROW], "next_cursor": None}).items
    listed = replace(client.runs[item.run_id], row=item)
    assert repr(listed) == f"<run '<Night>', {item.run_id}>"


def test_lists_and_views_are_shown_as_html_without_tags_of_the_record() -> None:
    page = read_value("Page[RunItem]", {"items": [ROW, ROW], "next_cursor": "more"})
    for shown in (page, page.items[0]):
        assert "<td>&lt;Night&gt;</td>" in shown._repr_html_()
        assert "campaign_id" not in shown._repr_html_(), "what is empty is left out"
    assert page._repr_html_().count("<tr>") == 3
    assert page._repr_html_().endswith("<p>There is more.</p>")


def test_without_pandas_a_frame_is_refused_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ClientError, match="pip install pandas"):
        read_value("RunItem", ROW).to_pandas()
