"""The settings of an asset as a form: its fields come from the schemas of its families, with units and limits, and only what
was changed is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from baton.api.http import Request, Response
from baton.client.refusals import ClientError, ProposedError
from baton.console.actions import CHECK, KEY, lead_to, lead_to_proposal, typed_in
from baton.console.display import href_of, words_of
from baton.console.forms import MISSING, FieldFaults, FormField, FormReader, flatten, read_fields
from baton.console.in_process import REFUSALS, InProcessClient, entry_of, problem_of
from baton.console.page import Context, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.asset import UPDATE_SETTINGS, load_view, name_asset
from baton.console.pages.equipment import equipment
from baton.console.sessions import ConsoleSession
from baton.console.shell import ConsoleShell
from baton.console.verbs import verb_button
from baton.domain.equipment.asset_views import GetAsset
from baton.domain.shared.json_schema import Schema
from baton.domain.views.asset_integration import GetAssetIntegrationView

DROP, RESTATED = "_drop", "_restated"
"""What the form carries besides the settings: which undeclared ones to drop, and which to send although they are equal."""

settings = page(
    "/assets/{asset_id}/settings",
    "Settings",
    "The settings of one asset, as its families declare them.",
    template="asset/settings.html",
    under=equipment,
)
settings.title_from(name_asset)


@dataclass(frozen=True)
class SettingsForm:
    """The settings form of one asset, as it is filled in."""

    view: Shown
    schema: Schema
    fields: Sequence[FormField]
    undeclared: tuple[str, ...]

    def patch(self, typed: Mapping[str, str], queries: PageQueries) -> dict[str, Any]:
        """Return what was changed, as the command takes it; raise where something typed cannot be read."""
        restated = frozenset(filter(None, typed.get(RESTATED, "").split(",")))
        changed = changed_settings(
            self.view["settings"], read_fields(self.fields, typed, queries.zone), self.fields, restated
        )
        return {**changed, **{name: None for name in self.undeclared if typed.get(f"{DROP}.{name}")}}


async def load_form(
    queries: PageQueries, typed: Mapping[str, str] | None, errors: Mapping[str, Sequence[str]]
) -> SettingsForm:
    """Return the form, filled in with what was typed or else with the settings as they are."""
    view = await load_view(queries)
    whole = await queries.show(GetAssetIntegrationView, view["asset_id"])
    schema = joined_schema(whole["families"])
    reader = FormReader({}, queries.zone, errors)
    filled = reader.type_in(schema, view["settings"]) if typed is None else typed
    undeclared = tuple(name for name in view["settings"] if name not in schema["properties"])
    return SettingsForm(view, schema, reader.fields(schema, filled, None), undeclared)


def joined_schema(families: Sequence[Shown]) -> Schema:
    """Return one schema of everything that the families declare."""
    declared = [family["settings_schema"] for family in families if family["settings_schema"]]
    properties = {name: form for one in reversed(declared) for name, form in one.get("properties", {}).items()}
    required = sorted({name for one in declared for name in one.get("required", ())})
    return {"type": "object", "properties": properties, "required": required}


def changed_settings(
    stored: Mapping[str, object], given: Mapping[str, object], fields: Sequence[FormField], restated: frozenset[str]
) -> dict[str, object]:
    """Return what makes the given settings of the stored ones: a value sets, null deletes, what is the same is left out."""
    changed: dict[str, object] = {}
    for field in fields:
        name, old, new = field.name, stored.get(field.name, MISSING), given.get(field.name, MISSING)
        if new is MISSING:
            changed |= {} if old is MISSING else {name: None}
        elif new != old and not (old is MISSING and new is False):
            changed[name] = difference(old, new)
        elif name in {key.partition(".")[0] for key in restated}:
            changed[name] = new
    return changed


def difference(old: object, new: object) -> object:
    """Return what makes one value of another in a merge: of objects, the keys that differ."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    gone = dict.fromkeys(old.keys() - new.keys())
    return gone | {
        key: difference(old.get(key, MISSING), value) for key, value in new.items() if old.get(key, MISSING) != value
    }


@settings.loads(asks=[GetAsset, GetAssetIntegrationView])
async def load_settings(queries: PageQueries) -> Context:
    return await form_context(queries, None, {})


