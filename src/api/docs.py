"""The documentation page: the OpenAPI document made readable by a page that needs nothing from outside."""

from pathlib import Path

DOCS_PAGE = (Path(__file__).parent / "docs.html").read_text()
