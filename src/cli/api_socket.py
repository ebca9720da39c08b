"""The listening socket of the API: opened before anything starts, and kept while the API restarts, so that clients wait."""

import socket
import sys
from ipaddress import ip_address

import structlog

from baton.application.settings import Settings
from baton.cli.embedded.process import StartError, available_ports
from baton.cli.startup import MESSAGE_PREFIX

log = structlog.get_logger()


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket on this port, or on a free one for 0."""
    [chosen] = available_ports(host, {"the API": port})
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, chosen), family=family, backlog=2048)
    except OSError as error:
        raise StartError(f"The API cannot listen on {host} port {chosen}: {error.strerror}.") from error


def require_loopback(listening: socket.socket, settings: Settings, any_host: bool) -> None:
    """Raise where other machines could connect without a token, or warn where --insecure-any-host allows that."""
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
    print(f"{MESSAGE_PREFIX}{sentence}", file=sys.stderr, flush=True)


def url_of(listening: socket.socket) -> str:
    """Return the URL by which a client on this machine reaches this socket."""
    host, port, *_ = listening.getsockname()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # all addresses include that of this machine
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
