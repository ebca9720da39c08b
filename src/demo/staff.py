"""The people of the demonstration, each a REST client with their own token and permissions, and who signs their tokens."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Thread
from time import monotonic, sleep, time
from typing import Any, TypeVar

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from baton.domain.operation.procedure.start import needed_grants

BEAMLINE: dict[str, Any] = json.loads(files(__package__).joinpath("beamline.json").read_bytes())
LOOPBACK = "127.0.0.1"
REST, MCP = "00000000-0000-0000-0000-000000000020", "00000000-0000-0000-0000-000000000022"
AUDIENCES = {REST: "baton-rest", MCP: "baton-mcp"}  # the audience of a token on each surface
TOKEN_SECONDS = 12 * 3600
POLL_SECONDS = 0.1
WAIT_SECONDS = 90.0  # how long anything may take
CONDUIT = "00000000-0000-0000-0000-000000000010"
ADMINISTRATOR = "administrator"
FOCUS_COMMANDS = ("AdviseProcedure", "GetProcedure", "GetProcedureSteering", *needed_grants("ConductUntilAdvised"))
T = TypeVar("T")


class DemoIdentityProvider:
    """Publishes a key, and signs tokens with it."""

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
        now = int(time())
        claims = {"iss": self.issuer, "sub": subject, "aud": AUDIENCES[surface], "iat": now, "exp": now + TOKEN_SECONDS}
        return jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": "night", "typ": "at+jwt"})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class StageError(Exception):
    """Something did not happen as it should; the message says what was seen instead."""


@dataclass(frozen=True)
class UserClient:
    client: httpx.Client
    name: str
    id: str
    token: str

    def get(self, path: str, **parameters: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._require_success("GET", path, params=parameters).json()
        return answer

    def text(self, path: str) -> str:
        return self._require_success("GET", path).text

    def post(self, path: str, body: Any = None) -> Any:
        answer = self._require_success("POST", path, json=body or {})
        return answer.json() if answer.content else {}

    def patch(self, path: str, body: Any) -> None:
        self._require_success("PATCH", path, json=body)

    def create(self, path: str, body: Any) -> str:
        return next(str(value) for name, value in self.post(path, body).items() if name.endswith("_id"))

    def expect_refusal(self, path: str, body: Any, code: str) -> dict[str, Any]:
        answer = self._request("POST", path, json=body)
        refusal: dict[str, Any] = answer.json() if answer.content else {}
        if answer.is_success or refusal.get("code") != code:
            raise StageError(f"{path} should be refused with {code}; it answered {answer.status_code} {refusal}")
        return refusal

    def rows(self, path: str) -> Iterator[dict[str, Any]]:
        cursor: dict[str, str] = {}
        while True:
            page = self.get(path, limit=100, **cursor)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    def wait_for_row(self, path: str, value: str, field: str = "name") -> dict[str, Any]:
        """Return the row of a list with this value in a field, as soon as it is there; lists lag behind the record."""
        otherwise = f"{path} has none whose {field} is {value}"
        return wait_for(lambda: next((row for row in self.rows(path) if row[field] == value), None), otherwise)

    def _require_success(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = self._request(method, path, **options)
        if not answer.is_success:
            raise StageError(f"{self.name}: {method} {path} was answered {answer.status_code} {answer.text}")
        return answer

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.client.request(method, path, headers={"Authorization": f"Bearer {self.token}"}, **options)


def wait_for(look: Callable[[], T | None], otherwise: str) -> T:
    """Return the first truthy result of repeated looks, or raise StageError."""
    deadline = monotonic() + WAIT_SECONDS
    while not (seen := look()):
        if monotonic() > deadline:
            raise StageError(f"{otherwise}, not within {WAIT_SECONDS:.0f} s")
        sleep(POLL_SECONDS)
    return seen


@dataclass(frozen=True)
class Staff:
    engineer: UserClient
    safety_officer: UserClient
    scientist: UserClient
    agent_token: str


def register_staff(client: httpx.Client, provider: DemoIdentityProvider, administrator_id: str) -> Staff:
    administrator = UserClient(client, ADMINISTRATOR, administrator_id, provider.token(ADMINISTRATOR))
    office = StaffOffice(administrator, provider)
    office.permit(administrator_id, REST, sets=["access.commands", "trust.commands", "queries"])
    engineer = office.register_person("Ada Lindqvist", "agent", "caution", "equipment", "recipe", "subject", "supply")
    safety_officer = office.register_person("Samir Haddad", "safety")
    scientist = office.register_person("Mira Okafor", "campaign", "data", "operation", "run", "supply")
    return Staff(engineer, safety_officer, scientist, office.register_agent(engineer))


@dataclass(frozen=True)
class StaffOffice:
    administrator: UserClient
    provider: DemoIdentityProvider

    def register_person(self, name: str, *contexts: str) -> UserClient:
        """Register somebody who may query everything, and command in these contexts."""
        actor_id = self.administrator.create("/actors", {"name": name})
        token = self.bind_subject(actor_id, name.split()[0].lower(), REST)  # before they may do more than the administrator
        self.permit(actor_id, REST, sets=["queries", *(f"{context}.commands" for context in contexts)])
        return UserClient(self.administrator.client, name, actor_id, token)

    def register_agent(self, engineer: UserClient) -> str:
        """Register the agent that finds the focus, and may do just that; return its token."""
        agent_id = engineer.create("/agents", BEAMLINE["agent"])
        engineer.post(f"/agents/{agent_id}/version")
        token = self.bind_subject(agent_id, "focus-finder", MCP)
        self.permit(agent_id, MCP, commands=FOCUS_COMMANDS)
        return token

    def bind_subject(self, actor_id: str, subject: str, surface: str) -> str:
        binding = {"issuer": self.provider.issuer, "subject": subject}
        self.administrator.post(f"/actors/{actor_id}/subject-bindings/add", binding)
        return self.provider.token(subject, surface)

    def permit(self, actor_id: str, surface: str, *, commands: Sequence[str] = (), sets: Sequence[str] = ()) -> None:
        permitted = {"permitted_principal_ids": [actor_id], "permitted_commands": commands, "permitted_command_sets": sets}
        place = {"conduit_id": CONDUIT, "surface_id": surface}
        self.administrator.create("/policies", {"name": "Work of the night", **place, **permitted})
