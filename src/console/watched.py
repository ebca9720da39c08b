"""What people watch at a beamline, as its root says: signals with value, age and trend, and a camera's latest picture."""

from dataclasses import dataclass

from markupsafe import Markup

from baton.console.display import href_of
from baton.console.page_queries import PageQueries, Shown
from baton.console.signal_readings import TREND_SECONDS, Trend, board_of, read_lately
from baton.console.signal_rows import SignalRow, signal_row
from baton.console.spark_line import spark_line
from baton.domain.conduct.control_signals import ReadSignals, ResolveSignals
from baton.domain.data.acquisition import ListAcquisitions
from baton.domain.equipment.asset_views import GetAsset

WHOLE_TREND = 0.9  # of the half hour; a trend that is shorter says since when it is known


@dataclass(frozen=True)
class WatchedSignal:
    """A signal by the name that people know it by: what was last read, and its trend with the time it begins."""

    name: str
    address: str
    reading: SignalRow | None
    trend: Markup
    begins_at: float | None


@dataclass(frozen=True)
class WatchedBeamline:
    """The signals that people watch at one beamline; `refusal` says why none was read."""

    asset_id: str
    name: str
    camera: str | None
    signals: tuple[WatchedSignal, ...]
    refusal: str | None

    @property
    def is_any(self) -> bool:
        """Whether anything is watched here."""
        return bool(self.signals or self.camera)


async def load_watched(queries: PageQueries, asset_id: str) -> WatchedBeamline:
    """Return what people watch at a beamline, with what was last read of it."""
    view = await queries.show(GetAsset, asset_id)
    overview = view["overview"]
    addresses = tuple(dict.fromkeys(one["address"] for one in overview["signals"]))
    latest = read_lately(queries, addresses) if addresses and queries.may(ReadSignals) else None
    rows = {} if latest is None else {one["address"]: signal_row(one) for one in latest.signals}
    signals = tuple(watched_signal(queries, one, rows.get(one["address"])) for one in overview["signals"])
    return WatchedBeamline(asset_id, view["name"], overview["camera"], signals, None if latest is None else latest.refusal)


def watched_signal(queries: PageQueries, declared: Shown, reading: SignalRow | None) -> WatchedSignal:
    """Return a signal with its trend."""
    trend: Trend = board_of(queries).trend(declared["address"]) if queries.may(ReadSignals) else ()
    now = queries.now.timestamp()
    is_whole = not trend or now - trend[0][0] > TREND_SECONDS * WHOLE_TREND
    line = spark_line(trend, now, declared["name"])
    return WatchedSignal(declared["name"], declared["address"], reading, line, None if is_whole else trend[0][0])


@dataclass(frozen=True)
class LatestPicture:
    """The latest picture on record that a camera took; without an acquisition there is none."""

    camera: str
    taken: Shown | None

    @property
    def href(self) -> str | None:
        """The address of the picture."""
        return None if self.taken is None else f"{href_of('Dataset', self.taken['dataset_id'])}/preview.png"


async def load_picture(queries: PageQueries, asset_id: str) -> LatestPicture | None:
    """Return the latest picture of a beamline's camera, as far as the person may see it; None where no camera is watched."""
    address = (await queries.show(GetAsset, asset_id))["overview"]["camera"]
    if address is None or not queries.may(ResolveSignals, ListAcquisitions):
        return None
    (signal,) = (await queries.show(ResolveSignals, addresses=(address,)))["signals"]
    cameras = [(one["asset_id"], one["name"]) for one in signal["owners"]]
    taken = [await queries.show(ListAcquisitions, producing_asset_id=id, limit=1, order="desc") for id, _ in cameras]
    latest = max((one for page in taken for one in page["items"]), key=lambda one: str(one["recorded_at"]), default=None)
    return LatestPicture(" and ".join(name for _, name in cameras) or address, latest)
