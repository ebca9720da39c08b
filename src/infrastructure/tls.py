"""The certificates that every client of this process trusts, read once: that takes longer than many a request."""

from functools import cache
from ssl import SSLContext

import httpx


@cache
def trusted_certificates() -> SSLContext:
    """Return what connections to others are checked against."""
    return httpx.create_ssl_context()
