"""What stands on the beam path of a beamline: the beam, and the assets right below its root."""

from collections.abc import Mapping

from markupsafe import Markup

from baton.console.beam_path import MOST_STATIONS, PathStation, beam_path
from baton.console.display import GOOD, LOOK, PLAIN, STOP, href_of, look_of, words_of
from baton.console.page_queries import PageQueries, Shown
from baton.console.signal_rows import identifiers_of
from baton.console.watched import WatchedSignal, load_watched
from baton.domain.equipment.asset import AssetLifecycle
from baton.domain.equipment.asset_views import GetAsset, ListAssets
from baton.domain.recipe.plan import GetPlan
from baton.domain.supply.coverage import PHOTON_BEAM
from baton.domain.views.beamline_now import GetBeamlineNow

ASKED = (GetBeamlineNow, ListAssets, GetAsset)
GRAVITY = (STOP, LOOK, PLAIN, GOOD)


async def load_path(queries: PageQueries, asset_id: str) -> Markup:
    """Return the picture of a beamline; none where nothing hangs below its root."""
    now, root = await queries.show(GetBeamlineNow, asset_id), await queries.show(GetAsset, asset_id)
    listed = await queries.show(ListAssets, parent_id=asset_id, limit=50)
    below = [one for one in listed["items"] if one["lifecycle"] != AssetLifecycle.DECOMMISSIONED]
    if not below:
        return Markup("")
    permits = {one["enclosure_id"]: one for one in now["permits"]}
    plans = [await queries.show_found(GetPlan, run["plan_id"]) for run in now["runs"]]
    used = {id for plan in plans if plan is not None for id in plan["asset_ids"]}
    watched = (await load_watched(queries, asset_id)).signals
    shown = below[: MOST_STATIONS - 1]
    wholes = [await queries.show(GetAsset, one["asset_id"]) for one in shown]
    stations = [station_of(one, root, permits, watched, one["asset_id"] in used) for one in wholes]
    source = source_of(now)
    label = f"The beam path of {now['name']}: its devices in the order that they are on record, with their states"
    return beam_path([source, *stations], len(below) - len(shown), label)


def source_of(now: Shown) -> PathStation:
    """Return the beam as a station; where nothing supplies it, that is not known."""
    beams = [one for one in now["supplies"] if one["kind"] == PHOTON_BEAM]
    beams.sort(key=lambda one: look_of(one["status"]) != GOOD)
    if not beams:
        return PathStation("Beam", "/console/safety", PLAIN, "Not on record")
    beam = beams[0]
    return PathStation(beam["name"], href_of("Supply", beam["supply_id"]), look_of(beam["status"]), words_of(beam["status"]))


def station_of(
    asset: Shown, root: Shown, permits: Mapping[str, Shown], watched: tuple[WatchedSignal, ...], in_use: bool
) -> PathStation:
    """Return an asset as a station, in the hutch of its own or of its root, with the watched signal that it owns."""
    states = [asset["condition"], *([asset["lifecycle"]] if asset["lifecycle"] == AssetLifecycle.MAINTENANCE else [])]
    state = min(states, key=lambda one: GRAVITY.index(look_of(one)))
    permit = permits.get(asset["located_in_enclosure_id"] or root["located_in_enclosure_id"] or "")
    own = tuple(one.rstrip(":.") for one in identifiers_of(asset))
    signal = next((one for one in watched if own and one.address.startswith(own)), None)
    return PathStation(
        asset["name"],
        href_of("Asset", asset["asset_id"]),
        look_of(state),
        words_of(state),
        hutch=permit["name"] if permit else "",
        hutch_look=look_of(permit["permit_status"]) if permit else "",
        hutch_word=words_of(permit["permit_status"]) if permit else "",
        reading=signal.reading.shown if signal is not None and signal.reading is not None else "",
        in_use=in_use,
    )
