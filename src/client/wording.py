"""The few sentences that the client says itself of work it watches; the service says the others, in its answers."""

import re
from typing import Any

ESCAPE_SEQUENCE = re.compile("(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]")  # colours, concealment, movements of the cursor
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
TERMINAL_CONTROLS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # those that JSON need not escape
SHORTEST_SECONDS = 5  # that words tell apart
LONGEST_REASON = 500


def terminal_text(text: str) -> str:
    """Return a text of the record as a terminal may get it: in one line, without escape sequences, control characters and
    what turns the direction of the text around it."""
    return CONTROLS.sub(" ", DIRECTIONS.sub("", ESCAPE_SEQUENCE.sub("", text)))


def terminal_json(document: str) -> str:
    """Return a JSON text in which such characters are escaped; it says the same."""
    return TERMINAL_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def ending_text(result: Any) -> str:
    """Return how a conduct ended, in words."""
    if unclosed := unclosed_text(result):
        return unclosed if result.failure is None else f"{ending_word(result)}: {result.failure.message} {unclosed}"
    return "succeeded" if result.failure is None else f"{ending_word(result)}: {result.failure.message}"


def unclosed_text(result: object) -> str | None:
    """Return which closing steps of a conduct, or of the phases of one, were not done; None where all were."""
    parts = (result, *getattr(result, "phases", ()))
    unclosed = [failure.target for part in parts for failure in getattr(part, "closing_failures", ())]
    return f"closing was not done ({', '.join(unclosed)}): look at the equipment" if unclosed else None


def ending_word(result: Any) -> str:
    """Return the word for the end of a conduct."""
    if result.succeeded:
        return "succeeded" if unclosed_text(result) is None else "left unclosed"
    return "held" if result.held else "halted" if result.acquisition_halt else "failed"


def pending_text(pending: Any) -> str:
    """Return what a pending request waits for, in words."""
    words = f"asked to {pending.request.lower()} at {pending.since:%H:%M:%S} UTC"
    if pending.step is None:
        return words
    until = "" if pending.until is None else f", until {pending.until:%H:%M:%S} UTC at the latest"
    return f"{words}, waits for {pending.step.label}{until}"


def remaining_text(estimate: Any, passed_seconds: float = 0.0) -> str | None:
    """Return how long the rest of an estimate takes after these seconds, in words; None where that is not known."""
    if estimate is None or estimate.remaining_seconds is None:
        return None
    seconds, is_partial = max(0.0, estimate.remaining_seconds - passed_seconds), estimate.basis == "partly"
    if seconds < SHORTEST_SECONDS:
        return None if is_partial else f"less than {SHORTEST_SECONDS} s left"
    kind = "about" if estimate.to_cap is is_partial else "at most" if estimate.to_cap else "more than"
    return f"{kind} {duration_text(seconds)} left"


def duration_text(seconds: float) -> str:
    """Return a time span in words, coarser the longer it is."""
    if seconds < 60:
        return f"{SHORTEST_SECONDS * round(seconds / SHORTEST_SECONDS)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def failure_text(failure: Any) -> str:
    """Return why something failed: the step and its fault, or what ended it."""
    if failure.source_kind == "lifecycle":
        return f"{failure.error_class}: {failure.message}"
    return step_failure_text(failure)


def step_failure_text(failure: Any) -> str:
    """Return which step failed and why."""
    index = "" if failure.step_index is None else f"[{failure.step_index}]"
    text = f"{failure.source_kind}{index} {failure.target} failed: {failure.error_class}: {failure.message}"
    return text[:LONGEST_REASON]
