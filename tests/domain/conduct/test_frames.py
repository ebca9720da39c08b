"""Frames of a conduct's stream are numbered by their place, and say how a conduct went."""

from itertools import pairwise
from typing import Any
from uuid import UUID

from hypothesis import given, settings

from baton.domain.conduct.frames import FrameKind, LedgerPosition, LedgerRow, Outline, StreamRow, frames
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.progress import ConductPhase
from baton.domain.procedure.procedure import ProcedureConducted
from baton.domain.step.results import ConductResult
from tests.support.domain.written_conducts import CONDUCT, OPENED, PROCEDURE, WrittenConduct, conducts, row, stamp_event


@settings(max_examples=2 * settings().max_examples)
@given(conducts())
def test_ordinals_grow_in_the_order_in_which_a_conduct_writes(conduct: WrittenConduct) -> None:
    places = []
    for one in conduct.written:
        alone = ([one], []) if isinstance(one, LedgerRow) else ([], [one])
        places += [frame.ordinal for frame in frames(conduct.outline, *alone, 0, 500)]
    assert all(before < after for before, after in pairwise(places)), places
    assert all(0 < place <= conduct.outline.end for place in places)


def flat_outline(**fields: Any) -> Outline:
    form = {"procedure_id": PROCEDURE, "conduct_id": CONDUCT, "command_name": "ConductProcedure", "opened_version": OPENED}
    return Outline(**{**form, "step_count": 3, "closing_count": 1, **fields})


def test_a_step_that_was_tried_again_is_told_once() -> None:
    spot = LedgerPosition(False, 0, 1)
    rows = [row(spot, Mark.IN_FLIGHT, "in_flight"), row(spot, Mark.IN_FLIGHT, "in_flight"), row(spot, Mark.OUTCOME, "ok")]
    assert [frame.data.state for frame in frames(flat_outline(), rows, [], 0, 500)] == ["started", "ok"]  # type: ignore[attr-defined]


def test_a_late_reader_gets_frames_from_the_step_that_the_snapshot_names() -> None:
    outline = flat_outline()
    assert outline.before(ConductPhase.OPENED, None, None) == 0
    assert outline.before(ConductPhase.WALKING, None, 2) == outline.step(LedgerPosition(False, 0, 2), Mark.IN_FLIGHT) - 1
    assert outline.before(ConductPhase.CLOSING, None, None) == outline.step(LedgerPosition(True, 0, 0), Mark.IN_FLIGHT) - 1
    assert outline.before(ConductPhase.ENDED, None, 2) == outline.end - 1


def end_frame(**fields: Any) -> FrameKind:
    defaults = {"procedure_id": PROCEDURE, "conduct_id": CONDUCT, "command_name": "ConductProcedure", "succeeded": False}
    event = stamp_event(ProcedureConducted(conduct_id=CONDUCT, result=ConductResult.model_validate({**defaults, **fields})))
    (frame,) = frames(flat_outline(), [], [StreamRow(9, event)], 0, 500)
    return frame.kind


def test_the_last_frame_says_how_it_ended() -> None:
    assert end_frame() is FrameKind.ENDED
    assert end_frame(held=True) is FrameKind.HELD
    assert end_frame(acquisition_halt=True) is FrameKind.HALTED


def test_after_the_end_of_a_conduct_there_are_no_frames_of_a_later_one() -> None:
    other = UUID(int=7)
    result = ConductResult(procedure_id=PROCEDURE, conduct_id=other, command_name="ConductProcedure", succeeded=True)
    first = result.model_copy(update={"conduct_id": CONDUCT})
    events = [
        StreamRow(8, stamp_event(ProcedureConducted(conduct_id=CONDUCT, result=first))),
        StreamRow(12, stamp_event(ProcedureConducted(conduct_id=other, result=result))),
    ]
    (frame,) = frames(flat_outline(), [], events, 0, 500)
    assert frame.data.conduct_id == CONDUCT  # type: ignore[attr-defined]
