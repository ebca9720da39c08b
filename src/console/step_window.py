"""Steps as people read them: what each does in words, its state by sign and word, which part of a list is shown, and a strip
that shows all of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from baton.console.display import number_text
from baton.console.page_queries import Shown
from baton.domain.conduct.step_list import StepState
from baton.domain.step.step_words import operand_words, with_unit

SHOWN_STEPS = 60
STRIP_WIDTH, STRIP_HEIGHT, THINNEST = 900, 22, 3.0
SIGNS = {
    StepState.DONE: ("good", "✓"),
    StepState.RUNNING: ("live", "●"),
    StepState.FAILED: ("stop", "✗"),
    StepState.UNKNOWN: ("look", "▲"),
    StepState.SKIPPED: ("plain", "»"),
    StepState.AHEAD: ("plain", "○"),
}  # How each state looks, and its sign.
PLAIN_STATES = (StepState.AHEAD, StepState.DONE)
"""What the strip is made of; the other states are drawn over them, and never too thin to be seen."""
NOT_DONE = "not done"  # what is ahead is called where nothing continues any more


@dataclass(frozen=True)
class StepLine:
    """One step as a row of the page."""

    number: int
    words: str
    address: str | None
    state: str
    look: str
    sign: str
    word: str
    outcome: str
    wrong: str | None
    seconds: float | None
    attempt_count: int
    deviates: bool


@dataclass(frozen=True)
class StepPager:
    """Where the other parts of a list are, by the numbers of their first steps; none where there is no such part."""

    first: int | None
    previous: int | None
    next: int | None
    last: int | None


def step_line(item: Shown, *, over: bool) -> StepLine:
    """Return one step as a row; where the procedure is over, what is ahead is not done any more."""
    state = StepState(item["state"])
    look, sign = SIGNS[state]
    return StepLine(
        number=item["step_index"] + 1,
        words=item["words"],
        address=item["step"].get("address"),
        state=state.value,
        look=look,
        sign=sign,
        word=NOT_DONE if over and state is StepState.AHEAD else state.value,
        outcome=outcome_text(item),
        wrong=item["message"] if state in (StepState.FAILED, StepState.UNKNOWN) else None,
        seconds=item["seconds"],
        attempt_count=item["attempt_count"],
        deviates=item["deviates"],
    )


def outcome_text(item: Shown) -> str:
    """Return what a step read or captured, with its unit."""
    if item["captured_value"] is not None:
        return f"{item['capture_name']} = {with_unit(number_text(item['captured_value']), item['unit'])}"
    return "" if item["reading"] is None else f"reads {with_unit(operand_words(item['reading']), item['unit'])}"


def pager_of(first_index: int, shown: int, count: int) -> StepPager:
    """Return where the other parts of a list are."""
    last = max(0, count - SHOWN_STEPS)
    return StepPager(
        first=1 if first_index > 0 else None,
        previous=max(0, first_index - SHOWN_STEPS) + 1 if first_index > 0 else None,
        next=first_index + shown + 1 if first_index + shown < count else None,
        last=last + 1 if first_index < last else None,
    )


def counts_of(outline: Sequence[Shown], *, over: bool) -> list[dict[str, Any]]:
    """Return how many steps are in each state, with its sign and word."""
    counts = dict.fromkeys(SIGNS, 0)
    for stretch in outline:
        counts[StepState(stretch["state"])] += stretch["count"]
    return [
        {
            "look": SIGNS[state][0],
            "sign": SIGNS[state][1],
            "word": NOT_DONE if over and state is StepState.AHEAD else state.value,
            "count": count,
        }
        for state, count in counts.items()
        if count
    ]


def strip(outline: Sequence[Shown], first_index: int, shown: int, label: str) -> Markup:
    """Return a picture of a whole list, with a frame around the part that is shown."""
    count = sum(stretch["count"] for stretch in outline)
    if not count:
        return Markup("")
    scale = STRIP_WIDTH / count
    ordered = sorted(outline, key=lambda stretch: StepState(stretch["state"]) not in PLAIN_STATES)
    parts = []
    for stretch in ordered:
        state = StepState(stretch["state"])
        x, width = stretch["first_index"] * scale, stretch["count"] * scale
        if state not in PLAIN_STATES and width < THINNEST:
            x, width = min(max(0.0, x + width / 2 - THINNEST / 2), STRIP_WIDTH - THINNEST), THINNEST
        parts.append(f'<rect class="step {state.value}" x="{x:.2f}" y="4" width="{width:.2f}" height="{STRIP_HEIGHT - 8}"/>')
    if shown < count:
        x, width = first_index * scale, max(shown * scale, THINNEST)
        parts.append(f'<rect class="shown" x="{x:.2f}" y="1" width="{width:.2f}" height="{STRIP_HEIGHT - 2}" rx="2"/>')
    size = f'viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}" preserveAspectRatio="none"'
    return Markup(f'<svg class="strip" {size} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>')
