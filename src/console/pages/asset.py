"""An asset: both axes with their verbs, what it is and where it stands, its live signals, what warns about it, how it is
calibrated, who uses it, and what it is part of."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import orjson

from baton.api.http import Request, Response
from baton.console.display import href_of, words_of
from baton.console.forms import unit_code
from baton.console.page import Context, handles, page
from baton.console.page_queries import PageQueries, Shown
from baton.console.pages.equipment import Surroundings, branch_of, equipment, load_ancestors, load_claims
from baton.console.rendering import PAGE_HEADERS
from baton.console.signal_readings import LatestReadings, board_of, read_lately
from baton.console.signal_rows import NOT_READ, identifiers_of, signal_addresses, signal_row
from baton.console.verbs import VerbButton, form_href, verb_button, verbs_of
from baton.domain.calibration.calibration import GetCalibration, ListCalibrations
from baton.domain.calibration.quantities import QUANTITIES, CalibrationQuantity
from baton.domain.caution.caution import ListCautions
from baton.domain.conduct.control_signals import ReadSignals
from baton.domain.contexts import REGISTRY
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_external_id import GetAssetPidinst
from baton.domain.equipment.asset_tree import GetAssetTree
from baton.domain.equipment.asset_views import GetAsset, ListAssets
from baton.domain.equipment.frame import GetFrame
from baton.domain.equipment.mount import ListMounts
from baton.domain.views.asset_integration import GetAssetIntegrationView

STATE_VERBS = (
    *("activate_asset", "enter_asset_maintenance", "exit_asset_maintenance"),
    *("fault_asset", "degrade_asset", "restore_asset"),
)
REPORTED = {"fault_asset": "Faulted", "degrade_asset": "Degraded", "restore_asset": "Nominal"}
"""The condition that each report leads to."""
UPDATE_SETTINGS, REGISTER_CAUTION = REGISTRY.operations["update_asset_settings"], REGISTRY.operations["register_caution"]
AXES = ("x", "y", "z", "rx", "ry", "rz")
MOST_CHILDREN = 50
MOST_CALIBRATIONS = 10

asset = page(
    "/assets/{asset_id}",
    "Asset",
    "One asset: its state, its signals, its settings and what is around it.",
    template="asset.html",
    under=equipment,
)


@dataclass(frozen=True)
class DeclaredValue:
    """A value under a schema, with its unit."""

    name: str
    value: Any
    unit: str | None
    is_set: bool = True


async def load_view(queries: PageQueries) -> Shown:
    """Return the asset that a page is about."""
    return await queries.show(GetAsset, queries.id("asset_id"))


@asset.title_from
async def name_asset(queries: PageQueries) -> str:
    return (await queries.ask(GetAsset, queries.id("asset_id"))).name


@asset.region("head", asks=[GetAsset])
async def load_head(queries: PageQueries) -> Context:
    view = await load_view(queries)
    above = await load_ancestors(queries, view["asset_id"]) if view["parent_id"] and queries.may(GetAssetTree) else []
    buttons = asset_verbs(view, queries)
    by_name = {button.name: button for button in buttons}
    first = [by_name[name] for name in STATE_VERBS]
    own = [settings_button(view, queries), caution_button(view, queries)]
    rest = [one for one in buttons if one.name not in (*STATE_VERBS, UPDATE_SETTINGS.name)]
    return {"view": view, "above": above, "verbs": [*first, *own], "parts": rest, "href": href_of("Asset", view["asset_id"])}


def asset_verbs(view: Mapping[str, object], queries: PageQueries) -> list[VerbButton]:
    """Return the verbs of an asset; a report of the condition that it is in says that it would change nothing."""
    buttons = verbs_of(Asset.aggregate, view, queries)
    condition = view["condition"]
    return [
        replace(one, why_not=f"The asset is {words_of(condition)} already.")
        if REPORTED.get(one.name) == condition and one.why_not is None
        else one
        for one in buttons
    ]


def settings_button(view: Shown, queries: PageQueries) -> VerbButton:
    """Return the button that leads to the settings form of an asset."""
    button = verb_button(UPDATE_SETTINGS, queries, view["lifecycle"], view["asset_id"])
    return replace(button, label="Settings", href=f"{href_of('Asset', view['asset_id'])}/settings")


def caution_button(view: Mapping[str, object], queries: PageQueries) -> VerbButton:
    """Return the button that leads to the form of a caution about an asset."""
    href = form_href(REGISTER_CAUTION, None, **{"target.kind": "Asset", "target.id": view["asset_id"]})
    why_not = verb_button(REGISTER_CAUTION, queries, None, None).why_not
    return VerbButton(REGISTER_CAUTION, "Write a caution", href, why_not)


@asset.region("facts", asks=[GetAsset], watches=("Family",))
async def load_facts(queries: PageQueries) -> Context:
    view = await load_view(queries)
    whole = await queries.show_found(GetAssetIntegrationView, view["asset_id"])
    families = [] if whole is None else whole["families"]
    return {
        "view": view,
        "families": families,
        "settings": declared_settings(families, view["settings"]),
        "capabilities": [] if whole is None else whole["applicable_capabilities"],
        "may_see_families": whole is not None,
        "href": href_of("Asset", view["asset_id"]),
    }


@asset.region("place", asks=[GetAsset], watches=("Mount", "Frame", "Fixture"))
async def load_place(queries: PageQueries) -> Context:
    view = await load_view(queries)
    mounts = await queries.show_if_permitted(ListMounts, installed_asset_id=view["asset_id"], limit=1)
    mount = next(iter((mounts or {"items": []})["items"]), None)
    frame = None if mount is None else await queries.show_found(GetFrame, mount["placement"]["parent_frame_id"])
    placement = [] if mount is None else placement_rows(mount["placement"])
    return {"view": view, "mount": mount, "frame": frame, "placement": placement, "may_see_mounts": mounts is not None}


def declared_values(schema: Shown | None, values: Shown) -> list[DeclaredValue]:
    """Return values with the units of their schema."""
    forms = (schema or {}).get("properties", {})
    return [DeclaredValue(name, value, unit_code(forms.get(name, {}))) for name, value in values.items()]


def declared_settings(families: Iterable[Shown], settings: Shown) -> list[DeclaredValue]:
    """Return every setting that the families declare, those that are set first, and what else is set."""
    forms = {
        name: form for family in families for name, form in ((family["settings_schema"] or {}).get("properties", {})).items()
    }
    known = [DeclaredValue(name, value, unit_code(forms.get(name, {}))) for name, value in settings.items()]
    unset = [DeclaredValue(name, None, unit_code(form), False) for name, form in forms.items() if name not in settings]
    return [*known, *unset]


def placement_rows(placement: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the six numbers of a pose with their tolerances and units."""
    return [
        {
            "name": axis,
            "value": placement[axis],
            "tolerance": placement[f"tol_{axis}"],
            "unit": "rad" if axis[0] == "r" else "mm",
        }
        for axis in AXES
    ]


