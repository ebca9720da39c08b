"""Clients that others write: release 1 of the Python SDK and the TypeScript SDK list, call, are refused and see progress."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from baton.api.mcp.resources import KINDS
from baton.api.mcp.toolsets import TOOLSETS
from baton.application.settings import McpToolset
from tests.support.workflows.conduct_service import ConductService

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[1] / ".venv-interop"
PYTHON = ENVIRONMENT / "mcp1" / "bin" / "python"
TYPESCRIPT = ENVIRONMENT / "node_modules" / "@modelcontextprotocol" / "sdk"
MADE_BY = "is missing; `make interop` makes it"
FINDERS = {"search_operations", "call_operation"}


async def saw(*command: str) -> Any:
    """What a client printed."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(90):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


def check(seen: Any) -> None:
    """Check what every client must see."""
    assert seen["server"] == "baton"
    assert set(seen["tools"]) == TOOLSETS[McpToolset.OPERATOR] | FINDERS
    assert seen["found"] == "hold_run"
    assert seen["refusal"].startswith("Refused: ")
    (document,) = [line for line in seen["refusal"].splitlines() if line.startswith("{")]
    assert json.loads(document)["code"] == "RequestValidationError"
    assert seen["conducted"]["succeeded"]
    assert seen["sentence"] == "The conduct succeeded: 3 parts completed."
    assert any(message.startswith(("step ", "waiting ")) for message in seen["progress"]), seen["progress"]
    assert seen["templates"] == [kind.template for kind in KINDS]
    assert seen["looked"] == "Completed"
    assert "resume_run" in seen["prompt"]


@pytest.mark.skipif(not PYTHON.exists(), reason=f"release 1 of the Python SDK {MADE_BY}")
async def test_release_1_of_the_python_sdk(conduct_service: ConductService) -> None:
    operator, procedure_id = conduct_service.operator, str(await conduct_service.stack.register_procedure())
    address = f"{operator.base_url}/mcp"
    check(await saw(str(PYTHON), str(HERE / "mcp_client_1x.py"), address, json.dumps(dict(operator.headers)), procedure_id))


@pytest.mark.skipif(not TYPESCRIPT.exists() or shutil.which("node") is None, reason=f"the TypeScript SDK {MADE_BY}")
async def test_the_typescript_sdk(conduct_service: ConductService) -> None:
    operator, procedure_id = conduct_service.operator, str(await conduct_service.stack.register_procedure())
    script, address = str(HERE / "mcp_client.mjs"), f"{operator.base_url}/mcp"
    headers = json.dumps(dict(operator.headers))
    check(await saw("node", script, str(ENVIRONMENT), address, headers, procedure_id))
