"""The demonstration's beamline is applied from its files, and nothing is left to do the second time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from baton.beamline.catalog import load_catalog
from baton.beamline.commands import DONE, apply_content
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.client import Baton
from baton.demo.beamline_records import recipes_file, shipped_file, visitor_file
from tests.support.api.module_service import running_module_service
from tests.support.databases import fresh_database

HERE = Path(__file__).parent


def test_the_files_of_the_demonstration_are_applied(
    postgres: EmbeddedPostgres, template: str, capsys: pytest.CaptureFixture[str]
) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    files = [shipped_file("beamline.yaml"), recipes_file(HERE), shipped_file("clearances.yaml"), visitor_file(until)]
    with (
        fresh_database(postgres, template) as url,
        running_module_service(url, self_facility_code="lumen") as service,
        Baton(service.api.base_url) as client,
    ):
        assert load_catalog(client) == DONE, capsys.readouterr().out
        client.register_enclosure(name="Imaging hutch B", facility_code="lumen")
        assert apply_content(client, files) == DONE, capsys.readouterr().out
        capsys.readouterr()
        assert apply_content(client, files) == DONE
        assert capsys.readouterr().out.splitlines() == ["The record says what the file says."]
        assert client.clearances["Tomography of alloy bars"].get().status == "Active"