@asset.region("around", asks=[GetAsset], watches=("Caution", "Calibration", "Run", "Procedure"))
async def load_around(queries: PageQueries) -> Context:
    view = await load_view(queries)
    id = view["asset_id"]
    claims, cautions, listed = await asyncio.gather(
        load_claims(queries),
        queries.show_if_permitted(ListCautions, target_kind="Asset", target_id=id, inherited=True, in_effect=True, limit=20),
        queries.show_if_permitted(ListCalibrations, target_id=id, limit=MOST_CALIBRATIONS, order="desc"),
    )
    calibrations = (
        [] if listed is None else list(await asyncio.gather(*(load_calibration(queries, one) for one in listed["items"])))
    )
    return {
        "view": view,
        "claims": claims.get(id, []),
        "cautions": None if cautions is None else cautions["items"],
        "calibrations": None if listed is None else calibrations,
        "more_calibrations": listed is not None and listed["next_cursor"] is not None,
        "caution": caution_button(view, queries),
    }


async def load_calibration(queries: PageQueries, listed: Shown) -> dict[str, Any]:
    """Return a calibration with its newest revision, and both with their units."""
    whole = await queries.show_found(GetCalibration, listed["calibration_id"])
    quantity = QUANTITIES[CalibrationQuantity(listed["quantity"])]
    newest = whole["revisions"][-1] if whole is not None and whole["revisions"] else None
    return {
        **listed,
        "point": declared_values(quantity.operating_point.schema, listed["operating_point"]),
        "newest": newest,
        "values": [] if newest is None else declared_values(quantity.value.schema, newest["value"]),
    }


@asset.region("tree", asks=[GetAsset, ListAssets], watches=("Run", "Procedure"))
async def load_tree(queries: PageQueries) -> Context:
    view = await load_view(queries)
    below, claims = await asyncio.gather(
        queries.show(ListAssets, parent_id=view["asset_id"], limit=MOST_CHILDREN), load_claims(queries)
    )
    around = Surroundings({}, claims)
    rows = (around.row(view, 0), *(around.row(one, 1) for one in below["items"] if one["lifecycle"] != "Decommissioned"))
    return {"view": view, "branch": branch_of(rows, below["next_cursor"], False)}


@asset.region("signals", asks=[GetAsset], every=2.0)
async def load_signals(queries: PageQueries) -> Context:
    view = await load_view(queries)
    addresses = signal_addresses(view, queries.query.get("signal", ""))
    latest = await load_readings(queries, addresses) if addresses and queries.may(ReadSignals) else None
    prefixes = [one for one in identifiers_of(view) if one.endswith((":", "."))]
    signals = [] if latest is None else [signal_row(one) for one in latest.signals]
    return {
        "may": queries.may(ReadSignals),
        "permission": ReadSignals.operation.command_name,
        "addresses": addresses,
        "prefixes": prefixes,
        "latest": latest,
        "signals": signals,
        "read_href": "?"
        + urlencode({**{name: queries.query[name] for name in ("signal",) if name in queries.query}, "read": "1"}),
        "only_begins": any(one.address in identifiers_of(view) and one.word == NOT_READ for one in signals),
    }


async def load_readings(queries: PageQueries, addresses: tuple[str, ...]) -> LatestReadings | None:
    """Return what was last read of signals; a page that is asked to wait has them read now."""
    if queries.recorded and queries.query.get("read"):
        return await board_of(queries).read(queries, addresses)
    return read_lately(queries, addresses)


@handles("GET", "/assets/{asset_id}/pidinst.json")
async def serve_pidinst(console: Any, request: Request, session: Any) -> Response:
    """Answer with the asset's PIDINST record, as the person who asks may have it."""
    queries: PageQueries = console.queries_of(request, session)
    record = await queries.show(GetAssetPidinst, queries.id("asset_id"))
    headers = [*PAGE_HEADERS, (b"content-disposition", f'inline; filename="pidinst-{queries.id("asset_id")}.json"'.encode())]
    return Response(200, orjson.dumps(record, option=orjson.OPT_INDENT_2), headers, content_type=b"application/json")
