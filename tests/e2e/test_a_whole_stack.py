"""A stack that came up: before anything of it is killed, it is ready, says where it is, and nothing is wrong with it."""

from baton.cli.doctor.examination import CHECKS
from tests.support.stack import Stack, eventually, run_baton


def test_up_serves_and_says_where(stack: Stack) -> None:
    url = stack.address("url")
    assert stack.client.get("/health").json() == {"status": "ok"}
    ready = {"status": "ready", "actuation": "inert"}
    eventually(lambda: stack.client.get("/readyz").json() == ready, what=stack.output)
    for line in (f"API          {url}", f"API docs     {url}/docs", f"MCP          {url}/mcp", "Temporal UI  http://"):
        assert line in stack.output()
    assert (stack.directory / "stack.json").stat().st_mode & 0o077 == 0


def test_the_doctor_finds_nothing_wrong_with_a_whole_stack(stack: Stack) -> None:
    def is_healthy() -> bool:
        nonlocal ran
        ran = run_baton("doctor", f"--data-dir={stack.directory}")
        verdicts = [line.split()[:2] for line in ran.stdout.splitlines() if not line.startswith(" ")]
        return ran.returncode == 0 and verdicts == [["ok", name] for name in CHECKS]

    ran = None
    eventually(is_healthy, what=lambda: ran)
    assert ran
    passwords = [path.read_text().rpartition(":")[2].strip() for path in (stack.directory / "postgres").glob("*.pgpass")]
    assert len(passwords) == 2
    shown = ran.stdout + (stack.directory / "stack.json").read_text()
    assert not any(password in shown for password in passwords), "passwords are neither shown nor noted"
