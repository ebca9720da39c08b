"""The security headers of the service's pages: only their own parts run, and nothing outside is asked."""

import base64
import hashlib
import re
from collections.abc import Iterable


def page_headers(page: str, *, connect: Iterable[str] = (), own_files: bool = False) -> dict[str, str]:
    """Return the headers of a page: only its own inline parts run, and with `own_files` what this service serves; it asks
    this service alone, and the origins in `connect`."""
    own = ["'self'"] if own_files else []
    parts = {
        "default-src": "'none'",
        "connect-src": " ".join(("'self'", *connect)),
        "script-src": " ".join([*own, *inline_hashes(page, "script")]) or "'none'",
        "style-src": " ".join([*own, *inline_hashes(page, "style")]) or "'none'",
        "img-src": "'self' data:" if own_files else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    policy = "; ".join(f"{name} {value}" for name, value in parts.items())
    same = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
    return {"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", **same}


def inline_hashes(page: str, tag: str) -> list[str]:
    """Return the hashes of a page's inline elements as a content security policy lists them."""
    parts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    return [f"'sha256-{digest}'" for digest in hashes]
