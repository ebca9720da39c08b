"""The socket the API answers on: opened before anything is started, and kept while the API is started again.

A port in use is therefore said at once, nobody can take the port from us, and clients that connect while the API is away
wait for it instead of being turned away.
"""

import socket

from cli.embedded.process import StartError, available_ports

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def listener(host: str, port: int) -> socket.socket:
    """A listening socket on this port, or on any free one for 0."""
    [chosen] = available_ports(host, {"the API": port})
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, chosen), family=family, backlog=2048)
    except OSError as error:
        raise StartError(f"The API cannot listen on {host} port {chosen}: {error.strerror}.") from error


def url_of(listening: socket.socket) -> str:
    """Where a client on this machine reaches this socket."""
    host, port, *_ = listening.getsockname()
    here = EVERYWHERE.get(host, host)
    return f"http://[{here}]:{port}" if ":" in here else f"http://{here}:{port}"
