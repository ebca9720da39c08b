"""Readers of a conduct: whatever they take at a time, and however often they come back, they are told the same."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baton.application.conduct.conduct_reader import ConductWatch, ReadCursor, RecordSlice
from baton.domain.conduct.frames import LedgerRow, Outline
from baton.domain.conduct.point_list import PointTrack
from baton.domain.conduct.points import PlacedPoint, PointPlan, PointValue
from tests.support.domain.world import START, new_id
from tests.support.domain.written_conducts import OPENED, WrittenConduct, conducts

Frames = list[tuple[int, str]]
EVERYTHING = 10_000


def watch_of(conduct: WrittenConduct, behind: int, limit: int) -> ConductWatch:
    """A reader behind an ordinal, who looks at the stream from its beginning."""
    return ConductWatch(conduct.outline, ReadCursor(behind, OPENED), limit)


def look(conduct: WrittenConduct, watch: ConductWatch, upto: int | None = None) -> Frames:
    """What one look tells; only so much was written by then."""
    rows, events = conduct.read(watch.cursor.ordinal, watch.cursor.version, watch.limit, upto)
    return [(frame.ordinal, frame_text(frame)) for frame in watch.take_frames(RecordSlice(rows, events, None))]


def frame_text(frame: Any) -> str:
    return f"{frame.kind.value} {frame.data.model_dump(exclude={'result'})}"


def read_frames(conduct: WrittenConduct, behind: int = 0, limit: int = EVERYTHING) -> Frames:
    """Everything that a reader is told who looks again and again until there is nothing to look at."""
    watch, found = watch_of(conduct, behind, limit), []
    while True:
        before = watch.cursor
        found += look(conduct, watch)
        if watch.cursor == before:
            return found


@given(conducts(), st.integers(4, 9))
def test_a_reader_is_told_everything_once_however_little_it_takes_at_a_time(conduct: WrittenConduct, limit: int) -> None:
    whole = read_frames(conduct)
    assert read_frames(conduct, limit=limit) == whole
    silent = [one for one in conduct.written if isinstance(one, LedgerRow) and (one.mark, one.result) == ("deposit", "ok")]
    assert len(whole) == len(conduct.written) - len(silent)


@given(conducts(), st.integers(4, 9), st.data())
def test_a_reader_that_comes_back_is_told_what_it_missed_and_nothing_else(
    conduct: WrittenConduct, limit: int, data: st.DataObject
) -> None:
    whole = read_frames(conduct)
    seen = data.draw(st.integers(0, len(whole)))
    assert read_frames(conduct, whole[seen - 1][0] if seen else 0, limit) == whole[seen:]


@given(conducts(), st.integers(4, 9), st.data())
def test_a_reader_that_looks_while_it_is_written_is_told_the_same(
    conduct: WrittenConduct, limit: int, data: st.DataObject
) -> None:
    watch, found = watch_of(conduct, 0, limit), []
    for upto in range(len(conduct.written)):
        if data.draw(st.booleans()):
            found += look(conduct, watch, upto)
    while news := look(conduct, watch):
        found += news
    assert found == read_frames(conduct)


def test_the_open_point_is_told_at_most_once_a_second_and_only_where_it_has_grown() -> None:
    outline = Outline(new_id(), new_id(), "ConductProcedure", 2, 0, OPENED)
    watch = ConductWatch(outline, ReadCursor(2, OPENED), track=PointTrack(outline, PointPlan(), ()))
    seen = []
    for tenth, value in enumerate([None, *range(25), *[25] * 10]):
        watch.open_point = PlacedPoint(2, START, 0, 0, (), {"flux": PointValue(value)})
        frame = watch.open_frame(START + timedelta(seconds=tenth / 10))
        seen += [] if frame is None else [(tenth, frame.data.model_dump()["values"]["flux"], frame.ordinal)]
    assert seen == [(0, None, 2), (10, 9, 2), (20, 19, 2), (30, 25, 2)]
