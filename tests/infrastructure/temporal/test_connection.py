"""How the engine is reached: in the clear, or over TLS with what the settings name."""

from pathlib import Path

import pytest

from baton.application.ports import EngineUnavailableError
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.temporal.engine import TemporalEngine, connection_options


def test_what_is_set_reaches_the_connection(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(name)
    files = {f"temporal_tls_{name}": tmp_path / name for name in ("ca", "cert", "key")}
    options = connection_options(Settings(temporal_tls=True, temporal_api_key="secret", **files))
    tls = options["tls"]
    assert (tls.server_root_ca_cert, tls.client_cert, tls.client_private_key) == (b"ca", b"cert", b"key")
    assert options["api_key"] == "secret"
    assert connection_options(Settings()) == {"namespace": "default", "tls": False, "api_key": None}


async def test_a_client_that_is_told_to_use_tls_does_not_talk_in_the_clear(temporal: EmbeddedTemporal) -> None:
    engine = TemporalEngine(Settings(temporal_address=temporal.address, temporal_tls=True))
    with pytest.raises(EngineUnavailableError):
        await engine.view("conduct:nobody")
    assert await TemporalEngine(Settings(temporal_address=temporal.address)).view("conduct:nobody") == "absent"
