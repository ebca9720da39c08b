"""The socket the API answers on: opened before anything is started, and kept while the API is started again.

A port in use is therefore said at once, nobody can take the port from us, and clients that connect while the API is away
wait for it instead of being turned away.
"""

import socket
import sys
from ipaddress import ip_address

import structlog

from baton.application.settings import Settings
from baton.cli.embedded.process import StartError, available_ports
from baton.cli.startup_errors import SPOKEN

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}

log = structlog.get_logger()


def listener(host: str, port: int) -> socket.socket:
    """A listening socket on this port, or on any free one for 0."""
    [chosen] = available_ports(host, {"the API": port})
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, chosen), family=family, backlog=2048)
    except OSError as error:
        raise StartError(f"The API cannot listen on {host} port {chosen}: {error.strerror}.") from error


def require_loopback(listening: socket.socket, settings: Settings, any_host: bool) -> None:
    """Refuse to listen to other machines where no token is required, or say on every start that it was asked for."""
    address = listening.getsockname()[0]
    if settings.tokens_required or ip_address(address).is_loopback:
        return
    if not any_host:
        listening.close()
        raise StartError(
            f"Whoever reaches {address} could do everything, since no token is required; listen on 127.0.0.1, set "
            "REQUIRE_AUTHENTICATED_PRINCIPAL=true with IDENTITY_PROVIDERS, or give --insecure-any-host if that is meant."
        )
    log.warning("insecure_any_host", address=address)
    sentence = f"Whoever reaches {address} can do everything: no token is required, and --insecure-any-host was given."
    print(f"{SPOKEN}{sentence}", file=sys.stderr, flush=True)


def url_of(listening: socket.socket) -> str:
    """Where a client on this machine reaches this socket."""
    host, port, *_ = listening.getsockname()
    here = EVERYWHERE.get(host, host)
    return f"http://[{here}]:{port}" if ":" in here else f"http://{here}:{port}"
