"""The compose file: its command lines, logins and health checks, run on the embedded servers in place of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from baton.application.boot_guards import boot_objections
from baton.application.settings import Settings
from baton.cli.embedded.postgres import MAJOR_VERSION, WHEEL, EmbeddedPostgres
from baton.cli.embedded.process import available_ports
from baton.cli.embedded.temporal import SETTINGS as EMBEDDED_SETTINGS
from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.conftest import UNSAFE_BUT_FAST
from tests.support.stack import clean_environment, eventually

ROOT = Path(__file__).parents[2]
SET_BY_COMPOSE = {"DATABASE_URL", "DATABASE_OWNER_URL", "TEMPORAL_ADDRESS"}
PASSWORDS = {
    name: f"{name.lower()}-for-a-test"
    for name in ("TEMPORAL_POSTGRES_PASSWORD", "BATON_POSTGRES_PASSWORD", "BATON_OWNER_PASSWORD", "BATON_RUNTIME_PASSWORD")
}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def fill_variables(text: str) -> str:
    """What compose makes of a text: variables replaced by what is set, or by their defaults."""

    def value(found: re.Match[str]) -> str:
        assert found[1] in PASSWORDS or found[2] != "?", f"{found[1]} must be set"
        return PASSWORDS.get(found[1], found[3] or "")

    return VARIABLE.sub(value, text)


def services(name: str = "docker-compose.temporal.yml") -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(fill_variables((ROOT / name).read_text()))["services"]
    return read


def example() -> tuple[dict[str, str], set[str]]:
    """The settings of the example's lines that count, and the names of all of them."""
    lines = (ROOT / "baton.env.example").read_text().splitlines()
    counted = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    named = {found[1] for line in lines if (found := re.match(r"#?([A-Z_]+)=", line))}
    return counted, named


def test_the_example_names_every_setting_and_starts_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, named = example()
    own = {name for name in named if not name.startswith("EPICS_")}
    assert own == {name.upper() for name in Settings.model_fields} - SET_BY_COMPOSE
    for name, value in counted.items():
        monkeypatch.setenv(name, value)
    assert Settings().production
    assert boot_objections(Settings()) == []


def test_only_the_api_can_be_reached_from_other_machines_and_the_engine_cannot_be_told_anything() -> None:
    composed = services()
    published = {name: service["ports"] for name, service in composed.items() if "ports" in service}
    assert published == {"network": ["8000:8000", "127.0.0.1:8233:8080"]}, "the API, and the engine's UI on this machine"
    sharing = {name for name, service in composed.items() if service.get("network_mode") == "service:network"}
    assert sharing == {"temporal", "temporal-ui", "api", "projector", "worker"}
    assert composed["temporal-ui"]["environment"]["TEMPORAL_DISABLE_WRITE_ACTIONS"] == "true"
    beside = services("docker-compose.host-network.yml")
    assert beside["worker"]["network_mode"] == "host"
    assert all(port.startswith("127.0.0.1:") for service in beside.values() for port in service.get("ports", []))


def test_the_owner_logs_in_from_the_projector_alone() -> None:
    owners = {name for name, service in services().items() if "DATABASE_OWNER_URL" in service.get("environment", {})}
    assert owners == {"projector"}


def test_its_engine_is_set_as_the_embedded_one_is() -> None:
    chosen = yaml.safe_load((ROOT / "deploy" / "temporal.yaml").read_text())
    embedded = {name: [{"value": yaml.safe_load(value)}] for name, value in EMBEDDED_SETTINGS.items()}
    assert chosen == embedded
    engine = services()["temporal"]
    (mounted,) = engine["volumes"]
    assert mounted.split(":")[:2] == [
        "./deploy/temporal.yaml",
        f"/etc/temporal/{engine['environment']['DYNAMIC_CONFIG_FILE_PATH']}",
    ]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """host:port of a PostgreSQL that was prepared by the compose file's own script."""
    with EmbeddedPostgres(tmp_path / "postgres", port=0, settings=UNSAFE_BUT_FAST) as server:
        psql = Path(str(find_spec(WHEEL).origin)).parent / f"pginstall{MAJOR_VERSION}" / "bin" / "psql"  # type: ignore[union-attr]
        script = ROOT / "deploy" / "postgres-roles.sql"
        for _ in "twice":
            subprocess.run([psql, server.url, "--file", script], env={**os.environ, **PASSWORDS}, check=True)
        yield server.url.partition("@")[2].partition("/")[0]


@pytest.mark.timeout(240)
def test_its_processes_start_and_their_health_checks_pass(
    database: str, temporal: EmbeddedTemporal, baton_program: Path, tmp_path: Path
) -> None:
    composed = services()
    [port] = available_ports("0.0.0.0", {"the API": None})
    counted, _ = example()

    def command(words: list[str]) -> list[str]:
        own = {"baton": [str(baton_program)], "python": [sys.executable]}
        return [*own[words[0]], *(word.replace("8000", str(port)) for word in words[1:])]

    def environment(service: dict[str, Any]) -> dict[str, str]:
        places = {"baton-postgres:5432": database, "127.0.0.1:7233": temporal.address}
        own = dict(service["environment"])
        for name, place in places.items():
            own = {variable: value.replace(name, place) for variable, value in own.items()}
        return clean_environment(**counted, **own)

    def is_healthy(name: str) -> bool:
        first, *words = composed[name]["healthcheck"]["test"]
        assert first == "CMD"
        ran = subprocess.run(command(words), env=environment(composed[name]), cwd=ROOT, capture_output=True, check=False)
        return ran.returncode == 0

    with ExitStack() as running:
        for name in ("api", "worker", "projector"):
            service = composed[name]
            log = running.enter_context((tmp_path / f"{name}.log").open("wb"))
            words = [*service.get("entrypoint", ["baton"]), *service["command"]]
            process = subprocess.Popen(
                command(words), env=environment(service), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
            )
            running.callback(process.wait, 30)
            running.callback(process.terminate)
        for name in ("projector", "api", "worker"):
            eventually(lambda name=name: is_healthy(name), 90, (tmp_path / f"{name}.log").read_text)  # type: ignore[misc]
    url = f"postgresql://baton_runtime:{PASSWORDS['BATON_RUNTIME_PASSWORD']}@{database}/baton"
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'events'").fetchone() == (
            "baton_owner",
        )
