"""What the OpenAPI document says of the paths that are no operations: health, metrics, MCP and the pages of refusals."""

from typing import Any

from baton.domain.shared.citation import DATACITE_JSON

SERVICE_TAG = {"service": "The service itself: whether it is well, its metrics, its MCP endpoint, and what refusals mean."}
JSON_OBJECT = {"application/json": {"schema": {"type": "object", "additionalProperties": True}}}
RECORDS = ("application/json", "application/ld+json", DATACITE_JSON)


def _entry(name: str, summary: str, **more: object) -> dict[str, Any]:
    return {"operationId": name, "tags": ["service"], "summary": summary, "security": [], **more}


def _answer(meaning: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": meaning, **({"content": content} if content else {})}


SERVICE_PATHS: dict[str, dict[str, Any]] = {
    "/health": {
        "get": _entry("health", "Say that the process is alive.", responses={"200": _answer("Alive.", JSON_OBJECT)})
    },
    "/readyz": {
        "get": _entry(
            "readyz",
            "Say whether the service can answer, what is wrong with its processes, and what writes can reach.",
            responses={"200": _answer("Ready.", JSON_OBJECT), "503": _answer("Not ready, and why.", JSON_OBJECT)},
        )
    },
    "/metrics": {
        "get": _entry(
            "metrics",
            "Show metrics in the text format of Prometheus.",
            responses={"200": _answer("The metrics.", {"text/plain": {"schema": {"type": "string"}}})},
        )
    },
    "/mcp": {
        "post": {
            **_entry(
                "mcp",
                "Answer one frame of the Model Context Protocol (streamable HTTP, without sessions).",
                requestBody={"required": True, "content": JSON_OBJECT},
                responses={
                    "200": _answer("The answer.", {**JSON_OBJECT, "text/event-stream": {"schema": {"type": "string"}}}),
                    "202": _answer("A notification was taken."),
                    "401": {"$ref": "#/components/responses/Unauthorized"},
                    "422": {"$ref": "#/components/responses/UnprocessableContent"},
                },
            )
        }
    },
    "/refusals/{code}": {
        "get": _entry(
            "get_refusal",
            "Say what a refusal means and what to do about it: the page that the `type` of a problem leads to.",
            parameters=[
                {
                    "name": "code",
                    "in": "path",
                    "required": True,
                    "description": "The code of a problem.",
                    "schema": {"type": "string"},
                    "example": "RunCannotStartError",
                }
            ],
            responses={
                "200": _answer("What it means.", {**JSON_OBJECT, "text/html": {"schema": {"type": "string"}}}),
                "404": {"$ref": "#/components/responses/NotFound"},
            },
        )
    },
    "/landing/{kind}/{id}": {
        "get": _entry(
            "get_landing_page",
            "Show what was registered of a thing: the page that its persistent identifier leads to.",
            parameters=[
                {
                    "name": name,
                    "in": "path",
                    "required": True,
                    "description": description,
                    "schema": {"type": "string"},
                    "example": example,
                }
                for name, description, example in (
                    ("kind", "assets, datasets, editions, fixtures or subjects.", "editions"),
                    ("id", "The id of the thing.", "01a1e82f-051a-70eb-bdf7-4664f51de950"),
                )
            ],
            responses={
                "200": _answer(
                    "What was registered.",
                    {"text/html": {"schema": {"type": "string"}}, **dict.fromkeys(RECORDS, JSON_OBJECT["application/json"])},
                ),
                "404": {"$ref": "#/components/responses/NotFound"},
                "410": _answer("It was withdrawn: when, and why.", JSON_OBJECT),
            },
        )
    },
}
del SERVICE_PATHS["/mcp"]["post"]["security"]  # a frame needs a token where operations do
