"""Tools that others make read the OpenAPI document without a warning, and a client that one writes works the service."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.api.openapi_document import document
from tests.support.api.samples import create_samples
from tests.support.service import Api

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-interop"
PYTHON, GENERATOR = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "bin" / "openapi-python-client"
pytestmark = [
    pytest.mark.skipif(not GENERATOR.exists(), reason="the tools are missing; `make interop` makes them"),
    pytest.mark.timeout(600),
]
VALIDATE = "import json, sys; from openapi_spec_validator import validate; validate(json.load(sys.stdin))"
FILES = dict.fromkeys(("image/svg+xml", "image/png", "application/jsonl", "application/zip"), "application/octet-stream")
CONFIGURATION = {"content_type_overrides": FILES, "post_hooks": []}
"""What the generator is told: it knows no pictures and no lines of JSON, and nothing formats what it writes."""


async def output_of(*command: str, sent: bytes | None = None) -> str:
    """Return what a program printed; it must succeed and complain of nothing."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(550):
        output, errors = await process.communicate(sent)
    assert process.returncode == 0, f"{output.decode()}{errors.decode()}"
    return output.decode()


async def test_the_document_is_valid() -> None:
    await output_of(str(PYTHON), "-W", "error", "-c", VALIDATE, sent=json.dumps(document()).encode())


async def test_a_generated_client_lists_starts_and_steers(api: Api, tmp_path: Path) -> None:
    for name, content in (("openapi.json", document()), ("generator.json", CONFIGURATION)):
        (tmp_path / name).write_text(json.dumps(content))
    options = ["--path", str(tmp_path / "openapi.json"), "--config", str(tmp_path / "generator.json"), "--meta", "none"]
    written = str(tmp_path / "baton_client")
    await output_of(str(GENERATOR), "generate", *options, "--output-path", written, "--fail-on-warning")
    ids = await create_samples(api)
    asked = json.dumps({"name": "Load step 2", "plan_id": ids["plan_id"]})
    script = str(HERE / "generated_client.py")
    seen = json.loads(await output_of(str(PYTHON), script, str(tmp_path), api.base_url, asked))
    assert seen == {
        "would": ["RunStarted"],
        "repeated": True,
        "held": 204,
        "refused": ["RunCannotHoldError", "held"],
        "listed": True,
        "status": "Held",
        "resumed": 204,
    }
