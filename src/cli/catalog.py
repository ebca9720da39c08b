"""`baton catalog load`: the starter catalog, defined through the running service as any client would define it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from rich.console import Console
from rich.progress import track

from baton.cli.embedded.process import wait_until
from baton.cli.service_client import client_of, refuse_unanswered, refuse_unauthenticated
from baton.cli.startup_errors import refuse
from baton.domain.equipment.catalog import (
    STARTER_ASSEMBLIES,
    STARTER_FAMILIES,
    STARTER_MODELS,
    CatalogAssembly,
    CatalogFamily,
    CatalogModel,
)
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.text import name_key

PAGE = 100
PATIENCE = 10.0
"""Seconds in which a service that asks for time must be ready, and what it says exists already must show in its list."""

Row = dict[str, Any]


def load_catalog(url: str, token: str | None) -> None:
    """Define what is missing; what is there already, under the same name, is left alone."""
    entries = [*STARTER_FAMILIES, *STARTER_MODELS, *STARTER_ASSEMBLIES]
    with Service(url, token) as service, refusing():
        loader = Loader(service)
        console = Console(stderr=True, emoji=False)
        for entry in track(entries, "loading", console=console, transient=True, disable=not console.is_terminal):
            match entry:
                case CatalogFamily():
                    loader.family(entry)
                case CatalogModel():
                    loader.model(entry)
                case CatalogAssembly():
                    loader.assembly(entry)
    print(
        f"{len(STARTER_FAMILIES)} families, {len(STARTER_MODELS)} models and {len(STARTER_ASSEMBLIES)} assemblies: "
        f"{loader.defined} defined, {loader.found} found and left alone."
    )


@contextmanager
def refusing() -> Iterator[None]:
    """End the command where a refusal of the service is not foreseen."""
    try:
        yield
    except RefusedError as refused:
        refuse(str(refused))


class RefusedError(Exception):
    """The service refused a request."""

    def __init__(self, sentence: str, code: str | None) -> None:
        super().__init__(sentence)
        self.code = code


class Service:
    """The running service over REST; what cannot go on ends the command with a sentence."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._client = client_of(url, token, httpx.Timeout(30))

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def rows(self, path: str) -> Iterator[Row]:
        """Every row of a list."""
        cursor: dict[str, str] = {}
        while True:
            page = self._answer("GET", path, params={"limit": PAGE, **cursor})
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    def get(self, path: str) -> Row:
        """One thing."""
        row: Row = self._answer("GET", path)
        return row

    def post(self, path: str, body: Row) -> Row:
        """Carry out a command; its idempotency key derives from it, so that two loads at once define nothing twice."""
        row: Row = self._answer(
            "POST", path, json=body, headers={"Idempotency-Key": f"catalog-{content_hash([path, body])}"}
        )
        return row

    def post_unless(self, refusal: str, path: str, body: Row) -> Row | None:
        """Carry out a command, or answer nothing where it is refused in this one way."""
        try:
            return self.post(path, body)
        except RefusedError as refused:
            if refused.code != refusal:
                raise
            return None

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """What the service answers; asked to come again, we do."""
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._client.request(method, path, **options)
            if "Retry-After" not in answer.headers or time.monotonic() > deadline:
                return answer
            time.sleep(1)

    def _answer(self, method: str, path: str, **options: Any) -> Any:
        try:
            answer = self._request(method, path, **options)
            body = answer.json() if answer.content else {}
        except httpx.TransportError as error:
            refuse_unanswered(self._url, error)
        except ValueError:
            refuse(f"What answers at {self._url} is no Baton; name the address of the service with --url.")
        if answer.is_success:
            return body
        told: Row = body if isinstance(body, dict) else {}
        detail = told.get("detail", answer.reason_phrase)
        match answer.status_code:
            case 401:
                refuse_unauthenticated(detail)
            case 403:
                refuse(f"This principal may not load the catalog: {detail} Use the token of one who may.")
            case status:
                raise RefusedError(f"{method} {path} was refused with {status}: {detail}", told.get("code"))


