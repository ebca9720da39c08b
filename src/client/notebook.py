"""Answers as a notebook shows them: a list as a table, one thing as a card, and both as rows for pandas."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

from baton.client.refusals import ClientError
from baton.client.rehearsal_drawing import is_rehearsal, rehearsal_html

MOST_ROWS, MOST_COLUMNS, LONGEST_VALUE = 50, 12, 120


def html_of(members: Mapping[str, Any]) -> str:
    """Return an answer as HTML: a rehearsal as it is drawn, the rows of a page, or the members of one thing."""
    if is_rehearsal(members):
        return rehearsal_html(members)
    items = members.get("items")
    if not isinstance(items, list | tuple):
        return html_table(("", ""), [(name, value) for name, value in members.items() if is_told(value)])
    rows = [vars(one) if hasattr(one, "__dict__") else {"value": one} for one in items[:MOST_ROWS]]
    columns = [
        name for name in dict.fromkeys(name for row in rows for name in row) if any(is_told(row.get(name)) for row in rows)
    ]
    more = "<p>There is more.</p>" if len(items) > MOST_ROWS or members.get("next_cursor") else ""
    shown = columns[:MOST_COLUMNS]
    return html_table(shown, [[row.get(name) for name in shown] for row in rows]) + more


def html_table(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(value_text(one))}</td>" for one in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def is_told(value: object) -> bool:
    """Return whether a value says something."""
    return value is not None and value != () and value != [] and value != {}


def value_text(value: object) -> str:
    """Return a value in one short line."""
    text = "" if not is_told(value) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def data_frame(rows: Iterable[Any]) -> Any:
    """Return answers as a data frame of pandas, a row for each."""
    return frame_of(row.to_dict() for row in rows)


def frame_of(rows: Iterable[Mapping[str, Any]]) -> Any:
    """Return rows as a data frame of pandas."""
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        raise ClientError("pandas is not installed here; install it (pip install pandas), or use to_dict().") from None
    return pandas.DataFrame(list(rows))
