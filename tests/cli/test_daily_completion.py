"""What answers without loading the domain, or without a service: completion, `where`, `--version`, a quick start."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import baton
from baton.cli.daily import completion
from baton.client.index import OPERATIONS, REFUSALS
from baton.domain.contexts import REGISTRY
from tests.support.cli.daily_service import PLAN, RECIPE, UNIT, DailyService
from tests.support.forked_commands import run_command
from tests.support.stack import clean_environment, run_baton
from tests.support.tables import for_each


async def completions(daily: DailyService, *words: str, shell: str = "bash") -> list[str]:
    """Return what a shell is offered for the last of these words."""
    line = " ".join(["baton", *words])
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words)), "_TYPER_COMPLETE_ARGS": line}
    action = {"_BATON_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", "import sys; sys.argv = ['baton']; from baton.cli.main import main; main()"],
        env=clean_environment(**daily.environment, **asked, **action),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return str(done.stdout).splitlines()


async def test_a_shell_is_offered_commands_and_names_of_the_service(daily_service: DailyService) -> None:
    assert await completions(daily_service, "hold") == ["hold", "hold-everything"]
    assert await completions(daily_service, "run", "Spr") == [PLAN.replace(" ", "\\ ")]
    assert await completions(daily_service, "preflight", "X") == [""]
    assert await completions(daily_service, "status", "") != []
    assert UNIT in await completions(daily_service, "status", "T")
    assert RECIPE.replace(" ", "\\ ") in await completions(daily_service, "conduct", "Qu")
    await daily_service.answer("call", "open_queue", "name=Tonight 1", f"asset_id={UNIT}")
    assert await completions(daily_service, "queue", "show", "To") == ["Tonight\\ 1"]
    assert await completions(daily_service, "queue", "re") == ["resume", "remove"]
    assert await completions(daily_service, "call", "hold_e") == ["hold_everything"]
    assert "RunCannotHoldError" in await completions(daily_service, "where", "RunCannotH")
    assert PLAN in "".join(await completions(daily_service, "run", "Spr", shell="fish"))


async def test_names_that_a_shell_would_execute_are_not_offered(daily_service: DailyService) -> None:
    hostile = ["Zed $(touch x)", "Zed `id`", "Zed; ls", 'Zed "q"', "Zed *", "Zed 'q'", "Zed | x", "Zed & x", "Zed > x"]
    for name in (*hostile, "Zed 1"):
        await daily_service.answer("call", "register_subject", f"name={name}")
    assert await completions(daily_service, "run", PLAN.replace(" ", "\\ "), "--subject", "Zed") == ["Zed\\ 1"]


async def test_a_completion_gives_up_in_time(daily_service: DailyService, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(completion, "WAIT_SECONDS", 0.2)
        began = time.monotonic()
        assert completion.listed_names({"url": url}, "/plans", "Spr") == []
        assert time.monotonic() - began > 0.15
    assert completion.listed_names({"url": "http://127.0.0.1:1"}, "/plans", "Spr") == []
    assert completion.listed_names({"url": "file:///etc"}, "/plans", "") == []


@for_each("shell", completion.SHELLS)
@pytest.mark.server
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    done = run_baton("completion", shell)
    assert (done.returncode, f"_BATON_COMPLETE=complete_{shell}" in done.stdout) == (0, True)


@pytest.mark.server
def test_a_shell_that_is_not_known_is_refused() -> None:
    done = run_baton("completion", "csh")
    assert (done.returncode, done.stderr) == (
        2,
        "baton: There is no completion for csh; there is one for bash, zsh, fish.\n",
    )


@pytest.mark.server
def test_where_names_the_line_of_every_operation_and_refusal() -> None:
    document = json.loads(run_baton("where", "hold_run", "--json").stdout)
    path, line = document["source"].split(":")
    root = Path(__file__).parents[2]
    assert "class HoldRun" in (root / path).read_text().splitlines()[int(line) - 1]
    assert run_baton("where", "HoldRun").stdout == run_baton("where", "hold-run").stdout
    refusal = json.loads(run_baton("where", "RunRequiresActiveClearanceError", "--json").stdout)
    assert (refusal["status"], "start_run" in refusal["operations"]) == (409, True)
    assert all(re.fullmatch(r"src/\S+\.py:\d+", source) for source in refusal["sources"])
    unknown = run_baton("where", "hold_rnu")
    assert (unknown.returncode, "Did you mean hold_run" in unknown.stderr) == (2, True)


def test_where_knows_every_operation() -> None:
    from baton.cli.daily.calls import operation_document, refusal_document

    assert OPERATIONS.keys() == REGISTRY.operations.keys()
    for operation in OPERATIONS.values():
        assert operation_document(operation)["source"], operation.name
    for code in {one.__name__ for operation in REGISTRY for one in operation.refusals}:
        assert refusal_document(REFUSALS[code])["sources"], code


@pytest.mark.server
def test_the_version_is_printed() -> None:
    done = run_baton("--version")
    assert (done.returncode, done.stdout) == (0, f"{baton.__version__}\n")


@pytest.mark.server
def test_help_loads_neither_the_domain_nor_a_server() -> None:
    program = (
        "import sys; import baton.cli.main; "
        "print([name for name in sys.modules if name.startswith(('baton.domain', 'baton.client', 'baton.application'))"
        " or name in ('httpx', 'pydantic', 'psycopg', 'temporalio', 'fastapi')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.server
def test_every_command_explains_itself() -> None:
    listed = run_baton("--help").stdout
    commands = re.findall(r"^│ ([a-z][a-z-]+) ", listed, re.MULTILINE)
    assert {"status", "run", "conduct", "hold-everything", "login", "apply", "where"} <= set(commands)
    for name in commands:
        done = run_command((name, "--help"), clean_environment(), 60)
        assert (done.returncode, "Usage:" in done.stdout) == (0, True), done.stderr
