"""The documentation page: shows the OpenAPI document and loads nothing from other hosts."""

import base64
import hashlib
import re
from pathlib import Path

DOCS_PAGE = (Path(__file__).parent / "docs.html").read_text()


def page_headers(page: str) -> dict[str, str]:
    """Return the security headers of a page: only its own inline parts run, only this service is asked, no framing."""
    policy = [
        "default-src 'none'",
        "connect-src 'self'",
        f"script-src {inline_hashes(page, 'script')}",
        f"style-src {inline_hashes(page, 'style')}",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def inline_hashes(page: str, tag: str) -> str:
    """Return the hashes of a page's inline elements as a content security policy lists them."""
    parts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    return " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