class Loader:
    """Defines entries in their order, and knows the ids of everything they refer to by name."""

    def __init__(self, service: Service) -> None:
        self.defined = 0
        self.found = 0
        self._service = service
        self._roles = self._listed_roles()
        self._families = self._listed_families()
        self._models = {vendor_key(row["manufacturer"]["name"], row["part_number"]) for row in service.rows("/models")}
        listed = [row for row in service.rows("/assemblies") if row["status"] != "Deprecated"]
        self._assemblies = {row["name"]: row for row in reversed(listed)}

    def family(self, entry: CatalogFamily) -> None:
        """A family, and the roles it presents; a load that was cut off between the two is completed."""
        key = name_key(entry.name)
        body = {"name": entry.name, "affordances": sorted(entry.affordances), "settings_schema": entry.settings_schema}
        family = self._families.get(key)
        if family is None and (created := self._service.post_unless("FamilyAlreadyExistsError", "/families", body)):
            family = {"family_id": created["family_id"], "presented_role_ids": []}
            self.defined += 1
        else:
            family = family or self._awaited_family(entry.name)
            self.found += 1
        self._families[key] = family
        for role in entry.presents:
            role_id = self._role(role)
            if role_id not in family["presented_role_ids"]:
                path = f"/families/{family['family_id']}/add-role"
                self._service.post_unless("FamilyCannotAddRoleError", path, {"role_id": role_id})

    def model(self, entry: CatalogModel) -> None:
        """A vendor's model."""
        body = {
            "name": entry.name,
            "manufacturer": {"name": entry.manufacturer},
            "part_number": entry.part_number,
            "declared_family_ids": self._family_ids(entry.families),
        }
        self._count(
            vendor_key(entry.manufacturer, entry.part_number) not in self._models
            and self._service.post_unless("ModelAlreadyExistsError", "/models", body) is not None
        )

    def assembly(self, entry: CatalogAssembly) -> None:
        """A blueprint, whose included ones are pinned to the content they have now."""
        if entry.name in self._assemblies:
            self._count(False)
            return
        included = [(slot_name, self._assemblies[name]) for slot_name, name in entry.sub_assemblies.items()]
        body = {
            "name": entry.name,
            "presented_role_ids": sorted(self._role(role) for role in entry.presents),
            "required_slots": [
                {
                    "slot_name": slot.slot_name,
                    "required_family_ids": self._family_ids(slot.families),
                    "cardinality": slot.cardinality,
                }
                for slot in entry.slots
            ],
            "required_sub_assemblies": [
                {"slot_name": slot_name, "sub_assembly_id": row["assembly_id"], "content_hash": row["content_hash"]}
                for slot_name, row in included
            ],
        }
        assembly_id = self._service.post("/assemblies", body)["assembly_id"]
        self._assemblies[entry.name] = self._service.get(f"/assemblies/{assembly_id}") | {"assembly_id": assembly_id}
        self._count(True)

    def _count(self, defined: bool) -> None:
        self.defined += defined
        self.found += not defined

    def _family_ids(self, names: tuple[str, ...]) -> list[str]:
        return sorted(self._families[name_key(name)]["family_id"] for name in names)

    def _role(self, name: str) -> str:
        """A role that is seeded at the start, and of which the list may not have heard yet."""

        def listed() -> bool:
            if name_key(name) not in self._roles:
                self._roles = self._listed_roles()
            return name_key(name) in self._roles

        if not wait_until(listed, PATIENCE):
            refuse(f"The service has no role {name}, which it seeds when it starts; look whether it has the right version.")
        return self._roles[name_key(name)]

    def _listed_roles(self) -> dict[str, str]:
        return {name_key(row["name"]): str(row["role_id"]) for row in self._service.rows("/roles")}

    def _listed_families(self) -> dict[str, Row]:
        return {name_key(row["name"]): row for row in self._service.rows("/families")}

    def _awaited_family(self, name: str) -> Row:
        """A family that exists but was not in the list yet."""

        def listed() -> bool:
            self._families |= self._listed_families()
            return name_key(name) in self._families

        if not wait_until(listed, PATIENCE):
            refuse(f"The service says that the family {name} exists and does not list it; see `baton doctor`.")
        return self._families[name_key(name)]


def vendor_key(manufacturer: str, part_number: str) -> tuple[str, str]:
    """What no two models share."""
    return name_key(manufacturer), part_number
