"""Every operation and every refusal names the line that declares it."""

from pathlib import Path
from typing import Any

import baton
from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset import asset
from tests.support.api.openapi_document import document

ROOT = Path(__file__).parents[2]


def text_at(source: str) -> str:
    """What stands at a place and in the lines behind it, on one line."""
    path, _, number = source.rpartition(":")
    lines = (ROOT / path).read_text().splitlines()[int(number) - 1 :]
    return " ".join(" ".join(lines[:12]).split())


def test_every_operation_leads_to_its_class_or_its_aggregate() -> None:
    for operation in REGISTRY:
        entry: dict[str, Any] = document()["paths"][operation.path][operation.method.lower()]
        made = f"Aggregate( {operation.aggregate.name}," if operation.aggregate else ""
        beginning = text_at(entry["x-source"])
        assert beginning.startswith(f"class {operation.input.__name__}(") or made in beginning.replace("(", "( ")


def test_every_refusal_leads_to_its_class_or_to_what_makes_it() -> None:
    for code, entry in document()["components"]["x-refusals"].items():
        for source in entry["x-source"].split(", "):
            beginning = text_at(source)
            assert beginning.startswith((f"class {code}(", "@")) or "Aggregate(" in beginning or ".text(" in beginning, code


def test_generated_refusals_lead_to_the_declaration_of_their_aggregate_or_command() -> None:
    entries = document()["components"]["x-refusals"]
    assert "= Aggregate(Asset," in text_at(entries[asset.NotFound.__name__]["x-source"])
    cannot = text_at(entries["AssetCannotActivateError"]["x-source"])
    assert cannot.startswith("@asset.command(")
    assert "class ActivateAsset(" in cannot


def test_every_code_that_an_operation_lists_has_an_entry_and_its_status_a_response() -> None:
    entries = document()["components"]["x-refusals"]
    for operation in REGISTRY:
        entry = document()["paths"][operation.path][operation.method.lower()]
        assert {str(entries[code]["status"]) for code in entry["x-refusals"]} <= entry["responses"].keys()


def test_the_document_has_the_version_of_the_package() -> None:
    assert document()["info"]["version"] == baton.__version__
