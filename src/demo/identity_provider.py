"""The identity provider of the demonstration: it publishes a key, signs tokens, and signs people in with one click."""

import base64
import hashlib
import json
import secrets
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import time
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

LOOPBACK = "127.0.0.1"
REST, MCP = "00000000-0000-0000-0000-000000000020", "00000000-0000-0000-0000-000000000022"
AUDIENCES = {REST: "baton-rest", MCP: "baton-mcp"}  # the audience of a token on each surface
TOKEN_SECONDS = 12 * 3600
CLIENT = "baton-console"
OWN_HOSTS = (LOOPBACK, "localhost")  # where people are sent back to: this machine alone
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in</title>
<style>body{{font:18px/1.6 system-ui,sans-serif;max-width:32em;margin:4em auto}}a{{display:block;padding:.4em 0}}</style>
<h1>Who are you tonight?</h1>{people}<p>An identity provider that exists for the demonstration alone.</p></html>"""
NOBODY = "<p>Nobody works here yet; the first people are registered within seconds. Load this page again.</p>"


class DemoIdentityProvider:
    """Serves its key, the page on which somebody signs in, and the tokens for the codes that come of it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = jwt.get_algorithm_by_name("ES256").to_jwk(self._key.public_key(), as_dict=True)
        self._keys = {"keys": [{**public, "kid": "night", "use": "sig"}]}
        self._codes: dict[str, tuple[str, str]] = {}
        self.people: dict[str, str] = {}  # who can sign in: names by subject
        provider = self

        class ProviderHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                query = dict(parse_qsl(address.query))
                if address.path != "/authorize":
                    self.answer(200, json.dumps(provider._keys), "application/json")
                elif query.get("as") in provider.people and urlsplit(query.get("redirect_uri", "")).hostname in OWN_HOSTS:
                    self.send_response(302)
                    self.send_header("Location", provider.return_address(query))
                    self.end_headers()
                else:
                    self.answer(200, provider.page(query), "text/html; charset=utf-8")

            def do_POST(self) -> None:
                form = dict(parse_qsl(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()))
                token = provider.redeem(form)
                body = {"error": "invalid_grant"} if token is None else {"access_token": token, "token_type": "Bearer"}
                self.answer(400 if token is None else 200, json.dumps(body), "application/json")

            def answer(self, status: int, body: str, content_type: str) -> None:
                content = body.encode()
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), ProviderHandler)
        self.host = f"{LOOPBACK}:{self._server.server_address[1]}"
        self.issuer = f"http://{self.host}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def as_setting(self, **bindings: str) -> dict[str, object]:
        """Return the setting of a service that trusts it."""
        return {
            "issuer": self.issuer,
            "jwks_url": f"{self.issuer}/keys",
            "allow_insecure_jwks_url": True,
            "audiences": AUDIENCES,
            "public_client_id": CLIENT,
            "authorization_url": f"{self.issuer}/authorize",
            "token_url": f"{self.issuer}/token",
            "allow_insecure_sign_in": True,
            "subject_bindings": [{"subject": subject, "actor_id": actor_id} for subject, actor_id in bindings.items()],
        }

    def page(self, query: dict[str, str]) -> str:
        """Return the page on which somebody signs in."""
        choices = ((urlencode({**query, "as": subject}), name) for subject, name in self.people.items())
        links = "".join(f'<a href="?{escape(choice)}">{escape(name)}</a>' for choice, name in choices)
        return PAGE.format(people=links or NOBODY)

    def return_address(self, query: dict[str, str]) -> str:
        """Return where somebody goes who has signed in, with a code that can be used once."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = (query["as"], query.get("code_challenge", ""))
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query.get('state', '')})}"

    def redeem(self, form: dict[str, str]) -> str | None:
        """Return the token for a code, if it is brought by the browser that began the sign-in."""
        subject, challenge = self._codes.pop(form.get("code", ""), (None, ""))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proven = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge
        return self.token(subject) if subject is not None and proven else None

    def token(self, subject: str, surface: str = REST) -> str:
        """Return a token for a surface."""
        now = int(time())
        claims = {"iss": self.issuer, "sub": subject, "aud": AUDIENCES[surface], "iat": now, "exp": now + TOKEN_SECONDS}
        return jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": "night", "typ": "at+jwt"})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
