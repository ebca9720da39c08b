"""Those who work the beamline, each over REST as themselves; nobody here has another way into the service."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, TypeVar

import httpx

LOOK_INTERVAL = 0.1
PATIENCE = 90.0
"""Seconds that anything may take."""
T = TypeVar("T")


class StageError(Exception):
    """Something did not happen as it should; the message says what was seen instead."""


@dataclass(frozen=True)
class Person:
    """A client of the service with a token that says who they are."""

    client: httpx.Client
    name: str
    id: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def get(self, path: str, **parameters: Any) -> Any:
        """What a question is answered."""
        return self._answered("GET", path, params=parameters).json()

    def post(self, path: str, body: Any = None) -> Any:
        """What a command that must succeed answers."""
        answer = self._answered("POST", path, json=body or {})
        return answer.json() if answer.content else {}

    def patch(self, path: str, body: Any) -> None:
        self._answered("PATCH", path, json=body)

    def create(self, path: str, body: Any) -> str:
        """The id of something just made."""
        return next(str(value) for name, value in self.post(path, body).items() if name.endswith("_id"))

    def refused(self, path: str, body: Any, *codes: str) -> dict[str, Any]:
        """The body of a refusal that is expected, of one of these classes."""
        answer = self._asked("POST", path, json=body)
        said: dict[str, Any] = answer.json() if answer.content else {}
        if answer.is_success or said.get("code") not in codes:
            raise StageError(f"{path} should be refused with {' or '.join(codes)}; it answered {answer.status_code} {said}")
        return said

    def rows(self, path: str) -> Iterator[dict[str, Any]]:
        """Every row of a list, page by page."""
        cursor: dict[str, str] = {}
        while True:
            page = self.get(path, limit=100, **cursor)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    def named(self, path: str, name: str, field: str = "name") -> dict[str, Any]:
        """The row of a list that has this name, as soon as it is there; lists come a moment behind the record."""

        def found() -> dict[str, Any] | None:
            return next((row for row in self.rows(path) if row[field] == name), None)

        return eventually(found, PATIENCE, f"{path} has none whose {field} is {name}")

    def _answered(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = self._asked(method, path, **options)
        if not answer.is_success:
            raise StageError(f"{self.name}: {method} {path} was answered {answer.status_code} {answer.text}")
        return answer

    def _asked(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.client.request(method, path, headers=self.headers, **options)


def eventually(look: Callable[[], T | None], within: float, otherwise: str) -> T:
    """The first answer of a look that is not nothing."""
    deadline = monotonic() + within
    while not (seen := look()):
        if monotonic() > deadline:
            raise StageError(f"{otherwise}, not within {within:.0f} s")
        sleep(LOOK_INTERVAL)
    return seen
