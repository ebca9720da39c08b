"""`baton catalog load`: defines the starter catalog through the running service, as any client would."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
from rich.console import Console
from rich.progress import track

from baton.cli.embedded.process import wait_until
from baton.cli.service_client import error_members, open_client, refuse_unanswered, refuse_unauthorized
from baton.cli.startup import refuse
from baton.domain.equipment import catalog
from baton.domain.equipment.catalog import CatalogAssembly, CatalogFamily, CatalogModel
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.text import name_key

WAIT_SECONDS = 10.0  # how long to wait for a service that is not ready, and for what exists already to appear in its list

Row = dict[str, Any]


def load_catalog(url: str, token: str | None) -> None:
    """Define what is missing; what exists under the same name is left alone."""
    console = Console(stderr=True, emoji=False)
    try:
        with open_client(url, token, httpx.Timeout(30)) as client:
            loader = Loader(CatalogClient(url, client))
            loads: list[Callable[[], None]] = [
                *(partial(loader.load_family, family) for family in catalog.STARTER_FAMILIES),
                *(partial(loader.load_model, model) for model in catalog.STARTER_MODELS),
                *(partial(loader.load_assembly, assembly) for assembly in catalog.STARTER_ASSEMBLIES),
            ]
            for load in track(loads, "loading", console=console, transient=True, disable=not console.is_terminal):
                load()
    except RefusedError as refused:
        refuse(str(refused))
    models = f"{len(catalog.STARTER_FAMILIES)} families, {len(catalog.STARTER_MODELS)} models"
    counts = f"{models} and {len(catalog.STARTER_ASSEMBLIES)} assemblies"
    print(f"{counts}: {loader.defined} defined, {loader.found} found and left alone.")


class RefusedError(Exception):
    """The service refused a request."""

    def __init__(self, sentence: str, code: str | None) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class CatalogClient:
    """A client of the running service; it ends the command with a sentence where it cannot go on."""

    url: str
    client: httpx.Client

    def rows(self, path: str) -> Iterator[Row]:
        """Yield every row of a list."""
        cursor: dict[str, str] = {}
        while True:
            page = self.answer("GET", path, params={"limit": 100, **cursor})
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    def post(self, path: str, body: Row) -> Row:
        """Execute a command; its idempotency key derives from it, so that two loads at once define nothing twice."""
        return self.answer("POST", path, json=body, headers={"Idempotency-Key": f"catalog-{content_hash([path, body])}"})

    def post_unless(self, refusal: str, path: str, body: Row) -> Row | None:
        """Execute a command; return None where it is refused by this class."""
        try:
            return self.post(path, body)
        except RefusedError as refused:
            if refused.code != refusal:
                raise
            return None

    def answer(self, method: str, path: str, **options: Any) -> Row:
        """Send a request, and again for a while where the answer asks to retry; return the body of its answer."""
        deadline = time.monotonic() + WAIT_SECONDS
        try:
            while "Retry-After" in (answer := self.client.request(method, path, **options)).headers:
                if time.monotonic() > deadline:
                    break
                time.sleep(1)
            body: Row = answer.json() if answer.content else {}
        except httpx.TransportError as error:
            refuse_unanswered(self.url, error)
        except ValueError:
            refuse(f"What answers at {self.url} is no Baton; name the address of the service with --url.")
        if answer.is_success:
            return body
        members, status = error_members(answer), answer.status_code
        refuse_unauthorized(status, members["detail"], "load the catalog")
        raise RefusedError(f"{method} {path} was refused with {status}: {members['detail']}", members.get("code"))


class Loader:
    """Defines entries in their order; keeps the ids of everything they refer to by name."""

    def __init__(self, service: CatalogClient) -> None:
        self.defined = self.found = 0
        self._service = service
        self._listed = {path: self._list(path) for path in ("/roles", "/families")}
        self._models = {vendor_key(row["manufacturer"]["name"], row["part_number"]) for row in service.rows("/models")}
        listed = [row for row in service.rows("/assemblies") if row["status"] != "Deprecated"]
        self._assemblies = {row["name"]: row for row in reversed(listed)}

    def load_family(self, entry: CatalogFamily) -> None:
        """Define a family and the roles it presents; complete a load that was cut off between the two."""
        families, key = self._listed["/families"], name_key(entry.name)
        body = {"name": entry.name, "affordances": sorted(entry.affordances), "settings_schema": entry.settings_schema}
        if key not in families and (created := self._service.post_unless("FamilyAlreadyExistsError", "/families", body)):
            families[key] = {"family_id": created["family_id"], "presented_role_ids": []}
            self._count(True)
        else:
            self._count(False)
        unlisted = f"The service says that the family {entry.name} exists and does not list it; see `baton doctor`."
        family = self._find("/families", entry.name, unlisted)
        for role in entry.presents:
            role_id = self._role_id(role)
            if role_id not in family["presented_role_ids"]:
                path = f"/families/{family['family_id']}/add-role"
                self._service.post_unless("FamilyCannotAddRoleError", path, {"role_id": role_id})

    def load_model(self, entry: CatalogModel) -> None:
        """Define a vendor's model."""
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

    def load_assembly(self, entry: CatalogAssembly) -> None:
        """Define a blueprint, which pins its sub-assemblies to their present content."""
        if entry.name in self._assemblies:
            self._count(False)
            return
        ids = self._family_ids
        included = {slot_name: self._assemblies[name] for slot_name, name in entry.sub_assemblies.items()}
        body = {
            "name": entry.name,
            "presented_role_ids": sorted(map(self._role_id, entry.presents)),
            "required_slots": [
                {"slot_name": slot.slot_name, "required_family_ids": ids(slot.families), "cardinality": slot.cardinality}
                for slot in entry.slots
            ],
            "required_sub_assemblies": [
                {"slot_name": slot_name, "sub_assembly_id": row["assembly_id"], "content_hash": row["content_hash"]}
                for slot_name, row in included.items()
            ],
        }
        assembly_id = self._service.post("/assemblies", body)["assembly_id"]
        defined = self._service.answer("GET", f"/assemblies/{assembly_id}")
        self._assemblies[entry.name] = defined | {"assembly_id": assembly_id}
        self._count(True)

    def _count(self, defined: bool) -> None:
        self.defined += defined
        self.found += not defined

    def _family_ids(self, names: tuple[str, ...]) -> list[str]:
        return sorted(self._listed["/families"][name_key(name)]["family_id"] for name in names)

    def _role_id(self, name: str) -> str:
        unseeded = f"The service has no role {name}, which it seeds when it starts; look whether it has the right version."
        return str(self._find("/roles", name, unseeded)["role_id"])

    def _list(self, path: str) -> dict[str, Row]:
        return {name_key(row["name"]): row for row in self._service.rows(path)}

    def _find(self, path: str, name: str, fault: str) -> Row:
        """Return the row of this name, which may not be in the list yet, or exit with this fault."""
        listed, key = self._listed[path], name_key(name)

        def is_listed() -> bool:
            if key not in listed:
                listed.update(self._list(path))
            return key in listed

        if not wait_until(is_listed, WAIT_SECONDS):
            refuse(fault)
        return listed[key]


def vendor_key(manufacturer: str, part_number: str) -> tuple[str, str]:
    """Return the key that no two models share."""
    return name_key(manufacturer), part_number
