"""The JSON Schema of beamline files, so that editors complete and check them."""

from typing import Any

from baton.beamline.file import BeamlineFile
from baton.domain.shared.field_meanings import describe

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a beamline file, every field described."""
    schema: dict[str, object] = describe(BeamlineFile.model_json_schema(by_alias=True))
    return {"$schema": DIALECT, **schema, "title": "Beamline file of Baton"}