async def form_context(
    queries: PageQueries,
    typed: Mapping[str, str] | None,
    errors: Mapping[str, Sequence[str]],
    problem: Shown | None = None,
    note: str = "",
) -> Context:
    """Return what the form's template shows; a refusal that is about no field stands beside the buttons."""
    form = await load_form(queries, typed, errors)
    restated = (problem or {}).get("facts", {}).get("keys", ()) if (problem or {}).get("reason") == "unit_changed" else ()
    return {
        "view": form.view,
        "fields": form.fields,
        "undeclared": form.undeclared,
        "href": href_of("Asset", form.view["asset_id"]),
        "save": verb_button(UPDATE_SETTINGS, queries, form.view["lifecycle"], None),
        "proposed": queries.proposes(UPDATE_SETTINGS),
        "problem": None if errors else problem,
        "note": note,
        "key": (typed or {}).get(KEY) or uuid4().hex,
        "restated": ",".join(restated) or (typed or {}).get(RESTATED, ""),
    }


@handles("POST", "/assets/{asset_id}/settings")
async def submit_settings(console: ConsoleShell, request: Request, session: ConsoleSession) -> Response:
    """Send what was changed, or rehearse it; what is refused comes back beside its field."""
    queries = console.queries_of(request, session)
    queries.require(settings.needs)
    typed = typed_in(await request.body())
    form = await load_form(queries, typed, {})
    try:
        patch = form.patch(typed, queries)
        if not patch:
            return await answer_form(
                console, request, session, await form_context(queries, typed, {}, note="Nothing was changed.")
            )
        return await send_patch(console, request, session, queries, typed, patch)
    except FieldFaults as faults:
        own = await form_context(queries, typed, {place: [text] for place, text in faults.faults.items()})
        return await answer_form(console, request, session, own, 422)
    except REFUSALS as refusal:
        problem = problem_of(refusal)
        own = await form_context(queries, typed, errors_of(problem, form.fields), problem)
        return await answer_form(console, request, session, own, refusal.status)
    except ClientError as error:
        own = await form_context(queries, typed, {}, problem_of(error))
        return await answer_form(console, request, session, own, 422)


async def send_patch(
    console: ConsoleShell,
    request: Request,
    session: ConsoleSession,
    queries: PageQueries,
    typed: Mapping[str, str],
    patch: Mapping[str, object],
) -> Response:
    """Give the command and lead back to the asset, or say what it would do."""
    id, names = str(queries.id("asset_id")), ", ".join(words_of(name) for name in patch)
    client = InProcessClient.of(console.parts.operations, session.caller)
    arguments = {"asset_id": id, "settings_patch": patch}
    if CHECK in typed:
        await client.carry_out(client.session.call(entry_of(UPDATE_SETTINGS), arguments, dry_run=True))
        note = f"It would be accepted and change {names}. Nothing was done."
        return await answer_form(console, request, session, await form_context(queries, typed, {}, note=note))
    try:
        await client.carry_out(client.session.call(entry_of(UPDATE_SETTINGS), arguments, key=typed.get(KEY) or None))
    except ProposedError as error:
        return lead_to_proposal(request, session, error, console.zone, client.session.position)
    return lead_to(request, session, href_of("Asset", id), f"Settings changed: {names}", client.session.position)


async def answer_form(
    console: ConsoleShell, request: Request, session: ConsoleSession, own: Context, status: int = 200
) -> Response:
    """Return the page with the form as it was filled in."""
    return await console.page_response(request, session, settings, console.queries_of(request, session), own, status)


def errors_of(problem: Shown, fields: Sequence[FormField]) -> dict[str, list[str]]:
    """Return the sentence of a refusal by the fields that it names."""
    facts = problem.get("facts") or {}
    named = [str(facts["path"])] if "path" in facts else [str(key) for key in facts.get("keys", ())]
    places = {one.place for one in flatten(fields)}
    found: dict[str, list[str]] = {}
    for path in named:
        while path and path not in places:
            path = path.rpartition(".")[0]
        if path:
            found.setdefault(path, []).append(str(problem["detail"]))
    return found
