"""What a client of the last release relies on is still there."""

import copy
from collections.abc import Callable
from typing import Any

from tests.documents.released import released_document
from tests.support.api.compatibility import breaking_changes, json_schema
from tests.support.api.openapi_document import document
from tests.support.tables import for_each


def test_nothing_of_the_last_release_is_removed_or_narrowed() -> None:
    assert list(breaking_changes(released_document(), document())) == []


def schema(changed: dict[str, Any], name: str) -> dict[str, Any]:
    part: dict[str, Any] = changed["components"]["schemas"][name]
    return part


Change = Callable[[dict[str, Any]], object]
BREAKS: dict[str, Change] = {
    "GET /zones is gone": lambda new: new["paths"]["/zones"].pop("get"),
    "GET /zones/{zone_id} is gone": lambda new: new["paths"].pop("/zones/{zone_id}"),
    "GET /zones takes no parameter limit any more": lambda new: new["paths"]["/zones"]["get"].update(
        parameters=[one for one in new["paths"]["/zones"]["get"]["parameters"] if one.get("name") != "limit"]
    ),
    "POST /zones body takes no name any more": lambda new: schema(new, "DefineZoneRequest")["properties"].pop("name"),
    "POST /zones body needs colour": lambda new: schema(new, "DefineZoneRequest")["required"].append("colour"),
    "POST /zones body.name has a narrower maxLength": lambda new: schema(new, "DefineZoneRequest")["properties"][
        "name"
    ].update(maxLength=3),
    "GET /zones 200.items[] has no name any more": lambda new: schema(new, "ZoneItem")["properties"].pop("name"),
    "GET /zones 200.items[] may come without name": lambda new: schema(new, "ZoneItem")["required"].remove("name"),
    "POST /runs/{run_id}/conduct 202 has no work_id any more": lambda new: json_schema(
        new["paths"]["/runs/{run_id}/conduct"]["post"]["responses"]["202"]
    )["anyOf"].append({"$ref": "#/components/schemas/ZoneItem"}),
    "GET /zones order takes 'desc' no more": lambda new: schema(new, "Order")["enum"].remove("desc"),
}


CHANGED_PATHS = ("/zones", "/zones/{zone_id}", "/runs/{run_id}/conduct")


def small_document() -> dict[str, Any]:
    """Return the parts of the document that the changes are about, as a copy."""
    return copy.deepcopy({**document(), "paths": {path: document()["paths"][path] for path in CHANGED_PATHS}})


@for_each("said", BREAKS)
def test_each_kind_of_break_is_seen(said: str) -> None:
    changed = small_document()
    BREAKS[said](changed)
    assert said in list(breaking_changes(small_document(), changed))


def test_additions_break_nothing() -> None:
    changed = small_document()
    changed["paths"]["/new"] = changed["paths"]["/zones"]
    schema(changed, "ZoneItem")["properties"]["colour"] = {"type": "string"}
    schema(changed, "DefineZoneRequest")["properties"]["colour"] = {"type": "string"}
    assert list(breaking_changes(small_document(), changed)) == []
