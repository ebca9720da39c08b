"""Tango devices become a beamline file: from a server without a database, and from a database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("tango", reason="pytango is not installed (extra `tango`)")

from baton.beamline.reading import Source, read_text
from baton.cli.main import app
from baton.infrastructure.control.tango import TangoControl
from tests.support.infrastructure.scripted_server import ScriptedServer
from tests.support.infrastructure.tango_database import registered_server, tango_database


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer("tango_server") as server:
        server.tell("set", address="Position", value=3.5, units="deg", limits=[-2.5, 100.0])
        server.tell("set", address="Filter", value="In", labels=["Out", "In"], read_only=True)
        yield server


def import_devices(*words: str) -> str:
    result = CliRunner().invoke(app, ["import", "tango", *words, "--root", "BL7"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_device_has_its_limits_its_attributes_as_comments_and_its_commands_as_questions(server: ScriptedServer) -> None:
    device = f"127.0.0.1:{server.ready['port']}/bl7/test/1"
    text = import_devices("--device", device)
    assert text == (
        "# 1 devices were found. Look at 1 of them: '# ?' stands above what was guessed or is not known.\n"
        "# Families come from the starter catalog (baton catalog load). Then: baton diff -f FILE, baton apply -f FILE\n"
        "baton: 1\n"
        "assets:\n"
        "  - name: BL7\n"
        "    tier: Unit\n"
        "    children:\n"
        "      - name: bl7\n"
        "        tier: Component\n"
        "        children:\n"
        "          # ? family guessed from PlayedDevice\n"
        "          # ? commands: Fail(), Home(DevDouble), Reset(); which of them may a procedure give, "
        "and what do they move\n"
        f"          - name: test 1  # {device} in Tango\n"
        f"            # tango:{device}/Filter: DevEnum, one of Out, In, read\n"
        f"            # tango:{device}/Position: DevDouble in deg, read and written\n"
        f"            # tango:{device}/State: DevState, read\n"
        f"            # tango:{device}/Status: DevString, read\n"
        "            families: [RotaryStage]\n"
        "            identifiers:\n"
        f'              - {{kind: EPICS_PV, value: "tango:{device}"}}\n'
        "            signal_limits:\n"
        f'              "tango:{device}/Position": {{low: -2.5, high: 100}}  # in deg\n'
    )
    assert import_devices("--device", device) == text


def test_a_device_that_does_not_answer_is_left_with_a_question(server: ScriptedServer) -> None:
    device = f"127.0.0.1:{server.ready['port']}/bl7/test/2"
    text = import_devices("--device", device)
    assert "# ? the device did not answer, so nothing is known of it: " in text
    assert f'{{kind: EPICS_PV, value: "tango:{device}"}}' in text


def test_a_file_of_devices_can_be_read(server: ScriptedServer) -> None:
    names = [f"127.0.0.1:{server.ready['port']}/bl7/test/{number}" for number in (1, 2)]
    text = import_devices("--device", names[0], "--device", names[1])
    file = read_text(Source("beamline.yaml", text))
    assert file is not None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Give either a database"),
        (("127.0.0.1:1",), "does not answer as a Tango database"),
        (("somewhere",), "is no address of a Tango database"),
        (("--device", "motor"), "is no device"),
    ],
)
def test_what_leads_nowhere_is_refused(words: tuple[str, ...], sentence: str) -> None:
    result = CliRunner().invoke(app, ["import", "tango", *words])
    assert result.exit_code == 1
    assert sentence in result.stderr


async def test_the_devices_of_a_database_are_imported_and_read_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tango_database(tmp_path) as database, registered_server(database) as registered:
        registered.tell("set", address="Position", value=3.5, units="mm")
        text = import_devices(database)
        assert "1 devices were found" in text, "those of Tango itself are left out"
        assert '{kind: EPICS_PV, value: "tango:bl7/test/1"}' in text
        monkeypatch.setenv("TANGO_HOST", database)
        control = TangoControl()
        await control.write("tango:bl7/test/1/Position", 5)
        assert (await control.read("tango:bl7/test/1/Position")).value == 5.0
        await control.close()
