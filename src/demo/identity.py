"""A minimal identity provider for the demonstration: it publishes a key, and signs tokens with it."""

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

LOOPBACK = "127.0.0.1"
REST, MCP = "00000000-0000-0000-0000-000000000020", "00000000-0000-0000-0000-000000000022"
AUDIENCES = {REST: "baton-rest", MCP: "baton-mcp"}  # the audience of a token on each surface
TOKEN_SECONDS = 12 * 3600


class DemoIdentityProvider:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = jwt.get_algorithm_by_name("ES256").to_jwk(self._key.public_key(), as_dict=True)
        keys = json.dumps({"keys": [{**public, "kid": "night", "use": "sig"}]}).encode()

        class KeyHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(keys)))
                self.end_headers()
                self.wfile.write(keys)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), KeyHandler)
        self.issuer = f"http://{LOOPBACK}:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def as_setting(self, **bindings: str) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "jwks_url": f"{self.issuer}/keys",
            "allow_insecure_jwks_url": True,
            "audiences": AUDIENCES,
            "subject_bindings": [{"subject": subject, "actor_id": actor_id} for subject, actor_id in bindings.items()],
        }

    def token(self, subject: str, surface: str = REST) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": subject, "aud": AUDIENCES[surface], "iat": now, "exp": now + TOKEN_SECONDS}
        return jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": "night", "typ": "at+jwt"})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
