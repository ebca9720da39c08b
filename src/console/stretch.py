"""Stretches of time that pages look back on, on the clock of the facility."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from baton.api.errors import RequestValidationError
from baton.console.page_queries import PageQueries

SHIFT = timedelta(hours=12)
LONGEST = timedelta(days=14)
STEP = 300  # seconds between the places of an axis
EVENING, MORNING = time(20), time(8)
FIRST_YEAR, LAST_YEAR = 2000, 2100


@dataclass(frozen=True)
class Stretch:
    """The time from one moment until before another."""

    begins: datetime
    ends: datetime
    lasts: bool = False  # whether its end is now

    @property
    def length(self) -> timedelta:
        return self.ends - self.begins

    @property
    def on_axis(self) -> "Stretch":
        """The least stretch around it that begins and ends on the axis: a picture does not move with every second."""
        begins, ends = self.begins.timestamp() // STEP * STEP, -(-self.ends.timestamp() // STEP) * STEP
        return Stretch(datetime.fromtimestamp(begins, UTC), datetime.fromtimestamp(ends, UTC), self.lasts)

    def clip(self, begins: datetime, ends: datetime | None) -> tuple[datetime, datetime]:
        """Return the part of something that lies within; what has not ended lasts until the end."""
        return max(begins, self.begins), min(ends or self.ends, self.ends)


def today(now: datetime, zone: ZoneInfo) -> Stretch:
    """Return the day until now."""
    return Stretch(on_clock(now.astimezone(zone).date(), time(), zone), now, lasts=True)


def last_night(now: datetime, zone: ZoneInfo) -> Stretch:
    """Return the night before this day, or as much of it as is over."""
    day = now.astimezone(zone).date()
    begins, ends = on_clock(day - timedelta(days=1), EVENING, zone), on_clock(day, MORNING, zone)
    return Stretch(begins, min(ends, now), lasts=now < ends)


def on_clock(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Return a time of the facility's clock as an instant; its distance to another is right where the clock is changed."""
    return datetime.combine(day, at, zone).astimezone(UTC)


def stretch_of(queries: PageQueries) -> Stretch:
    """Return the stretch that an address names by `from` and `to`; without them, the last twelve hours."""
    begins, ends = (read_time(queries.query.get(name, ""), name, queries.zone) for name in ("from", "to"))
    until = min(ends or queries.now, queries.now)
    since = begins or until - SHIFT
    if not timedelta() < until - since <= LONGEST:
        msg = f"The time must end after it begins, and be at most {LONGEST.days} days long"
        raise RequestValidationError.at("query", "from", msg=msg)
    return Stretch(since, until, lasts=until == queries.now)


def read_time(text: str, name: str, zone: ZoneInfo) -> datetime | None:
    """Return a time as an address has it, on the clock of the facility where it names no other."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or not FIRST_YEAR <= at.year < LAST_YEAR:
        raise RequestValidationError.at(
            "query", name, msg="It must be a time such as 2026-11-18T22:00", type="datetime_parsing"
        )
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)


def written_time(at: datetime, zone: ZoneInfo) -> str:
    """Return a time as a form of a browser writes it."""
    return at.astimezone(zone).strftime("%Y-%m-%dT%H:%M")
