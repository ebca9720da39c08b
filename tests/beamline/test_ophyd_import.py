"""Devices of a site's Python become a beamline file, and the addresses that executors of Bluesky plans need."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("ophyd_async", reason="ophyd-async is not installed (extra `ophyd`)")

from baton.beamline.importers.ophyd_factory import address_of, owned_prefixes
from baton.cli.main import app
from tests.support.infrastructure.epics_servers import channel_access_server, free_ports

pytestmark = pytest.mark.server

MODULE = "tests.support.infrastructure.site_devices"
ROOT = Path(__file__).parents[2]
needs_aioca = pytest.mark.skipif(find_spec("aioca") is None, reason="aioca is not installed (extra `epics`)")


@pytest.fixture(autouse=True)
def repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def import_devices(*words: str) -> str:
    result = CliRunner().invoke(app, ["import", "ophyd", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_sites_python_is_run_only_where_that_is_said() -> None:
    result = CliRunner().invoke(app, ["import", "ophyd", f"{MODULE}:devices"])
    assert result.exit_code == 1
    assert "its Python must be run; say --run-code if you trust it" in result.stderr


def test_devices_are_described_and_those_that_cannot_be_made_say_why(tmp_path: Path) -> None:
    touches = tmp_path / "touches.json"
    text = import_devices(f"{MODULE}:devices", "--run-code", "--connect", "--touches", str(touches))
    assert "# ophyd:stage.user_readback: number in mm, read, soft://stage" in text
    assert '- {kind: EPICS_PV, value: "ophyd:stage"}' in text
    assert "# ? its signals are simulated, so they have no addresses in a control system" in text
    assert "# ? it could not be asked: RuntimeError: no such crate" in text
    assert "# ? it could not be asked: it is no device of ophyd-async" in text
    assert json.loads(touches.read_text())["devices"]["stage"] == ["ophyd:stage"]
    assert import_devices(f"{MODULE}:devices", "--run-code", "--connect") == text, "twice the same file"


def test_nothing_is_connected_unasked_and_the_process_has_none_of_the_callers_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BATON_TOKEN", "secret")
    monkeypatch.setenv("TANGO_HOST", "db:10000")
    text = import_devices(f"{MODULE}:curious", "--run-code")
    assert "TANGO_HOST" in text
    assert "BATON_TOKEN" not in text
    assert "secret" not in text
    assert str(Path.home()) + " " not in text
    plain = import_devices(f"{MODULE}:devices", "--run-code")
    assert "# ? it was not connected (--connect), so its signals and limits are not known" in plain


@needs_aioca
def test_addresses_and_limits_come_from_the_connected_signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port, repeater = free_ports(2)
    monkeypatch.setenv("EPICS_CA_ADDR_LIST", f"127.0.0.1:{port}")
    monkeypatch.setenv("EPICS_CA_AUTO_ADDR_LIST", "NO")
    monkeypatch.setenv("EPICS_CA_REPEATER_PORT", str(repeater))
    touches = tmp_path / "touches.json"
    with channel_access_server(port) as server:
        server.tell("set", address="bl7:slit:gap", value=1.0, units="mm", limits=[0.0, 5.0])
        server.tell("set", address="bl7:slit:width", value=2.0)
        text = import_devices(f"{MODULE}:channels", "--run-code", "--connect", "--touches", str(touches))
    assert '- {kind: EPICS_PV, value: "bl7:slit"}' in text
    assert '"bl7:slit:gap": {low: 0, high: 5}  # in mm' in text
    assert '"ophyd:slit.gap": {low: 0, high: 5}  # in mm' in text
    assert "# ? it could not be asked: NotConnectedError: ca://bl7:absent" in text
    assert json.loads(touches.read_text())["devices"] == {"lost": ["ophyd:lost"], "slit": ["bl7:slit", "ophyd:slit"]}


def test_sources_become_addresses_and_a_shared_beginning_belongs_to_nobody() -> None:
    sources = ["ca://bl7:m1.RBV", "pva://bl7:cam", "tango://db/a/b/c/x", "soft://m1", "mock+ca://bl7:m1", ""]
    assert [address_of(source) for source in sources] == ["bl7:m1.RBV", "bl7:cam", "tango:db/a/b/c/x", None, None, None]
    known = {"one": ["bl7:m1", "bl7:m1.VELO"], "two": ["bl7:m1:gap"], "three": ["bl7:x", "bl7:y"], "four": []}
    assert {name: owned_prefixes(name, known) for name in known} == {
        "one": ["bl7:m1", "bl7:m1.VELO"],
        "two": ["bl7:m1:gap"],
        "three": ["bl7:x", "bl7:y"],
        "four": [],
    }
    assert owned_prefixes("one", {"one": ["bl7:m1.VAL", "bl7:m1.RBV"], "two": ["bl7:m10"]}) == ["bl7:m1"]


def test_a_factory_that_fails_is_refused_in_a_sentence() -> None:
    result = CliRunner().invoke(app, ["import", "ophyd", "no.such:devices", "--run-code"])
    assert result.exit_code == 1
    assert "no.such:devices could not be run: ModuleNotFoundError: No module named 'no'." in result.stderr


def test_a_happi_database_gives_the_addresses_of_its_devices(tmp_path: Path) -> None:
    touches = tmp_path / "touches.json"
    happi = str(ROOT / "tests" / "data" / "imports" / "happi.json")
    result = CliRunner().invoke(app, ["import", "happi", happi, "--touches", str(touches)])
    assert result.exit_code == 0, result.output
    devices = json.loads(touches.read_text())["devices"]
    assert len(devices) == 59
    assert all(addresses for addresses in devices.values())
